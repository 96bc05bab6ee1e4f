import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.pace.slicing import slice_end, take

CHUNK = 8 << 20


@given(st.integers(0, 1 << 40), st.integers(1, 1 << 40), st.integers(1, 64))
def test_a_slice_ends_at_a_chunk_or_at_the_range(at: int, length: int, most: int) -> None:
    """A slice has at least one byte and at most its limit."""
    end = at + length
    stop = slice_end(at, end, most * CHUNK)
    assert at < stop <= min(end, at + most * CHUNK)
    assert stop == end or stop % CHUNK == 0


@given(st.integers(0, 1 << 30), st.integers(1, 1 << 30))
def test_slices_reach_the_end(start: int, length: int) -> None:
    """Consecutive slices cover the whole range, in few steps."""
    at, end, count = start, start + length, 0
    while at < end:
        at = slice_end(at, end, 4 * CHUNK)
        count += 1
    assert at == end
    assert count <= length // (3 * CHUNK) + 2


@pytest.mark.parametrize(
    ("items", "most", "expected"),
    [([5, 5, 5], 10, [5, 5]), ([50, 1], 10, [50]), ([], 10, []), ([0, 0, 11], 10, [0, 0])],
    ids=["up to the limit", "at least one", "none", "empty items are free"],
)
def test_a_round_takes_the_first_items_up_to_a_limit(
    items: list[int], most: int, expected: list[int]
) -> None:
    """Items are taken in order while they fit. The first one is always taken."""
    assert take(items, most, lambda size: size) == expected
