"""A copy's target, compared with its source."""

from __future__ import annotations

import pytest

from sluice.core.copy.planner import Range, RangeEnd
from sluice.core.values.model import KeyRange, StreamConfig
from sluice.core.verify.verification import Result, What
from sluice.errors import InvalidSpec
from support.engine.plans import SOURCE, TARGET
from support.engine.sources import copy_all, events_of, planned, put_scaled_source, request_of
from support.engine.sources import put_source as put
from support.engine.verifying import (
    MOVES,
    SHAPES,
    chunk_digests,
    copied,
    copy_verified,
    of,
    only,
)
from support.model import ModelStore, World


@pytest.mark.parametrize("moves", [[], MOVES, [*MOVES, ("truncate", 0), ("split", 1)]])
def test_a_copy_is_equal_to_its_source(moves: list[tuple[str, int]]) -> None:
    """The digest is the recorded one. Ids differ if the source's head was truncated."""
    found = copy_verified(copied(*moves))
    assert (found.result, found.differences, found.paired_by) == (Result.EQUAL, (), "Copy")
    assert found.recorded_digest == found.target.digest == found.source.digest


def test_a_copy_of_a_truncated_segment_has_chunks_at_the_source_s_offsets() -> None:
    """The target's offsets are shifted, but chunks and digests follow the source's offsets."""
    world = World()
    contents = put(world, [5, 9, 30, 2])
    of(world, SOURCE, 0).start = 13
    store = ModelStore(world)
    copy_all(store, planned(store))
    found = copy_verified(world)
    assert (found.result, found.segments[0].shift) == (Result.EQUAL, -13)
    assert list(found.segments[0].target.chunks) == chunk_digests(contents[0][13:], 13)
    of(world, TARGET, 0).data[7] ^= 1
    difference = copy_verified(world).differences[0]
    assert (difference.offset, difference.target_offset) == (20, 7)


def test_a_copy_s_ranges_are_compared() -> None:
    """Two ranges of one segment are in two segments of the target."""
    ranges = (
        Range(end=RangeEnd(offsets=((0, 13), (1, 0)))),
        Range(begin=RangeEnd(offsets=((0, 111), (1, 0)))),
    )
    request = request_of(*ranges)
    world = copied(request=request)
    found = copy_verified(world, request=request)
    assert found.result is Result.EQUAL
    pairs = [(pair.source.segment, pair.start, pair.end) for pair in found.segments]
    assert pairs == [(0, 0, 13), (1, 0, 0), (0, 111, 122), (1, 0, 48)]
    of(world, TARGET, 2).data[0] ^= 1
    difference = copy_verified(world, request=request).differences[0]
    assert (difference.segment, difference.offset, difference.target_offset) == (0, 111, 0)


def test_a_copy_that_begins_after_a_scale_event_lacks_nothing() -> None:
    """Earlier bytes of the source are outside the range, so they are not missing."""
    world = World()
    put_scaled_source(world, SHAPES, MOVES)
    cut = tuple((segment.id, 0) for segment in world.streams[SOURCE].segments)
    request = request_of(Range(begin=RangeEnd(offsets=cut)))
    copy_all(ModelStore(world), planned(ModelStore(world), request))
    found = copy_verified(world, request=request)
    assert (found.result, found.missing, len(found.segments)) == (Result.EQUAL, (), 2)


def test_a_corrupted_copy_is_not_what_it_recorded() -> None:
    """The changed byte comes first, then the digest that differs from the recorded one."""
    world = copied(*MOVES)
    of(world, TARGET, 1).data[30] ^= 1
    found = copy_verified(world)
    assert [one.what for one in found.differences] == [What.BYTES, What.DIGEST]
    assert (found.differences[0].segment, found.differences[0].offset) == (1, 30)
    assert found.source.digest == found.recorded_digest != found.target.digest


def test_streams_that_go_on_are_compared_within_the_bounds_of_the_copy() -> None:
    """Both streams were written to and scaled since. An exact comparison finds that."""
    world = copied(*MOVES)
    for name in (SOURCE, TARGET):
        of(world, name, -1).data += events_of([4])
        world.scale(name, 3)
        of(world, name, -1).data += events_of([5])
    found = copy_verified(world)
    assert (found.result, found.beyond) == (Result.EQUAL, 25)
    assert {one.what for one in copy_verified(world, exact=True).differences} == {
        What.EXTRA,
        What.SEGMENT_EXTRA,
    }


@pytest.mark.parametrize("how", ["within a segment", "segments", "deleted"])
def test_a_source_that_went_meanwhile_leaves_the_rest_to_compare(how: str) -> None:
    """The result counts the lost bytes. The recorded digest still checks the target."""
    world = copied(*MOVES)
    gone = sum(map(len, world.bytes_of(SOURCE)))
    if how == "within a segment":
        of(world, SOURCE, 0).start = gone = 13
    elif how == "segments":
        world.truncate(SOURCE)
        gone -= sum(map(len, world.bytes_of(SOURCE)))
    else:
        ModelStore(world).seal_stream(SOURCE)
        ModelStore(world).delete_stream(SOURCE)
    found = copy_verified(world)
    assert (found.result, found.gone) == (Result.INCOMPLETE, gone)
    assert found.target.digest == found.recorded_digest
    of(world, TARGET, 0).data[3] ^= 1
    assert only(copy_verified(world)).what is What.DIGEST


def test_a_truncated_target_lacks_what_went() -> None:
    """Lost bytes at a segment's begin, and lost segments at the head, are missing."""
    world = copied(*MOVES)
    of(world, TARGET, 0).start = 13
    missing = copy_verified(world).differences[0]
    assert (missing.what, missing.segment, missing.offset) == (What.MISSING, 0, 0)
    assert "13 bytes" in missing.message
    of(world, TARGET, 0).start = 122
    missing, digest = copy_verified(world).differences
    assert (missing.what, missing.offset, digest.what) == (What.MISSING, 0, What.DIGEST)
    world.truncate(TARGET)
    found = copy_verified(world)
    assert What.SEGMENT_MISSING in {one.what for one in found.differences}
    assert found.missing[0].segment == 0


def test_a_copy_whose_keys_differ_is_told() -> None:
    """With other key ranges, later writers would lose the order per key."""
    world = copied()
    stream = world.streams[TARGET]
    keys = [KeyRange(low=0, high=0.25), KeyRange(low=0.25, high=1)]
    segments = zip(stream.segments, keys, strict=True)
    stream.segments = tuple(one.model_copy(update={"keys": other}) for one, other in segments)
    stream.made = [stream.segments]
    assert [one.what for one in copy_verified(world).differences] == [What.KEYS] * 2


def test_only_a_whole_target_of_the_copy_is_compared() -> None:
    """A missing stream, and another stream in its place, are refused."""
    world = World()
    put(world, [5])
    with pytest.raises(InvalidSpec, match="there is no stream out/t"):
        copy_verified(world)
    ModelStore(world).create_stream(TARGET, StreamConfig())
    with pytest.raises(InvalidSpec, match="not the whole target"):
        copy_verified(world)
