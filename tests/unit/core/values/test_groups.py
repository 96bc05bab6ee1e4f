"""Segments that a reader group has finished while it awaits others."""

from __future__ import annotations

from sluice.core.values.groups import finished
from sluice.core.values.model import KeyRange, Segment


def _segment(number: int, low: float, high: float) -> Segment:
    return Segment(id=number, keys=KeyRange(low=low, high=high))


LEFT, RIGHT = _segment(0, 0, 0.5), _segment(1, 0.5, 1)
MERGED = _segment(2, 0, 1)
SPLIT = _segment(3, 0, 0.3), _segment(4, 0.3, 1)


def test_what_was_read_before_an_awaited_segment_is_finished() -> None:
    """The awaited segment's other predecessors are still being read."""
    assert finished({1: 7}, {2: frozenset({1})}, [(LEFT, RIGHT), (MERGED,)]) == {0}


def test_nothing_is_finished_where_every_key_is_being_read() -> None:
    """The group may be in any generation, even if later ones exist."""
    generations = [(LEFT, RIGHT), (MERGED,), SPLIT]
    assert finished({0: 1, 1: 7}, {}, generations) == set()
    assert finished({3: 0, 4: 0}, {}, generations) == set()


def test_a_segment_that_is_awaited_itself_is_not_finished() -> None:
    """Segment 2 waits for segment 1, whose keys it takes, so only segment 0 is finished."""
    halves = _segment(2, 0.5, 0.7), _segment(3, 0.7, 1)
    over = _segment(4, 0, 0.7)
    generations = [(LEFT, RIGHT), halves, (over,)]
    assert finished({1: 7}, {4: frozenset({2})}, generations) == {0}


def test_at_the_end_of_a_sealed_stream_the_last_segments_are_finished() -> None:
    """The last segments have no successors that could be awaited."""
    assert finished({}, {}, [(LEFT, RIGHT), (MERGED,)]) == {2}
    assert finished({3: 5}, {}, [(MERGED,), SPLIT]) == {4}
