"""Bounded places are shared between groups."""

from hypothesis import given
from hypothesis import strategies as st

from sluice.core.pace.sharing import dealt


def test_small_groups_lose_nothing_to_large_ones() -> None:
    """Each group gets one place before any group gets a second."""
    assert dealt([range(100), [7, 8], [], [9]], 6) == [0, 7, 9, 1, 8, 2]


@given(st.lists(st.lists(st.integers(), max_size=9), max_size=9), st.integers(0, 40))
def test_places_are_shared_evenly(groups: list[list[int]], most: int) -> None:
    """No place stays empty while items are left, and groups' shares differ by at most one place."""
    named = [[(number, item) for item in group] for number, group in enumerate(groups)]
    found = dealt(named, most)
    assert len(found) == min(most, sum(map(len, groups)))
    got = [[one for one in found if one[0] == number] for number in range(len(groups))]
    for group, mine in zip(named, got, strict=True):
        assert mine == group[: len(mine)], "the first ones of each group, in order"
        if len(mine) < len(group):
            assert all(len(other) <= len(mine) + 1 for other in got)
