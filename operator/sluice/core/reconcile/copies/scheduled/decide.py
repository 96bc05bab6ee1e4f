"""Decide what to do next about a resource with runs, and when.

A run is planned, attempted, tried again and given up as a copy is, by `copies.decide`. This module
adds the rest between two runs, and the time of the next run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.core.reconcile.copies import decide
from sluice.core.reconcile.copies.actions import (
    POLL_SECONDS,
    Abandon,
    Decision,
    DeleteJob,
    RemoveFinalizer,
)
from sluice.core.reconcile.copies.scheduled.status import ScheduledStatus
from sluice.core.reconcile.copies.statuses.choice import status_of

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.scheduled.seen import ScheduledSeen
    from sluice.core.reconcile.copies.world import World
    from sluice.core.values.trouble import Trouble


def reconcile_scheduled(seen: ScheduledSeen, world: World) -> Decision:
    """Decide what to do now.

    `world` has the answers to `decide.questions`, or why there are none.
    """
    if seen.deleted is not None:
        return decide.reconcile(seen, world)
    if seen.waits_for_rest:
        return _in_time(seen, world, _without_rest(seen, world))
    decided = decide.reconcile(seen, world)
    if seen.done:
        status = _builder(seen, world).at_rest(world)
        status = status.model_copy(update={"job_ref": decided.status.job_ref})
        decided = replace(decided, status=status)
    return _in_time(seen, world, decided)


def after_failure(seen: ScheduledSeen, world: World, trouble: Trouble) -> Decision:
    """Decide what to do after an action that failed; see `decide.after_failure`."""
    decided = decide.after_failure(seen, world, trouble)
    return decided if seen.deleted is not None else _in_time(seen, world, decided)


def _without_rest(seen: ScheduledSeen, world: World) -> Decision:
    """Delete what is left of the last run, so that the next one can begin.

    Its driver may be at work yet: it removes old runs, which the next driver does as well. Or the
    status was lost, and with it the run that the driver is at.
    """
    status = _builder(seen, world).at_rest(world)
    late = tuple(DeleteJob(job.name) for job in world.jobs if job.active and not job.deleting)
    if late or world.pods or any(job.deleting for job in world.jobs):
        return Decision(status=status, actions=late, again=POLL_SECONDS)
    actions = (Abandon(), RemoveFinalizer())
    return Decision(status=status, actions=actions, again=POLL_SECONDS)


def _builder(seen: ScheduledSeen, world: World) -> ScheduledStatus:
    status = status_of(seen, world.now)
    assert isinstance(status, ScheduledStatus)  # noqa: S101 - for the type checker
    return status


def _in_time(seen: ScheduledSeen, world: World, decided: Decision) -> Decision:
    """Have the next look no later than the next scheduled run."""
    if seen.later is None or seen.spec.suspend:
        return decided
    left = max((seen.later - world.now).total_seconds(), 0.05)
    return replace(decided, again=left if decided.again is None else min(decided.again, left))
