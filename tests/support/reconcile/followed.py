"""A StreamCopy that follows its source, for tests of `reconcile`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluice.core.follow.lag import Age, Followed
from sluice.core.reconcile.copies.decide import reconcile
from sluice.core.reconcile.copies.world import Reading
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.scope.progress import Pace, Progress
from sluice.core.values.wish import Wish
from sluice.core.workloads.answers import EndCut, Following
from support.engine.plans import segment_plan, stream_plan, whole_plan
from support.reconcile.copies import NOW, WHOLE, after, copy, job, later, plan_seen, world

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import World
    from sluice.core.reconcile.shared.jobs import JobSeen

PLAN = whole_plan(stream_plan(segment_plan(1000)).model_copy(update={"follow": True}))
LARGE = whole_plan(stream_plan(segment_plan(1 << 30)).model_copy(update={"follow": True}))
LIVE = Following(plan=PLAN, recorded=True)
ENDED = replace(WHOLE, cut=EndCut("in-cut", "out-cut"))
UP = Followed(
    live=True,
    position=1000,
    proved=1000,
    lag=Age(0.0, certain=True),
    unproved=Age(0.0, certain=True),
    segments=1,
    wish=Wish(),
)
"""A copy at its source's end."""


def follower(attempt: int = 1, phase: JobPhase = JobPhase.RUNNING, **changes: Any) -> JobSeen:
    """Return the Job of a follower, made at NOW, whose pod has started."""
    return replace(job(attempt, phase), follower=True, pod="follower-a", **changes)


def measured(follow: Followed = UP, **changes: Any) -> Reading:
    """Return a reading of a copy that follows, with some fields of Followed set."""
    now = follow._replace(**changes)
    progress = Progress(now.position, now.position + now.lag_bytes, published=False, follow=now)
    return Reading(progress=progress, pace=Pace(0.0, None))


def around(at: datetime = NOW, *, jobs: tuple[JobSeen, ...] = (), **changes: Any) -> World:
    """Return the surroundings of a copy whose plan is written."""
    return world(now=at, plan=plan_seen(PLAN), jobs=jobs or (follower(),), **changes)


def continuous(**changes: Any) -> CopySeen:
    """Return a new copy that follows its source."""
    return copy(mode="Continuous", **changes)


def following(**changes: Any) -> CopySeen:
    """Return a copy that follows its source, a minute after it has begun."""
    seen = continuous(**changes)
    seen = after(seen, reconcile(seen, world(answer=LIVE)))
    return after(seen, look(seen, 60))


def look(seen: CopySeen, seconds: float, **changes: Any) -> Decision:
    """Look at a copy some seconds after NOW; arguments as those of `around`."""
    changes.setdefault("reading", measured())
    return reconcile(seen, around(later(seconds), **changes))
