"""Reading a stream from position to position: each event once, in the order of its key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.tables.positions import StreamPosition
from sluice.core.values.model import KeyRange
from sluice.engine.tables.reading import Limit, stretches_between
from sluice.engine.tables.source import StoredStream
from sluice.errors import InvalidSpec, SourceNotFound, SourceReplaced, SourceTruncated
from support.engine.plans import SOURCE
from support.engine.reading import LIMITS, SIZES, Change, Reading, act, changes, new_world
from support.engine.sources import put_scaled_source, put_source
from support.model import ModelStore, World, segment_name


@given(
    st.lists(SIZES, min_size=1, max_size=3),
    st.lists(st.tuples(changes(4), LIMITS), max_size=6),
    LIMITS,
)
def test_each_event_is_read_once_whatever_happens_to_the_stream(
    shapes: list[list[int]], rounds: list[tuple[list[Change], Limit]], limit: Limit
) -> None:
    """This holds over writes, splits and merges, with any limit. Positions survive JSON."""
    world = new_world(*shapes)
    reader = Reading(world)
    for changed, most in rounds:
        act(world, changed)
        reader.read(most)
    while reader.read(limit):
        pass
    assert reader.seen == reader.written()
    assert reader.place == reader.source.tail()


@given(st.lists(SIZES, min_size=1, max_size=3), changes(8), changes(8), LIMITS)
def test_a_target_is_reached_and_not_passed(
    shapes: list[list[int]], before: list[Change], after: list[Change], limit: Limit
) -> None:
    """Reading up to an earlier tail of the stream ends there, though the stream goes on."""
    world = new_world(*shapes)
    reader = Reading(world)
    act(world, before)
    target = reader.source.tail()
    written = reader.written()
    act(world, after)
    while reader.read(limit, until=target):
        pass
    assert reader.seen == written
    assert reader.place == target
    assert not reader.read(until=target)


def test_all_events_between_two_positions_are_read_again_the_same() -> None:
    """A crashed batch is repeated by its two positions, whatever came to the stream since."""
    world = World()
    put_scaled_source(world, [[3, 5, 7], [2, 2]], [("split", 0), ("merge", 1)])
    source = StoredStream(ModelStore(world), SOURCE)
    begin, end = source.head(), source.tail()
    first = stretches_between(source, begin, end)
    act(world, [("write", 0, [9])])
    act(world, [("split", 0)])
    assert stretches_between(source, begin, end) == first
    ids = [one.segment for one in first]
    order = [one.id for made in source.generations(begin) for one in made]
    assert ids == [one for one in order if one in ids]


def test_truncated_events_are_named_by_segment_and_offset() -> None:
    """No event is skipped silently: the error tells users which events are gone."""
    world = new_world([5, 5], [4])
    reader = Reading(world)
    segment = world.segments[segment_name(SOURCE, 0)]
    segment.start = 13
    with pytest.raises(SourceTruncated, match="segment 0 of in/s has no events from offset 0 on"):
        reader.read()
    act(world, [("split", 0)])
    act(world, [("split", 2)])
    world.truncate(SOURCE)
    with pytest.raises(SourceTruncated, match=r"segment 0 .*: it is deleted"):
        reader.read()


def test_truncation_of_events_that_were_read_is_no_loss() -> None:
    """Retention may follow directly behind a reader."""
    world = new_world([5, 5], [4])
    reader = Reading(world)
    reader.read()
    act(world, [("split", 0)])
    reader.read()
    world.truncate(SOURCE)
    act(world, [("write", 0, [6, 6])])
    reader.read()
    assert len(reader.seen[world.streams[SOURCE].segments[0].id]) == 2
    assert not reader.read()


def test_a_stream_that_was_made_again_is_not_read_on() -> None:
    """Its segments have other ids, so a position in the old stream is refused."""
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
    """Segments that the stream lacks, and offsets beyond a segment's end, are refused, too."""
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
    """A damaged checkpoint gives an InvalidSpec, and no other error."""
    with pytest.raises(InvalidSpec, match="no position"):
        StreamPosition.from_json(value)
