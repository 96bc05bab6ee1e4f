"""The depth of reading ahead, which grows with the delay up to a limit."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sluice.stores.pravega.segments.reader import DEPTH, Depth


def replies(depth: Depth, count: int, *, waited: float, worked: float = 1.0) -> list[int]:
    """Return the depth after each of this many replies."""
    seen = []
    for _ in range(count):
        depth.add(waited, waited + worked)
        seen.append(depth.now)
    return seen


def test_reads_go_deeper_while_most_of_the_time_is_waited() -> None:
    """The depth grows after a few replies that were waited for, up to the limit."""
    seen = replies(Depth(DEPTH, 24), 100, waited=2.0)
    assert seen[0] == DEPTH
    assert sorted({*seen}) == [4, 8, 16, 24]
    assert seen == sorted(seen)


def test_reads_stay_as_they_are_where_the_reader_is_slow() -> None:
    """More pending reads would only take memory."""
    assert {*replies(Depth(DEPTH, 24), 100, waited=0.5)} == {DEPTH}


@given(
    first=st.integers(1, 8),
    most=st.integers(1, 64),
    waits=st.lists(st.floats(0, 10), max_size=300),
)
def test_the_depth_is_bounded(first: int, most: int, waits: list[float]) -> None:
    """The depth begins with the given one, never shrinks, and never exceeds the limit."""
    depth = Depth(first, most)
    seen = [depth.now]
    for waited in waits:
        depth.add(waited, waited + 1)
        seen.append(depth.now)
    assert seen[0] == min(first, most)
    assert all(before <= after <= most for before, after in pairwise(seen))
