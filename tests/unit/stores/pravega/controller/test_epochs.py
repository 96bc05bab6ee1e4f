"""Ids of segments that a scale event is going to make."""

from itertools import pairwise

import pytest

from sluice.core.values.model import KeyRange
from sluice.stores.pravega.controller.epochs import following

EPOCH = 1 << 32


def _ranges(*edges: float) -> list[KeyRange]:
    return [KeyRange(low=low, high=high) for low, high in pairwise(edges)]


@pytest.mark.parametrize(
    ("edges", "numbers"),
    [
        ((0.0, 1.0), (2,)),
        ((0.0, 0.5, 1.0), (2, 3)),
        ((0.0, 0.2, 0.5, 1.0), (2, 4, 3)),
        ((0.1, 0.7, 1.0), (3, 2)),
        ((0.4, 0.5, 0.6), (3, 2)),
    ],
)
def test_segments_are_numbered_as_a_live_controller_did(
    edges: tuple[float, ...], numbers: tuple[int, ...]
) -> None:
    """The order is that of the lower edges in a Java HashMap, not that of the keys."""
    assert following([0, 1], [_ranges(*edges)]) == [tuple(EPOCH | one for one in numbers)]


def test_numbers_and_epochs_count_through() -> None:
    """Numbers begin after the latest segment, and continue over several scale events."""
    found = following([EPOCH | 4, EPOCH | 5], [_ranges(0, 1), _ranges(0, 0.5, 1)])
    assert found == [(2 * EPOCH | 6,), (3 * EPOCH | 7, 3 * EPOCH | 8)]
