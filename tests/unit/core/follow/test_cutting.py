"""Blocks of whole events, out of bytes that end anywhere."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.follow import cutting
from sluice.core.follow.cutting import Cutter
from sluice.errors import EventsDamaged, SourceUnsupported
from support.engine.sources import events_of


@given(
    st.lists(st.integers(0, 60), max_size=12),
    st.lists(st.integers(0, 900), max_size=8),
    st.integers(0, 50),
)
def test_blocks_are_whole_events_in_order(sizes: list[int], cuts: list[int], start: int) -> None:
    """Every byte comes once, and every block ends where an event does and tells its events."""
    data = events_of(sizes)
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    cutter, out, events = Cutter("s/0", start), b"", 0
    ends = {0}
    for size in sizes:
        ends.add(max(ends) + 8 + size)
    for begin, end in pairwise(edges):
        for cut in cutter.feed(data[begin:end]):
            out += cut.data
            events += cut.events
            assert cut.end == start + len(out)
            assert len(out) in ends
            assert cut.events > 0
    assert (out, events, cutter.rest) == (data, len(sizes), 0)


def test_the_beginning_of_an_event_waits_for_its_end() -> None:
    """A reader would wait for the rest of an event that it sees a part of."""
    data = events_of([20, 30])
    cutter = Cutter("s/0", 0)
    (first,) = cutter.feed(data[:33])
    assert (first.data, first.events, cutter.rest) == (data[:28], 1, 5)
    assert list(cutter.feed(data[33:60])) == []
    (second,) = cutter.feed(data[60:])
    assert (second.data, second.end, second.events) == (data[28:], len(data), 1)


def test_blocks_stay_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that has begun is ended by itself, so a block has at most one long event."""
    monkeypatch.setattr(cutting, "BLOCK", 64)
    data = events_of([300, *[10] * 40])
    cutter = Cutter("s/0", 0)
    blocks = [cut.data for cut in cutter.feed(data[:100])]
    blocks += [cut.data for cut in cutter.feed(data[100:])]
    assert b"".join(blocks) == data
    assert len(blocks[0]) == 308
    assert max(map(len, blocks[1:])) <= 64


def test_bytes_that_are_no_events_are_refused_by_their_offset() -> None:
    """The segment and the offset are named."""
    cutter = Cutter("s/0", 100)
    data = events_of([20]) + b"no event, but text"
    with pytest.raises(EventsDamaged, match="no event begins at offset 128 of s/0"):
        list(cutter.feed(data))


def test_an_event_longer_than_an_append_is_refused_before_it_has_come() -> None:
    """Its header says it, so memory does not grow with it."""
    cutter = Cutter("s/0", 7)
    assert list(cutter.feed(struct.pack(">i", 0))) == []
    with pytest.raises(SourceUnsupported, match=r"the event at offset 7 of s/0 has 8\.4 MB"):
        list(cutter.feed(struct.pack(">i", (8 << 20) - 7)))
    longest = Cutter("s/0", 0)
    assert list(longest.feed(struct.pack(">ii", 0, (8 << 20) - 8))) == []
