"""The steps of a copy of a scaled source: publish a generation, scale, publish the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice.core.copy.journal import Journal
from sluice.core.copy.next_step import is_behind, next_step
from sluice.core.copy.observed import Observed, SeenStaging, SeenTarget
from sluice.core.copy.steps import ConfigureTarget, FixSegmentCount, Publish, Scale, Shape, Step
from sluice.core.values.identity import owner_tags
from sluice.core.values.model import KeyRange, Segment, SegmentInfo
from sluice.errors import TargetReplaced
from support.engine.plans import COPY, segment_plan, stream_plan

_LENGTH = 7
_FLAT = stream_plan(*(segment_plan(_LENGTH, number=number) for number in range(5)))
_SHAPE = [(0, 0, 0.5), (0, 0.5, 1), (1, 0, 0.25), (1, 0.25, 0.5), (2, 0, 1)]
PLAN = _FLAT.model_copy(
    update={
        "segments": tuple(
            segment.model_copy(
                update={"generation": generation, "keys": KeyRange(low=low, high=high)}
            )
            for segment, (generation, low, high) in zip(_FLAT.segments, _SHAPE, strict=True)
        )
    }
)
"""Two segments; the first one is split; all are merged."""

IDS = (10, 11, 12, 13, 14)
TAILS = ((10, 11), (12, 13, 11), (14,))
HEAD = tuple(Segment(id=id_, keys=PLAN.segments[i].keys) for i, id_ in enumerate(IDS[:2]))


def _info(length: int) -> SegmentInfo:
    return SegmentInfo(start=0, length=length, sealed=False)


LATER = SeenStaging(
    parts=(_info(_LENGTH),), stitched=None, verified=_LENGTH, published=None, target=None
)
READY = replace(LATER, target=_info(0))
THERE = replace(LATER, parts=(None,), verified=None, published=_LENGTH, target=_info(_LENGTH))


def _seen(at: int, *segments: SeenStaging, restless: bool = False) -> Observed:
    """Return a copy whose target is at a generation."""
    target = SeenTarget(owner_tags(COPY), TAILS[at], HEAD, restless=restless)
    return Observed(journal=Journal(PLAN, IDS), target=target, segments=segments)


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (_seen(0, READY, READY, LATER, LATER, LATER), Publish((0, 1))),
        (_seen(0, THERE, READY, LATER, LATER, LATER), Publish((1,))),
        (_seen(0, THERE, THERE, LATER, LATER, LATER), Scale(1)),
        (_seen(0, THERE, THERE, READY, LATER, LATER), Scale(1)),
        (_seen(1, THERE, THERE, READY, READY, LATER), Publish((2, 3))),
        (_seen(1, THERE, THERE, THERE, THERE, LATER), Scale(2)),
        (_seen(1, THERE, THERE, THERE, THERE, READY), Scale(2)),
        (_seen(2, THERE, THERE, THERE, THERE, READY, restless=True), FixSegmentCount()),
        (_seen(2, THERE, THERE, THERE, THERE, READY), Publish((4,))),
        (_seen(2, *[THERE] * 5), ConfigureTarget()),
        (_seen(2, *[THERE] * 5, restless=True), ConfigureTarget()),
    ],
)
def test_generations_are_published_one_after_the_other(seen: Observed, step: Step) -> None:
    """The target is scaled only when all segments before are published.

    If a driver died in a scale event, its segments exist, and the event is repeated.
    """
    assert next_step(PLAN, seen) == step


@pytest.mark.parametrize(
    "seen",
    [
        _seen(0, READY, READY, READY, LATER, LATER),
        _seen(0, THERE, THERE, LATER, LATER, READY),
        _seen(0, THERE, THERE, replace(LATER, target=_info(1)), LATER, LATER),
        _seen(1, READY, THERE, READY, READY, LATER),
        _seen(1, THERE, THERE, LATER, READY, LATER),
        replace(
            _seen(0, THERE, THERE, LATER, LATER, LATER),
            target=SeenTarget(owner_tags(COPY), (12, 11), HEAD),
        ),
    ],
    ids=[
        "a segment too early",
        "a later segment too early",
        "bytes in a segment that is being made",
        "scaled before published",
        "a segment is missing",
        "other ids",
    ],
)
def test_a_target_that_somebody_else_scaled_is_given_up(seen: Observed) -> None:
    """TargetReplaced is raised if the copy's own steps cannot have led to the target's segments."""
    with pytest.raises(TargetReplaced):
        next_step(PLAN, seen)


@pytest.mark.parametrize(
    ("at", "segments", "expected"),
    [
        (0, [READY, READY, LATER, LATER, LATER], False),
        (1, [THERE, THERE, READY, READY, LATER], False),
        (1, [THERE, READY, LATER, LATER, LATER], True),
        (1, [THERE, THERE, LATER, LATER, LATER], True),
        (2, [THERE, THERE, THERE, THERE, THERE], False),
    ],
)
def test_a_look_that_another_driver_overtook_is_seen(
    at: int, segments: list[SeenStaging], *, expected: bool
) -> None:
    """Segments observed before the target may be older than its last scale event."""
    assert is_behind(PLAN, segments, at) is expected


def test_a_plan_tells_which_segments_take_events() -> None:
    """`generations` has the new segments of each scale event.

    `active` has the segments that take events after it, in the order of their keys.
    """
    assert PLAN.generations == ((0, 1), (2, 3), (4,))
    assert PLAN.active == ((0, 1), (2, 3, 1), (4,))


def test_a_head_of_other_keys_is_shaped_first() -> None:
    """A new stream has uniform key ranges. The copy scales it before it binds the segments."""
    uneven = tuple(
        Segment(id=number, keys=KeyRange(low=low, high=high))
        for number, low, high in [(10, 0, 0.3), (11, 0.3, 1)]
    )
    seen = Observed(Journal(PLAN), SeenTarget(owner_tags(COPY), (10, 11), uneven))
    assert next_step(PLAN, seen) == Shape((10, 11))
