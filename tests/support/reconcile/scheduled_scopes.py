"""ScopeCopies with a schedule, for tests of `reconcile`; see `scope_copies` and `archives_seen`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.core.reconcile.copies.scheduled.decide import reconcile_scheduled
from sluice.core.reconcile.copies.scheduled.seen import ScheduledScopeSeen, times
from sluice.core.reconcile.copies.statuses.results import results_hash
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.workloads.answers import Planned, ScopeEnded
from support.reconcile import copies
from support.reconcile.copies import COPY_ID, NOW, UID, job, world
from support.reconcile.scope_archives import ARCHIVED, ARCHIVING, WHOLE
from support.reconcile.scope_copies import copied, failed, spec

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.reconcile.copies.world import World
    from sluice.core.workloads.plan import ScopeCopyPlan

HOURLY: Final[dict[str, Any]] = {
    **ARCHIVED,
    "onExists": "Append",
    "schedule": {"cron": "0 * * * *"},
}
"""Fields of the spec of a scope that is archived every hour."""

HOUR: Final = NOW.replace(hour=4, minute=0, second=0)
"""When the first run is due: NOW is four minutes past three."""

RECORDED: Final = replace(WHOLE, number=1)
"""All streams are archived, and the run of the scope is recorded."""

PARTLY: Final = ScopeEnded(
    plan=ARCHIVING.plan, results=(copied("a", 3000), failed("b"), copied("c")), number=1
)
"""The same, and one stream has failed."""


def scheduled(
    *, status: ScopeCopyStatus | None = None, at: datetime = NOW, **changes: Any
) -> ScheduledScopeSeen:
    """Return a copy made at NOW and seen at `at`, with some fields of spec and seen set."""
    own = {name: value for name, value in changes.items() if name in _OWN}
    fields = {name: value for name, value in changes.items() if name not in own}
    bare = ScheduledScopeSeen(
        name="shop",
        uid=UID,
        generation=1,
        copy_id=COPY_ID,
        spec=spec(**(HOURLY | fields)),
        status=status or ScopeCopyStatus(),
    )
    return seen_at(replace(bare, **own), at)


_OWN = frozenset({"requested_at", "finalizer", "deleted", "force_orphan", "generation"})


def seen_at(seen: ScheduledScopeSeen, at: datetime) -> ScheduledScopeSeen:
    """Return the copy as the operator sees it at a time."""
    due, later = times(seen.spec, seen.status, created=NOW, now=at)
    return replace(seen, due=due, later=later)


def after(
    seen: ScheduledScopeSeen, decision: Decision, *, at: datetime = HOUR, **changes: Any
) -> ScheduledScopeSeen:
    """Return the copy at a time after a decision was carried out."""
    found = copies.after(seen, decision, **changes)
    assert isinstance(found, ScheduledScopeSeen)
    return seen_at(found, at)


def begun(at: datetime = HOUR, **changes: Any) -> ScheduledScopeSeen:
    """Return a copy whose first run began at `at`."""
    seen = scheduled(at=at, **changes)
    return after(seen, reconcile_scheduled(seen, world(now=at, answer=ARCHIVING)), at=at)


def ended(answer: ScopeEnded, *, at: datetime = HOUR, attempt: int = 1, **changes: Any) -> World:
    """Return the world after the driver has ended at `at`, with any results published."""
    found = world(
        now=at,
        jobs=(job(attempt, JobPhase.SUCCEEDED, started=at, ended=at),),
        plan=copies.plan_seen(answer.plan),
        answer=answer,
        results=results_hash(answer.results),
    )
    return replace(found, **changes)


def over(
    answer: ScopeEnded = RECORDED, *, at: datetime = HOUR, **changes: Any
) -> ScheduledScopeSeen:
    """Return a copy whose first run has ended with this answer."""
    seen = begun(at, **changes)
    return after(seen, reconcile_scheduled(seen, ended(answer, at=at)), at=at)


def planned(plan: ScopeCopyPlan) -> Planned:
    """Return the answer with a plan."""
    return Planned(plan=plan)
