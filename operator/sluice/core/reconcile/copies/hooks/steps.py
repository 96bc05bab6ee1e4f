"""Decide the next step of a copy whose hook is due, or under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.reconcile.copies.actions import (
    AT_ONCE,
    POLL_SECONDS,
    WAIT_SECONDS,
    Decision,
    DeleteJob,
    StartHook,
)
from sluice.core.reconcile.copies.failing import failed
from sluice.core.reconcile.copies.hooks import standing
from sluice.core.reconcile.copies.seen import recorded, seconds_left, waits
from sluice.core.reconcile.copies.world import HookSeen
from sluice.core.values.trouble import Trouble

if TYPE_CHECKING:
    from sluice.api.status.common import CopyingStatus, HookStatus
    from sluice.core.reconcile.copies.hooks.standing import Point
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.statuses.base import CopyStatus
    from sluice.core.reconcile.copies.world import World


def stopped_by(copy: CopySeen, world: World, status: CopyStatus, point: Point) -> Decision | None:
    """Begin a hook that is due, or stop at one that has failed; None if the copy may go on."""
    trouble = standing.failure(copy, status.value, point)
    if trouble is None and not standing.is_due(copy, status.value, point):
        return None
    seen = world.hooks.get(point)
    trouble = trouble or (seen if isinstance(seen, Trouble) else None)
    if trouble is not None:
        return failed(copy, status, trouble, attempt=None)
    _record(copy, world, status, point)
    hook = standing.announced(copy, status.value, point)
    return _started(status.hook(point, hook), world, point, hook.job)


def _started(said: CopyingStatus, world: World, point: Point, job: str) -> Decision:
    """Make the Job of a hook, or adopt it, once no other hook's runs."""
    late = [DeleteJob(name) for name in world.late_hooks if name != job]
    return Decision(status=said, actions=(*late, StartHook(point, job)), again=POLL_SECONDS)


def hooked(copy: CopySeen, world: World, status: CopyStatus) -> Decision | None:
    """Watch over a hook that was announced and has not ended; None if there is none."""
    found = standing.under_way(status.value)
    if found is None:
        return None
    begun = isinstance(world.hooks.get(found[0]), HookSeen)
    if copy.spec.suspend and found[1].state == "Pending" and not begun:
        return None  # it begins when the copy is resumed
    return _watched(copy, world, status, *found)


def _watched(
    copy: CopySeen, world: World, status: CopyStatus, point: Point, hook: HookStatus
) -> Decision:
    """Watch over this hook."""
    spec, seen = standing.spec_of(copy, point), world.hooks.get(point)
    if spec is None:  # it was taken out of the spec
        return _without(status, point, hook, seen)
    if not isinstance(seen, HookSeen) and waits(copy, world):
        return Decision(status=status.unchanged(), again=seconds_left(copy, world))
    if isinstance(seen, Trouble):
        return failed(copy, status, seen, attempt=None)
    _record(copy, world, status, point)
    now = standing.moved_on(spec, hook, seen, point=point, now=world.now)
    said = status.hook(point, now)
    if now.state == "Pending":
        return _started(said, world, point, now.job)
    late = seen is not None and standing.is_late(spec, seen, world.now)
    return _goes_on(copy, status, point, now, late=late)


def _goes_on(
    copy: CopySeen, status: CopyStatus, point: Point, now: HookStatus, *, late: bool
) -> Decision:
    """Go on after a hook's Job was seen; `late` if it has taken too long."""
    said = status.value
    trouble = standing.failure(copy, status.value, point)
    if trouble is not None:
        return failed(copy, status, trouble, attempt=None)
    if late:
        # It has failed once the Job is gone. An operator that is killed before deletes it later.
        return Decision(status=said, actions=(DeleteJob(now.job),), again=POLL_SECONDS)
    # After its end the next look asks the stores.
    return Decision(status=said, again=WAIT_SECONDS if now.state == "Running" else AT_ONCE)


def _without(
    status: CopyStatus, point: Point, hook: HookStatus, seen: HookSeen | Trouble | None
) -> Decision:
    """Stop a hook that the spec does not have any more. Once its Job is gone, forget its state."""
    if isinstance(seen, HookSeen) and seen.active:
        stop = (DeleteJob(hook.job),)
        return Decision(status=status.unchanged(), actions=stop, again=POLL_SECONDS)
    # The number stays: a hook that is put back must not adopt the Job of this one.
    gone = {"state": None, "start_time": None, "end_time": None, "message": None}
    status.note_hook(point, hook.model_copy(update=gone))
    return Decision(status=status.unchanged(), again=AT_ONCE)


def _record(copy: CopySeen, world: World, status: CopyStatus, point: Point) -> None:
    """Write the end of the attempt that completed the copy, before its Job is gone by its age.

    While its driver still tidies, the end is not written: a Job with a written end must not run.
    """
    job = world.job
    if point != standing.AFTER or job is None or job.active or recorded(copy, job):
        return
    status.end(job, outcome="Succeeded")
