"""A reader of a stream in a model store, and changes of the stream during the reading."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st

from sluice.core.events.decoding import decoded
from sluice.core.tables.columns import EventFormat, columns_of
from sluice.core.tables.decoding import Decoder
from sluice.core.tables.positions import StreamPosition
from sluice.core.values.model import KeyRange
from sluice.engine.tables.reading import (
    NO_LIMIT,
    Limit,
    batches,
    next_position,
    size_between,
    stretches_between,
)
from sluice.engine.tables.source import StoredStream
from support.engine.plans import SOURCE
from support.engine.sources import events_of, put_source
from support.model import ModelStore, World, segment_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.engine.tables.source import TableSource

Change = tuple[Any, ...]
"""`write`, a place among the segments that take events, and sizes of events; `split` or `merge`,
and a place."""

SIZES = st.lists(st.integers(0, 40), max_size=6)
LIMITS = st.just(NO_LIMIT) | st.builds(
    Limit, st.none() | st.integers(1, 150), st.none() | st.integers(1, 5)
)


def changes(most: int) -> st.SearchStrategy[list[Change]]:
    """Return a strategy of changes of a stream, at most `most` of them."""
    change = st.one_of(
        st.tuples(st.just("write"), st.integers(0, 7), SIZES),
        st.tuples(st.sampled_from(["split", "merge"]), st.integers(0, 7)),
    )
    return st.lists(change, max_size=most)


class Reading:
    """A reader of a stream in a model store.

    Args:
        world: the store's contents.
        source: the stream as it is read; the live one if left out.
        begin: where to begin; at the head if left out.

    Attributes:
        place: the position so far.
        seen: the offset and bytes of the events that were read, by segment.
    """

    def __init__(
        self, world: World, source: TableSource | None = None, begin: StreamPosition | None = None
    ) -> None:
        self.world = world
        self.source = source or StoredStream(ModelStore(world), SOURCE)
        self.place = begin or self.source.head()
        self.seen: dict[int, list[tuple[int, bytes]]] = {}
        self.keys = {one.id: one.keys for one in self.place.cut}

    def read(self, limit: Limit = NO_LIMIT, until: StreamPosition | None = None) -> bool:
        """Read to the next position. Return whether there was any progress."""
        begin = self.place
        end = next_position(self.source, begin, limit, until=until)
        stored = json.loads(json.dumps(end.to_json()))
        assert StreamPosition.from_json(stored) == end
        self._assert_once(begin, end, limit)
        self.place = end
        return end != begin

    def read_all(self, most: int | None = None) -> None:
        """Read to the tail, at most `most` bytes at a time."""
        while self.read(Limit(bytes=most)):
            pass

    def _assert_once(self, begin: StreamPosition, end: StreamPosition, limit: Limit) -> None:
        parts = stretches_between(self.source, begin, end)
        for made in self.source.generations(begin):
            self.keys |= {one.id: one.keys for one in made}
        ranges = [self.keys[one.segment] for one in parts]
        assert not any(a.overlaps(b) for n, a in enumerate(ranges) for b in ranges[:n])
        columns = columns_of(EventFormat.BYTES, None)
        rows = pa.Table.from_batches(
            batches(self.source, parts, Decoder(columns, EventFormat.BYTES)), schema=columns.schema
        ).to_pylist()
        for row in rows:
            self.seen.setdefault(row["_segment"], []).append((row["_offset"], row["event"]))
        if limit.events is not None:
            assert len(rows) <= limit.events
        if limit.bytes is not None:
            longest = max((one.end - one.start for one in parts), default=0)
            total = size_between(self.source, begin, end)
            assert total <= limit.bytes or len(rows) <= len(parts) or longest <= limit.bytes

    def written(self) -> dict[int, list[tuple[int, bytes]]]:
        """Return the events that the reader should have seen at the end."""
        found = {}
        for made in self.world.streams[SOURCE].ever:
            for one in made:
                data = self.world.segments[segment_name(SOURCE, one.id)].data
                if data:
                    found[one.id] = list(decoded([memoryview(bytes(data))], 0))
        return found


def act(world: World, happened: Iterable[Change]) -> None:
    """Write to the stream, split segments and merge them."""
    for kind, place, *sizes in happened:
        active = world.streams[SOURCE].segments
        at = place % len(active)
        keys = active[at].keys
        if kind == "write":
            data = world.segments[segment_name(SOURCE, active[at].id)].data
            data += events_of(*sizes, seed=len(data))
        elif kind == "split":
            middle = (keys.low + keys.high) / 2
            halves = [KeyRange(low=keys.low, high=middle), KeyRange(low=middle, high=keys.high)]
            world.replace(SOURCE, {active[at].id}, halves)
        elif at + 1 < len(active):
            whole = KeyRange(low=keys.low, high=active[at + 1].keys.high)
            world.replace(SOURCE, {active[at].id, active[at + 1].id}, [whole])


def new_world(*shapes: list[int]) -> World:
    """Return a store with the stream, whose segments have events of these sizes."""
    world = World()
    put_source(world, *shapes)
    world.numbers[SOURCE] = len(shapes)
    return world
