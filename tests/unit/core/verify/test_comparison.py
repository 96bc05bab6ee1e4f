"""The bytes of two sides, compared side by side."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sluice.core.verify.comparison import ComparedBytes, Comparison, in_step
from sluice.core.verify.pairing import Extent, Pair

Blocks = list[tuple[int, memoryview]]


def blocks(data: bytes, start: int, cuts: list[int]) -> Blocks:
    """Return the data from an offset on in blocks, some of which may be empty."""
    edges = sorted([0, len(data), *(cut % (len(data) + 1) for cut in cuts)])
    return [(start + a, memoryview(data)[a:b]) for a, b in pairwise(edges)]


some_bytes = st.binary(max_size=50)
some_cuts = st.lists(st.integers(0, 1_000), max_size=8)


@given(some_bytes, some_bytes, st.integers(0, 60), st.integers(0, 60), some_cuts, some_cuts)
def test_two_sides_come_in_step(
    one: bytes, two: bytes, first: int, second: int, cuts: list[int], others: list[int]
) -> None:
    """Each byte comes once, at its offset, beside the other side's bytes if there are any."""
    steps = list(in_step(blocks(one, first, cuts), blocks(two, second, others)))
    assert b"".join(step.source for step in steps) == one
    assert b"".join(step.target for step in steps) == two
    for step in steps:
        length = max(len(step.source), len(step.target))
        assert length > 0
        for data, all_, start in ((step.source, one, first), (step.target, two, second)):
            wanted = all_[max(0, step.at - start) : max(0, step.at + length - start)]
            assert data == wanted
            assert len(data) in {0, length}


@given(st.binary(min_size=1, max_size=50), some_cuts, st.integers(0, 60), st.data())
def test_the_first_byte_that_differs_is_found(
    one: bytes, cuts: list[int], start: int, data: st.DataObject
) -> None:
    """The offset is right, whatever the blocks and whatever differs behind it."""
    at = data.draw(st.integers(0, len(one) - 1))
    rest = data.draw(st.binary(min_size=len(one) - at - 1, max_size=len(one) - at - 1))
    two = one[:at] + bytes([one[at] ^ data.draw(st.integers(1, 255))]) + rest
    extent = Extent(0, None, start, start + len(one))
    comparison = Comparison(Pair(extent, extent, start, start + len(one), 0))
    for step in in_step(blocks(one, start, cuts), blocks(two, start, [])):
        comparison.feed(step)
    assert comparison.first == start + at


def test_nothing_is_equal_to_nothing() -> None:
    """Two empty segments have no difference, no chunks and no events."""
    extent = Extent(0, None, 5, 5)
    comparison = Comparison(Pair(extent, extent, 5, 5, 0))
    assert list(in_step([], [])) == []
    assert comparison.first is None
    assert comparison.source == comparison.target
    assert (comparison.source.chunks, comparison.source.events) == ((), 0)


def test_a_side_that_ends_first_leaves_the_other_alone() -> None:
    """Before both sides begin, and after one ends, a step has bytes of one side only."""
    found = list(in_step(blocks(b"abcd", 0, []), blocks(b"BCDEF", 1, [3])))
    assert found == [
        ComparedBytes(0, memoryview(b"a"), memoryview(b"")),
        ComparedBytes(1, memoryview(b"bcd"), memoryview(b"BCD")),
        ComparedBytes(4, memoryview(b""), memoryview(b"EF")),
    ]
