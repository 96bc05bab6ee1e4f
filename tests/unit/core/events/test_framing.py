import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.events.framing import EventCounter
from sluice.errors import EventsDamaged


def events_of(sizes: list[int]) -> bytes:
    """Return events of these sizes, full of bytes that look like headers."""
    return b"".join(struct.pack(">ii", 0, size) + (b"\0\0\0\2\xff" * size)[:size] for size in sizes)


def count(data: bytes, cuts: list[int]) -> EventCounter:
    """Return a counter that was fed the data in blocks with these cuts."""
    counter = EventCounter()
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(edges):
        counter.feed(memoryview(data)[start:end])
    return counter


all_sizes = st.lists(st.integers(0, 40), max_size=12)
all_cuts = st.lists(st.integers(0, 10_000), max_size=30)


@given(all_sizes, all_cuts)
def test_any_blocks_give_the_same_count(sizes: list[int], cuts: list[int]) -> None:
    """All events are counted, and the counter stands between two, whatever the blocks."""
    counter = count(events_of(sizes), cuts)
    assert counter.events == len(sizes)
    assert counter.between_events


@given(all_sizes.filter(len))
def test_byte_by_byte_gives_the_same_count(sizes: list[int]) -> None:
    """Blocks of one byte cut each header, and all events are still counted."""
    data = events_of(sizes)
    assert count(data, list(range(len(data)))).events == len(sizes)


@given(all_sizes.filter(len), all_cuts, st.data())
def test_it_tells_when_bytes_end_inside_an_event(
    sizes: list[int], cuts: list[int], data: st.DataObject
) -> None:
    """The counter tells whether a prefix ends with an event, and where an unfinished one begins."""
    whole = events_of(sizes)
    length = data.draw(st.integers(0, len(whole)))
    ends = [len(events_of(sizes[:n])) for n in range(len(sizes) + 1)]
    counter = count(whole[:length], cuts)
    assert counter.between_events is (length in ends)
    begun = max(end for end in ends if end <= length)
    assert counter.unfinished == (None if length in ends else begun)


def test_empty_events_are_events() -> None:
    """An event without content counts as any other."""
    assert count(events_of([0, 0, 0]), []).events == 3


@pytest.mark.parametrize("cut", range(17))
@pytest.mark.parametrize("header", [(0, -1), (1, 4), (-1, 4)])
def test_what_is_no_header_is_damage(cut: int, header: tuple[int, int]) -> None:
    """A negative length or a wrong type raises EventsDamaged, also if blocks divide the header."""
    data = memoryview(events_of([1]) + struct.pack(">ii", *header))
    counter = EventCounter()
    counter.feed(data[:cut])
    with pytest.raises(EventsDamaged, match="no event begins 9 bytes after"):
        counter.feed(data[cut:])
    assert counter.last == 9
