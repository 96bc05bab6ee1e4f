"""Say what the stores hold after a step whose effect its driver knows.

A look at the target and at all that is staged takes longer than most steps. A driver that knows the
effect of a step, by the store's answers, leaves out the look after it: `after` adds the effect to
the observation before the step, and the next step is decided from that as from any other.

This is as if the driver had looked right after the step and was then delayed, and each step is safe
to do late. It is limited all the same to pairs of steps (`follows`) of which the second harms
nothing if another client has interfered. A driver always looks at everything before it publishes,
and between the generations of a source that was scaled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluice.core.copy.next_staging_step import seams
from sluice.core.copy.observed import Observed, SeenStaging
from sluice.core.copy.steps import (
    Bind,
    ConfigureTarget,
    DeleteJournal,
    Done,
    MakeTarget,
    PlanPlacement,
    Publish,
    Stage,
    Stitch,
    Transfer,
    Verify,
    WriteReceipt,
)
from sluice.core.values import identity
from sluice.core.values.model import SegmentInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import Part, SegmentPlan, StreamPlan
    from sluice.core.copy.steps import Step

_FOLLOWING: Final[Mapping[type, tuple[type, ...]]] = {
    type(None): (MakeTarget,),
    Bind: (Stage,),
    PlanPlacement: (Stage,),
    Stage: (Transfer,),
    Transfer: (Stitch, Verify),
    Stitch: (Verify,),
    Publish: (ConfigureTarget,),
    ConfigureTarget: (DeleteJournal,),
    WriteReceipt: (DeleteJournal,),
    DeleteJournal: (Done,),
}

_SELF_EVIDENT: Final = (type(None), Publish, ConfigureTarget)
"""Steps after which the journal need not be looked at either. The plan was just recorded; a merge
into the target shows as well as a look that the copy goes on; and the next step is on the condition
that the journal is as it was."""

_EMPTY: Final = SegmentInfo(start=0, length=0, sealed=False)


def follows(step: Step | None, following: Step) -> bool:
    """Tell whether a step may follow another without a look at the target in between.

    Args:
        step: the step before; None for the record of the plan.
        following: the step after it.
    """
    return isinstance(following, _FOLLOWING.get(type(step), ()))


def is_self_evident(step: Step | None) -> bool:
    """Tell whether not even the journal and the sources have to be looked at after a step."""
    return isinstance(step, _SELF_EVIDENT)


def after(
    step: Step, seen: Observed, plan: StreamPlan, journal: Journal | None, digest: str
) -> Observed | None:
    """Return what the stores hold after a step, but for the sources.

    Args:
        step: the step, whose effect is known.
        seen: what the stores held before it.
        plan: the plan with its amendments.
        journal: the journal after the step.
        digest: the copy's digest, where the step writes it down.

    Returns:
        None if the driver has to look. Of the target's tags, only Sluice's own are in it.
    """
    segments = _segments(step, seen, plan)
    if segments is None or (journal is not None and _renews(step, journal)):
        return None
    if journal is not None and _told(journal, step) != _told(seen.journal, step):
        return None  # another driver has written to it
    target, roll = seen.target, seen.roll
    if not plan.append and isinstance(step, ConfigureTarget | DeleteJournal):
        # Another driver may be late with a change of the policy, which takes the mark away.
        if target is None or len(plan.generations) > 1:
            return None
        if isinstance(step, ConfigureTarget):
            tags = (*identity.owner_tags(plan.copy_id), identity.TAG_COMPLETE + digest)
            target = replace(target, tags=tags, config=None)
    if isinstance(step, WriteReceipt):
        roll = replace(roll, digest=digest)
    return Observed(journal=journal, target=target, segments=segments, roll=roll)


def is_as_known(journal: Journal | None, known: Journal | None) -> bool:
    """Tell whether a journal has the records that a driver knows, but for digests and counts."""
    return _told(journal) == _told(known)


def _told(journal: Journal | None, step: Step | None = None) -> tuple[object, ...] | None:
    """Return the records on which the state of staging and target depends, but for a step's own."""
    if journal is None:
        return None
    target = None if isinstance(step, Bind | PlanPlacement) else journal.target
    return target, journal.amended, journal.drained, journal.roll, journal.trail


def _renews(step: Step, journal: Journal) -> bool:
    """Tell whether the look after a step renews the leases of open transactions."""
    return bool(journal.roll.transactions) and not isinstance(step, WriteReceipt)


def _segments(  # noqa: C901 - one case for each step
    step: Step, seen: Observed, plan: StreamPlan
) -> tuple[SeenStaging, ...] | None:
    """Return the staging of each segment after a step; None if it is not known."""
    segments = list(seen.segments)
    match step:
        case Bind() | PlanPlacement():
            return tuple(map(_untouched, plan.segments))
        case Stage(parts):
            for index, part in parts:
                segments[index] = _with(segments[index], part, _EMPTY)
        case Transfer(transfers):
            for index, part, _ in transfers:
                segments[index] = _with(segments[index], part, _whole(part.length))
        case Stitch(parts):
            for index, part in parts:
                segments[index] = _stitched(segments[index], plan.segments[index], part)
        case Publish(indexes):
            for index in indexes:
                segments[index] = _published(segments[index], plan.segments[index])
        case ConfigureTarget():
            pass
        case WriteReceipt() | DeleteJournal():
            return ()
        case _:
            return None
    return tuple(segments)


def _untouched(segment: SegmentPlan) -> SeenStaging:
    """Return a segment for which nothing is staged. What an append is merged into is left out."""
    target = None if segment.generation else _EMPTY
    nothing = (None,) * len(segment.parts)
    return SeenStaging(nothing, stitched=None, verified=None, published=None, target=target)


def _with(state: SeenStaging, part: Part, info: SegmentInfo | None) -> SeenStaging:
    """Return a segment with another staging segment of one part."""
    parts = (*state.parts[: part.number], info, *state.parts[part.number + 1 :])
    return replace(state, parts=parts)


def _stitched(state: SeenStaging, segment: SegmentPlan, part: Part) -> SeenStaging:
    """Return a segment after a part was merged into its first part."""
    length = seams(segment)[part.number]
    state = _with(_with(state, segment.parts[0], _whole(length)), part, None)
    return replace(state, stitched=length)


def _published(state: SeenStaging, segment: SegmentPlan) -> SeenStaging:
    """Return a segment after its staging, with its marks, was merged into the target's segment."""
    if segment.parts:
        state = replace(_with(state, segment.parts[0], None), stitched=None, verified=None)
    return replace(state, published=segment.length, target=_whole(segment.length))


def _whole(length: int) -> SegmentInfo:
    return SegmentInfo(start=0, length=length, sealed=False)
