"""A ScopeCopy that follows its streams, for tests of `reconcile`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.core.follow.lag import Age, Followed, FollowedStreams
from sluice.core.reconcile.copies.actions import StartJob
from sluice.core.reconcile.copies.decide import reconcile
from sluice.core.reconcile.copies.world import Reading
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.scope.progress import Pace, Progress
from sluice.core.scope.request import ScopeRequest
from sluice.core.scope.scope import StreamState
from sluice.core.values.wish import Wish
from sluice.core.workloads.answers import Following, Planned, ScopeEnded
from sluice.errors import SourceNotFound, SourceTruncated
from support.reconcile.copies import COPY_ID, NOW, after, job, later, plan_seen, world
from support.reconcile.scope_copies import copied, scope, scope_plan, stream

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.status.common import CopyingStatus
    from sluice.api.status.follow_status import ScopeFollowStatus
    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import World
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.scope.scope import StreamResult
    from sluice.core.workloads.plan import ScopeCopyPlan

FOLLOW = ScopeRequest(scope_id=COPY_ID, source="in", target="out", follow=True)
EVEN = Age(0.0, certain=True)
LOST = SourceNotFound("there is no stream in/b")
CUT = SourceTruncated("in/c was truncated: offsets 10 to 90 of segment 0 are gone")


def followed_plan(*sizes: int, **changes: Any) -> ScopeCopyPlan:
    """Return a plan of streams `a`, `b` and so on, of these sizes, that are followed."""
    streams = [stream(chr(ord("a") + at), size) for at, size in enumerate(sizes)]
    followed = [one.model_copy(update={"follow": True}) for one in streams]
    return scope_plan(*followed, following=FOLLOW, **changes)


PLAN = followed_plan(3000, 1000, 1000)
LARGE = followed_plan(1 << 30, 1000, 1000)
LIVE = Following(plan=PLAN, recorded=True)
ENDED = ScopeEnded(plan=PLAN, results=(copied("a", 3000), copied("b"), copied("c")))
STREAMS = FollowedStreams(followed=3)
UP = Followed(
    live=True,
    position=5000,
    proved=5000,
    lag=EVEN,
    unproved=EVEN,
    segments=3,
    wish=Wish(),
    streams=STREAMS,
)
"""A scope whose three targets have what their sources have."""


def is_followed(name: str, size: int = 1000) -> StreamResult:
    """Return the published result of a stream while the copy follows it."""
    return copied(name, size).model_copy(update={"state": StreamState.FOLLOWED, "digest": None})


def follower(attempt: int = 1, phase: JobPhase = JobPhase.RUNNING, **changes: Any) -> JobSeen:
    """Return the Job of a follower, made at NOW, whose pod has started."""
    return replace(job(attempt, phase), follower=True, pod="follower-a", **changes)


def measured(streams: FollowedStreams = STREAMS, *, took: float = 0.0, **changes: Any) -> Reading:
    """Return a reading of a scope that is followed, with some fields of Followed set."""
    now = UP._replace(streams=streams, **changes)
    progress = Progress(now.position, now.position + now.lag_bytes, published=False, follow=now)
    return Reading(progress=progress, pace=Pace(0.0, None), took=took)


def around(at: datetime = NOW, *, jobs: tuple[JobSeen, ...] = (), **changes: Any) -> World:
    """Return the surroundings of a copy whose plan is written."""
    return world(now=at, plan=plan_seen(PLAN), jobs=jobs or (follower(),), **changes)


def continuous(**changes: Any) -> CopySeen:
    """Return a new copy that follows its streams."""
    return scope(mode="Continuous", **changes)


def begun() -> CopySeen:
    """Return a copy whose follower was just started."""
    seen = continuous()
    return after(seen, reconcile(seen, world(answer=Planned(plan=PLAN))))


def follow(found: CopyingStatus) -> ScopeFollowStatus:
    """Return the part of a status about the followed streams."""
    assert isinstance(found, ScopeCopyStatus)
    assert found.follow is not None
    return found.follow


def begins_follower(decision: Decision) -> list[bool]:
    """Tell for each started Job whether it is a follower's."""
    return [one.follower for one in decision.actions if isinstance(one, StartJob)]


def following(**changes: Any) -> CopySeen:
    """Return a copy that follows its streams, a minute after it has begun."""
    seen = continuous(**changes)
    seen = after(seen, reconcile(seen, world(answer=Planned(plan=PLAN))))
    return after(seen, look(seen, 60))


def look(seen: CopySeen, seconds: float, **changes: Any) -> Decision:
    """Look at a copy some seconds after NOW; arguments as those of `around`."""
    changes.setdefault("reading", measured())
    return reconcile(seen, around(later(seconds), **changes))
