"""Decide how a copy is deleted: the driver first, then its staging, then the resource.

A finished copy leaves its target alone. An unfinished copy leaves nothing behind: staging is
deleted, and so is an unpublished target that the copy made. If publishing has begun, it is
finished instead. That takes seconds, and half a target is of no use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.copies.actions import (
    Abandon,
    Decision,
    DeleteJob,
    Erase,
    Orphan,
    RemoveFinalizer,
)
from sluice.core.reconcile.copies.statuses.choice import status_of
from sluice.core.reconcile.shared.conditions import Saying

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import World
    from sluice.core.values.trouble import Trouble

POLL_SECONDS: Final = 1.0
"""Seconds between two looks at pods that have to end."""

RETRY_SECONDS: Final = (2.0, 60.0)
"""First and longest wait before the deletion of staging is tried again."""

GONE_PATIENCE: Final = 300.0
"""Seconds for which the operator waits for a StreamStore or a Secret that is gone."""

GONE: Final = frozenset({"StoreNotFound", "SecretNotFound"})


def reconcile_deletion(copy: CopySeen, world: World) -> Decision:
    """Decide about a copy that is being deleted, even if it is suspended."""
    status = status_of(copy, world.now)
    if not copy.finalizer:
        return Decision(status=status.unchanged())
    if copy.force_orphan:
        why = "the annotation sluice.dev/force-orphan asks for it"
        return Decision(status=status.unchanged(), actions=(Orphan(why), RemoveFinalizer()))
    jobs = tuple(DeleteJob(job.name) for job in world.jobs if not job.deleting)
    if world.jobs or world.pods:
        said = Saying("Deleting", "The driver is being stopped.")
        return Decision(status=status.deleting(said), actions=jobs, again=POLL_SECONDS)
    said = Saying("Deleting", status.dropping)
    erase = (Erase(),) if copy.keeps else ()
    return Decision(status=status.deleting(said), actions=(Abandon(), *erase, RemoveFinalizer()))


def deletion_failed(copy: CopySeen, world: World, trouble: Trouble) -> Decision:
    """Decide what to do after staging could not be deleted.

    The operator waits for ever for a store that does not answer, since staged bytes must not leak.
    It does not wait for ever for a StreamStore or a Secret that is gone: after GONE_PATIENCE it
    reports the leftovers and lets the copy go.
    """
    status = status_of(copy, world.now)
    seconds = copy.deleted or 0.0
    if trouble.reason in GONE and seconds > GONE_PATIENCE:
        return Decision(
            status=status.unchanged(), actions=(Orphan(str(trouble)), RemoveFinalizer())
        )
    hint = "To leave it behind, annotate the resource with sluice.dev/force-orphan=true."
    said = Saying(trouble.reason, f"{status.undropped} {trouble} {hint}")
    first, most = RETRY_SECONDS
    return Decision(status=status.deleting(said), again=min(max(first, seconds / 4), most))
