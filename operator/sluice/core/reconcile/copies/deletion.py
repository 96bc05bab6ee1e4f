"""Deleting a copy: the driver first, then what it staged, then the resource.

A copy that is done leaves its target alone. One that is not leaves nothing behind: staging goes,
and the target as well if it is this copy's own and unpublished. Where publishing has begun, it is
finished: that is a matter of seconds, and half a target is the one thing nobody wants.
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
from sluice.core.reconcile.copies.status_of import status_of
from sluice.core.reconcile.shared.conditions import Saying

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import World
    from sluice.core.values.trouble import Trouble

POLL_SECONDS: Final = 1.0
"""Between two looks at pods that have to go."""

RETRY_SECONDS: Final = (2.0, 60.0)
"""First and longest wait before staging is tried to be dropped again."""

GONE_PATIENCE: Final = 300.0
"""Seconds for which a StreamStore or a Secret that is gone may come back."""

GONE: Final = frozenset({"StoreNotFound", "SecretNotFound"})


def reconcile_deletion(copy: CopySeen, world: World) -> Decision:
    """What to do for a copy that is being deleted. Suspending does not hold it up."""
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
    """What to do when staging could not be dropped.

    A store that does not answer is waited for, for ever: what is staged must not leak. A store or
    a Secret that is gone for good cannot be waited for: after a while the copy is let go, loudly.
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
