"""Run a query by Arrow: read on, fold events into windows, and write what is final.

A batch ends once it has rows for the sinks, or after a second. What it reads is planned before a
row of it is written. A repeated batch reads up to the same position, and begins with the same
windows and the same watermark. So it gives the same rows.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sluice.core.query.arrow.event_times import EventTimes
from sluice.core.query.arrow.texts import result_rows
from sluice.core.query.arrow.windows import OpenWindows
from sluice.core.query.checks import FIELD
from sluice.core.tables.beats import Beats, beat_of
from sluice.core.tables.options import TableOptions
from sluice.core.tables.positions import StreamPosition, is_finished
from sluice.engine.query.batches import check_state
from sluice.engine.streams.writing import patiently
from sluice.engine.tables.opening import opened
from sluice.engine.tables.reading import Limit, batches, next_position, stretches_between
from sluice.errors import CheckpointDiverged, InvalidQuery
from sluice.pipelines.query.arrow.checkpoint import ArrowCheckpoint, PlannedOffset, Snapshot
from sluice.pipelines.query.arrow.compile import decoder_of
from sluice.pipelines.query.arrow.open_batch import OpenBatch, SnapshotPace
from sluice.pipelines.query.attempt import begun
from sluice.pipelines.query.compile import options_of
from sluice.pipelines.query.observations import BatchProgress, BatchTimes, log_late, log_malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.config import Settings
    from sluice.core.query.arrow.program import Program
    from sluice.core.query.plan import QueryPlan
    from sluice.engine.tables.source import TableSource
    from sluice.pipelines.programs.stores import Stores
    from sluice.pipelines.query.attempt import QueryAttempt, Run

_POLL: Final = 0.01
"""Seconds until a stream is looked at again that had events a moment ago."""

_IDLE_POLL: Final = 0.05
"""Seconds until one is looked at again that had none for a second."""

_SOONEST: Final = 0.02
"""Seconds from the beginning of a batch to that of the next one, at least."""

_LONGEST: Final = 1.0
"""Seconds after which a batch ends without rows, so that the ledger tells how far the query is."""

_NO_TIMES: Final = pa.array([], pa.int64())

_STEP: Final = 8 << 20
"""Bytes that are read at a time."""


def run_by_arrow(
    plan: QueryPlan,
    program: Program,
    stores: Stores,
    settings: Settings,
    run: Run,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Run a query by Arrow until it ends or is interrupted. Return the number of its new rows.

    Args:
        plan: the plan.
        program: what Arrow does.
        stores: opens stores.
        settings: the process's settings.
        run: how the query is run.
        sleep: waits for seconds.

    Raises:
        QueryChanged, CheckpointLost, CheckpointDiverged: see `core.query.versions.chosen`.
        QuerySuperseded: another attempt has begun.
        InvalidQuery: a computation failed: a number had no room, or was divided by zero.
        ResultTooLarge, StateTooLarge, MalformedEvents, SourceTruncated, BackendError: what ended a
            batch. All batches before it are whole.
    """
    (source,) = plan.sources
    place = TableOptions.read(options_of(source)).place
    with (
        begun(plan, stores, settings, run, ArrowCheckpoint) as attempt,
        opened(place, settings) as stream,
    ):
        query = ArrowQuery(plan, program, stream, attempt, run, sleep=sleep)
        try:
            query.run()
        finally:
            attempt.checkpoint.close()
        return attempt.batches.rows


class ArrowQuery:
    """A query that Arrow runs.

    Args:
        plan: the plan.
        program: what Arrow does.
        source: the stream.
        attempt: owns ledger and sinks.
        run: how the query is run.
        clock: gives seconds.
        sleep: waits for seconds.
    """

    def __init__(
        self,
        plan: QueryPlan,
        program: Program,
        source: TableSource,
        attempt: QueryAttempt[ArrowCheckpoint],
        run: Run,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        (planned,) = plan.sources
        idle = None if planned.event_time is None else planned.event_time.idle_after_ms
        self._plan, self._program, self._run = plan, program, run
        self._name, self._time = planned.name, planned.event_time
        self._source = source
        self._decoder = decoder_of(planned)
        self._batches = attempt.batches
        self._checkpoint = attempt.checkpoint
        self._beats = None if idle is None else Beats(idle)
        self._clock, self._sleep = clock, sleep
        self._durations = BatchTimes()
        self._last: BatchProgress | None = None
        self._taken = clock()
        self._pace = SnapshotPace(clock)
        (begins,) = attempt.version.begins
        self._goes_on(Snapshot(-1, dict(begins), 0, self._schema.empty_table(), EventTimes()))

    @property
    def _schema(self) -> pa.Schema:
        folding = self._program.folding
        return pa.schema([]) if folding is None else folding.schema

    def run(self) -> None:
        """Repeat what was cut off, and go on until the end of the query."""
        self._recover()
        until = patiently(self._source.tail) if self._run.once else None
        while True:
            moved = self._read(until)
            at_end = until is not None and self._place == until
            if self._is_due(at_end=at_end):
                self._end(at_end=at_end)
                self._keep()
            elif at_end:
                self._keep(at_end=True)
                return
            elif not moved:
                self._keep()
                self._sleep(self._pause())

    def _goes_on(self, snapshot: Snapshot) -> None:
        """Go on behind a state."""
        self._offset = snapshot.offset
        self._place = StreamPosition.from_json(snapshot.offset)
        self._ended = snapshot.offset
        self._watermark = snapshot.watermark
        self._times = snapshot.times
        self._pace.kept(snapshot.batch)
        folding = self._program.folding
        self._windows = None if folding is None else OpenWindows(folding, snapshot.windows)
        self._open = OpenBatch(snapshot.batch + 1, self._clock() - self._run.interval_seconds)

    def _recover(self) -> None:
        """Go on behind the last state, and repeat the batches that were planned behind it."""
        self._checkpoint.tidy(self._batches.attempt)
        snapshot, behind = self._checkpoint.read(self._schema)
        if snapshot is not None:
            self._goes_on(snapshot)
        for planned in behind:
            end = StreamPosition.from_json(planned.offset)
            limit = Limit(bytes=self._run.batch_bytes)
            while self._place != end:
                place = self._place
                self._take(patiently(partial(self._next, limit, end)))
                if self._place == place:
                    raise CheckpointDiverged(
                        f"batch {planned.batch} reads up to a position that the stream has not"
                    )
            self._offset = planned.offset
            self._finish(planned)
        self._keep(at_end=True)

    def _next(self, limit: Limit, until: StreamPosition | None) -> StreamPosition:
        return next_position(self._source, self._place, limit, until=until)

    def _read(self, until: StreamPosition | None) -> bool:
        """Read on. Return whether there was anything."""
        wait = self._open.began + self._run.interval_seconds - self._clock()
        if wait > 0 and until is None:
            self._sleep(wait)
        began = self._clock()
        before = self._open.bytes
        most = min(_STEP, max(1, self._run.batch_bytes - before))
        end = patiently(partial(self._next, Limit(bytes=most), until))
        offset = end.to_json()
        moved = end != self._place
        if self._beats is not None and until is None:
            offset = self._beats.after(self._offset, offset)
        if moved:
            self._take(end)
            self._taken = began
        self._offset = offset
        self._open.busy = self._clock() - began
        self._open.follows = 2 * (self._open.bytes - before) > most
        return moved

    def _pause(self) -> float:
        """Return the seconds until the stream is looked at again, if it has nothing new."""
        if self._run.interval_seconds:
            return _LONGEST
        return _IDLE_POLL if self._clock() - self._taken > _LONGEST else _POLL

    def _take(self, end: StreamPosition) -> None:
        """Take in the events up to a position."""
        stretches = patiently(partial(stretches_between, self._source, self._place, end))
        self._open.bytes += sum(one.end - one.start for one in stretches)
        rejected = self._decoder.rejected.count
        for stretch in stretches:
            for batch in batches(self._source, [stretch], self._decoder):
                if len(batch):
                    with _computing():
                        self._fold(batch, stretch.segment)
            self._times.see(stretch.segment, _NO_TIMES)
        self._open.malformed += self._decoder.rejected.count - rejected
        self._times.enter(self._place, end)
        self._place = end

    def _fold(self, batch: pa.RecordBatch, segment: int) -> None:
        if self._time is not None:
            micros = pc.cast(batch.column(self._time.column), pa.int64())
            self._times.see(segment, micros)
            self._open.count_late(micros, self._watermark)
        rows = self._program.events(batch)
        if self._windows is None:
            self._open.rows += result_rows(self._program.result, self._plan.keys, rows)
        elif rows.size:
            self._windows.add(rows.columns, rows.size, self._watermark)

    def _mark(self, newest: int | None) -> int:
        """Return the watermark, once the newest event that counts is so old."""
        if self._time is None:
            return 0
        return max(
            self._watermark, max(newest or 0, beat_of(self._offset)) - self._time.lateness_ms
        )

    def _held(self, *, at_end: bool) -> int:
        """Return the watermark behind the batch. What is behind in the stream holds it back."""
        if at_end or self._time is None:
            return self._mark(self._times.newest)
        place = self._place
        sizes = patiently(partial(self._source.infos, [one.id for one in place.segments]))
        ended = all(is_finished(one, sizes) for one in place.segments) and not any(
            patiently(partial(self._source.generations, place))[1:]
        )
        return self._mark(self._times.reached(place, sizes, ended=ended))

    def _is_due(self, *, at_end: bool) -> bool:
        """Tell whether the batch ends here."""
        if self._offset == self._ended:
            return False
        batch, passed = self._open, self._clock() - self._open.began
        if at_end or batch.is_full(self._run.batch_bytes):
            return True
        if self._run.interval_seconds:
            return not batch.follows  # batches that begin seldom are large
        return passed >= _LONGEST or (passed >= _SOONEST and self._has_rows())

    def _has_rows(self) -> bool:
        """Tell whether the batch has rows for the sinks."""
        windows = self._windows
        if windows is None:
            return bool(self._open.rows)
        # The first look costs nothing, and most often nothing is final.
        return windows.is_due(self._mark(self._times.newest)) and windows.is_due(
            self._held(at_end=False)
        )

    def _end(self, *, at_end: bool) -> None:
        planned = PlannedOffset(self._open.number, self._offset, self._held(at_end=at_end))
        self._checkpoint.plan(planned, self._batches.attempt)
        self._finish(planned)

    def _finish(self, planned: PlannedOffset) -> None:
        """Write the rows of the batch, which is planned, and begin the next one."""
        began = self._clock()
        batch, mark = self._open, planned.watermark
        rows = batch.rows
        if self._windows is not None:
            check_state(self._windows.rows, self._windows.bytes, self._run.most_state)
            with _computing():
                closed = self._program.results(self._windows.close(mark))
                rows = result_rows(self._program.result, self._plan.keys, closed)
        if batch.number > self._batches.state.whole:
            log_late(self._name, batch.number, batch.late, batch.oldest)
            log_malformed(self._name, batch.number, batch.malformed)
        self._batches.write(
            batch.number,
            (StreamPosition.from_json(self._offset).to_json(),),
            rows,
            watermark=mark,
            late=batch.late,
            malformed=batch.malformed,
            **self._measured(),
        )
        millis = round(1000 * (batch.busy + self._clock() - began))
        self._last = BatchProgress(batch.number, millis, 0, 0)
        self._watermark, self._ended = mark, self._offset
        self._open = OpenBatch(batch.number + 1, began)

    def _measured(self) -> dict[str, Any]:
        """Return what a record says of windows, and of the time that batches took before it."""
        latency = self._durations.after(self._last)
        if self._windows is None:
            return {"latency": latency}
        return {
            "latency": latency,
            "state_rows": self._windows.rows,
            "state_bytes": self._windows.bytes,
        }

    def _keep(self, *, at_end: bool = False) -> None:
        """Write the state behind the last batch down, if it is time."""
        batch = self._open.number - 1
        if self._offset != self._ended:
            return  # events of the next batch are among the windows
        if self._pace.is_due(batch, at_end=at_end):
            windows = self._schema.empty_table() if self._windows is None else self._windows.table()
            snapshot = Snapshot(batch, self._ended, self._watermark, windows, self._times)
            self._batches.check_now()  # another attempt may read the files
            self._checkpoint.keep(snapshot, self._batches.attempt)
            self._pace.kept(batch)


@contextmanager
def _computing() -> Iterator[None]:
    """Name a computation that fails.

    Raises:
        InvalidQuery: it failed.
    """
    try:
        yield
    except pa.ArrowException as error:
        raise InvalidQuery(
            f"a value of the query cannot be computed: {error}",
            field=FIELD,
            remedy="Leave out the events that lead to it, in another query, or with onChange: "
            "Restart.",
        ) from error
