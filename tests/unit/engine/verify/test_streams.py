"""Any two streams of a store in memory, compared."""

from __future__ import annotations

import hashlib

import pytest

from sluice.core.values.model import KeyRange
from sluice.core.verify.verification import Result, What
from support.engine.plans import SOURCE, TARGET
from support.engine.sources import CHUNK, events_of
from support.engine.sources import put_source as put
from support.engine.verifying import (
    EPOCH,
    chunk_digests,
    of,
    only,
    verified,
)
from support.model import EVENT_COUNT, World


def test_the_same_streams_are_equal(twins: World) -> None:
    """The report has all segments over scale events, with their digests and counts."""
    found = verified(twins)
    assert (found.result, found.differences, found.paired_by) == (Result.EQUAL, (), "Beginnings")
    assert [pair.source for pair in found.segments] == [pair.target for pair in found.segments]
    contents = twins.bytes_of(SOURCE)
    assert [list(pair.source.chunks) for pair in found.segments] == [
        chunk_digests(data, 0) for data in contents
    ]
    for pair in found.segments:
        over = hashlib.sha256(b"".join(map(bytes.fromhex, pair.source.chunks))).hexdigest()
        assert pair.source.digest == over
        assert pair.source.events == pair.source.store_events
    over = b"".join(bytes.fromhex(pair.source.digest) for pair in found.segments)
    assert found.source.digest == found.target.digest == hashlib.sha256(over).hexdigest()
    assert found.source.bytes == sum(map(len, contents))
    assert found.source.events == sum(pair.source.events or 0 for pair in found.segments)


@pytest.mark.parametrize("offset", [0, 8, 15, 16, 31, 32, 121])
def test_one_flipped_byte_is_located(twins: World, offset: int) -> None:
    """The byte is within a chunk or at its edge. All other segments are equal."""
    of(twins, TARGET, 0).data[offset] ^= 0x10
    found = verified(twins)
    difference = only(found)
    place = (difference.segment, difference.offset)
    assert (difference.what, *place) == (What.BYTES, 0, offset)
    assert (difference.target_segment, difference.target_offset) == (0, offset)
    assert [pair.equal for pair in found.segments] == [False, True, True, True, True]
    first = found.segments[0]
    parted = [a != b for a, b in zip(first.source.chunks, first.target.chunks, strict=True)]
    assert parted == [chunk == offset // CHUNK for chunk in range(len(parted))]


def test_the_first_of_several_differences_comes_first(twins: World) -> None:
    """Segments come in the source's order, each with the difference at its lowest offset."""
    of(twins, TARGET, 2).data[3] ^= 1
    for offset in (90, 20, 60):
        of(twins, TARGET, 0).data[offset] ^= 1
    found = verified(twins)
    assert [(one.segment, one.offset) for one in found.differences] == [(0, 20), (EPOCH + 2, 3)]


def test_a_missing_tail_is_located(twins: World) -> None:
    """The report has the offset at which the target ends, and digests of its bytes."""
    data = of(twins, TARGET, 1).data
    del data[20:]
    found = verified(twins)
    missing = found.differences[0]
    assert (missing.what, missing.segment, missing.offset) == (What.MISSING, 1, 20)
    assert "28 bytes" in missing.message
    side = found.segments[1].target
    assert (side.start, side.end, side.events, side.no_event_at) == (0, 20, None, 0)
    assert list(side.chunks) == chunk_digests(bytes(data), 0)
    assert found.segments[1].source.events == 1


def test_an_empty_target_lacks_everything(twins: World) -> None:
    """Bytes are missing from the first byte of each segment that has any."""
    for index in range(5):
        of(twins, TARGET, index).data.clear()
        of(twins, TARGET, index).attributes[EVENT_COUNT] = 0
    found = verified(twins)
    assert {(one.what, one.offset) for one in found.differences} == {(What.MISSING, 0)}
    assert found.target.bytes == 0


def test_more_at_the_end_is_told_and_no_difference(twins: World) -> None:
    """A target that goes on is equal within the source's bounds, unless it must be exact."""
    last = of(twins, TARGET, -1)
    before = len(last.data)
    last.data += events_of([4])
    last.attributes[EVENT_COUNT] += 1
    found = verified(twins)
    assert (found.result, found.beyond) == (Result.EQUAL, 12)
    assert found.segments[-1].target.store_events is None
    extra = only(verified(twins, exact=True))
    segment = twins.streams[SOURCE].readable[-1].id
    assert (extra.what, extra.segment, extra.offset) == (What.EXTRA, segment, before)


def test_more_in_the_midst_of_the_stream_is_a_difference(twins: World) -> None:
    """A reader of the target gets these bytes between those of the source."""
    data = of(twins, TARGET, 0).data
    end = len(data)
    data += events_of([4])
    extra = only(verified(twins))
    assert (extra.what, extra.segment, extra.target_offset) == (What.EXTRA, 0, end)


def test_more_segments_at_the_end_are_told_and_no_difference(twins: World) -> None:
    """The target was scaled and written to afterwards."""
    twins.scale(TARGET, 3)
    of(twins, TARGET, -1).data += events_of([9])
    found = verified(twins)
    assert (found.result, found.beyond, len(found.extra)) == (Result.EQUAL, 17, 3)
    extra = only(verified(twins, exact=True))
    assert (extra.what, extra.target_segment) == (What.SEGMENT_EXTRA, found.extra[-1].segment)


def test_a_segment_in_the_midst_of_the_stream_is_a_difference() -> None:
    """The target was scaled to other keys and back, and took events in between."""
    world = World()
    for name, counts in ((SOURCE, [1]), (TARGET, [3, 1])):
        put(world, [5], [6], name=name)
        world.numbers[name] = 2
        for count in counts:
            world.scale(name, count)
        of(world, name, -1).data += events_of([7])
        of(world, name, -1).attributes[EVENT_COUNT] = 1
    found = verified(world)
    assert (found.result, len(found.extra)) == (Result.EQUAL, 3)
    between = of(world, TARGET, 3)
    between.data += events_of([1])
    extra = only(verified(world))
    assert (extra.what, extra.target_segment) == (What.SEGMENT_EXTRA, EPOCH + 3)


def test_a_missing_segment_is_named(twins: World) -> None:
    """The source was scaled once more, and written to."""
    twins.scale(SOURCE, 1)
    of(twins, SOURCE, -1).data += events_of([9])
    missing = only(verified(twins))
    segment = twins.streams[SOURCE].readable[-1].id
    assert (missing.what, missing.segment) == (What.SEGMENT_MISSING, segment)


def test_swapped_segments_are_differences() -> None:
    """The same bytes under other keys are no copy."""
    world = World()
    put(world, [5, 9], [6, 9])
    put(world, [5, 9], [6, 9], name=TARGET)
    first, second = of(world, TARGET, 0), of(world, TARGET, 1)
    first.data, second.data = second.data, first.data
    found = verified(world)
    assert [(one.what, one.segment, one.offset) for one in found.differences] == [
        (What.BYTES, 0, 7),  # the last byte of the first event's length
        (What.BYTES, 1, 7),
        (What.MISSING, 1, 30),
    ]
    assert found.segments[0].source.digest == found.segments[1].target.digest
    assert found.segments[0].beyond == 1


def test_other_key_ranges_are_a_difference() -> None:
    """Segments of other keys are not compared, even if their bytes are equal."""
    world = World()
    put(world, [5, 9], [6, 9])
    put(world, [5, 9], [6, 9], name=TARGET)
    stream = world.streams[TARGET]
    keys = [KeyRange(low=0, high=0.25), KeyRange(low=0.25, high=1)]
    segments = zip(stream.segments, keys, strict=True)
    stream.segments = tuple(one.model_copy(update={"keys": other}) for one, other in segments)
    stream.made = [stream.segments]
    found = verified(world)
    assert found.result is Result.DIFFERENT
    assert [one.what for one in found.differences] == [What.SEGMENT_MISSING] * 2
    assert [one.segment for one in found.extra] == [0, 1]
    assert found.segments == ()


def test_generations_in_another_order_are_a_difference() -> None:
    """The segments are the same, but the source's first ones come last in the target."""
    world = World()
    for name, first, then in ((SOURCE, 1, 2), (TARGET, 2, 1)):
        put(world, *[[5]] * first, name=name)
        world.numbers[name] = first
        world.scale(name, then)
        for index in range(first, 3):
            of(world, name, index).data += events_of([5], index - first)
    found = verified(world)
    assert {one.what for one in found.differences} >= {What.SEGMENT_MISSING}


def test_a_wrong_event_count_of_the_store_is_a_difference(twins: World) -> None:
    """The bytes are equal, but clients of the target would get a wrong number."""
    of(twins, TARGET, 0).attributes[EVENT_COUNT] = 7
    wrong = only(verified(twins))
    assert (wrong.what, wrong.segment) == (What.EVENT_COUNT, 0)
    assert wrong.message == "the target's store counts 7 events, there are 3"


def test_a_store_that_counts_otherwise_on_both_sides_is_equal(twins: World) -> None:
    """A copy does not cause the wrong count of its source."""
    for name in (SOURCE, TARGET):
        of(twins, name, 0).attributes[EVENT_COUNT] = 7
    assert verified(twins).result is Result.EQUAL


def test_bytes_that_are_no_events_are_compared_all_the_same(twins: World) -> None:
    """Such bytes may be in any segment. The report has their offset, and no event counts."""
    for name in (SOURCE, TARGET):
        of(twins, name, 0).data[13:17] = b"\xff" * 4
    found = verified(twins)
    assert found.result is Result.EQUAL
    assert (found.source.events, found.segments[0].source.no_event_at) == (None, 13)
    of(twins, TARGET, 0).data[100] ^= 1
    found = verified(twins, block=32)
    assert only(found).offset == 100
    assert found.segments[0].target.no_event_at == 13
