import hashlib
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from sluice.core.events.counting import Counted
from sluice.engine.slices.slices import CopyResult, CopySlice, VerifySlice, verify_slices
from sluice.engine.tasks.slices import SliceResult, run_slice
from support.engine.sources import CHUNK, events_of
from support.model import Fate, ModelSegment, ModelStore, World

WRITER = UUID(int=9)
DATA = bytes(range(100))
COPY = CopySlice(
    stream=0,
    segment=0,
    source="source",
    staging="staging",
    writer=WRITER,
    origin=5,
    at=5,
    end=95,
    limit=95,
    whole=(5, 95),
    window=1 << 20,
)
VERIFY = VerifySlice(
    stream=0,
    segment=0,
    source="source",
    staging="staging",
    origin=5,
    start=5,
    end=95,
    limit=95,
    known={},
)


@pytest.fixture
def world() -> World:
    """Return a world with a source of 100 bytes and an empty staging segment."""
    made = World()
    ModelStore(made).create("source")
    ModelStore(made).create("staging")
    made.segments["source"].data += DATA
    return made


def run(world: World, work: CopySlice | VerifySlice, *, block: int = 7) -> SliceResult:
    """Run a slice in blocks of a size that fits no other size."""
    store = ModelStore(world, block=block)
    return run_slice(work, store, store)


def stage(world: World, data: bytes) -> None:
    """Let an earlier attempt have staged these bytes."""
    segment = world.segments["staging"]
    segment.data[:] = data
    segment.attributes[WRITER] = COPY.origin + len(data)


def expected_digests(data: bytes = DATA, start: int = 5, end: int = 95) -> dict[int, bytes]:
    """Return the SHA-256 of each chunk of the range."""
    bounds = {c: (max(c * CHUNK, start), min((c + 1) * CHUNK, end)) for c in range(6)}
    return {c: hashlib.sha256(data[a:b]).digest() for c, (a, b) in bounds.items()}


def test_a_slice_stages_its_range_and_hashes_its_chunks(world: World) -> None:
    """A slice copies exactly its bytes and gives the digest of each chunk of the source."""
    result = run(world, COPY)
    assert result.error is None
    assert result.moved == 90
    assert world.segments["staging"].data == DATA[5:95]
    assert result.digests == expected_digests()


@pytest.mark.parametrize("there", range(91))
def test_a_slice_goes_on_where_the_store_stands(world: World, there: int) -> None:
    """Wherever an earlier attempt stopped, staging ends exact and digests are of whole chunks."""
    stage(world, DATA[5 : 5 + there])
    result = run(world, COPY)
    assert result.error is None
    assert result.moved == 90 - there
    assert world.segments["staging"].data == DATA[5:95]
    whole = {c: d for c, d in expected_digests().items() if (c + 1) * CHUNK > 5 + there}
    assert result.digests == (whole if there < 90 else {})


def test_a_slice_that_ends_in_the_midst_is_gone_on_with(world: World) -> None:
    """Two slices that meet at a chunk's boundary stage the range and know all digests."""
    first = run(world, replace(COPY, end=48))
    second = run(world, replace(COPY, at=48))
    assert (first.moved, second.moved) == (43, 47)
    assert first.digests | second.digests == expected_digests()
    assert world.segments["staging"].data == DATA[5:95]


def test_a_slice_whose_time_is_over_ends_at_a_chunk(world: World) -> None:
    """After its time, a slice ends at the next boundary of a chunk at which a block ends."""
    result = run(world, replace(COPY, seconds=0), block=1)
    assert result.moved == 11
    assert list(result.digests) == [0]


def test_a_finished_slice_moves_nothing(world: World) -> None:
    """The slice ends without reading the source."""
    stage(world, DATA[5:95])
    world.segments["source"].start = 100
    assert run(world, COPY) == CopyResult(slice=COPY)


def test_an_overtaken_slice_ends_without_error(world: World) -> None:
    """A slice whose part another driver writes ends quietly and leaves no byte of its own."""
    calls: list[str] = []

    def gate(what: str) -> Fate:
        calls.append(what)
        if len([call for call in calls if call.startswith("append")]) == 3:
            world.segments["staging"].data += DATA[19:95]
            world.segments["staging"].attributes[WRITER] = 95
        return Fate.DONE

    store = ModelStore(world, gate, block=7)
    result = run_slice(COPY, store, store)
    assert result.error is None
    assert world.segments["staging"].data == DATA[5:95]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda w: w.segments.pop("source"), "NoSuchSegment"),
        (lambda w: w.segments.pop("staging"), "NoSuchSegment"),
        (lambda w: setattr(w.segments["source"], "start", 50), "SegmentTruncated"),
        (lambda w: setattr(w.segments["staging"], "sealed", True), "SegmentSealed"),
    ],
    ids=["source gone", "staging gone", "source truncated", "staging sealed"],
)
def test_what_goes_wrong_is_in_the_result(
    world: World, spoil: Callable[[World], object], reason: str
) -> None:
    """An error of the store travels in the slice's result."""
    spoil(world)
    error = run(world, COPY).error
    assert error is not None
    assert error.reason == reason


def test_equal_bytes_are_verified(world: World) -> None:
    """Staged bytes whose digests are known are verified without the source."""
    stage(world, DATA[5:95])
    world.segments.pop("source")
    result = run(world, replace(VERIFY, known=expected_digests()))
    assert (result.error, result.moved, result.digests) == (None, 90, {})


@pytest.mark.parametrize(
    ("flipped", "said"),
    [(0, "bytes 5 to 16 of source"), (30, "bytes 32 to 48"), (89, "bytes 80 to 95")],
)
@pytest.mark.parametrize("known", [True, False], ids=["known", "recomputed"])
def test_a_flipped_byte_is_found(world: World, flipped: int, said: str, known: bool) -> None:  # noqa: FBT001
    """One wrong byte gives a DigestMismatch that names the chunk's offsets in the source."""
    stage(world, DATA[5:95])
    world.segments["staging"].data[flipped] ^= 1
    result = run(world, replace(VERIFY, known=expected_digests() if known else {}))
    assert result.error is not None
    assert result.error.reason == "DigestMismatch"
    assert said in result.error.message


def test_unknown_digests_are_computed_from_the_source(world: World) -> None:
    """Only chunks without a recorded digest are read from the source again."""
    stage(world, DATA[5:95])
    known = expected_digests()
    missing = {chunk: known.pop(chunk) for chunk in (0, 3)}
    result = run(world, replace(VERIFY, known=known))
    assert result.error is None
    assert result.digests == missing


def counting(data: bytes, start: int = 0) -> VerifySlice:
    """Return a slice that counts all events of a segment, and compares nothing."""
    end = start + len(data)
    bounds = replace(VERIFY, origin=start, start=start, end=end, limit=end)
    return replace(bounds, compare=False, count=True, first=start)


def test_events_are_counted_while_bytes_are_verified(world: World) -> None:
    """A counting verification gives the exact number of events."""
    data = events_of([3, 0, 40, 9])
    world.segments["source"] = ModelSegment(data=bytearray(data))
    world.segments["staging"].data[:] = data
    result = run(world, replace(counting(data), compare=True))
    assert (result.error, result.counted) == (None, Counted(0, 4, len(data)))
    assert result.moved == len(data)
    assert run(world, counting(data)).digests == {}


def test_a_slice_in_the_midst_counts_what_begins_in_it(world: World) -> None:
    """Without the result of the slice before it, the slice finds where its own events begin."""
    data = events_of([20, 20, 20, 20])
    world.segments["source"] = ModelSegment(data=bytearray(data))
    world.segments["staging"].data[:] = data
    work = replace(counting(data), compare=True, start=16, end=96, first=None)
    for block in (1, 7, 200):
        result = run(world, work, block=block)
        assert (result.error, result.counted) == (None, Counted(28, 3, 112))
        assert (result.moved, list(result.digests)) == (80, [1, 2, 3, 4, 5])


def test_a_range_that_ends_inside_an_event_is_refused(world: World) -> None:
    """Bounds inside an event give an IntegrityError."""
    data = events_of([3, 40])[:-1]
    world.segments["staging"].data[:] = data
    error = run(world, counting(data)).error
    assert error is not None
    assert error.reason == "IntegrityError"
    assert "no event ends at offset 58" in error.message


@pytest.mark.parametrize("at", [0, 11, 59])
def test_damage_in_the_midst_is_named(world: World, at: int) -> None:
    """The error has the offset in the source at which an event has to begin."""
    data = bytearray(events_of([3, 40, 9]))
    data[at] = 1
    world.segments["staging"].data[:] = data
    error = run(world, replace(counting(data, 7), origin=7)).error
    assert error is not None
    assert error.reason == "EventsDamaged"
    assert f"in source, no event begins at offset {7 + at}" in error.message


def test_bytes_that_are_no_events_are_no_error_where_the_store_has_counted(world: World) -> None:
    """A client may write plain bytes, so the slice counts no events and reports no error."""
    data = b"plain bytes"
    world.segments["staging"].data[:] = data
    result = run(world, replace(counting(data), strict=False))
    assert (result.error, result.counted) == (None, Counted(0, None, len(data)))


@pytest.mark.parametrize(("start", "end"), [(0, 58), (1, 59), (4, 59), (12, 59), (13, 59)])
def test_a_cut_inside_an_event_is_refused(world: World, start: int, end: int) -> None:
    """The error names the field of the range, and its offsets."""
    data = events_of([3, 40])[start:end]
    world.segments["staging"].data[:] = data
    error = run(world, replace(counting(data, start), range=2)).error
    assert error is not None
    assert (error.reason, error.field) == ("CutInsideEvent", "spec.source.ranges[2]")
    assert f"of offsets {start} and {end} one is inside an event" in error.message


def test_a_cut_between_events_is_copied(world: World) -> None:
    """The events of a range from one event's begin to another event's end are counted."""
    data = events_of([3, 40])[11:]
    world.segments["staging"].data[:] = data
    assert run(world, replace(counting(data, 11), range=2)).counted == Counted(11, 1, 59)


def test_verification_is_divided_at_chunks() -> None:
    """Slices of a verification cover the segment, each with the digests that it needs."""
    work = replace(VERIFY, known=expected_digests())
    made = verify_slices(work, 2 * CHUNK)
    assert [(s.start, s.end, sorted(s.known)) for s in made] == [
        (5, 32, [0, 1]),
        (32, 64, [2, 3]),
        (64, 95, [4, 5]),
    ]
    counted = verify_slices(replace(work, count=True, first=5), 2 * CHUNK)
    assert [s.first for s in counted] == [5, None, None]
