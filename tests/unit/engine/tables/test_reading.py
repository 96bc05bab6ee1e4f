"""A stream is read position by position: each event once, in the order of its key, to its end."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.events.decoding import decoded
from sluice.core.tables.columns import Format, columns_of
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
from sluice.errors import InvalidSpec, SourceNotFound, SourceReplaced, SourceTruncated
from support.engine.plans import SOURCE
from support.engine.sources import events_of, put_scaled_source, put_source
from support.model import ModelStore, World, segment_name

SIZES = st.lists(st.integers(0, 40), max_size=6)
LIMITS = st.just(NO_LIMIT) | st.builds(
    Limit, st.none() | st.integers(1, 150), st.none() | st.integers(1, 5)
)
ACTIONS = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 7), SIZES),
    st.tuples(st.just("split"), st.integers(0, 7)),
    st.tuples(st.just("merge"), st.integers(0, 7)),
    st.tuples(st.just("read"), LIMITS),
)


@dataclass
class Reading:
    """A reader of a stream in a model store, which begins at its head.

    Attributes:
        world: the store's contents.
        place: the position so far.
        seen: the offset and bytes of the events that were read, by segment.
    """

    world: World
    place: StreamPosition = field(init=False)
    seen: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin at the head."""
        self.source = StoredStream(ModelStore(self.world), SOURCE)
        self.place = self.source.head()
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

    def _assert_once(self, begin: StreamPosition, end: StreamPosition, limit: Limit) -> None:
        parts = stretches_between(self.source, begin, end)
        for made in self.source.generations(begin):
            self.keys |= {one.id: one.keys for one in made}
        ranges = [self.keys[one.segment] for one in parts]
        assert not any(a.overlaps(b) for n, a in enumerate(ranges) for b in ranges[:n])
        columns = columns_of(Format.BYTES, None)
        rows = pa.Table.from_batches(
            batches(self.source, parts, Decoder(columns, Format.BYTES)), schema=columns.schema
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
        """Return what the reader should have seen at the end."""
        found = {}
        for made in self.world.streams[SOURCE].ever:
            for one in made:
                data = self.world.segments[segment_name(SOURCE, one.id)].data
                if data:
                    found[one.id] = list(decoded([memoryview(bytes(data))], 0))
        return found


def act(world: World, action: tuple[object, ...], number: int) -> None:
    """Write to the stream, split a segment or merge two."""
    stream = world.streams[SOURCE]
    active = stream.segments
    kind, place = action[0], action[1]
    assert isinstance(place, int)
    at = place % len(active)
    keys = active[at].keys
    if kind == "write":
        (sizes,) = action[2:]
        assert isinstance(sizes, list)
        world.segments[segment_name(SOURCE, active[at].id)].data += events_of(sizes, number)
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


@given(st.lists(SIZES, min_size=1, max_size=3), st.lists(ACTIONS, max_size=25), LIMITS)
def test_each_event_is_read_once_whatever_happens_to_the_stream(
    shapes: list[list[int]], actions: list[tuple[object, ...]], limit: Limit
) -> None:
    """Over writes, splits and merges, with any limit; positions survive JSON."""
    world = new_world(*shapes)
    reader = Reading(world)
    for number, action in enumerate(actions):
        if action[0] == "read":
            assert isinstance(action[1], Limit)
            reader.read(action[1])
        else:
            act(world, action, number)
    while reader.read(limit):
        pass
    assert reader.seen == reader.written()
    assert reader.place == reader.source.tail()


@given(st.lists(SIZES, min_size=1, max_size=3), st.lists(ACTIONS, max_size=20), LIMITS)
def test_a_target_is_reached_and_not_passed(
    shapes: list[list[int]], actions: list[tuple[object, ...]], limit: Limit
) -> None:
    """A run up to what the stream had at one time ends there, though the stream goes on."""
    world = new_world(*shapes)
    reader = Reading(world)
    changes = [action for action in actions if action[0] != "read"]
    half = len(changes) // 2
    for number, action in enumerate(changes[:half]):
        act(world, action, number)
    target = reader.source.tail()
    written = reader.written()
    for number, action in enumerate(changes[half:], half):
        act(world, action, number)
    while reader.read(limit, until=target):
        pass
    assert reader.seen == written
    assert reader.place == target
    assert not reader.read(until=target)


def test_all_events_between_two_positions_are_read_again_the_same() -> None:
    """A batch is repeated after a crash by its two positions, whatever the stream has since."""
    world = World()
    put_scaled_source(world, [[3, 5, 7], [2, 2]], [("split", 0), ("merge", 1)])
    source = StoredStream(ModelStore(world), SOURCE)
    begin, end = source.head(), source.tail()
    first = stretches_between(source, begin, end)
    act(world, ("write", 0, [9]), 1)
    act(world, ("split", 0), 2)
    assert stretches_between(source, begin, end) == first
    ids = [one.segment for one in first]
    order = [one.id for made in source.generations(begin) for one in made]
    assert ids == [one for one in order if one in ids]


def test_truncated_events_are_named_by_segment_and_offset() -> None:
    """Nothing is passed over in silence: a person learns which events are gone."""
    world = new_world([5, 5], [4])
    reader = Reading(world)
    segment = world.segments[segment_name(SOURCE, 0)]
    segment.start = 13
    with pytest.raises(SourceTruncated, match="segment 0 of in/s has no events from offset 0 on"):
        reader.read()
    act(world, ("split", 0), 0)
    act(world, ("split", 2), 0)
    world.truncate(SOURCE)
    with pytest.raises(SourceTruncated, match=r"segment 0 .*: it is deleted"):
        reader.read()


def test_truncation_of_events_that_were_read_is_no_loss() -> None:
    """Retention may follow directly behind a reader."""
    world = new_world([5, 5], [4])
    reader = Reading(world)
    reader.read()
    act(world, ("split", 0), 0)
    reader.read()
    world.truncate(SOURCE)
    act(world, ("write", 0, [6, 6]), 1)
    reader.read()
    assert len(reader.seen[world.streams[SOURCE].segments[0].id]) == 2
    assert not reader.read()


def test_a_stream_that_was_made_again_is_not_read_on() -> None:
    """Its segments have other ids, so a checkpoint of the old one is refused."""
    world = new_world([5])
    reader = Reading(world)
    del world.streams[SOURCE]
    with pytest.raises(SourceNotFound):
        reader.source.tail()
    put_source(world, [1])
    world.streams[SOURCE].segments = world.new_segments(SOURCE, [KeyRange(low=0, high=1)], epoch=5)
    world.streams[SOURCE].made = world.streams[SOURCE].ever = [world.streams[SOURCE].segments]
    with pytest.raises(SourceReplaced, match="no segment 0"):
        stretches_between(reader.source, reader.place, reader.source.tail())


def test_an_end_before_the_beginning_is_refused() -> None:
    """So are positions of other streams."""
    world = new_world([5, 5], [4])
    source = StoredStream(ModelStore(world), SOURCE)
    with pytest.raises(InvalidSpec, match="ends before it begins"):
        stretches_between(source, source.tail(), source.head())
    with pytest.raises(InvalidSpec, match="no segment 77"):
        source.at({77: 0, 1: 0})
    beyond = source.head().at({0: 1000})
    with pytest.raises(InvalidSpec, match="ends at offset 26"):
        stretches_between(source, source.head(), beyond)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"stream": "a", "segments": {}},
        {"stream": "a/b", "segments": {}},
        {"stream": "a/b", "segments": {"0": {"offset": -1, "low": "0.0", "high": "1.0"}}},
        {"stream": "a/b", "segments": {"0": {"offset": 1, "low": "0.0", "high": "0.5"}}},
        {"stream": "a/b", "segments": {"0": {"offset": "x", "low": "0", "high": "1"}}},
        {"stream": "a/b", "segments": {"x": {"offset": 1, "low": "0", "high": "1"}}},
    ],
)
def test_what_is_no_position_is_refused(value: object) -> None:
    """A damaged checkpoint ends in an error of ours."""
    with pytest.raises(InvalidSpec, match="no position"):
        StreamPosition.from_json(value)
