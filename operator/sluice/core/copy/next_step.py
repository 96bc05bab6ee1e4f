"""Decide the next step of a copy from what the stores hold.

`next_step` is a pure function of the plan and one observation. Drivers remember nothing else. So a
driver that starts in the middle, after a crash, or beside another driver decides the same as a
driver that was there from the beginning. Each step is safe to repeat and safe to carry out late.

    MakeTarget (-> Shape) -> Bind -> Stage -> Transfer (-> Amend -> Stage)
      (-> DrainSource -> Transfer) -> Stitch -> Verify -> Publish
      -> (Scale -> FixSegmentCount -> Publish) for each generation (-> Live)
      -> ConfigureTarget (-> Seal) (-> DeleteSource) -> Sweep -> DeleteJournal -> Done

`core.copy.next_staging_step` decides from Stage to Verify.

All generations are staged and verified before the first one is published. Publishing makes them
readable in the order in which the source was scaled, and moves no bytes.

Of a copy that follows its source, `core.follow.following` decides in place of Live.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.missing_journal import without_journal
from sluice.core.copy.next_staging_step import stage
from sluice.core.copy.steps import (
    Bind,
    ConfigureTarget,
    DeleteJournal,
    DeleteSource,
    Done,
    DrainSource,
    FixSegmentCount,
    Live,
    MakeTarget,
    Publish,
    Scale,
    Seal,
    Shape,
    Stitch,
    Sweep,
    Verify,
)
from sluice.core.values import identity
from sluice.errors import (
    CopyAborted,
    IntegrityError,
    TargetExists,
    TargetReplaced,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.observed import Observed, SeenStaging, SeenTarget
    from sluice.core.copy.plan import SegmentPlan, StreamPlan
    from sluice.core.copy.steps import Step
    from sluice.core.values.model import Segment


def next_step(plan: StreamPlan, seen: Observed) -> Step:
    """Decide the next step of a copy whose plan is recorded or whose target is whole.

    Raises:
        TargetExists: the target exists, and this copy did not make it.
        TargetReplaced: the target is not the stream that was bound, or another client has written
            to it.
        SourceNotFound, SourceReplaced, SourceTruncated: the source changed under the copy.
        StoreUnavailable: the observation lacks the source.
        CopyAborted: the copy was aborted.
        TargetLost: the store has lost what was there.
        IntegrityError: segments of the target hold other lengths than planned.
    """
    _check_ours(plan, seen)
    if seen.target is not None:
        digest = identity.completed(seen.target.tags, plan.copy_id)
        if digest is not None:
            unsealed = plan.seal and not seen.target.sealed
            return _tidy(seen, digest, unsealed=unsealed)
    if seen.journal is None:
        raise without_journal(plan, seen)
    bound = seen.journal.target
    if bound is None:
        return _make(plan, seen.target)
    if seen.target is None:
        raise TargetReplaced(f"{plan.target} was deleted while it was being made")
    at = generation_of(plan, bound, seen.target.segments)
    if at is None:
        raise TargetReplaced(f"{plan.target} has other segments than the ones this copy made")
    return _fill(plan, seen, at)


def _check_ours(plan: StreamPlan, seen: Observed) -> None:
    """Raise the error that the target is no more, or never was, this copy's."""
    if seen.journal is not None and seen.journal.trail.left:
        raise CopyAborted(
            f"the copy of {plan.origin} to {plan.target} was ended while it followed its source; "
            "the target stays as far as it has come",
            remedy=f"To copy the stream again, take another target, or delete {plan.target} first.",
        )
    if seen.target is not None and not identity.is_ours(seen.target.tags, plan.copy_id):
        if seen.journal is not None and seen.journal.target is not None:
            raise TargetReplaced(
                f"{plan.target} was replaced by a stream that this copy did not make"
            )
        raise TargetExists(
            f"{plan.target} exists and this copy did not make it", field="spec.target.stream"
        )


def _make(plan: StreamPlan, target: SeenTarget | None) -> Step:
    """Return the next step until the target has the segments of the first generation."""
    if target is None:
        return MakeTarget()
    if not has_shape(plan, target.head):
        return Shape(target.segments)
    return Bind(tuple(segment.id for segment in target.head))


def has_shape(plan: StreamPlan, segments: Sequence[Segment]) -> bool:
    """Tell whether segments, in key order, take the keys of the plan's first generation."""
    first = [plan.segments[i].keys for i in plan.generations[0]]
    return len(segments) == len(first) and all(
        segment.keys.is_like(keys) for segment, keys in zip(segments, first, strict=True)
    )


def generation_of(plan: StreamPlan, bound: Sequence[int], tail: Sequence[int]) -> int | None:
    """Return the generation of the plan that a target has reached; None if it has none of them.

    Args:
        plan: the plan.
        bound: ids of the target's segments, in the plan's order.
        tail: ids of the segments that take events now, in key order.
    """
    for number, active in enumerate(plan.active):
        if tuple(bound[i] for i in active) == tuple(tail):
            return number
    return None


def is_behind(plan: StreamPlan, seen: Sequence[SeenStaging], at: int) -> bool:
    """Tell whether another driver published segments after they were observed.

    Args:
        plan: the plan.
        seen: the segments as they were observed.
        at: the generation that the target had reached when it was observed afterwards.
    """
    return any(
        state.published is None and (segment.generation < at or state.target is None)
        for index, (segment, state) in enumerate(zip(plan.segments, seen, strict=True))
        if segment.generation <= at and not is_taken(plan, index, state, at)
    )


def is_taken(plan: StreamPlan, index: int, state: SeenStaging, at: int) -> bool:
    """Tell whether the retention of a followed target has taken a whole segment away.

    It was published: the target was scaled since, and segments that take events are never taken.

    Args:
        plan: the plan.
        index: the segment's place in it.
        state: the segment as it was observed.
        at: the generation that the target has reached.
    """
    passed = plan.segments[index].generation <= at and index not in plan.active[at]
    return plan.follow and passed and state.target is None


def _fill(plan: StreamPlan, seen: Observed, at: int) -> Step:
    """Return the next step from the recording of the target's segments to its completion.

    Args:
        plan: the plan.
        seen: what the stores hold.
        at: the generation that the target has reached.
    """
    pairs = [
        (index, (segment, state))
        for index, (segment, state) in enumerate(zip(plan.segments, seen.segments, strict=True))
        if not is_taken(plan, index, state, at)
    ]
    if any(state.published == identity.ABORTED for _, (_, state) in pairs):
        raise CopyAborted(f"the copy of {plan.origin} to {plan.target} was aborted while it ran")
    unpublished = [(i, segment, state) for i, (segment, state) in pairs if state.published is None]
    if not unpublished:
        _check_published(plan, [pair for _, pair in pairs])
        return Live() if plan.follow else ConfigureTarget()
    # A driver may have died during a scale event, whose segments exist already.
    making = at if any(segment.generation <= at for _, segment, _ in unpublished) else at + 1
    for _, segment, state in unpublished:
        empty = state.target is not None and state.target.length == 0
        missing = state.target is None and segment.generation > at
        if segment.generation < at or not (missing or (empty and segment.generation <= making)):
            raise TargetReplaced(
                f"another client wrote into {plan.target} while it was being made",
                remedy="Delete this copy and make one to a name that no other client writes to.",
            )
    unverified = [
        (i, segment, state)
        for i, segment, state in unpublished
        if segment.length and state.verified != segment.length
    ]
    step = stage(plan, seen, unverified) if unverified else None
    undrained = plan.move and seen.journal is not None and seen.journal.drained is None
    if undrained and (step is None or isinstance(step, Stitch | Verify)):
        return DrainSource()
    if step is not None:
        return step
    ready = tuple(i for i, segment, _ in unpublished if segment.generation <= at)
    if not ready:
        # Even if the target still has the policy that was set for scaling it: a late
        # FixSegmentCount could fix the present number after another driver has scaled the target.
        return Scale(at + 1)
    if seen.target is not None and seen.target.restless:
        return FixSegmentCount()
    return Publish(ready)


def _check_published(plan: StreamPlan, pairs: Sequence[tuple[SegmentPlan, SeenStaging]]) -> None:
    """Raise IntegrityError if the published lengths are not the planned ones.

    The publish attribute is set in one step with the merge, so it counts the merged bytes. The
    target's length proves nothing: it was read before the attribute, and a merge may have come
    between.
    """
    for segment, state in pairs:
        if state.published != segment.length:
            raise IntegrityError(
                f"{plan.target} lacks bytes of segment {segment.id}: {segment.length} were "
                f"planned, {state.published} published"
            )


def _tidy(seen: Observed, digest: str, *, unsealed: bool) -> Step:
    """Return the next step once the target is whole.

    The journal is deleted only when the target is sealed, if it is to be: without a journal nothing
    is done to the target any more.
    """
    if unsealed and seen.journal is not None:
        return Seal()
    left = tuple(
        (i, number)
        for i, state in enumerate(seen.segments)
        for number, info in enumerate(state.parts)
        if info is not None
    )
    if seen.journal is not None and seen.left:
        return DeleteSource()
    if left:
        return Sweep(left)
    return Done(digest) if seen.journal is None else DeleteJournal()
