"""Decide what to do next about the verification of a query's results.

A verification is a Job beside the query's driver, one at a time. It only reads, and reports how it
ended. The status announces it before its Job is made, and the Job's name follows from the query and
the verification's number. So an operator that is killed in between makes the same Job, and two
operators make one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
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
from sluice.errors import ClaimNotFound, DriverLost

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

_WAITS: Final = "The verification waits: "

_ROWS_OF_AN_EVENT: Final = 200
"""Rows that may differ for one late event: two for each window that it is in. More differ for
another reason."""

_MOST_STOPS: Final = 10
"""Jobs that are deleted in one look. Users may have made many."""

_MOST_AHEAD: Final = 1000
"""By how much the number of a Job may be above that of the status, which may be lost. Users may
have written a higher one."""


Action = StartVerifier | StopVerifier | TellVerification
"""An action that concerns a verification alone."""


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
    query: QuerySeen, world: QueryWorld, decided: QueryDecision, trouble: Trouble | None
) -> QueryDecision:
    """Add to the decision about a query's driver what its verification needs.

    Args:
        query: the query.
        world: its surroundings.
        decided: what is decided about its driver.
        trouble: why the query may not use its stores now; None if it may.
    """
    before = query.status.verification
    if query.deleted is not None:
        stops = _stops(one for one in world.verifiers if one.active)
        return replace(decided, actions=(*stops, *decided.actions))
    if query.spec.verify is None:
        return decided if before is None else _removed(query, world, before, decided)
    step = _next(query, world, decided.status, before or QueryVerificationStatus(), trouble)
    told: tuple[QueryAction, ...] = ()
    if step.verdict is not None:
        told = (TellVerification(step.verdict[1]),)  # before all else: no later look would tell
    written = step.known if step.known != QueryVerificationStatus() else None
    status = decided.status.model_copy(update={"verification": written})
    verdict = step.verdict or _outdated(status, step.known)
    waits = [one for one in (decided.again, step.again) if one is not None]
    return replace(
        decided,
        status=_judged(query, status, verdict, world.now),
        actions=(*told, *decided.actions, *step.actions),
        again=min(waits, default=None),
    )


def after_failure(decided: QueryDecision, trouble: Trouble) -> QueryDecision:
    """Decide what to do after an action that failed. It concerns the verification alone."""
    known = decided.status.verification
    if known is not None and known.under_way:
        known = known.model_copy(update={"message": str(trouble)})
    status = decided.status.model_copy(update={"verification": known})
    return replace(decided, status=status, actions=(), again=WAIT_SECONDS)


def _removed(
    query: QuerySeen, world: QueryWorld, known: QueryVerificationStatus, decided: QueryDecision
) -> QueryDecision:
    """Stop the verification of a query that is not to be verified any more."""
    active = any(one.active for one in world.verifiers)
    return replace(
        decided,
        status=decided.status.model_copy(update={"verification": known if active else None}),
        actions=(*decided.actions, *_cleared(query, world, known)),
        again=POLL_SECONDS if active else decided.again,
    )


def _next(
    query: QuerySeen,
    world: QueryWorld,
    status: StreamQueryStatus,
    known: QueryVerificationStatus,
    trouble: Trouble | None,
) -> _Step:
    """Decide about the verification alone. `status` is that to write."""
    if query.verify_due is None:  # else it stays, until the verification begins
        known = known.model_copy(update={"next_time": query.verify_later})
    bad = None if query.verify_trouble is None else str(query.verify_trouble)
    if known.schedule_error != bad:
        known = known.model_copy(update={"schedule_error": bad})
        if bad is not None:
            said = Saying("VerificationNotRun", f"No verification is ever due. {bad}")
            return _Step(known=known, actions=(TellVerification(said),), again=POLL_SECONDS)
    if known.under_way:
        return _under_way(query, world, known, trouble)
    # One that was given up has an end in the status before its Job is deleted.
    late = _stops(one for one in world.verifiers if one.active)
    if not (query.verify_asked or query.verify_due or _is_due_at_end(query, status, known)):
        if known.message and known.message.startswith(_WAITS):
            known = known.model_copy(update={"message": None})
        again = POLL_SECONDS if late else _until(known.next_time, world.now)
        return _Step(known=known, actions=late, again=again)
    waits_for = _waits_for(query, world, status, trouble)
    if waits_for is not None:
        waiting = known.model_copy(update={"message": f"{_WAITS}{waits_for}"})
        return _Step(known=waiting, actions=late, again=WAIT_SECONDS)
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
        schedule_error=known.schedule_error,
    )
    return _Step(
        known=begun,
        actions=(*_cleared(query, world, known), StartVerifier(number)),
        again=POLL_SECONDS,
    )


def _cleared(
    query: QuerySeen, world: QueryWorld, known: QueryVerificationStatus
) -> tuple[QueryAction, ...]:
    """Return what deletes the Jobs of verifications, and the ConfigMap that one may have left."""
    stops = _stops(world.verifiers)
    last = StopVerifier(verifier_name(query.uid, known.number))
    return stops if known.number == 0 or last in stops else (*stops, last)


def _is_due_at_end(
    query: QuerySeen, status: StreamQueryStatus, known: QueryVerificationStatus
) -> bool:
    """Tell whether a query with mode: Once is done, and was not verified since."""
    ended = status.completion_time
    if not query.once or ended is None or status.last_failure is not None:
        return False
    return known.start_time is None or known.start_time < ended


def _waits_for(
    query: QuerySeen, world: QueryWorld, status: StreamQueryStatus, trouble: Trouble | None
) -> Trouble | str | None:
    """Tell why no verification can begin now; None if one can."""
    if query.spec.suspend:
        return "spec.suspend is true."
    began = status.progress is not None and status.progress.batch is not None
    if not began and status.completion_time is None:  # after its end, the pod finds out
        return "The query has written no batch yet."
    hindrance = world.hindrance
    if hindrance is not None and hindrance.reason != ClaimNotFound.__name__:
        return trouble or hindrance
    return trouble  # it mounts no checkpoint


def _until(time: datetime | None, now: datetime) -> float | None:
    """Return the seconds until the next verification is due; None if none is."""
    if time is None:
        return None
    return min(max(0.05, (time - now).total_seconds()), LONGEST_WAIT)


def _under_way(
    query: QuerySeen, world: QueryWorld, known: QueryVerificationStatus, trouble: Trouble | None
) -> _Step:
    """Decide about a verification that has begun."""
    name = verifier_name(query.uid, known.number)
    job = next((one for one in world.verifiers if one.name == name), None)
    others = _stops(one for one in world.verifiers if one.name != name)
    if job is not None and not job.active:
        ended = _ended(known, job, world.now)
        return replace(ended, actions=(*others, *ended.actions))
    hopeless = _hopeless(query, known, job, trouble, world.now)
    if hopeless is not None:
        own = () if job is None else _stops([job])
        return _not_run(known, world.now, hopeless, (*others, *own))
    if job is None:  # not made yet, or deleted by another client
        if trouble is not None:
            waiting = known.model_copy(update={"message": str(trouble)})
            return _Step(known=waiting, actions=others, again=WAIT_SECONDS)
        made = (*others, StartVerifier(known.number))
        return _Step(known=known, actions=made, again=POLL_SECONDS)
    waited = (world.now - (known.start_time or world.now)).total_seconds()
    again = min(max(POLL_SECONDS, waited / 10), LOOK_SECONDS)
    said = known.model_copy(update={"message": _words(job)})
    return _Step(known=said, actions=others, again=again)


def _hopeless(
    query: QuerySeen,
    known: QueryVerificationStatus,
    job: JobSeen | None,
    trouble: Trouble | None,
    now: datetime,
) -> str | None:
    """Tell why a verification that has begun is given up; None if it goes on."""
    if query.spec.suspend:
        return "spec.suspend is true."
    if job is not None and trouble is not None and not trouble.retryable:
        return str(trouble)
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
        lost = DriverLost("the Job ended without a result", remedy="Its pod's log may say why.")
        trouble = job.trouble or Trouble.of(lost)
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
    if found.missing + found.extra <= found.late * _ROWS_OF_AN_EVENT:
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


def _outdated(
    status: StreamQueryStatus, known: QueryVerificationStatus
) -> tuple[Tri, Saying] | None:
    """Take back that results are right if another version runs than the one that was verified."""
    said, version = status.condition(ConditionType.VERIFIED), status.version
    if said is None or said.status != "True" or version is None:
        return None
    if known.version is None or known.version == version.number:
        return None
    words = (
        f"Version {version.number} was not verified yet. The results of version {known.version} "
        "are those that DuckDB computes."
    )
    return "Unknown", Saying("VerificationNotRun", words)


def _stops(jobs: Iterable[JobSeen]) -> tuple[QueryAction, ...]:
    """Return what deletes Jobs that are not being deleted yet."""
    found = (StopVerifier(one.name) for one in jobs if not one.deleting)
    return tuple(islice(found, _MOST_STOPS))


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
