"""Blocks of whole events, cut from bytes that end anywhere."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.follow import cutting
from sluice.core.follow.cutting import Cut, Cutter, EventPiece
from sluice.errors import EventsDamaged
from support.engine.sources import events_of


@given(
    st.lists(st.integers(0, 60), max_size=12),
    st.lists(st.integers(0, 900), max_size=8),
    st.integers(0, 50),
)
def test_blocks_are_whole_events_in_order(sizes: list[int], cuts: list[int], start: int) -> None:
    """Each byte comes once, and each block ends with an event and tells its number of events."""
    data = events_of(sizes)
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    cutter, out, events = Cutter("s/0", start), b"", 0
    ends = {0}
    for size in sizes:
        ends.add(max(ends) + 8 + size)
    for begin, end in pairwise(edges):
        for cut in cutter.feed(data[begin:end]):
            assert isinstance(cut, Cut)
            out += cut.data
            events += cut.events
            assert (cut.start, cut.end) == (start + len(out) - len(cut.data), start + len(out))
            assert len(out) in ends
            assert cut.events > 0
    assert (out, events, cutter.rest) == (data, len(sizes), 0)


def test_the_beginning_of_an_event_waits_for_its_end() -> None:
    """Readers never see a part of an event, for whose rest they would wait."""
    data = events_of([20, 30])
    cutter = Cutter("s/0", 0)
    (first,) = cutter.feed(data[:33])
    assert (first.data, first.events, cutter.rest) == (data[:28], 1, 5)
    assert list(cutter.feed(data[33:60])) == []
    (second,) = cutter.feed(data[60:])
    assert isinstance(first, Cut)
    assert isinstance(second, Cut)
    assert (second.data, second.end, second.events) == (data[28:], len(data), 1)


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 900), st.booleans()), max_size=8),
)
def test_an_event_that_was_let_go_is_told_by_its_place(
    sizes: list[int], cuts: list[tuple[int, bool]]
) -> None:
    """Such an event's block has bounds and no bytes, so that the driver reads them again."""
    data = events_of(sizes)
    places = {cut % (len(data) + 1): drops for cut, drops in cuts} | {len(data): False}
    cutter, out, at = Cutter("s/0", 0), b"", 0
    for end in sorted(places):
        for cut in cutter.feed(data[at:end]):
            assert isinstance(cut, Cut)
            assert cut.start == len(out)
            out += cut.data or data[cut.start : cut.end]
            assert cut.end == len(out)
        at = end
        if places[end] and cutter.let_go():
            assert cutter.rest == 0
    assert (out, cutter.rest, cutter.begun) == (data, 0, None)


def test_blocks_stay_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long event ends its block, so a block has at most one of them."""
    monkeypatch.setattr(cutting, "BLOCK", 64)
    data = events_of([300, *[10] * 40])
    cutter = Cutter("s/0", 0)
    blocks = [cut.data for cut in cutter.feed(data[:100])]
    blocks += [cut.data for cut in cutter.feed(data[100:])]
    assert b"".join(blocks) == data
    assert len(blocks[0]) == 308
    assert max(map(len, blocks[1:])) <= 64


def test_bytes_that_are_no_events_are_refused_by_their_offset() -> None:
    """All events before them are yielded, and the error names segment and offset."""
    cutter = Cutter("s/0", 100)
    feeding = cutter.feed(events_of([20, 5]) + b"no event, but text")
    assert next(feeding) == Cut(events_of([20, 5]), 141, 2, 100)
    with pytest.raises(EventsDamaged, match="no event begins at offset 141 of s/0"):
        next(feeding)


@given(
    st.lists(st.integers(0, 60), max_size=8),
    st.lists(st.integers(0, 600), max_size=8),
    st.integers(9, 50),
)
def test_long_events_come_in_pieces_and_are_not_kept(
    sizes: list[int], cuts: list[int], longest: int
) -> None:
    """Exactly the events that are longer than the limit come in pieces, however bytes are fed."""
    data = events_of(sizes)
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    cutter, out = Cutter("s/0", 7, longest=longest), b""
    counted, long = 0, set()
    for begin, end in pairwise(edges):
        for cut in cutter.feed(data[begin:end]):
            out += cut.data
            assert cut.end == 7 + len(out)
            if isinstance(cut, EventPiece):
                assert cut.start < cut.end <= cut.behind
                long.add((cut.start, cut.behind))
                counted += cut.end == cut.behind
            else:
                counted += cut.events
        assert cutter.rest <= longest
    bounds, at = [], 7
    for size in sizes:
        bounds.append((at, at + 8 + size))
        at += 8 + size
    assert long == {(start, end) for start, end in bounds if end - start > longest}
    assert (out, counted, cutter.begun) == (data, len(sizes), None)


def test_an_event_that_one_append_takes_is_not_cut() -> None:
    """An event of 8 MiB with its header is kept whole. A longer one comes in pieces at once."""
    longest = Cutter("s/0", 0)
    assert list(longest.feed(struct.pack(">ii", 0, (8 << 20) - 8))) == []
    assert longest.rest == 8
    longer = Cutter("s/0", 5)
    (piece,) = longer.feed(struct.pack(">ii", 0, (8 << 20) - 7))
    assert piece == EventPiece(struct.pack(">ii", 0, (8 << 20) - 7), 13, 5, 5 + (8 << 20) + 1)
    assert (longer.rest, longer.begun) == (0, 5)


def test_plain_bytes_are_cut_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block begins where the last one ended, and no byte is held back."""
    monkeypatch.setattr(cutting, "BLOCK", 5)
    cutter = Cutter("s/0", 3, plain=True)
    assert list(cutter.feed(b"text")) == [Cut(b"text", 7, 1, 3)]
    assert list(cutter.feed(b" no event")) == [Cut(b" no e", 12, 1, 7), Cut(b"vent", 16, 1, 12)]
    assert (cutter.rest, cutter.begun) == (0, None)
