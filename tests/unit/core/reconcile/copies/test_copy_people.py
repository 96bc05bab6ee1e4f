"""Users' actions on a copy: suspend it, change it, request another run, bound its time."""

from dataclasses import replace

import pytest

from sluice.core.reconcile.copies.actions import DeleteJob, DropPlan, StartJob, WritePlan
from sluice.core.reconcile.copies.decide import after_failure, questions, reconcile
from sluice.core.reconcile.copies.seen import CopySeen
from sluice.core.reconcile.copies.world import PlanSeen, Question, World
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.workloads.answers import Planned
from sluice.errors import (
    AccessDenied,
    ApiUnavailable,
    DigestMismatch,
    LoginNotShared,
    SourceNotFound,
    StoreNotShared,
    StoreUnavailable,
)
from support.reconcile.copies import (
    DONE,
    LONGER,
    NOW,
    PLAN,
    PLANNED,
    RECORDED,
    STALLED,
    STORE,
    SUSPENDED,
    WHOLE,
    WORKING,
    after,
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

FAILED = job(phase=JobPhase.FAILED, trouble=trouble(DigestMismatch("other bytes")))
AWAY = replace(STORE, ready=False, why="no answer")


def changed(seen: CopySeen, **fields: object) -> CopySeen:
    """Return the copy after a user has changed its spec."""
    return replace(seen, generation=seen.generation + 1, spec=spec(**fields))


def asked(seen: CopySeen, at: str = "now") -> CopySeen:
    """Return the copy after a user has requested another run."""
    return replace(seen, requested_at=at)


def stalled() -> CopySeen:
    """Return a copy that failed for good."""
    seen = begun()
    return after(seen, reconcile(seen, world(jobs=(FAILED,), plan=plan_seen())))


def done() -> CopySeen:
    """Return a copy that succeeded."""
    seen = begun()
    around = world(jobs=(job(phase=JobPhase.SUCCEEDED),), answer=WHOLE, plan=plan_seen())
    return after(seen, reconcile(seen, around))


# -- suspend


def test_a_suspended_copy_is_planned_and_moves_nothing() -> None:
    """With suspend: true, the plan is written for review."""
    seen = copy(suspend=True)
    assert questions(seen, world()) == {Question.STATE}
    decision = reconcile(seen, world(answer=PLANNED))
    assert decision.actions == (WritePlan(PLAN),)
    assert (said(decision), decision.again) == (SUSPENDED, None)
    assert message(decision) == (
        "spec.suspend is true. The plan is written. Set it to false to go on."
    )
    assert decision.status.plan_hash == PLAN.hash
    assert decision.status.attempts == 0
    seen = after(seen, decision)
    assert questions(seen, world(plan=plan_seen())) == set()
    assert reconcile(seen, world(plan=plan_seen())).status == seen.status


def test_the_plan_that_was_looked_at_is_the_one_that_is_carried_out() -> None:
    """A resumed copy takes the bounds of the plan that was written while it was suspended."""
    seen = copy(suspend=True)
    seen = after(seen, reconcile(seen, world(answer=PLANNED)))
    decision = reconcile(changed(seen), world(plan=plan_seen(), answer=Planned(plan=LONGER)))
    assert decision.actions[-1] == StartJob(1, PLAN)


@pytest.mark.parametrize("phase", [JobPhase.PENDING, JobPhase.RUNNING])
@pytest.mark.parametrize("around", [world(), world(source=AWAY), world(target=None)])
def test_suspending_stops_a_driver(phase: JobPhase, around: World) -> None:
    """The Job is deleted in any state of the stores. Finalizer and staged bytes stay."""
    seen = changed(begun(), suspend=True)
    decision = reconcile(seen, replace(around, jobs=(job(phase=phase),), plan=plan_seen()))
    assert decision.actions == (DeleteJob(job().name),)
    assert reason(decision) == "Stopping"
    assert [entry.outcome for entry in decision.status.history] == ["Suspended"]
    assert decision.status.failures == 0
    seen = after(seen, decision)
    assert seen.finalizer
    assert said(reconcile(seen, replace(around, plan=plan_seen()))) == SUSPENDED


@pytest.mark.parametrize("phase", [JobPhase.PENDING, JobPhase.RUNNING])
@pytest.mark.parametrize("error", [AccessDenied, StoreNotShared])
def test_a_driver_ends_where_access_was_withdrawn(
    phase: JobPhase, error: type[AccessDenied | StoreNotShared]
) -> None:
    """The driver has the store's password, and only its end stops it. Staged bytes stay."""
    seen = begun()
    denied = world(source=trouble(error("team-b may not read", field="spec.source.store")))
    decision = reconcile(seen, replace(denied, jobs=(job(phase=phase),), plan=plan_seen()))
    assert decision.actions == (DeleteJob(job().name),)
    assert (said(decision), reason(decision)) == (WORKING, error.__name__)
    assert [entry.reason for entry in decision.status.history] == [error.__name__]
    assert decision.status.failures == 0
    seen = after(seen, decision)
    assert seen.finalizer
    waiting = reconcile(seen, replace(denied, plan=plan_seen()))
    assert (waiting.actions, reason(waiting)) == ((), error.__name__)
    seen = after(seen, waiting)
    again = reconcile(seen, world(plan=plan_seen(), answer=PLANNED))
    assert again.actions[-1] == StartJob(2, PLAN)


def test_a_copy_whose_driver_may_not_have_the_login_is_refused() -> None:
    """Waiting does not help. A running driver is stopped, and staged bytes stay."""
    seen = begun()
    refused = world(source=trouble(LoginNotShared("it has a Secret", field="spec.source.store")))
    decision = reconcile(seen, replace(refused, jobs=(job(),), plan=plan_seen()))
    assert decision.actions == (DeleteJob(job().name),)
    assert (said(decision), reason(decision)) == (STALLED, "LoginNotShared")
    seen = after(seen, decision)
    again = reconcile(seen, world(plan=plan_seen(), answer=PLANNED))
    assert again.actions[-1] == StartJob(2, PLAN)


@pytest.mark.parametrize("plan", [None, plan_seen()])
def test_a_copy_is_suspended_once_nothing_of_it_runs(plan: PlanSeen | None) -> None:
    """A Job is deleted before its pod ends, and a stopping driver writes for some seconds more."""
    seen = changed(begun(), suspend=True)
    seen = after(seen, reconcile(seen, world(jobs=(job(),), plan=plan)))
    decision = reconcile(seen, world(pods=1, plan=plan, answer=PLANNED))
    assert (said(decision), reason(decision)) == (WORKING, "Stopping")
    assert decision.actions == ()
    assert decision.again is not None
    seen = after(seen, decision)
    assert said(reconcile(seen, world(plan=plan, answer=PLANNED))) == SUSPENDED


def test_a_suspended_copy_says_what_is_staged() -> None:
    """The message shows the user that the copied bytes are kept."""
    seen = begun()
    around = world(jobs=(job(),), plan=plan_seen(), reading=reading(400))
    seen = changed(after(seen, reconcile(seen, around)), suspend=True)
    decision = reconcile(seen, world(plan=plan_seen()))
    assert "400 B of 1.0 kB are staged and stay." in message(decision)


def test_a_resumed_copy_goes_on_with_another_attempt() -> None:
    """The stopped attempt is over, and the deadline counts anew."""
    seen = changed(begun(), suspend=True)
    seen = after(seen, reconcile(seen, world(jobs=(job(),), plan=plan_seen())))
    seen = after(seen, reconcile(seen, world(plan=plan_seen())))
    assert seen.status.start_time is None
    decision = reconcile(changed(seen), world(plan=plan_seen(), answer=RECORDED, now=later(99)))
    assert decision.actions[-1] == StartJob(2, PLAN)
    assert decision.status.start_time == later(99)


def test_a_suspended_copy_without_a_plan_says_why() -> None:
    """A plan that cannot be made is tried again. Looks in between change nothing."""
    seen = copy(suspend=True)
    assert reason(reconcile(seen, world(source=None))) == "StoreNotFound"
    decision = reconcile(seen, world(trouble=trouble(SourceNotFound("none"))))
    assert (said(decision), reason(decision)) == (STALLED, "SourceNotFound")
    seen = after(seen, decision)
    soon = reconcile(seen, world(now=later(1)))
    assert (soon.status, soon.again) == (seen.status, 29)


def test_a_suspended_copy_with_a_plan_does_not_need_its_stores() -> None:
    """The copy does not use its stores, so the status does not mention them."""
    seen = copy(suspend=True)
    seen = after(seen, reconcile(seen, world(answer=PLANNED)))
    assert said(reconcile(seen, world(source=AWAY, target=None, plan=plan_seen()))) == SUSPENDED


def test_a_copy_that_is_whole_is_done_though_it_is_suspended() -> None:
    """The driver finished before the suspension could stop it."""
    seen = changed(begun(), suspend=True)
    around = world(jobs=(job(phase=JobPhase.SUCCEEDED),), plan=plan_seen())
    assert questions(seen, around) == {Question.STATE}
    assert said(reconcile(seen, replace(around, answer=WHOLE))) == DONE


def test_a_plan_that_cannot_be_written_is_no_failure_of_a_suspended_copy() -> None:
    """No attempt exists that could fail."""
    seen = copy(suspend=True)
    seen = after(seen, reconcile(seen, world(answer=PLANNED)))
    decision = after_failure(seen, world(answer=PLANNED), trouble(ApiUnavailable("no answer")))
    assert (said(decision), decision.status.failures) == (WORKING, 0)
    assert decision.again is not None


# -- a changed spec, another run


def test_a_changed_spec_makes_failures_forgotten() -> None:
    """A user's change lets a copy that failed for good begin again, with the same plan."""
    seen = changed(stalled(), limits={"bytesPerSecond": "1Mi"})
    around = world(jobs=(FAILED,), plan=plan_seen())
    assert questions(seen, around) == {Question.STATE}
    decision = reconcile(seen, replace(around, answer=Planned(plan=LONGER)))
    assert decision.actions[-1] == StartJob(2, PLAN)
    assert (decision.status.failures, decision.status.last_failure) == (0, None)
    assert decision.status.completion_time is None
    assert decision.status.observed_generation == 2


def test_a_changed_spec_is_remembered_while_a_store_is_away() -> None:
    """The change is not lost if the copy cannot go on at that moment."""
    seen = changed(stalled())
    seen = after(seen, reconcile(seen, world(source=AWAY)))
    assert not seen.changed
    decision = reconcile(seen, world(jobs=(FAILED,), plan=plan_seen(), answer=PLANNED))
    assert decision.actions[-1] == StartJob(2, PLAN)


def test_asking_for_another_run_takes_the_bounds_anew() -> None:
    """The annotation lets a stalled copy begin again, up to the source's present end."""
    seen = asked(stalled())
    around = world(jobs=(FAILED,), plan=plan_seen())
    assert questions(seen, around) == {Question.STATE}
    decision = reconcile(seen, replace(around, answer=Planned(plan=LONGER)))
    assert decision.actions[2:4] == (DropPlan(), WritePlan(LONGER))
    assert decision.actions[-1] == StartJob(2, LONGER)
    assert decision.status.last_handled_requested_at == "now"
    assert not after(seen, decision).asked


def test_a_run_that_was_asked_for_goes_on_where_a_driver_was() -> None:
    """A plan that is recorded in the store holds until it is carried out or aborted."""
    seen = asked(stalled())
    recorded = Planned(plan=PLAN, recorded=True)
    decision = reconcile(seen, world(jobs=(FAILED,), plan=plan_seen(), answer=recorded))
    assert decision.actions[-1] == StartJob(2, PLAN)
    assert DropPlan() not in decision.actions


def test_asking_for_a_copy_that_is_done_makes_sure_of_it() -> None:
    """A whole target is confirmed, and a missing target is made again."""
    seen = asked(done())
    assert questions(seen, world()) == {Question.STATE}
    whole = reconcile(seen, world(answer=WHOLE, now=later(60)))
    assert said(whole) == DONE
    assert whole.status.verification is not None
    assert whole.status.verification.time == later(60)
    anew = reconcile(seen, world(answer=PLANNED, plan=plan_seen(), now=later(60)))
    assert anew.actions[-1] == StartJob(2, PLAN)
    assert anew.status.verification is None
    assert anew.status.start_time == later(60)


def test_asking_for_a_copy_that_runs_lets_it_run() -> None:
    """The current run continues: its failures are forgotten, and its time counts anew."""
    seen = begun(activeDeadlineSeconds=60)
    seen = asked(replace(seen, status=seen.status.model_copy(update={"failures": 3})))
    decision = reconcile(seen, world(jobs=(job(),), plan=plan_seen(), now=later(50)))
    assert decision.actions == ()
    assert decision.status.failures == 0
    assert decision.status.last_handled_requested_at == "now"
    assert decision.status.start_time == later(50)


def test_a_wish_is_heard_once() -> None:
    """The same value requests nothing more. Another value does."""
    seen = asked(stalled())
    seen = after(seen, reconcile(seen, world(jobs=(FAILED,), answer=PLANNED)))
    assert not seen.asked
    assert asked(seen, "later").asked
    assert not replace(seen, requested_at=None).asked


# -- the deadline

LATE = later(61)


def test_a_copy_that_takes_too_long_is_stopped() -> None:
    """Its Job is deleted, the copy stays stalled, and its staged bytes stay."""
    seen = begun(activeDeadlineSeconds=60)
    decision = reconcile(seen, world(now=LATE, jobs=(job(),), plan=plan_seen()))
    assert decision.actions == (DeleteJob(job().name),)
    assert (said(decision), reason(decision)) == (STALLED, "DeadlineExceeded")
    assert "spec.activeDeadlineSeconds" in message(decision)
    seen = after(seen, decision)
    for around in (
        world(now=LATE, jobs=(job(deleting=True),)),
        world(now=LATE, plan=plan_seen()),
        world(now=LATE, source=AWAY),
    ):
        decision = reconcile(seen, around)
        assert (decision.actions, said(decision)) == ((), STALLED)
        assert decision.status == seen.status
        seen = after(seen, decision)


@pytest.mark.parametrize(
    "around",
    [
        world(now=LATE, source=AWAY),
        world(now=LATE, jobs=(job(),), target=AWAY),
        world(now=LATE, plan=plan_seen(), answer=RECORDED),
        world(now=LATE, jobs=(job(phase=JobPhase.FAILED),)),
    ],
)
def test_the_deadline_waits_for_nothing(around: World) -> None:
    """Neither an unreachable store nor a wait between attempts delays it."""
    decision = reconcile(begun(activeDeadlineSeconds=60), around)
    assert (said(decision), reason(decision)) == (STALLED, "DeadlineExceeded")


def test_an_attempt_that_failed_over_the_deadline_is_over() -> None:
    """The history has its end, though the deadline is the reason. No Job is left to stop."""
    around = world(now=LATE, jobs=(job(phase=JobPhase.FAILED),), plan=plan_seen())
    decision = reconcile(begun(activeDeadlineSeconds=60), around)
    (entry,) = decision.status.history
    assert (entry.outcome, entry.reason) == ("Failed", "DeadlineExceeded")
    assert decision.actions == ()


def test_a_copy_that_is_whole_in_time_is_done_however_late_it_is_seen() -> None:
    """A success counts even if the operator was down over the deadline."""
    seen = begun(activeDeadlineSeconds=60)
    around = world(now=LATE, jobs=(job(phase=JobPhase.SUCCEEDED),), plan=plan_seen())
    assert said(reconcile(seen, replace(around, answer=WHOLE))) == DONE
    assert said(reconcile(seen, replace(around, sources=(AWAY,)))) == WORKING
    why = trouble(StoreUnavailable("no connection"))
    assert said(reconcile(seen, replace(around, trouble=why))) == WORKING


def test_a_longer_deadline_lets_the_copy_go_on() -> None:
    """The changed spec is enough. The time still counts from the first attempt."""
    seen = begun(activeDeadlineSeconds=60)
    seen = after(seen, reconcile(seen, world(now=LATE, jobs=(job(),))))
    longer = changed(seen, activeDeadlineSeconds=120)
    around = world(now=LATE, plan=plan_seen(), answer=RECORDED)
    decision = reconcile(longer, around)
    assert decision.actions[-1] == StartJob(2, PLAN)
    assert decision.status.start_time == NOW
    too_short = reconcile(changed(seen, activeDeadlineSeconds=61), replace(around, now=later(99)))
    assert (said(too_short), reason(too_short)) == (STALLED, "DeadlineExceeded")


def test_another_run_has_a_deadline_of_its_own() -> None:
    """The rerun copy has its whole time again."""
    seen = begun(activeDeadlineSeconds=60)
    seen = after(seen, reconcile(seen, world(now=LATE, jobs=(job(),))))
    decision = reconcile(asked(seen), world(now=later(200), plan=plan_seen(), answer=RECORDED))
    assert decision.actions[-1] == StartJob(2, PLAN)
    assert decision.status.start_time == later(200)


def test_what_failed_for_good_before_the_deadline_keeps_its_reason() -> None:
    """The deadline does not matter for a copy that has already failed."""
    seen = replace(stalled(), spec=spec(activeDeadlineSeconds=60))
    assert reason(reconcile(seen, world(now=LATE))) == "DigestMismatch"
