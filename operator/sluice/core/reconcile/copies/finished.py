"""Decide what becomes of a copy that is complete: what it left goes, then its Jobs, its resource.

Nothing here touches the target. What is deleted in stores was staging or a record of the copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.copies.actions import (
    Abandon,
    Decision,
    DeleteJob,
    DropControls,
    Expire,
    RemoveFinalizer,
)
from sluice.core.reconcile.copies.hooks import standing

if TYPE_CHECKING:
    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import World

LOOK_SECONDS: Final = 2.0
"""Seconds until the next look at a complete copy that something still has to be done about."""


def tidied(copy: CopySeen, world: World, status: CopyingStatus) -> Decision:
    """Delete what a complete copy left in the stores, and remove its finalizer.

    A driver that has not ended yet may still leave something there, so its end is waited for. The
    stores' finalizers are removed when the StreamStores are reconciled.
    """
    if not copy.finalizer or copy.keeps:
        return _at_rest(copy, world, status)
    if any(job.active for job in world.jobs):
        return Decision(status=status, again=LOOK_SECONDS)
    return Decision(status=status, actions=(Abandon(), RemoveFinalizer()))


def _at_rest(copy: CopySeen, world: World, status: CopyingStatus) -> Decision:
    """Delete what a complete and tidied copy does not need any more: its Jobs, then its resource.

    What drivers read goes with the Jobs. The plan and the result stay with the resource. The status
    has the reference to the latest Job until the Jobs are deleted. It is written first; if the
    operator is killed in between, Kubernetes deletes the Jobs by their own time.

    The finalizer's removal has been seen. So when the resource is deleted, nothing of the copy is
    left in the stores but its target, which stays.
    """
    end, resource, jobs = status.completion_time, copy.time_to_live, world.job_seconds
    if end is None:
        return Decision(status=status)
    age = (world.now - end).total_seconds()
    if resource is not None and age >= resource:
        # The status is written first: who watches the copy sees that it succeeded.
        actions = (Expire(),) if status == copy.status else ()
        return Decision(status=status, actions=actions, again=LOOK_SECONDS)
    left = [] if resource is None else [resource - age]
    job = status.job_ref
    if job is None or jobs is None:
        return Decision(status=status, again=min(left, default=None))
    if any(one.active for one in world.jobs):  # of an archive that keeps its finalizer: it sweeps
        return Decision(status=status, again=min([*left, jobs]))
    if age < jobs:
        return Decision(status=status, again=min([*left, jobs - age]))
    kept = [entry.job for entry in status.history[-1 - world.job_history :]]
    kept += standing.jobs_of(status)
    return Decision(
        status=status.model_copy(update={"job_ref": None}),
        actions=(*(DeleteJob(name) for name in dict.fromkeys((*kept, job.name))), DropControls()),
        again=min(left, default=None),
    )
