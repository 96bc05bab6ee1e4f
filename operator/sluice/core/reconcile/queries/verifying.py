"""Decide what to do next about the verification of a query's results.

A verification is a Job beside the query's driver, one at a time. It only reads, and reports how it
ended. The status announces it before its Job is made, and the Job's name follows from the query and
the verification's number. So an operator that is killed in between makes the same Job, and two
operators make one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from sluice.api.status.common import ConditionType, ObjectRef
from sluice.api.status.query_status import QueryVerificationStatus
from sluice.core.reconcile.queries.world import StartVerifier, StopVerifier, TellVerification
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.jobs import JobPhase, verifier_name
from sluice.core.values import schedule
from sluice.core.values.text import counted
from sluice.core.values.trouble import Trouble
from sluice.errors import DriverLost

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sluice.api.fields.query_verify import QueryVerifySpec
    from sluice.api.status.query_status import StreamQueryStatus
    from sluice.core.query.recount import Recount
    from sluice.core.reconcile.queries.world import (
        QueryAction,
        QueryDecision,
        QuerySeen,
        QueryWorld,
    )
    from sluice.core.reconcile.shared.conditions import Tri
    from sluice.core.reconcile.shared.jobs import JobSeen

FIELD: Final = "spec.verify.schedule"

POLL_SECONDS: Final = 3.0
"""Seconds between two looks at a Job that starts or has to end."""

LOOK_SECONDS: Final = 10.0
"""Seconds between two looks at a verification that goes on."""

WAIT_SECONDS: Final = 30.0
"""Seconds between two looks at what a verification waits for."""

LONGEST_WAIT: Final = 3600.0
"""The most seconds until the next look, since clocks are set."""

GRACE: Final = timedelta(minutes=1)
"""Time after the timeout for Kubernetes to end the Job. Then the operator deletes it: the timeout
does not count while no Job can be made."""

EQUAL, DIFFERENT, INCONCLUSIVE, NOT_RUN = "Equal", "Different", "Inconclusive", "NotRun"

_MOST_AHEAD: Final = 1000
"""By how much the number of a Job may be above that of the status, which may be lost. Users may
have written a higher one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What a verification needs now.

    Attributes:
        known: its status.
        actions: in this order.
        again: seconds until the next look in any case.
        verdict: the condition Verified, if it changes.
    """

    known: QueryVerificationStatus
    actions: tuple[QueryAction, ...] = ()
    again: float | None = None
    verdict: tuple[Tri, Saying] | None = None


def times(
    verify: QueryVerifySpec | None, known: QueryVerificationStatus | None, *, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Give the time of a verification that is due and has not begun, and of the next one after now.

    The time of the next one is written into the status, and counts from there. So a schedule that
    is added to an old query begins with its next time.

    Raises:
        InvalidSpec: the schedule has no such time.
    """
    if verify is None or verify.schedule is None:
        return None, None
    later = schedule.following(verify.schedule, now, field=FIELD)
    said = None if known is None else known.next_time
    if said is None or said > now:
        return None, later
    since = said - timedelta(seconds=1)
    return schedule.due(verify.schedule, since=since, now=now, field=FIELD), later


def beside(
    query: QuerySeen, world: QueryWorld, decided: QueryDecision, obstacle: Trouble | None
) -> QueryDecision:
    """Add to the decision about a query's driver what its verification needs.

    Args:
        query: the query.
        world: its surroundings.
        decided: what is decided about its driver.
        obstacle: why no Job of it may use the stores, or can be made; None if one can.
    """
    before = query.status.verification
    if query.deleted is not None or (query.spec.verify is None and before is None):
        return decided
    known = before or QueryVerificationStatus()
    if query.spec.verify is None:
        return _removed(world, known, decided)
    step = _next(query, world, decided.status, known, obstacle)
    told: tuple[QueryAction, ...] = ()
    if step.verdict is not None:
        told = (TellVerification(step.verdict[1]),)  # before all else: no later look would tell
    written = step.known if step.known != QueryVerificationStatus() else None
    status = decided.status.model_copy(update={"verification": written})
    waits = [one for one in (decided.again, step.again) if one is not None]
    return replace(
        decided,
        status=_judged(query, status, step.verdict, world.now),
        actions=(*told, *decided.actions, *step.actions),
        again=min(waits, default=None),
    )


def _removed(
    world: QueryWorld, known: QueryVerificationStatus, decided: QueryDecision
) -> QueryDecision:
    """Stop the verification of a query that is not to be verified any more."""
    stops = _stops(one for one in world.verifiers if one.active)
    written = known if stops else None
    return replace(
        decided,
        status=decided.status.model_copy(update={"verification": written}),
        actions=(*decided.actions, *stops),
        again=POLL_SECONDS if stops else decided.again,
    )


def _next(
    query: QuerySeen,
    world: QueryWorld,
    status: StreamQueryStatus,
    known: QueryVerificationStatus,
    obstacle: Trouble | None,
) -> _Step:
    """Decide about the verification alone. `status` is that to write."""
    if query.verify_due is None:  # else it stays, until the verification begins
        known = known.model_copy(update={"next_time": query.verify_later})
    if known.under_way:
        return _under_way(query, world, known, obstacle)
    if not (query.verify_asked or query.verify_due or _is_due_at_end(query, status, known)):
        return _Step(known=known, again=_until(known.next_time, world.now))
    waits_for = _waits_for(query, status, obstacle)
    if waits_for is not None:
        waiting = known.model_copy(update={"message": f"The verification waits: {waits_for}"})
        return _Step(known=waiting, again=WAIT_SECONDS)
    most = known.number + _MOST_AHEAD
    numbers = [one.attempt for one in world.verifiers if one.attempt <= most]
    number = max([known.number, *numbers]) + 1
    begun = QueryVerificationStatus(
        number=number,
        scheduled_time=query.verify_due,
        last_handled_requested_at=query.verify_requested_at or known.last_handled_requested_at,
        job_ref=ObjectRef(name=verifier_name(query.uid, number)),
        start_time=world.now,
        message="The Job starts.",
        last_success_time=known.last_success_time,
        next_time=query.verify_later,
    )
    return _Step(
        known=begun,
        actions=(*_stops(world.verifiers), StartVerifier(number)),
        again=POLL_SECONDS,
    )


def _is_due_at_end(
    query: QuerySeen, status: StreamQueryStatus, known: QueryVerificationStatus
) -> bool:
    """Tell whether a query with mode: Once is done, and was not verified since."""
    ended = status.completion_time
    if not query.once or ended is None or status.last_failure is not None:
        return False
    return known.start_time is None or known.start_time < ended


def _waits_for(
    query: QuerySeen, status: StreamQueryStatus, obstacle: Trouble | None
) -> Trouble | str | None:
    """Tell why no verification can begin now; None if one can."""
    if query.spec.suspend:
        return "spec.suspend is true."
    if status.progress is None or status.progress.batch is None:
        return "The query has written no batch yet."
    return obstacle


def _until(time: datetime | None, now: datetime) -> float | None:
    """Return the seconds until the next verification is due; None if none is."""
    if time is None:
        return None
    return min(max(0.05, (time - now).total_seconds()), LONGEST_WAIT)


def _under_way(
    query: QuerySeen, world: QueryWorld, known: QueryVerificationStatus, obstacle: Trouble | None
) -> _Step:
    """Decide about a verification that has begun."""
    name = verifier_name(query.uid, known.number)
    job = next((one for one in world.verifiers if one.name == name), None)
    others = _stops(one for one in world.verifiers if one.name != name)
    if job is not None and not job.active:
        ended = _ended(known, job, world.now)
        return replace(ended, actions=(*others, *ended.actions))
    hopeless = _hopeless(query, known, job, obstacle, world.now)
    if hopeless is not None:
        own = () if job is None else _stops([job])
        return _not_run(known, world.now, hopeless, (*others, *own))
    if job is None:  # not made yet, or deleted by another client
        if obstacle is not None:
            waiting = known.model_copy(update={"message": str(obstacle)})
            return _Step(known=waiting, actions=others, again=WAIT_SECONDS)
        made = (*others, StartVerifier(known.number))
        return _Step(known=known, actions=made, again=POLL_SECONDS)
    again = LOOK_SECONDS if job.phase is JobPhase.RUNNING else POLL_SECONDS
    said = known.model_copy(update={"message": _words(job)})
    return _Step(known=said, actions=others, again=again)


def _hopeless(
    query: QuerySeen,
    known: QueryVerificationStatus,
    job: JobSeen | None,
    obstacle: Trouble | None,
    now: datetime,
) -> str | None:
    """Tell why a verification that has begun is given up; None if it goes on."""
    if query.spec.suspend:
        return "spec.suspend is true."
    if job is not None and obstacle is not None and not obstacle.retryable:
        return str(obstacle)
    seconds = 0 if query.spec.verify is None else query.spec.verify.timeout_seconds
    if now - (known.start_time or now) > timedelta(seconds=seconds) + GRACE:
        late = f"It was not done after {seconds} s (spec.verify.timeoutSeconds)."
        return late if job is None else f"{late} {_words(job)}"
    return None


def _words(job: JobSeen) -> str:
    """Describe a Job that goes on."""
    if job.phase is JobPhase.RUNNING:
        return "All that the version has read is read again, and the results are computed anew."
    if job.trouble is not None:
        return str(job.trouble)
    return f"The Job starts: {job.words}" if job.words else "The Job starts."


def _ended(known: QueryVerificationStatus, job: JobSeen, now: datetime) -> _Step:
    """Write the end of a Job."""
    found = job.recount
    if found is None:
        trouble = job.trouble or Trouble.of(DriverLost("the Job ended without a result"))
        return _not_run(known, now, str(trouble))
    kept = known.model_copy(
        update={
            "version": found.version,
            "batch": found.batch,
            "rows": found.rows,
            "missing": found.missing,
            "extra": found.extra,
        }
    )
    sinks = found.sinks[0].sink if len(found.sinks) == 1 else f"{len(found.sinks)} sinks"
    rows = f"{counted(found.rows, 'row')} of {sinks}, up to batch {found.batch}"
    if found.equal:
        said = f"{rows}, are those that DuckDB computes."
        kept = kept.model_copy(update={"last_success_time": now})
        return _over(kept, now, EQUAL, ("True", Saying("ResultsMatch", said)))
    differs = f"{rows}, are not those that DuckDB computes: {_differences(found)}."
    if found.late:
        said = (
            f"{differs} {counted(found.late, 'event')} came late, and DuckDB counts them. So this "
            "says nothing about the results."
        )
        return _over(kept, now, INCONCLUSIVE, ("Unknown", Saying("ResultsInconclusive", said)))
    said = f"{differs} `sluice query verify` shows some of them."
    return _over(kept, now, DIFFERENT, ("False", Saying("ResultsDiffer", said)))


def _differences(found: Recount) -> str:
    return f"{found.missing:,} are missing, {found.extra:,} too many"


def _not_run(
    known: QueryVerificationStatus,
    now: datetime,
    message: str,
    actions: tuple[QueryAction, ...] = (),
) -> _Step:
    """End a verification that has compared nothing."""
    last = ""
    if known.last_success_time is not None:
        last = f" They last matched at {known.last_success_time:%Y-%m-%dT%H:%M:%SZ}."
    said = f"The results were not verified, which says nothing about them. {message}{last}"
    verdict: tuple[Tri, Saying] = ("Unknown", Saying("VerificationNotRun", said))
    return replace(_over(known, now, NOT_RUN, verdict, message), actions=actions)


def _over(
    known: QueryVerificationStatus,
    now: datetime,
    result: str,
    verdict: tuple[Tri, Saying],
    message: str | None = None,
) -> _Step:
    end = {"result": result, "message": message or verdict[1].message, "completion_time": now}
    ended = known.model_copy(update=end)
    return _Step(known=ended, again=_until(ended.next_time, now), verdict=verdict)


def _stops(jobs: Iterable[JobSeen]) -> tuple[QueryAction, ...]:
    """Return what deletes Jobs that are not being deleted yet."""
    return tuple(StopVerifier(one.name) for one in jobs if not one.deleting)


def _judged(
    query: QuerySeen,
    status: StreamQueryStatus,
    verdict: tuple[Tri, Saying] | None,
    now: datetime,
) -> StreamQueryStatus:
    """Write the condition Verified.

    A verification that compared nothing takes no difference back: only one that finds none does.
    """
    kind = ConditionType.VERIFIED
    before = query.status.condition(kind)
    if verdict is None:
        return status
    if verdict[0] == "Unknown" and before is not None and before.status == "False":
        return status
    wanted: dict[ConditionType, Any] = {
        one: (found.status, Saying(found.reason, found.message))
        for one in ConditionType
        if (found := status.condition(one)) is not None
    }
    merged = conditions.merge(
        query.status.conditions, wanted | {kind: verdict}, generation=query.generation, now=now
    )
    return status.model_copy(update={"conditions": merged})
