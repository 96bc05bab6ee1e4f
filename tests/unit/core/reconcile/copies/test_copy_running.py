from dataclasses import replace

import pytest

from sluice.core.reconcile.copies.actions import (
    AddFinalizer,
    DeleteJob,
    HoldStores,
    StartJob,
    WriteControls,
)
from sluice.core.reconcile.copies.decide import START_PATIENCE, after_failure, questions, reconcile
from sluice.core.reconcile.copies.world import Question
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.scope.progress import Pace
from sluice.core.workloads.answers import Planned
from sluice.errors import (
    ApiUnavailable,
    ImagePullFailed,
    QuotaExceeded,
    SecretNotFound,
    SluiceError,
    StoreUnavailable,
    Unschedulable,
)
from support.reconcile.copies import (
    LONGER,
    NOW,
    PLAN,
    STALLED,
    STORE,
    WORKING,
    after,
    attempts,
    begun,
    copy,
    job,
    later,
    message,
    plan_seen,
    reading,
    reason,
    said,
    spec,
    trouble,
    world,
)

TOO_LONG = START_PATIENCE.total_seconds() + 1
PENDING = job(phase=JobPhase.PENDING)


def test_a_driver_that_is_about_to_start_is_waited_for() -> None:
    """A pending pod without any trouble changes nothing."""
    decision = reconcile(begun(), world(jobs=(PENDING,), plan=plan_seen()))
    assert (decision.actions, said(decision), reason(decision)) == ((), WORKING, "Starting")
    assert decision.again is not None


def test_why_a_driver_does_not_start_is_said_at_once() -> None:
    """While the operator waits, the condition has the cluster's own words."""
    stuck = replace(PENDING, trouble=trouble(Unschedulable("0/1 nodes are available")))
    decision = reconcile(begun(), world(now=later(5), jobs=(stuck,)))
    assert (decision.actions, said(decision), reason(decision)) == ((), WORKING, "Unschedulable")
    assert message(decision).startswith("0/1 nodes are available. ")


@pytest.mark.parametrize(
    "error", [Unschedulable("no room"), ImagePullFailed("no such image"), QuotaExceeded("used up")]
)
def test_a_driver_that_cannot_start_is_given_up_after_a_while(error: SluiceError) -> None:
    """Its Job is deleted, the attempt counts as failed, and another attempt follows later."""
    stuck = replace(PENDING, trouble=trouble(error))
    decision = reconcile(begun(), world(now=later(TOO_LONG), jobs=(stuck,)))
    assert decision.actions == (DeleteJob(PENDING.name),)
    assert said(decision) == WORKING
    assert [entry.outcome for entry in decision.status.history] == ["Failed"]
    assert decision.status.retry_time is not None
    assert "Attempt 2 begins in 15 s." in message(decision)


def test_what_is_staged_waits_for_a_secret_that_is_missing() -> None:
    """A pod that lacks a Secret costs none of the bytes that were copied before."""
    stuck = replace(PENDING, trouble=trouble(SecretNotFound("secret not found")))
    decision = reconcile(begun(), world(now=later(TOO_LONG), jobs=(stuck,)))
    assert decision.actions == (DeleteJob(PENDING.name),)
    assert said(decision) == STALLED
    assert decision.again is not None


def test_a_driver_that_stays_pending_without_a_word_is_given_up_as_well() -> None:
    """A large image takes time, but not for ever. The message has the pod's own words."""
    silent = replace(PENDING, words="pod x is Pending: ContainerCreating")
    decision = reconcile(begun(), world(now=later(TOO_LONG - 2), jobs=(silent,)))
    assert (decision.actions, reason(decision)) == ((), "Starting")
    decision = reconcile(begun(), world(now=later(TOO_LONG), jobs=(silent,)))
    assert decision.actions == (DeleteJob(PENDING.name),)
    assert reason(decision) == "DriverNotStarted"
    assert message(decision) == (
        "the driver has not started in 10 min: pod x is Pending: ContainerCreating. Look at the "
        "pod, its events and its node with kubectl describe. The next attempt makes another pod. "
        "Attempt 2 begins in 15 s."
    )


def test_a_pending_driver_is_replaced_when_the_runtime_changes() -> None:
    """A pod of the wrong size is not waited for. The attempt is no failure."""
    old = replace(PENDING, outdated=True)
    decision = reconcile(begun(), world(jobs=(old,)))
    assert decision.actions == (DeleteJob(PENDING.name),)
    assert [(e.outcome, e.reason) for e in decision.status.history] == [("Replaced", "SpecChanged")]
    assert decision.status.failures == 0
    seen = after(begun(), decision)
    again = reconcile(seen, world(plan=plan_seen(), answer=Planned(plan=PLAN)))
    assert again.actions[-1] == StartJob(2, PLAN)


def test_a_running_driver_is_not_replaced_when_the_runtime_changes() -> None:
    """The running driver goes on, and the next attempt has the new runtime."""
    running = job(outdated=True)
    assert reconcile(begun(), world(jobs=(running,))).actions == ()


def test_progress_is_asked_for_while_a_driver_runs() -> None:
    """The state is not asked for, since the driver changes it all the time."""
    seen, around = begun(), world(jobs=(job(),), plan=plan_seen())
    assert questions(seen, around) == {Question.PROGRESS}
    assert questions(seen, replace(around, plan=None)) == set()
    assert questions(begun(suspend=True), around) == set()


@pytest.mark.parametrize(
    ("staged", "published", "why", "text"),
    [
        (0, False, "Copying", "0 B of 1.0 kB are staged."),
        (400, False, "Copying", "400 B of 1.0 kB are staged."),
        (1000, False, "Verifying", "All bytes are staged; they are compared and published."),
        (1000, True, "Publishing", "All bytes are verified and published; the driver tidies."),
    ],
)
def test_the_status_follows_the_bytes(staged: int, why: str, text: str, *, published: bool) -> None:
    """The reason has the copy's phase, and 100 % is not shown before the target is whole."""
    seen = reading(staged, published=published)
    decision = reconcile(begun(), world(jobs=(job(),), plan=plan_seen(), reading=seen))
    assert (said(decision), reason(decision), message(decision)) == (WORKING, why, text)
    progress = decision.status.progress
    assert progress is not None
    assert (progress.bytes, progress.percent) == (staged, min(99, staged // 10))
    assert (progress.rate, progress.bytes_per_second) == ("100 B/s", 100)
    assert progress.eta_seconds == (1000 - staged) // 100


def test_a_progress_that_has_not_changed_is_not_written_again_and_again() -> None:
    """The next write comes after half a minute, so that users see the operator is alive."""
    seen = begun()
    around = world(jobs=(job(),), plan=plan_seen(), reading=reading(400))
    seen = after(seen, reconcile(seen, around))
    for seconds in (2, 29):
        assert reconcile(seen, replace(around, now=later(seconds))).status == seen.status
    again = reconcile(seen, replace(around, now=later(30))).status.progress
    assert again is not None
    assert again.time == later(30)
    for other in (reading(401), replace(reading(400), pace=Pace(0.0, None))):
        moved = reconcile(seen, replace(around, now=later(2), reading=other)).status.progress
        assert moved is not None
        assert moved.time == later(2)


def test_a_copy_that_gets_no_bytes_says_so() -> None:
    """After ten seconds the message has the cause, which stays until bytes come."""
    around = world(jobs=(job(),), plan=plan_seen(), reading=reading(400))
    told = []
    for still in (9.9, 10.0, 60.0):
        pace = Pace(0.0, None, still=still)
        seen = replace(reading(400), pace=pace)
        told.append(message(reconcile(begun(), replace(around, reading=seen))))
    assert "None came" not in told[0]
    assert told[1] == told[2]
    assert told[1].startswith(f"{told[0]} None came for 10 s: a store does not answer")


@pytest.mark.parametrize(
    ("rhythm", "still", "text"),
    [(None, 60.0, ""), (12.0, 23.9, ""), (12.0, 24.0, " None came for 24 s.")],
)
def test_a_limited_copy_says_that_its_lumps_do_not_come(
    rhythm: float | None, still: float, text: str
) -> None:
    """It says so after twice the longest pause, and never before a pause is known."""
    seen = replace(reading(400), pace=Pace(0.0, None, still=still, rhythm=rhythm))
    limited = replace(begun(), spec=spec(limits={"bytesPerSecond": "1Ki"}))
    around = world(jobs=(job(),), plan=plan_seen(), reading=seen)
    assert message(reconcile(limited, around)) == f"400 B of 1.0 kB are staged.{text}"


def test_an_empty_stream_has_no_percent() -> None:
    """An empty plan causes no division by zero."""
    decision = reconcile(begun(), world(jobs=(job(),), reading=reading(0, 0)))
    assert decision.status.progress is not None
    assert decision.status.progress.percent == 0


def test_progress_that_cannot_be_seen_is_no_failure() -> None:
    """A store that does not answer the operator may well answer the driver."""
    why = trouble(StoreUnavailable("no connection"))
    decision = reconcile(begun(), world(jobs=(job(),), plan=plan_seen(), trouble=why))
    assert (said(decision), reason(decision)) == (WORKING, "Copying")
    assert "no connection" in message(decision)
    assert decision.status.failures == 0


@pytest.mark.parametrize("seen", ["no answer", "not ready", "waiting", "stopping"])
def test_a_speed_that_nobody_sees_is_not_told(seen: str) -> None:
    """Rate and remaining time need a present look. The bytes that were seen stay."""
    running = world(jobs=(job(),), plan=plan_seen(), reading=reading(400))
    before = after(begun(), reconcile(begun(), running))
    away = replace(STORE, ready=False, why="no answer")
    why = trouble(StoreUnavailable("no connection"))
    unseen = {
        "no answer": world(jobs=(job(),), plan=plan_seen(), trouble=why),
        "not ready": world(jobs=(job(),), plan=plan_seen(), source=away, target=away),
        "waiting": world(source=away, target=away),
        "stopping": world(jobs=(job(),), plan=plan_seen()),
    }[seen]
    if seen == "stopping":
        before = copy(status=before.status, suspend=True)
    progress = reconcile(before, unseen).status.progress
    assert progress is not None
    assert (progress.bytes, progress.percent) == (400, 40)
    assert (progress.rate, progress.bytes_per_second, progress.eta_seconds) == (None, None, None)


def test_a_driver_outlives_a_store_that_is_away() -> None:
    """An unready store does not stop a running driver."""
    away = replace(STORE, ready=False, why="no answer")
    decision = reconcile(begun(), world(jobs=(job(),), source=away, target=away))
    assert (decision.actions, said(decision), reason(decision)) == ((), WORKING, "Copying")


def test_progress_makes_past_failures_forgotten() -> None:
    """Failures count from the last progress."""
    seen = copy(status=begun().status.model_copy(update={"failures": 3}))
    moved = reconcile(seen, world(jobs=(job(),), plan=plan_seen(), reading=reading(1)))
    assert moved.status.failures == 0
    still = reconcile(seen, world(jobs=(job(),), plan=plan_seen(), reading=reading(0)))
    assert still.status.failures == 3


def test_changed_limits_are_handed_to_a_running_driver() -> None:
    """The operator writes outdated controls, and does nothing else."""
    decision = reconcile(begun(), world(jobs=(job(),), controls=False))
    assert decision.actions == (WriteControls(),)
    assert reconcile(begun(), world(jobs=(PENDING,), controls=False)).actions == ()


def test_limits_that_cannot_be_written_are_no_failure_of_the_copy() -> None:
    """The failure beside a running driver is reported and retried, and does not count."""
    seen = begun()
    around = world(jobs=(job(),), controls=False)
    seen = after(seen, reconcile(seen, around))
    decision = after_failure(seen, around, trouble(ApiUnavailable("forbidden")))
    assert (said(decision), reason(decision)) == (WORKING, "ApiUnavailable")
    assert (decision.actions, decision.status.failures) == ((), 0)
    assert decision.again is not None


@pytest.mark.parametrize("phase", [JobPhase.PENDING, JobPhase.RUNNING])
def test_a_finalizer_that_is_missing_is_put_back(phase: JobPhase) -> None:
    """While a driver may stage bytes, a copy without its finalizer could vanish unnoticed."""
    seen = replace(begun(), finalizer=False)
    decision = reconcile(seen, world(jobs=(job(phase=phase),)))
    assert decision.actions == (AddFinalizer(), HoldStores())


def test_a_job_that_is_being_deleted_is_waited_for() -> None:
    """No attempt begins beside a stopping driver."""
    for phase in JobPhase:
        seen, around = begun(), world(jobs=(job(phase=phase, deleting=True),), plan=plan_seen())
        assert questions(seen, around) == set()
        decision = reconcile(seen, around)
        assert (decision.actions, reason(decision)) == ((), "Stopping")
        assert decision.again is not None


def test_of_two_jobs_only_the_later_may_run() -> None:
    """A Job that an earlier operator made late is deleted."""
    jobs = (job(1), job(2))
    seen = copy(status=begun().status.model_copy(update={"attempts": 2}), finalizer=True)
    decision = reconcile(seen, world(jobs=jobs, plan=plan_seen(), reading=reading(10)))
    assert decision.actions == (DeleteJob(jobs[0].name),)
    assert reason(decision) == "Copying"
    gone = (replace(jobs[0], deleting=True), jobs[1])
    assert reconcile(seen, world(jobs=gone)).actions == ()


@pytest.mark.parametrize("outcome", ["Failed", "Suspended", "Replaced"])
def test_a_driver_does_not_outlive_the_record_of_its_end(outcome: str) -> None:
    """A Job whose deletion was cut off is deleted before the next attempt begins."""
    status = begun().status.model_copy(update={"history": attempts(outcome)})
    seen = copy(status=status, finalizer=True)
    around = world(jobs=(job(),), plan=plan_seen(), answer=Planned(plan=PLAN))
    assert questions(seen, replace(around, answer=None)) == {Question.STATE}
    decision = reconcile(seen, around)
    assert decision.actions[0] == DeleteJob(job().name)
    assert decision.actions[-1] == StartJob(2, PLAN)


def test_a_lost_status_is_found_again_beside_a_running_driver() -> None:
    """The Job, the plan and the store have all facts that matter."""
    seen = copy(finalizer=True)
    around = world(jobs=(job(3),), plan=plan_seen(LONGER), reading=reading(500, 2000))
    decision = reconcile(seen, around)
    assert (decision.actions, reason(decision)) == ((), "Copying")
    assert decision.status.start_time == NOW
    seen = after(seen, decision)
    failed = world(jobs=(job(3, JobPhase.FAILED),), plan=plan_seen(LONGER))
    decision = reconcile(seen, failed)
    assert decision.status.attempts == 3
    assert [(e.attempt, e.outcome) for e in decision.status.history] == [(3, "Failed")]


def test_a_lost_status_without_a_job_begins_at_the_first_attempt() -> None:
    """The store has the plan, and the copy continues."""
    recorded = Planned(plan=LONGER, recorded=True)
    decision = reconcile(copy(finalizer=True), world(answer=recorded, plan=plan_seen(LONGER)))
    assert decision.actions[-1] == StartJob(1, LONGER)
