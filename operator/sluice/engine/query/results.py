"""Append the rows of batches to a stream exactly once.

The store keeps, for each writer id, the last event number in a segment, and refuses an append that
does not follow it. The number of a batch is part of the event numbers of its rows. So rows of a
repeated batch are not appended again, whichever process repeats it.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

from sluice.core.query.rows import MOST_BLOCK, blocks, part_rows
from sluice.core.values import identity
from sluice.engine.query.sinks import segments_of
from sluice.errors import (
    InvalidEventNumber,
    JournalDamaged,
    QuerySuperseded,
    StoreBusy,
)
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from sluice.core.query.plan import PlannedSink
    from sluice.core.query.rows import ResultRow, RowBlock
    from sluice.stores.base import Segments, Store
    from sluice.stores.writing import Appender

_WINDOW: Final = 2 * MOST_BLOCK

_PART_BITS: Final = 20
"""Bits of the number of a block within its batch and segment."""

FENCE: Final = 1 << 61
"""A version whose last event number is not below this one may append no more. The rest is the
number that it had."""

_TRIES: Final = 16
"""Tries to set an attribute that changes meanwhile."""


def number_of(batch: int, part: int) -> int:
    """Return the event number of a block of a batch, from 1."""
    return (batch << _PART_BITS) + part + 1


def batch_of(number: int) -> int:
    """Return the batch of an event number; -1 for 0, which is none."""
    return (number - 1) >> _PART_BITS


def written(sinks: Sequence[tuple[PlannedSink, Store]], query_id: str, version: int) -> int:
    """Return the number of the last batch of a version that has rows in a sink; -1 for none."""
    last = -1
    for store, name, writer in _places(sinks, query_id, version):
        (value,) = store.attributes([(name, writer)])
        last = max(last, batch_of((value or 0) % FENCE))
    return last


def fence(sinks: Sequence[tuple[PlannedSink, Store]], query_id: str, version: int) -> int:
    """Let a version of a query append no more, wherever an attempt of it still is.

    Returns:
        The number of the last batch of the version that has rows in a sink; -1 for none.
    """
    return max([-1, *(_moved(*place, FENCE) for place in _places(sinks, query_id, version))])


def release(sinks: Sequence[tuple[PlannedSink, Store]], query_id: str, version: int) -> None:
    """Let a version of a query append again. The caller owns the query's ledger."""
    for place in _places(sinks, query_id, version):
        _moved(*place, 0)


def _places(
    sinks: Sequence[tuple[PlannedSink, Store]], query_id: str, version: int
) -> Iterator[tuple[Store, str, UUID]]:
    """Yield each segment of each sink, with the writer of a version."""
    writer = identity.results_writer(query_id, version)
    for sink, store in sinks:
        stream = store.describe(sink.stream)
        for segment in () if stream is None else stream.tail:
            yield store, store.segment_name(sink.stream, segment.id), writer


def _moved(store: Segments, name: str, writer: UUID, base: int) -> int:
    """Put a writer's last event number above FENCE, or back. Return its batch; -1 for none."""
    for _ in range(_TRIES):
        (value,) = store.attributes([(name, writer)])
        number = (value or 0) % FENCE
        if (value or 0) == base + number or store.set_attribute(
            name, CompareAndSet(writer, value, base + number)
        ):
            return batch_of(number)
    raise StoreBusy(f"{name} is appended to all the time")


class ResultAppender:
    """Appends batches to one sink, with a connection for each segment that gets rows.

    Args:
        sink: the sink, which exists.
        store: its store.
        query_id: the query's identity.
        version: the number of the query's version.

    Raises:
        TargetReplaced, TargetSealed, TargetExists: see `make_sink`.
    """

    def __init__(self, sink: PlannedSink, store: Store, query_id: str, version: int) -> None:
        self._sink = sink
        self._store = store
        self._writer = identity.results_writer(query_id, version)
        self._tail = segments_of(sink, store, query_id)
        self._stack = ExitStack()
        self._open: dict[int, Appender] = {}
        self._last: dict[int, int] = {}

    def __enter__(self) -> Self:
        """Enter the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections. The next batch opens those that it needs."""
        self._open.clear()
        self._stack.close()

    def part_rows(self, rows: Sequence[ResultRow]) -> int:
        """Return the most rows of a segment that are appended at once. ResultTooLarge."""
        return part_rows(rows, self._tail, self._store.place_of)

    def append(self, batch: int, rows: Sequence[ResultRow], most: int) -> int:
        """Append the rows of a batch that the sink lacks. Return how many those are.

        Args:
            batch: its number, from 0.
            rows: all its rows, in their order.
            most: the most rows of a segment that are appended at once.

        Raises:
            QuerySuperseded: the sink has a later batch, or the version may append no more.
            JournalDamaged: `most` divides a batch into more blocks than it can have.
            SegmentSealed: a segment takes no more rows.
            StoreUnavailable: the connection broke. Repeat the call: appended rows stay.
        """
        wanted = blocks(rows, self._tail, self._store.place_of, most)
        try:
            sent = sum(self._send(number, batch, parts) for number, parts in wanted.items())
            for number in wanted:
                self._open[number].flush()
        except InvalidEventNumber as error:
            raise self._behind(batch) from error
        except BaseException:
            self.close()
            raise
        self._last |= {number: number_of(batch, len(parts) - 1) for number, parts in wanted.items()}
        return sent

    def _send(self, segment: int, batch: int, parts: Sequence[RowBlock]) -> int:
        """Send the blocks that a segment lacks. Return the number of their events."""
        appender = self._appender(segment)
        last, sent = self._last[segment], 0
        if len(parts) > 1 << _PART_BITS:  # of a forged ledger: ours has blocks of megabytes
            raise JournalDamaged(f"batch {batch} is divided into {len(parts)} blocks")
        if last > number_of(batch, len(parts) - 1):
            raise self._behind(batch)
        for part, block in enumerate(parts):
            number = number_of(batch, part)
            if number > last:
                appender.append(block.data, event_number=number, events=block.events)
                sent += block.events
        return sent

    def _appender(self, segment: int) -> Appender:
        if segment not in self._open:
            name = self._store.segment_name(self._sink.stream, segment)
            opened = self._stack.enter_context(
                self._store.appender(name, writer=self._writer, window=_WINDOW)
            )
            self._open[segment] = opened
            self._last[segment] = opened.last or 0
        return self._open[segment]

    def _behind(self, batch: int) -> QuerySuperseded:
        return QuerySuperseded(f"{self._sink.stream} has later batches than {batch}")
