"""Read a stream that goes on, batch after batch, from one exact position to the next."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pyspark_sluice.batch import read_partition
from pyspark_sluice.beats import (
    BeatPartition,
    beat,
    columns_of_events,
    dropped,
    marked,
    time_of_beats,
)
from pyspark_sluice.lag import BYTES_BEHIND
from pyspark_sluice.watermarks import DatedPartition, watermark_of
from sluice.config import Settings
from sluice.core.tables.beats import Beats, beat_of
from sluice.core.tables.columns import DROPPED
from sluice.core.tables.options import TAIL
from sluice.core.tables.positions import StreamPosition
from sluice.engine.tables.opening import located, opened
from sluice.engine.tables.reading import (
    NO_LIMIT,
    Limit,
    next_position,
    size_between,
    stretches_between,
)
from sluice.errors import InvalidSpec, SourceTruncated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition

    from sluice.core.tables.decoding import Rejected
    from sluice.core.tables.options import TableOptions
    from sluice.engine.tables.source import TableSource


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader of micro-batches. Between two offsets, no key has events of two segments.

    Offsets are positions of the stream (`StreamPosition.to_json`). The same two offsets always give
    the same rows. The planner's process keeps one connection; tasks get a pickled copy without it.

    Args:
        options: the options, which hold no password.
        schema: the columns.

    Raises:
        InvalidSpec: an option is wrong, or the schema does not fit the format.
    """

    def __init__(self, options: TableOptions, schema: pa.Schema) -> None:
        idle = options.idle_after_ms
        self._beats = None if idle is None else Beats(idle)
        self._time = None if idle is None else time_of_beats(options, schema)
        self._events = columns_of_events(schema)
        options.decoder(self._events)  # before anything is read
        if options.ending_position != TAIL:
            raise InvalidSpec(
                "a stream that goes on has no end",
                field="endingPosition",
                remedy="Take spark.read, or leave the option out.",
            )
        self._options = options
        self._schema = schema
        self._stack = ExitStack()
        self._target: StreamPosition | None = None
        self._planned: StreamPosition | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what tasks need."""
        return {"options": self._options, "schema": self._schema}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become the reader of a task."""
        self.__init__(**state)  # type: ignore[misc]

    @cached_property
    def _source(self) -> TableSource:
        return self._stack.enter_context(opened(self._options.place, Settings.from_environment()))

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as all here
        """Return where a query without a checkpoint begins."""
        return located(self._source, self._options.starting_position).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - PySpark's name
        """Return the limit of the options. Spark has no limit of events and bytes together."""
        options = self._options
        if options.max_events_per_trigger is not None:
            return ReadMaxRows(options.max_events_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        return ReadAllAvailable()

    # PySpark's name.
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the offset up to which the next batch reads.

        Raises:
            SourceTruncated: events after the start are gone.
            SourceReplaced: the stream was deleted, and perhaps made again.
        """
        begin = StreamPosition.from_json(start)
        admitted = NO_LIMIT if isinstance(limit, ReadAllAvailable) else self._limit(limit)
        self._planned = next_position(self._source, begin, admitted, until=self._target)
        planned = self._planned.to_json()
        ends = self._target is not None  # with an end, no time goes on behind it
        return planned if self._beats is None or ends else self._beats.after(start, planned)

    def _limit(self, limit: ReadLimit) -> Limit:
        options = self._options
        if isinstance(limit, ReadMaxRows):
            return Limit(bytes=options.max_bytes_per_trigger, events=limit.max_rows)
        if isinstance(limit, ReadMaxBytes):
            return Limit(bytes=limit.max_bytes, events=options.max_events_per_trigger)
        raise InvalidSpec(f"there is no limit {type(limit).__name__} for streams")

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - PySpark's name
        """End at the present tail. What comes later is for the next run."""
        self._target = self._source.tail()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - PySpark's name
        """Return the present tail, with the bytes from the last planned batch to it.

        Spark shows it in the progress of the query, as the `latestOffset` of the source.
        """
        if self._planned is None:
            return None
        try:
            tail = self._source.tail()
            behind = size_between(self._source, self._planned, tail)
        except SourceTruncated:
            return None  # the next batch says so
        return tail.to_json() | {BYTES_BEHIND: behind}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the segments between two offsets."""
        begin, stop = StreamPosition.from_json(start), StreamPosition.from_json(end)
        stretches = stretches_between(self._source, begin, stop)
        checkpoint = self._options.checkpoint
        watermark = None if checkpoint is None else watermark_of(checkpoint)
        found = [DatedPartition(*one, watermark) for one in stretches]
        beats = [BeatPartition(beat_of(end))] if beat_of(end) > beat_of(start) else []
        return [*found, *beats]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition. Errors as `sluice.engine.tables.reading.batches`."""
        if isinstance(partition, BeatPartition) and self._time is not None:
            return iter([beat(partition.millis, self._time, self._schema)])
        decoder = self._options.decoder(self._events)
        events = read_partition(self._options, decoder, partition)
        if len(self._events) == len(self._schema):
            return events
        watermark = partition.watermark if isinstance(partition, DatedPartition) else None
        return self._filled(events, decoder.rejected, watermark)

    def _filled(
        self, events: Iterable[pa.RecordBatch], rejected: Rejected, watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches with the columns that the reader fills in."""
        for batch in events:
            yield marked(batch, self._schema, watermark)
        if DROPPED in self._schema.names and rejected.count:
            yield dropped(rejected.count, self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: Spark's checkpoint has the position, and the store keeps none."""

    def stop(self) -> None:
        """Close the connection."""
        self._stack.close()
