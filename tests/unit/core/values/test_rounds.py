from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.values.rounds import share_out, slice_end, take

CHUNK = 8 << 20
sizes = st.lists(st.integers(0, 1000), max_size=40)


@given(sizes, st.integers(1, 12))
def test_sharing_out_loses_nothing(items: list[int], tasks: int) -> None:
    """Every item is in exactly one task, and no task is empty or beyond the number asked for."""
    shares = share_out(items, tasks, lambda size: size)
    assert Counter(item for share in shares for item in share) == Counter(items)
    assert all(shares)
    assert len(shares) <= tasks


@given(st.lists(st.integers(1, 1000), max_size=40), st.integers(1, 12))
def test_every_task_gets_work_where_there_is_enough(items: list[int], tasks: int) -> None:
    """There are as many tasks as asked for, or one for each item where those are fewer."""
    assert len(share_out(items, tasks, lambda size: size)) == min(tasks, len(items))


@given(sizes, st.integers(1, 12))
def test_sharing_out_balances(items: list[int], tasks: int) -> None:
    """No task has more than the mean and the largest item together."""
    shares = share_out(items, tasks, lambda size: size)
    loads = [sum(share) for share in shares]
    assert max(loads, default=0) <= sum(items) / tasks + max(items, default=0)


def test_sharing_out_is_the_same_every_time() -> None:
    """The largest items go first, each to the least loaded task."""
    assert share_out([1, 9, 4, 4, 2], 2, lambda size: size) == [[9, 1], [4, 4, 2]]


def test_nothing_to_do_gives_no_tasks() -> None:
    """Without items there is no task."""
    assert share_out([], 4, lambda size: size) == []


@given(st.integers(0, 1 << 40), st.integers(1, 1 << 40), st.integers(1, 64))
def test_a_slice_ends_at_a_chunk_or_at_the_range(at: int, length: int, most: int) -> None:
    """A slice advances, by at most its size, to a chunk's boundary or to the range's end."""
    end = at + length
    stop = slice_end(at, end, most * CHUNK)
    assert at < stop <= min(end, at + most * CHUNK)
    assert stop == end or stop % CHUNK == 0


@given(st.integers(0, 1 << 30), st.integers(1, 1 << 30))
def test_slices_reach_the_end(start: int, length: int) -> None:
    """Slice after slice covers the whole range."""
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
    """Items are taken in order while they fit, and the first one always."""
    assert take(items, most, lambda size: size) == expected
