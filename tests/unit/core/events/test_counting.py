import random
import struct
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluice.core.events.counting import (
    Counted,
    CountedStretch,
    StretchCounter,
    StretchToRecount,
    Total,
    add_up,
)
from sluice.core.events.framing import EventCounter
from sluice.errors import EventsDamaged


def naive(data: bytes) -> int | None:
    """Count events by stepping from header to header; None where there are other bytes."""
    at = count = 0
    while at < len(data):
        if len(data) - at < 8:
            return None
        kind, length = struct.unpack_from(">ii", data, at)
        if kind != 0 or length < 0:
            return None
        at += 8 + length
        count += 1
    return count if at == len(data) else None


def count_one(data: bytes, start: int, end: int, first: int | None, block: int) -> Counted | None:
    """Return the count of a stretch that is read in blocks."""
    counter = StretchCounter(start, end, len(data), first)
    begin = min(counter.begin, counter.reach)
    for at in range(begin, counter.reach, block):
        counter.feed(memoryview(data)[at : min(at + block, counter.reach)])
    return counter.finish()


def count(data: bytes, edges: list[int], block: int) -> tuple[int | None, int]:
    """Return a segment's number of events, counted by stretches, and the number of recounts."""
    stretches = {
        start: CountedStretch(start, end, count_one(data, start, end, None if start else 0, block))
        for start, end in pairwise(edges)
    }
    again = 0
    while isinstance(found := add_up(stretches.values()), StretchToRecount):
        again += 1
        (start, end, _), first = found
        assert again <= len(stretches), "counting does not end"
        stretches[start] = CountedStretch(start, end, count_one(data, start, end, first, block))
    return found.events, again


def framed(*bodies: bytes) -> bytes:
    """Return a segment of events."""
    return b"".join(struct.pack(">ii", 0, len(body)) + body for body in bodies)


zeros = st.integers(0, 60).map(bytes)
nested = st.lists(st.binary(max_size=6), max_size=4).map(lambda bodies: framed(*bodies))
bodies = st.one_of(st.binary(max_size=40), zeros, nested, st.just(b"x" * 24))
segments = st.lists(bodies, min_size=1, max_size=40)
cuts = st.lists(st.integers(0, 10_000), max_size=8)


@given(segments, cuts, st.integers(1, 70))
@example([b""] * 9, [4, 8, 20], 3)
@example([b"\0" * 16] * 9, [5, 29], 8)
@example([b"y" * 300], [3, 40, 100, 290], 16)
def test_any_stretches_and_blocks_give_the_exact_count(
    content: list[bytes], cuts: list[int], block: int
) -> None:
    """The count is exact for any content of events, any stretches and any blocks."""
    data = framed(*content)
    edges = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    assert count(data, edges, block)[0] == naive(data) == len(content)


@given(segments, cuts, st.integers(1, 70), st.integers(0, 10_000), st.integers(0, 255))
def test_damage_is_never_taken_for_events(
    content: list[bytes], cuts: list[int], block: int, at: int, other: int
) -> None:
    """With one changed byte, the result is that of a walk from the first byte, or an error."""
    data = bytearray(framed(*content))
    data[at % len(data)] = other
    edges = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    wanted = naive(bytes(data))
    if wanted is None:
        with pytest.raises(EventsDamaged, match=r"no event (begins|ends) at offset \d+"):
            count(bytes(data), edges, block)
    else:
        assert count(bytes(data), edges, block)[0] == wanted


@pytest.mark.parametrize("sizes", [(100, 100), (50, 150), (20, 40), (9000, 20_000)])
def test_usual_events_are_read_once(sizes: tuple[int, int]) -> None:
    """No stretch is recounted if events do not contain other events."""
    chance = random.Random(5)  # noqa: S311 - a test's data
    made = [chance.randbytes(chance.randint(*sizes)) for _ in range(200_000 // (sizes[1] + 8))]
    data = framed(*made)
    edges = sorted({0, *(chance.randrange(len(data)) for _ in range(4)), len(data)})
    assert count(data, edges, 1 << 16) == (len(made), 0)


def test_events_of_zeros_are_read_once() -> None:
    """Eight zeros could be an empty event's header, but are not taken for the first event."""
    data = framed(*[bytes(100)] * 500)
    assert count(data, [0, 20_000, 40_001, len(data)], 4096) == (500, 0)


def test_events_behind_a_long_one_are_found() -> None:
    """A stretch that begins inside an event of 3 MiB needs no recount: it finds the next event."""
    long = random.Random(5).randbytes(3 << 20)  # noqa: S311 - a test's data
    data = framed(long, b"behind", long, b"last")
    assert count(data, [0, 1 << 20, 4 << 20, len(data)], 1 << 19) == (4, 0)


@pytest.mark.parametrize("lacking", [1, 7, 8, 20])
def test_an_end_inside_an_event_is_found_by_any_stretch(lacking: int) -> None:
    """The error names the segment's end, also if the last stretch guessed its first event."""
    data = framed(*[b"twenty bytes of text"] * 30)[:-lacking]
    with pytest.raises(EventsDamaged, match=f"no event ends at offset {len(data)}"):
        count(data, [0, 300, len(data)], 64)


def test_what_looks_like_events_is_found_out() -> None:
    """Events inside an event are counted at first, and the recount corrects that."""
    inner = framed(*[b"inner"] * 400)
    data = framed(inner, b"outer")
    assert count(data, [0, 2000, len(data)], 512) == (2, 1)


def test_an_event_over_several_stretches_is_not_read_there() -> None:
    """Stretches inside one event count nothing, and are not recounted."""
    data = framed(b"a", b"z" * 1000, b"b")
    assert count(data, [0, 100, 200, 300, len(data)], 64) == (3, 0)


def test_a_segment_of_no_events_has_no_count() -> None:
    """If the first stretch has no events, neither does the segment, whatever the others counted."""
    row = [CountedStretch(0, 10, Counted(0, None, 10)), CountedStretch(10, 20, None)]
    assert add_up(row) == Total(None)


@pytest.mark.parametrize("runs", [[1], [15], [16], [17, 1, 200], [40_000, 3, 70_000], [3] * 50])
@pytest.mark.parametrize("size", [0, 1, 37])
def test_runs_of_equal_events_are_counted(runs: list[int], size: int) -> None:
    """The counter compares equally long events at once.

    It still counts each, and finds the last one.
    """
    data = b"".join(framed(b"v" * size) * run + framed(b"other") for run in runs)
    counter = EventCounter()
    for at in range(0, len(data), 99_991):
        counter.feed(memoryview(data)[at : at + 99_991])
    assert (counter.events, counter.between_events) == (sum(runs) + len(runs), True)
    assert counter.last == len(data) - 13


@pytest.mark.parametrize("after", [0, 5, 16, 100, 5000])
@pytest.mark.parametrize("header", [(1, 10), (0, -1), (-1, -1)])
def test_damage_after_a_run_is_found_where_it_is(after: int, header: tuple[int, int]) -> None:
    """The error names the offset behind the equally long events, where no event begins."""
    data = framed(b"ten bytes.") * after
    counter = EventCounter()
    with pytest.raises(EventsDamaged, match=f"no event begins {len(data)} bytes after"):
        counter.feed(memoryview(data + struct.pack(">ii", *header) + b"ten bytes." * 40))
    assert (counter.last, counter.events <= after) == (len(data), True)
