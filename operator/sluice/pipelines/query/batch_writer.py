"""Write the batches of a query: each one's rows go to all sinks and into the ledger."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sluice.core.query.ledger import BatchRecord, BegunRecord, check_repeated
from sluice.core.query.rows import ResultRow, digest, in_order, keys_digest
from sluice.core.values.text import size
from sluice.engine.streams.writing import patiently
from sluice.errors import InfrastructureError, StateTooLarge
from sluice.pipelines.query.observations import BatchTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from sluice.engine.query.ledger import QueryLedger
    from sluice.engine.query.results import ResultAppender
    from sluice.pipelines.query.checkpoint import QueryCheckpoint
    from sluice.pipelines.query.observations import BatchCounts, BatchProgress

    Listener = Callable[[BatchRecord, Sequence[ResultRow]], None]
    """Is told of each batch once it is whole, with its rows."""


class BatchWriter:
    """Takes Spark's batches, and writes their rows to all sinks and the ledger.

    Args:
        ledger: the ledger, which this attempt owns.
        sinks: the sinks.
        checkpoint: the checkpoint of the version.
        counts: returns the events that are no rows, of the batch that was read last.
        progress: returns how the last batch went.
        most_state: see `Run`.
        listener: see `Listener`.

    Attributes:
        rows: the rows of the batches so far.
        failure: what ended a batch; None if nothing has.
    """

    def __init__(
        self,
        ledger: QueryLedger,
        sinks: Sequence[ResultAppender],
        checkpoint: QueryCheckpoint,
        *,
        counts: Callable[[int], BatchCounts],
        progress: Callable[[], BatchProgress | None],
        most_state: int,
        listener: Listener,
    ) -> None:
        self._ledger = ledger
        self._sinks = sinks
        self.checkpoint = checkpoint
        self._counts = counts
        self._progress = progress
        self._most_state = most_state
        self._times = BatchTimes()
        self._listener = listener
        self.rows = 0
        self.failure: BaseException | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a batch, as `compile.events_of` has its rows.

        Spark calls this again for a batch that it does not know to be done.
        """
        try:
            self._write(frame, batch)
        except BaseException as error:
            self.failure = error
            # Py4J answers the JVM for an Exception only, and Spark would wait for the answer.
            raise InfrastructureError(f"the batch ended: {error!r}") from error

    def _write(self, frame: DataFrame, batch: int) -> None:
        taken = frame.toArrow()
        counts = self._counts(batch)
        progress = self._progress()
        self._check_state(progress)
        keys, texts = (column.to_pylist() for column in taken.columns)
        rows = in_order(map(ResultRow, keys, texts))
        planned = self.checkpoint.planned(batch)
        begun = BegunRecord(batch=batch, ends=planned.ends, keys=keys_digest(rows), part=1)
        check_repeated(self._ledger.state, begun)
        if self._ledger.state.whole < batch:
            self._append(begun, rows)
            record = BatchRecord(
                batch=batch,
                ends=planned.ends,
                rows=len(rows),
                sha256=digest(rows),
                late=counts.late,
                malformed=counts.malformed,
                **self._measured(progress),
                watermark=planned.watermark,
                attempt=self._ledger.attempt,
            )
            self._ledger.add(record)
            self.rows += len(rows)
            self._listener(record, rows)

    def _measured(self, progress: BatchProgress | None) -> dict[str, Any]:
        """Return what a record says of the last batch; of an earlier one, if it is not known."""
        latency = self._times.after(progress)
        last = self._ledger.state.last
        if progress is None and last is not None:
            kept = {"state_rows": last.state_rows, "state_bytes": last.state_bytes}
            return {**kept, "latency": latency or last.latency}
        return {
            "state_rows": 0 if progress is None else progress.state_rows,
            "state_bytes": 0 if progress is None else progress.state_bytes,
            "latency": latency,
        }

    def _check_state(self, progress: BatchProgress | None) -> None:
        """Check that windows have room, before the JVM ends for want of memory, without a word.

        Raises:
            StateTooLarge: they take too much.
        """
        if progress is not None and progress.state_bytes > self._most_state:
            raise StateTooLarge(
                f"{progress.state_rows:,} rows of open windows take "
                f"{size(progress.state_bytes)} of {size(2 * self._most_state)} of memory"
            )

    def _append(self, begun: BegunRecord, rows: Sequence[ResultRow]) -> None:
        """Append the rows of a batch to all sinks, once the ledger says that it was begun."""
        if not rows:
            return
        known = self._ledger.state.begun
        if known is None:
            most = min(sink.part_rows(rows) for sink in self._sinks)
            known = begun.model_copy(update={"part": most})
            self._ledger.add(known)
        else:
            patiently(self._ledger.check_now)
        for sink in self._sinks:
            patiently(partial(sink.append, begun.batch, rows, known.part))
