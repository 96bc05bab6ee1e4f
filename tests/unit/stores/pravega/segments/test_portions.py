"""Portions: the bytes that segments read side by side ask for."""

import pytest

from sluice.stores.pravega.segments.portions import LEAST, MOST, Portion, Portions
from sluice.stores.pravega.segments.reader import BLOCK

MIB = 1 << 20


@pytest.mark.parametrize("count", [1, 10, 1000, 4000])
@pytest.mark.parametrize("most", [1, 100_000, 4 * MIB, 1 << 40])
def test_all_together_keep_within_the_bound(count: int, most: int) -> None:
    """Besides a minimum for each segment, all portions together stay within the bound."""
    portions = Portions(most)
    segments = [Portion() for _ in range(count)]
    total = sum(each.size for each in segments)
    for round_ in range(3):
        for place, portion in enumerate(segments):
            total -= portion.size
            portions.set_behind(portion, behind=(place + round_) % 3 == 0)
            portions.take(portion, count)
            total += portion.size
            assert total <= min(most, MOST) + count * LEAST
        assert total == sum(each.size for each in segments)  # no call changes another portion
    for portion in segments:
        portions.give_back(portion)
    assert portions.take(Portion(), 1) == max(LEAST, min(most // 2, 64 << 10))


def test_a_segment_that_is_behind_asks_for_more() -> None:
    """The segment gets a whole block, although thousands of segments wait at their tails."""
    portions = Portions(4 * MIB)
    for _ in range(2000):
        portions.take(Portion(), 2000)
    behind = Portion()
    portions.set_behind(behind, behind=True)
    portions._free = 4 * MIB  # the others have few bytes left
    assert portions.take(behind, 2001) == BLOCK


def test_nothing_is_no_bound() -> None:
    """A bound of 0 bytes raises ValueError."""
    with pytest.raises(ValueError, match="not 0"):
        Portions(0)
