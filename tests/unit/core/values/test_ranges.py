"""Ranges of a stream: the segments between two cuts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.values.model import KeyRange, Segment
from sluice.core.values.ranges import SegmentRange, between
from sluice.errors import InvalidSpec

FIELD = "spec.source.ranges[0]"


def _segment(number: int, low: float, high: float) -> Segment:
    return Segment(id=number, keys=KeyRange(low=low, high=high))


FIRST = (_segment(0, 0, 0.5), _segment(1, 0.5, 1))
SPLIT = (_segment(2, 0, 0.25), _segment(3, 0.25, 0.5))
MERGED = (_segment(4, 0.25, 1),)
STREAM = (FIRST, SPLIT, MERGED)


def _found(stretches: list[SegmentRange]) -> list[tuple[int, int, int | None, int | None]]:
    return [(one.segment.id, one.generation, one.start, one.end) for one in stretches]


def test_all_is_between_head_and_tail() -> None:
    """Without cuts a range is the whole stream, in order of generations."""
    assert _found(between(STREAM, None, None, field=FIELD)) == [
        (0, 0, None, None),
        (1, 0, None, None),
        (2, 1, None, None),
        (3, 1, None, None),
        (4, 2, None, None),
    ]


def test_a_range_begins_with_the_segments_of_its_cut() -> None:
    """Segments that were replaced before are left out.

    The cut's segments, of two generations, come first.
    """
    assert _found(between(STREAM, {1: 5, 2: 6, 3: 7}, None, field=FIELD)) == [
        (2, 0, 6, None),
        (3, 0, 7, None),
        (1, 0, 5, None),
        (4, 1, None, None),
    ]


def test_a_range_ends_with_the_segments_of_its_cut() -> None:
    """Segments that were made later are left out."""
    assert _found(between(STREAM, None, {1: 5, 2: 6, 3: 7}, field=FIELD)) == [
        (0, 0, None, None),
        (1, 0, None, 5),
        (2, 1, None, 6),
        (3, 1, None, 7),
    ]


def test_a_range_may_lie_within_segments() -> None:
    """Both cuts may be in the same segments."""
    found = between(STREAM, {0: 1, 1: 2}, {0: 3, 1: 4}, field=FIELD)
    assert _found(found) == [(0, 0, 1, 3), (1, 0, 2, 4)]


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ({9: 0}, "no segment 9"),
        ({0: 0}, "no events of the keys from 0.5000 to 1.0000"),
        ({0: 0, 4: 0}, "takes twice the keys from 0.2500 to 0.5000"),
        ({2: 0, 3: 0}, "no events of the keys from 0.5000 to 1.0000"),
    ],
)
def test_what_is_no_position_is_refused(cut: dict[int, int], message: str) -> None:
    """The error names the side of the range, and the keys that are missing or doubled."""
    for side, cuts in [("from", (cut, None)), ("to", (None, cut))]:
        with pytest.raises(InvalidSpec, match=message) as caught:
            between(STREAM, *cuts, field=FIELD)
        assert caught.value.field == f"{FIELD}.{side}"


def test_segments_that_are_not_together_are_no_position() -> None:
    """A reader in segment 4 has read segment 2, which takes the keys of segment 0 after its end."""
    first = (_segment(0, 0, 0.4), _segment(1, 0.4, 1))
    second = (_segment(2, 0, 0.6), _segment(3, 0.6, 1))
    third = (_segment(4, 0.4, 0.6), _segment(5, 0, 0.4))
    with pytest.raises(InvalidSpec, match="read past another"):
        between((first, second, third), {0: 0, 4: 0, 3: 0}, None, field=FIELD)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ({0: 3, 1: 0}, {0: 2, 1: 9}),
        ({2: 0, 4: 0}, {0: 9, 1: 9}),
        ({2: 0, 3: 0, 1: 0}, {0: 9, 1: 9}),
    ],
)
def test_a_range_that_goes_backwards_is_refused(begin: dict[int, int], end: dict[int, int]) -> None:
    """The error is at the end, whether the cuts are in one segment or differ by scale events."""
    with pytest.raises(InvalidSpec, match="before it begins") as caught:
        between(STREAM, begin, end, field=FIELD)
    assert caught.value.field == f"{FIELD}.to"


@given(st.integers(0, 2**32), st.integers(0, 6))
def test_two_ranges_that_meet_are_the_stream(seed: int, scales: int) -> None:
    """The ranges before and after a cut have each segment once, and the cut's segments in both."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    active, number = [_segment(0, 0, 0.5), _segment(1, 0.5, 1)], 2
    generations = [tuple(active)]
    cuts = [{segment.id: 7 for segment in active}]
    for _ in range(scales):
        at = chance.randrange(len(active))
        ended = active[at : at + chance.randint(1, 3)]
        low, high = ended[0].keys.low, ended[-1].keys.high
        parts = chance.randint(1, 3)
        edges = [low + (high - low) * i / parts for i in range(parts)] + [high]
        made = [_segment(number + i, edges[i], edges[i + 1]) for i in range(parts)]
        number += parts
        active[at : at + len(ended)] = made
        generations.append(tuple(made))
        cuts.append({segment.id: 7 for segment in active})
    cut = chance.choice(cuts)
    before = between(generations, None, cut, field=FIELD)
    after = between(generations, cut, None, field=FIELD)
    whole = {segment.id for made in generations for segment in made}
    assert {one.segment.id for one in before} | {one.segment.id for one in after} == whole
    shared = {one.segment.id for one in before} & {one.segment.id for one in after}
    assert shared == set(cut)
    assert all((one.end == 7) is (one.segment.id in cut) for one in before)
    assert all((one.start == 7) is (one.segment.id in cut) for one in after)
