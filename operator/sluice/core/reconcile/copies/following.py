"""Decide about a copy that follows its source: its two kinds of Jobs, its end, its reader groups.

A first leg that is large has the Job of any copy, which ends where following begins. From there on,
or from the beginning if there is little to copy, a Job with a small pod follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.follow.lag import RESOLUTION, SAMPLE_SECONDS
from sluice.core.reconcile.copies.actions import (
    AT_ONCE,
    POLL_SECONDS,
    WAIT_SECONDS,
    Decision,
    DeleteJob,
    MakeGroup,
    WriteControls,
    WriteWish,
)
from sluice.core.reconcile.copies.seen import follows
from sluice.core.reconcile.copies.statuses.followed_scopes import FollowedScopeStatus
from sluice.core.reconcile.copies.statuses.followed_streams import FollowedStreamStatus
from sluice.core.reconcile.copies.statuses.following import FollowingStatus
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.workloads.answers import Following

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.api.status.common import Attempt
    from sluice.core.follow.lag import Followed
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.statuses.base import CopyStatus
    from sluice.core.reconcile.copies.world import World
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.workloads.answers import Planned

SMALL: Final = 64 << 20
"""Bytes of a plan up to which the follower copies them itself: no Job is started before it."""

DRIVERS: Final = 3
"""Drivers that may fail to catch up, one after the other, until a follower goes on."""

COSTS: Final = 5.0
"""Times the seconds that a look at the stores took, until the next one. A scope may have thousands
of streams, and its stores other work."""


def by_follower(copy: CopySeen, planned: Planned, history: Sequence[Attempt]) -> bool:
    """Tell whether the next attempt is a follower's, and no driver's that ends once it is near.

    Args:
        copy: the copy.
        planned: what the stores hold of it.
        history: the attempts, the latest one last.
    """
    if not follows(copy):
        return False
    if isinstance(planned, Following):
        return not _catches_up(history, begun=planned.catches_up)
    return not copy.spec.runtime.executors and planned.plan.bytes <= SMALL


def _catches_up(history: Sequence[Attempt], *, begun: bool) -> bool:
    """Tell whether a driver is to catch up, or to go on with what another one has staged.

    Args:
        history: the attempts, the latest one last.
        begun: whether a catch-up is begun and not over.
    """
    failures = 0
    for attempt in reversed([one for one in history if one.outcome]):
        if attempt.reason == "FarBehind" or attempt.outcome == "Succeeded":
            begun = begun or attempt.reason == "FarBehind"
            break
        failures += attempt.outcome == "Failed"
    return begun and failures < DRIVERS


def came_live(world: World, job: JobSeen) -> bool:
    """Tell whether a driver has ended as it should, so that a follower goes on."""
    succeeded = job.phase is JobPhase.SUCCEEDED and not job.follower
    return succeeded and isinstance(world.answer, Following)


def running(world: World, status: CopyStatus, job: JobSeen) -> Decision | None:
    """Watch over a copy that follows, or is about to; None while it is as any other copy."""
    if not isinstance(status, FollowingStatus):
        return None
    wishes = wish_to_write(world)
    reading = world.reading
    follow = None if reading is None else reading.progress.follow
    if reading is None or follow is None:
        return None
    starts = not job.follower and job.phase is JobPhase.PENDING  # if it never does, it has failed
    if starts or not (follow.live or (job.follower and _has_begun(follow))):
        return None
    controls: tuple[Action, ...] = () if world.controls else (WriteControls(),)
    if job.follower and job.outdated and not status.ends(follow):
        # Its process is of another version or size. What it has followed stays.
        status.end(job, outcome="Replaced", reason="SpecChanged")
        return _replaced(world, status, job)
    if status.falls_behind(follow, world, job):
        status.end(job, outcome="Replaced", reason="FarBehind")
        return _replaced(world, status, job)
    soon = status.ends(follow) or follow.lag.pending or world.now - job.started < status.YOUNG
    again = RESOLUTION - 0.5 if soon else SAMPLE_SECONDS
    said = status.followed(world, job)
    told: tuple[Action, ...] = ()
    if isinstance(status, FollowedScopeStatus):
        told = (*status.published_anew(world), *status.failures_told())
    return Decision(
        status=said,
        actions=(*wishes, *controls, *told),
        again=max(again, COSTS * reading.took),
    )


def _replaced(world: World, status: FollowingStatus, job: JobSeen) -> Decision:
    """Delete the Job of a follower, so that another attempt begins."""
    said = status.followed(world, job)
    return Decision(status=said, actions=(DeleteJob(job.name),), again=POLL_SECONDS)


def _has_begun(follow: Followed) -> bool:
    """Tell whether a scope is followed, though the planned bytes of some streams are not there."""
    streams = follow.streams
    return streams is not None and streams.followed + streams.ended + streams.failed > 0


def wish_to_write(world: World) -> tuple[Action, ...]:
    """Write how the copy is to end, if its journal says something else."""
    return () if world.wished or world.seal is not None else (WriteWish(),)


def regrouped(world: World, status: CopyStatus) -> Decision | None:
    """Make the reader groups of a complete copy, one after the other; None once all are made.

    A group whose readers are online, or whose position is unknown, is named and waited for.
    """
    if not (isinstance(status, FollowedStreamStatus) and world.groups):
        return None
    ready = [group for group in world.groups if group.ready]
    waiting = [group for group in world.groups if not group.made and not group.ready]
    if not ready and not waiting:
        return None
    said = status.regrouping(world)
    if ready:
        return Decision(status=said, actions=(MakeGroup(ready[0].name),), again=AT_ONCE)
    return Decision(status=said, again=WAIT_SECONDS)
