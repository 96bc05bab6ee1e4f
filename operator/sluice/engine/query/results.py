"""Append the rows of batches to a stream exactly once.

The store keeps, for each writer id, the last event number in a segment, and refuses an append that
does not follow it. The number of a batch is the event number of its rows. So rows of a batch that
is repeated are not appended again, whichever process repeats it.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

from sluice.core.query.rows import MOST_BLOCK, blocks
from sluice.core.values import identity
from sluice.core.values.model import ScaleType, Scaling, StreamConfig
from sluice.errors import (
    InvalidEventNumber,
    QuerySuperseded,
    ScopeNotFound,
    TargetExists,
    TargetReplaced,
    TargetScopeNotFound,
    TargetSealed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.query.plan import PlannedSink
    from sluice.core.query.rows import Block, Row
    from sluice.core.values.model import Segment
    from sluice.stores.base import Store
    from sluice.stores.writing import Appender

_WINDOW: Final = 2 * MOST_BLOCK


def make_sink(sink: PlannedSink, store: Store, query_id: str) -> None:
    """Make the stream of a sink if there is none.

    Raises:
        TargetScopeNotFound: its scope does not exist.
        TargetExists: the stream is there, and this query did not make it.
        TargetReplaced, TargetSealed: it was scaled or sealed.
    """
    mark = f"{identity.TAG_QUERY}{query_id}"
    config = StreamConfig(
        scaling=Scaling(type=ScaleType.FIXED, min_segments=sink.segments),
        tags=tuple(sorted((identity.TAG_MANAGED, mark))),
    )
    try:
        if store.create_stream(sink.stream, config):
            return
    except ScopeNotFound as error:
        raise TargetScopeNotFound(f"there is no scope {sink.stream.scope}") from error
    _segments(sink, store, mark)


def _segments(sink: PlannedSink, store: Store, mark: str) -> tuple[Segment, ...]:
    """Return the segments of a sink, which are those that it was made with."""
    found = store.describe(sink.stream)
    if found is None:
        raise TargetReplaced(f"{sink.stream} was deleted")
    if mark not in found.config.tags:
        raise TargetExists(f"{sink.stream} exists, and this query did not make it")
    if found.sealed:
        raise TargetSealed(f"{sink.stream} is sealed")
    if len(found.tail) != sink.segments or not all(store.is_original(s.id) for s in found.tail):
        raise TargetReplaced(
            f"{sink.stream} has other segments than the {sink.segments} that it was made with",
            remedy="Name another stream: a query appends to segments that stay.",
        )
    return found.tail


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
        self._tail = _segments(sink, store, f"{identity.TAG_QUERY}{query_id}")
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

    def append(self, batch: int, rows: Sequence[Row]) -> int:
        """Append the rows of a batch that the sink lacks. Return how many those are.

        Args:
            batch: its number, from 0.
            rows: all its rows, in their order.

        Raises:
            ResultTooLarge: a segment gets more than a store takes at once. Nothing was appended.
            QuerySuperseded: the sink has a later batch.
            SegmentSealed: a segment takes no more rows.
            StoreUnavailable: the connection broke. Repeat the call: what is appended stays.
        """
        wanted = blocks(rows, self._tail, self._store.place_of)
        try:
            new = [number for number, block in wanted.items() if self._send(number, batch, block)]
            for number in new:
                self._open[number].flush()
        except InvalidEventNumber as error:
            raise self._behind(batch) from error
        except BaseException:
            self.close()
            raise
        for number in new:
            self._last[number] = batch + 1
        return sum(wanted[number].events for number in new)

    def _send(self, segment: int, batch: int, block: Block) -> bool:
        """Send a block unless the segment has it. Return whether it was sent."""
        appender = self._appender(segment)
        last = self._last[segment]
        if last > batch + 1:
            raise self._behind(batch)
        if last == batch + 1:
            return False
        appender.append(block.data, event_number=batch + 1, events=block.events)
        return True

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
