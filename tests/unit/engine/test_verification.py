"""Two streams of a store in memory, compared."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segment_hash import Events
from sluice.core.model import KeyRange, StreamConfig, StreamName
from sluice.core.pairing import Alignment
from sluice.core.planner import CopyRequest, Position, Range
from sluice.core.verification import Difference, Result, Verification, What
from sluice.engine.verification import Subject, compare, match_copy, match_streams
from sluice.errors import InvalidSpec, SegmentTruncated, StoreUnavailable
from support.model import EVENT_COUNT, Fate, ModelSegment, ModelStore, World, segment_name
from support.plans import COPY, SOURCE, TARGET
from support.sources import CHUNK, REQUEST, copy_all, events_of, planned, put_scaled_source
from support.sources import put_source as put

EPOCH = 1 << 32
WHOLE = Range()
SHAPES = [[5, 90, 3], [40], [17, 2]]
MOVES = [("split", 0), ("merge", 1)]


def subject(world: World, name: StreamName, range_: Range = WHOLE, *, block: int = 32) -> Subject:
    """A stream of a world, read in blocks of a size."""
    return Subject(ModelStore(world, block=block), "tcp://model:1", name, range_)


def verified(
    world: World,
    *,
    alignment: Alignment = Alignment.BEGINNINGS,
    exact: bool = False,
    source: Range = WHOLE,
    target: Range = WHOLE,
    block: int = 7,
) -> Verification:
    """The two streams of a world, compared in blocks that fit neither each other nor anything."""
    first = subject(world, SOURCE, source)
    matched = match_streams(first, subject(world, TARGET, target, block=block), alignment)
    return compare(matched, exact=exact)


def copy_verified(
    world: World, *, request: CopyRequest = REQUEST, exact: bool = False
) -> Verification:
    """A copy's target, compared with its source."""
    first, second = subject(world, SOURCE), subject(world, TARGET, block=7)
    whole = request.ranges == (WHOLE,)
    return compare(match_copy(COPY, "orders", first, second, whole=whole), exact=exact)


def copied(*moves: tuple[str, int], request: CopyRequest = REQUEST) -> World:
    """A source that was scaled like that, and its copy."""
    world = World()
    put_scaled_source(world, SHAPES, moves)
    store = ModelStore(world)
    copy_all(store, planned(store, request))
    return world


@pytest.fixture
def twins() -> World:
    """Gives two streams that are the same, and were scaled."""
    world = World()
    for name in (SOURCE, TARGET):
        put_scaled_source(world, SHAPES, MOVES, name=name)
    return world


def of(world: World, name: StreamName, index: int) -> ModelSegment:
    """The segment at a place among all those of a stream."""
    return world.segments[segment_name(name, world.streams[name].readable[index].id)]


def only(found: Verification) -> Difference:
    """The only difference."""
    assert found.result is Result.DIFFERENT
    (difference,) = found.differences
    return difference


def chunk_digests(data: bytes, start: int) -> list[str]:
    """SHA-256 of each chunk of bytes that begin at this offset."""
    end = start + len(data)
    edges = sorted({start, end, *range(-(-start // CHUNK) * CHUNK, end, CHUNK)})
    return [hashlib.sha256(data[a - start : b - start]).hexdigest() for a, b in pairwise(edges)]


# -- streams that nobody says anything of


def test_the_same_streams_are_equal(twins: World) -> None:
    """All segments over scale events, with the digests and counts of what is in them."""
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
    """Its segment and offset, in a chunk's midst and at its edges; other segments are equal."""
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
    """By segments in the source's order; within one by offset."""
    of(twins, TARGET, 2).data[3] ^= 1
    for offset in (90, 20, 60):
        of(twins, TARGET, 0).data[offset] ^= 1
    found = verified(twins)
    assert [(one.segment, one.offset) for one in found.differences] == [(0, 20), (EPOCH + 2, 3)]


def test_a_missing_tail_is_located(twins: World) -> None:
    """Where the target ends before the source does; what is there is counted and has digests."""
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
    """From the first byte of each segment that has any."""
    for index in range(5):
        of(twins, TARGET, index).data.clear()
        of(twins, TARGET, index).attributes[EVENT_COUNT] = 0
    found = verified(twins)
    assert {(one.what, one.offset) for one in found.differences} == {(What.MISSING, 0)}
    assert found.target.bytes == 0


def test_more_at_the_end_is_told_and_no_difference(twins: World) -> None:
    """A target that goes on living is equal within the source's bounds, unless it must be exact."""
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
    """Bytes that a reader of the target finds between those of the source."""
    data = of(twins, TARGET, 0).data
    end = len(data)
    data += events_of([4])
    extra = only(verified(twins))
    assert (extra.what, extra.segment, extra.target_offset) == (What.EXTRA, 0, end)


def test_more_segments_at_the_end_are_told_and_no_difference(twins: World) -> None:
    """The target was scaled since, and written to."""
    twins.scale(TARGET, 3)
    of(twins, TARGET, -1).data += events_of([9])
    found = verified(twins)
    assert (found.result, found.beyond, len(found.extra)) == (Result.EQUAL, 17, 3)
    extra = only(verified(twins, exact=True))
    assert (extra.what, extra.target_segment) == (What.SEGMENT_EXTRA, found.extra[-1].segment)


def test_a_segment_in_the_midst_of_the_stream_is_a_difference() -> None:
    """The target was scaled to other keys and back; what was written meanwhile is in the way."""
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
    """The source was scaled once more."""
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
    """Segments of other keys are not compared with each other, be their bytes equal."""
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
    """The same segments, but what came first in the source comes last in the target."""
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
    """Bytes are equal, but clients would be told other numbers."""
    of(twins, TARGET, 0).attributes[EVENT_COUNT] = 7
    wrong = only(verified(twins))
    assert (wrong.what, wrong.segment) == (What.EVENT_COUNT, 0)
    assert wrong.message == "the target's store counts 7 events, there are 3"


def test_a_store_that_counts_otherwise_on_both_sides_is_equal(twins: World) -> None:
    """A copy is not to blame for its source's count."""
    for name in (SOURCE, TARGET):
        of(twins, name, 0).attributes[EVENT_COUNT] = 7
    assert verified(twins).result is Result.EQUAL


def test_bytes_that_are_no_events_are_compared_all_the_same(twins: World) -> None:
    """Not everything in a segment need be events; nothing is counted then, and where is told."""
    for name in (SOURCE, TARGET):
        of(twins, name, 0).data[13:17] = b"\xff" * 4
    found = verified(twins)
    assert found.result is Result.EQUAL
    assert (found.source.events, found.segments[0].source.no_event_at) == (None, 13)
    of(twins, TARGET, 0).data[100] ^= 1
    found = verified(twins, block=32)
    assert only(found).offset == 100
    assert found.segments[0].target.no_event_at == 13


def test_bytes_are_read_side_by_side() -> None:
    """However long a segment is, neither side is read more than a block ahead of the other."""
    world = World()
    for name in (SOURCE, TARGET):
        put(world, [50] * 40, name=name)
    at = {SOURCE: 0, TARGET: 0}
    ahead: list[int] = []

    def watching(name: StreamName) -> ModelStore:
        def gate(what: str) -> Fate:
            if what.startswith("read"):
                at[name] += 16
                ahead.append(abs(at[SOURCE] - at[TARGET]))
            return Fate.DONE

        return ModelStore(world, gate, block=16)

    sides = [Subject(watching(name), "", name) for name in (SOURCE, TARGET)]
    matched = match_streams(*sides, Alignment.BEGINNINGS)
    assert compare(matched).result is Result.EQUAL
    assert len(ahead) == 2 * -(-2320 // 16)
    assert max(ahead) == 16


def test_what_is_read_is_told(twins: World) -> None:
    """All bytes of both sides, in the end."""
    matched = match_streams(subject(twins, SOURCE), subject(twins, TARGET), Alignment.BEGINNINGS)
    seen: list[int] = []
    compare(matched, told=seen.append)
    assert sum(seen) == matched.bytes == 2 * sum(map(len, twins.bytes_of(SOURCE)))


def test_a_source_that_is_written_meanwhile_is_compared_within_its_bounds(twins: World) -> None:
    """What comes after the bounds were taken is neither read nor missed."""
    matched = match_streams(subject(twins, SOURCE), subject(twins, TARGET), Alignment.BEGINNINGS)
    of(twins, SOURCE, -1).data += events_of([70])
    twins.scale(SOURCE, 2)
    assert compare(matched).result is Result.EQUAL


def test_a_source_that_is_truncated_meanwhile_is_compared_as_far_as_it_is_there(
    twins: World,
) -> None:
    """The bytes that went are told; the rest is read again, and a difference in it is found."""
    gone = []

    def gate(what: str) -> Fate:
        if what == "read in/s/0 [32, 64)" and not gone:
            of(twins, SOURCE, 0).start = 111
            gone.append(what)
        return Fate.DONE

    source = Subject(ModelStore(twins, gate), "", SOURCE)
    seen: list[int] = []
    matched = match_streams(source, subject(twins, TARGET), Alignment.BEGINNINGS)
    found = compare(matched, told=seen.append)
    assert (found.result, found.gone, found.segments[0].gone) == (Result.INCOMPLETE, 111, 111)
    assert found.segments[0].source.start == 111
    assert (found.segments[0].source.events, found.segments[0].target.events) == (1, 3)
    assert sum(seen) == matched.bytes - 111
    gone.clear()
    of(twins, SOURCE, 0).start = 0
    of(twins, TARGET, 0).data[115] ^= 1
    assert only(compare(matched)).offset == 115


def test_a_target_that_is_truncated_meanwhile_lacks_what_went(twins: World) -> None:
    """Its store's count is of more than what is left, and is not taken for the count of that."""

    def gate(what: str) -> Fate:
        if what == "read out/t/0 [0, 32)":
            of(twins, TARGET, 0).start = 13
        return Fate.DONE

    target = Subject(ModelStore(twins, gate), "", TARGET)
    found = compare(match_streams(subject(twins, SOURCE), target, Alignment.BEGINNINGS))
    missing = only(found)
    assert (missing.what, missing.segment, missing.offset) == (What.MISSING, 0, 0)
    side = found.segments[0].target
    assert (side.start, side.events, side.store_events) == (13, 2, None)


def test_a_source_that_goes_on_being_truncated_ends_the_command(twins: World) -> None:
    """After a few times the store's error is raised, and no other segment is waited for."""

    def gate(what: str) -> Fate:
        if what.startswith("read in/s/0"):
            of(twins, SOURCE, 0).start += 1
        return Fate.DONE

    source = Subject(ModelStore(twins, gate), "", SOURCE)
    matched = match_streams(source, subject(twins, TARGET), Alignment.BEGINNINGS)
    with pytest.raises(SegmentTruncated):
        compare(matched, tasks=2)


def test_a_target_whose_segment_is_deleted_meanwhile_lacks_it(twins: World) -> None:
    """All that the source has of it is missing."""
    matched = match_streams(subject(twins, SOURCE), subject(twins, TARGET), Alignment.BEGINNINGS)
    del twins.segments[segment_name(TARGET, 1)]
    missing = only(compare(matched))
    assert (missing.what, missing.segment, missing.offset) == (What.MISSING, 1, 0)


def test_a_store_that_is_away_ends_the_command(twins: World) -> None:
    """What the store says is raised, from whichever segment it came."""
    away = ModelStore(
        twins, lambda what: Fate.REQUEST_LOST if what.startswith("read out/t/1 ") else Fate.DONE
    )
    matched = match_streams(subject(twins, SOURCE), Subject(away, "", TARGET), Alignment.BEGINNINGS)
    with pytest.raises(StoreUnavailable):
        compare(matched, tasks=3)


@pytest.mark.parametrize("tasks", [1, 2, 8])
def test_any_number_of_tasks_finds_the_same(twins: World, tasks: int) -> None:
    """The order of the report is the source's, whichever segment is read first."""
    of(twins, TARGET, 3).data[2] ^= 1
    matched = match_streams(subject(twins, SOURCE), subject(twins, TARGET), Alignment.BEGINNINGS)
    assert compare(matched, tasks=tasks) == compare(matched)


def test_a_range_is_compared_with_a_whole_stream() -> None:
    """The target has what lies between two cuts of the source, from offset 0 on."""
    world = World()
    contents = put(world, [5, 9, 30, 2], [6, 9])
    put(world, [], [], name=TARGET)
    bounds = [(13, 68), (0, 14)]
    for index, (start, end) in enumerate(bounds):
        of(world, TARGET, index).data += contents[index][start:end]
        of(world, TARGET, index).attributes[EVENT_COUNT] = 2 - index
    begin, end = (
        ModelStore(world).write_cut(SOURCE, dict(enumerate(side)))
        for side in zip(*bounds, strict=True)
    )
    range_ = Range(begin=Position(text=begin), end=Position(text=end))
    found = verified(world, source=range_)
    assert (found.result, found.source.events) == (Result.EQUAL, 3)
    places = [(one.start, one.end, one.shift) for one in found.segments]
    assert places == [(13, 68, -13), (0, 14, 0)]
    assert (found.source.begin, found.source.end, found.target.end) == (begin, end, None)
    assert verified(world).result is Result.DIFFERENT


def test_a_part_of_a_range_that_differs_is_located_at_both_offsets() -> None:
    """Offsets of the source, and of the target, which begins elsewhere."""
    world = World()
    (content,) = put(world, [5, 9, 30, 2])
    put(world, [], name=TARGET)
    of(world, TARGET, 0).data += content[13:68]
    range_ = Range(begin=Position(offsets=((0, 13),)), end=Position(offsets=((0, 68),)))
    found = verified(world, source=range_)
    assert found.differences[0].what is What.EVENT_COUNT
    of(world, TARGET, 0).attributes[EVENT_COUNT] = 2
    assert verified(world, source=range_).result is Result.EQUAL
    of(world, TARGET, 0).data[20] ^= 1
    different = only(verified(world, source=range_))
    assert (different.offset, different.target_offset) == (33, 20)


def test_ranges_of_both_streams_are_compared(twins: World) -> None:
    """A part of the one with a part of the other, which is elsewhere in it."""
    of(twins, TARGET, 0).data[:0] = b"\0" * 8
    source, target = (
        Range(
            begin=Position(offsets=((0, 13 + shift), (1, 0))),
            end=Position(offsets=((0, 111 + shift), (1, 0))),
        )
        for shift in (0, 8)
    )
    found = verified(twins, source=source, target=target)
    assert (found.result, found.source.bytes, found.segments[0].shift) == (Result.EQUAL, 98, 8)


def test_a_truncated_source_is_compared_from_its_first_byte_on(twins: World) -> None:
    """A target that begins with the source's first readable byte has shifted offsets."""
    of(twins, SOURCE, 0).start = 13
    del of(twins, TARGET, 0).data[:13]
    of(twins, TARGET, 0).attributes[EVENT_COUNT] = 2
    found = verified(twins)
    assert (found.result, found.segments[0].shift) == (Result.EQUAL, -13)
    of(twins, TARGET, 0).data[40] ^= 1
    different = only(verified(twins))
    assert (different.offset, different.target_offset) == (53, 40)


def test_streams_truncated_at_different_places_are_compared_by_offset(twins: World) -> None:
    """What only the source has is missing; what only the target has is told."""
    of(twins, SOURCE, 0).start = 13
    of(twins, TARGET, 1).start = 48
    assert verified(twins).result is Result.DIFFERENT
    found = verified(twins, alignment=Alignment.OFFSETS)
    missing = only(found)
    assert (missing.what, missing.segment, missing.offset) == (What.MISSING, 1, 0)
    assert (found.segments[0].before, found.segments[0].equal, found.beyond) == (13, True, 13)
    exact = verified(twins, alignment=Alignment.OFFSETS, exact=True)
    assert [(one.what, one.offset) for one in exact.differences] == [
        (What.EXTRA, 0),
        (What.MISSING, 0),
    ]


@pytest.mark.parametrize(
    ("side", "name", "field"), [("source", SOURCE, "SOURCE"), ("target", TARGET, "TARGET")]
)
def test_a_stream_that_is_not_there_is_wrong_input(
    twins: World, side: str, name: StreamName, field: str
) -> None:
    """The error says which of the two."""
    del twins.streams[name]
    with pytest.raises(InvalidSpec, match=f"there is no stream {name}") as raised:
        verified(twins)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("ranges", "field"),
    [
        ({"source": Range(begin=Position(offsets=((9, 0),)))}, "--source-from"),
        ({"target": Range(end=Position(offsets=((0, 999), (1, 0))))}, "--target-to"),
        ({"source": Range(end=Position(text="in/other/0=0/1=0"))}, "--source-to"),
    ],
)
def test_a_range_that_is_none_is_wrong_input(
    twins: World, ranges: dict[str, Range], field: str
) -> None:
    """The error names the option."""
    with pytest.raises(InvalidSpec) as raised:
        verified(twins, **ranges)  # type: ignore[arg-type]
    assert raised.value.field == field


# -- a copy's target and its source


@pytest.mark.parametrize("moves", [[], MOVES, [*MOVES, ("truncate", 0), ("split", 1)]])
def test_a_copy_is_equal_to_its_source(moves: list[tuple[str, int]]) -> None:
    """The digest is the one that the copy wrote down; ids differ where the head was truncated."""
    found = copy_verified(copied(*moves))
    assert (found.result, found.differences, found.paired_by) == (Result.EQUAL, (), "Copy")
    assert found.recorded_digest == found.target.digest == found.source.digest


def test_a_copy_of_a_truncated_segment_has_chunks_at_the_source_s_offsets() -> None:
    """A target with shifted offsets; digests are the source's all the same."""
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
        Range(end=Position(offsets=((0, 13), (1, 0)))),
        Range(begin=Position(offsets=((0, 111), (1, 0)))),
    )
    request = REQUEST.model_copy(update={"ranges": ranges})
    world = copied(request=request)
    found = copy_verified(world, request=request)
    assert found.result is Result.EQUAL
    pairs = [(pair.source.segment, pair.start, pair.end) for pair in found.segments]
    assert pairs == [(0, 0, 13), (1, 0, 0), (0, 111, 122), (1, 0, 48)]
    of(world, TARGET, 2).data[0] ^= 1
    difference = copy_verified(world, request=request).differences[0]
    assert (difference.segment, difference.offset, difference.target_offset) == (0, 111, 0)


def test_a_copy_that_begins_after_a_scale_event_lacks_nothing() -> None:
    """What the source has before the range was not to be copied."""
    world = World()
    put_scaled_source(world, SHAPES, MOVES)
    cut = tuple((segment.id, 0) for segment in world.streams[SOURCE].segments)
    request = REQUEST.model_copy(update={"ranges": (Range(begin=Position(offsets=cut)),)})
    copy_all(ModelStore(world), planned(ModelStore(world), request))
    found = copy_verified(world, request=request)
    assert (found.result, found.missing, len(found.segments)) == (Result.EQUAL, (), 2)


def test_a_corrupted_copy_is_not_what_it_recorded() -> None:
    """The byte first; that the digest differs from the recorded one follows from it."""
    world = copied(*MOVES)
    of(world, TARGET, 1).data[30] ^= 1
    found = copy_verified(world)
    assert [one.what for one in found.differences] == [What.BYTES, What.DIGEST]
    assert (found.differences[0].segment, found.differences[0].offset) == (1, 30)
    assert found.source.digest == found.recorded_digest != found.target.digest


def test_streams_that_go_on_are_compared_within_the_bounds_of_the_copy() -> None:
    """Both were written to and scaled since."""
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
    """The target still has what its copy recorded; which bytes could not be compared is told."""
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
    """Bytes at a segment's beginning, and whole segments that came first."""
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
    """Later writers would lose the order per key."""
    world = copied()
    stream = world.streams[TARGET]
    keys = [KeyRange(low=0, high=0.25), KeyRange(low=0.25, high=1)]
    segments = zip(stream.segments, keys, strict=True)
    stream.segments = tuple(one.model_copy(update={"keys": other}) for one, other in segments)
    stream.made = [stream.segments]
    assert [one.what for one in copy_verified(world).differences] == [What.KEYS] * 2


def test_only_a_whole_target_of_the_copy_is_compared() -> None:
    """Another stream in its place is refused, and so is none."""
    world = World()
    put(world, [5])
    with pytest.raises(InvalidSpec, match="there is no stream out/t"):
        copy_verified(world)
    ModelStore(world).create_stream(TARGET, StreamConfig())
    with pytest.raises(InvalidSpec, match="not the whole target"):
        copy_verified(world)


# -- any corruption


@st.composite
def corruptions(draw: st.DrawFn) -> tuple[str, int, int, bytes]:
    """What becomes of a segment: how, where, over how many bytes, and other bytes."""
    how = draw(st.sampled_from(["flip", "insert", "delete", "cut", "append"]))
    return how, draw(st.integers(0, 10_000)), draw(st.integers(1, 40)), draw(st.binary(min_size=1))


def corrupt(data: bytearray, how: str, place: int, count: int, other: bytes) -> None:
    """Do it to a segment's bytes."""
    at = place % (len(data) + 1)
    if how == "flip" and data:
        data[place % len(data)] ^= count
    elif how == "insert":
        data[at:at] = other
    elif how == "delete":
        del data[at : at + count]
    elif how == "cut":
        del data[at:]
    elif how == "append":
        data += other


@settings(max_examples=300, deadline=None)
@given(
    shapes=st.lists(st.lists(st.integers(0, 60), max_size=4), min_size=2, max_size=4),
    moves=st.lists(
        st.tuples(st.sampled_from(["split", "merge", "truncate"]), st.integers(0, 3)), max_size=4
    ),
    index=st.integers(0, 30),
    corruption=corruptions(),
    blocks=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    of_copy=st.booleans(),
)
def test_any_corruption_is_found_and_located(
    shapes: list[list[int]],
    moves: list[tuple[str, int]],
    index: int,
    corruption: tuple[str, int, int, bytes],
    blocks: tuple[int, int],
    *,
    of_copy: bool,
) -> None:
    """Bytes changed, put in, taken out or cut off, anywhere: the first one is told."""
    world = World()
    put_scaled_source(world, shapes, moves)
    store = ModelStore(world)
    copy_all(store, planned(store))
    index %= len(world.streams[TARGET].readable)
    target = of(world, TARGET, index)
    original = bytes(target.data)
    corrupt(target.data, *corruption)
    sides = [
        subject(world, name, block=block)
        for name, block in zip((SOURCE, TARGET), blocks, strict=True)
    ]
    if of_copy:
        matched = match_copy(COPY, "orders", *sides, whole=True)
    else:
        matched = match_streams(*sides, Alignment.BEGINNINGS)
    found = compare(matched, exact=True)
    changed = bytes(target.data)
    if changed == original:
        assert found.result is Result.EQUAL
        return
    first = found.differences[0]
    both = enumerate(zip(original, changed, strict=False))
    place = next((i for i, (a, b) in both if a != b), None)
    if place is not None:
        what = What.BYTES
    else:
        place = min(len(original), len(changed))
        what = What.MISSING if len(changed) < len(original) else What.EXTRA
    assert (first.what, first.target_offset) == (what, place)
    assert first.target_segment == world.streams[TARGET].readable[index].id
    assert first.segment == world.streams[SOURCE].readable[index].id
    pair = found.segments[index]
    wanted = changed[: pair.end - pair.start]
    assert list(pair.target.chunks) == chunk_digests(wanted, pair.start)
    assert list(pair.source.chunks) == chunk_digests(original, pair.start)
    events = Events(next_header=0)
    events.update(0, wanted)
    events.finish(len(wanted))
    assert pair.target.no_event_at == events.broken_at
    assert pair.target.events == (events.count if events.broken_at is None else None)
