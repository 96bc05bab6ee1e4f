"""Decide what to do next about the verification of a query's results.

A verification is a Job beside the query's driver, one at a time. It only reads, and reports how it
ended. The status announces it before its Job is made, and the Job's name follows from the query and
the verification's number. So an operator that is killed in between makes the same Job, and two
operators make one.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

from sluice.api.status.common import ConditionType, ObjectRef
from sluice.api.status.query_status import QueryVerificationStatus
from sluice.core.reconcile.queries.verdicts import (
    VerificationStep,
    ended,
    not_run,
    outdated,
    seconds_until,
)
from sluice.core.reconcile.queries.world import StartVerifier, StopVerifier, TellVerification
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.jobs import JobPhase, verifier_name
from sluice.core.values import schedule
from sluice.errors import ClaimNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sluice.api.fields.query_verify import QueryVerifySpec
    from sluice.api.status.query_status import StreamQueryStatus
    from sluice.core.reconcile.queries.world import (
        QueryAction,
        QueryDecision,
        QuerySeen,
        QueryWorld,
    )
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.values.trouble import Trouble

FIELD: Final = "spec.verify.schedule"

POLL_SECONDS: Final = 3.0
"""Seconds between two looks at a Job that starts or has to end."""

LOOK_SECONDS: Final = 10.0
"""Seconds between two looks at a verification that goes on."""

WAIT_SECONDS: Final = 30.0
"""Seconds between two looks at what a verification waits for."""

GRACE: Final = timedelta(minutes=1)
"""Time after the timeout for Kubernetes to end the Job. Then the operator deletes it: the timeout
does not count while no Job can be made."""

_WAITS: Final = "The verification waits: "

_MOST_STOPS: Final = 10
"""Jobs that are deleted in one look. Users may have made many."""

_MOST_AHEAD: Final = 1000
"""By how much the number of a Job may be above that of the status, which may be lost. Users may
have written a higher one."""


Action = StartVerifier | StopVerifier | TellVerification
"""An action that concerns a verification alone."""


def times(
    verify: QueryVerifySpec | None, known: QueryVerificationStatus | None, *, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Give the time of a verification that is due and has not begun, and of the next one after now.

    Raises:
        InvalidSpec: the schedule has no such time.
    """
    if verify is None or verify.schedule is None:
        return None, None
    said = None if known is None else known.next_time
    return schedule.announced(verify.schedule, said, now=now, field=FIELD)


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
    verdict = step.verdict or outdated(status, step.known)
    if verdict is not None:
        merged = conditions.judged(
            query.status,
            status,
            ConditionType.VERIFIED,
            verdict,
            generation=query.generation,
            now=world.now,
        )
        status = status.model_copy(update={"conditions": merged})
    waits = [one for one in (decided.again, step.again) if one is not None]
    return replace(
        decided,
        status=status,
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
) -> VerificationStep:
    """Decide about the verification alone. `status` is that to write."""
    if query.verify_due is None:  # else it stays, until the verification begins
        known = known.model_copy(update={"next_time": query.verify_later})
    bad = None if query.verify_trouble is None else str(query.verify_trouble)
    if known.schedule_error != bad:
        known = known.model_copy(update={"schedule_error": bad})
        if bad is not None:
            said = Saying("VerificationNotRun", f"No verification is ever due. {bad}")
            return VerificationStep(
                known=known, actions=(TellVerification(said),), again=POLL_SECONDS
            )
    if known.under_way:
        return _under_way(query, world, known, trouble)
    # One that was given up has an end in the status before its Job is deleted.
    late = _stops(one for one in world.verifiers if one.active)
    if not (query.verify_asked or query.verify_due or _is_due_at_end(query, status, known)):
        if known.message and known.message.startswith(_WAITS):
            known = known.model_copy(update={"message": None})
        again = POLL_SECONDS if late else seconds_until(known.next_time, world.now)
        return VerificationStep(known=known, actions=late, again=again)
    waits_for = _waits_for(query, world, status, trouble)
    if waits_for is not None:
        waiting = known.model_copy(update={"message": f"{_WAITS}{waits_for}"})
        return VerificationStep(known=waiting, actions=late, again=WAIT_SECONDS)
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
    return VerificationStep(
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


def _under_way(
    query: QuerySeen, world: QueryWorld, known: QueryVerificationStatus, trouble: Trouble | None
) -> VerificationStep:
    """Decide about a verification that has begun."""
    name = verifier_name(query.uid, known.number)
    job = next((one for one in world.verifiers if one.name == name), None)
    others = _stops(one for one in world.verifiers if one.name != name)
    if job is not None and not job.active:
        step = ended(known, job, world.now)
        return replace(step, actions=(*others, *step.actions))
    hopeless = _hopeless(query, known, job, trouble, world.now)
    if hopeless is not None:
        own = () if job is None else _stops([job])
        return not_run(known, world.now, hopeless, (*others, *own))
    if job is None:  # not made yet, or deleted by another client
        if trouble is not None:
            waiting = known.model_copy(update={"message": str(trouble)})
            return VerificationStep(known=waiting, actions=others, again=WAIT_SECONDS)
        made = (*others, StartVerifier(known.number))
        return VerificationStep(known=known, actions=made, again=POLL_SECONDS)
    waited = (world.now - (known.start_time or world.now)).total_seconds()
    again = min(max(POLL_SECONDS, waited / 10), LOOK_SECONDS)
    said = known.model_copy(update={"message": _words(job)})
    return VerificationStep(known=said, actions=others, again=again)


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


def _stops(jobs: Iterable[JobSeen]) -> tuple[QueryAction, ...]:
    """Return what deletes Jobs that are not being deleted yet."""
    found = (StopVerifier(one.name) for one in jobs if not one.deleting)
    return tuple(islice(found, _MOST_STOPS))
