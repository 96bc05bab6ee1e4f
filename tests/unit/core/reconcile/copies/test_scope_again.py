"""Another run of a ScopeCopy: its requests and its streams."""

from dataclasses import replace

import pytest

from sluice.core.reconcile.copies.actions import DropPlan, StartJob, WritePlan, WriteResults
from sluice.core.reconcile.copies.decide import after_failure, questions, reconcile
from sluice.core.reconcile.copies.seen import CopySeen, asks_again
from sluice.core.reconcile.copies.world import PlanSeen, Question
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.workloads.answers import Planned
from sluice.core.workloads.scope_log import planned_results
from sluice.errors import ApiUnavailable, DriverLost
from support.reconcile.copies import (
    STORE,
    SUSPENDED,
    WORKING,
    after,
    job,
    later,
    message,
    plan_seen,
    reason,
    said,
    trouble,
    world,
)
from support.reconcile.scope_copies import (
    AGAIN,
    PARTLY,
    PLAN,
    SUCCEEDED,
    WHOLE,
    begun,
    ended,
    over,
    reading,
    scope,
    status,
)

AWAY = replace(STORE, ready=False, why="no answer")
OLD = world(jobs=(SUCCEEDED,), plan=plan_seen(PLAN), now=later(60))


def asked(seen: CopySeen | None = None) -> CopySeen:
    """Return a partly copied scope whose user requests another run."""
    return replace(seen or over(PARTLY), requested_at="now")


def test_what_failed_is_copied_in_another_run() -> None:
    """A plan of the failed streams replaces the earlier plan, and a driver starts on it."""
    seen = asked()
    assert asks_again(seen, OLD)
    assert questions(seen, OLD) == {Question.STATE}
    decision = reconcile(seen, replace(OLD, answer=AGAIN))
    assert (said(decision), reason(decision)) == (WORKING, "Starting")
    assert message(decision) == "The driver starts (attempt 2); 1 stream with 1.0 kB to copy."
    assert DropPlan() in decision.actions
    assert WritePlan(AGAIN.plan) in decision.actions
    assert WriteResults(planned_results(AGAIN.plan)) in decision.actions
    assert decision.actions[-1] == StartJob(2, AGAIN.plan)


def test_the_status_of_another_run_counts_what_was_copied_before() -> None:
    """The status has no trace of the failure any more."""
    found = status(reconcile(asked(), replace(OLD, answer=AGAIN)))
    assert (found.run, found.last_failure, found.failed_streams) == (2, None, ())
    assert (found.completion_time, found.last_handled_requested_at) == (None, "now")
    assert found.streams is not None
    assert (found.streams.total, found.streams.copied, found.streams.summary) == (3, 2, "2/3")


def test_a_run_that_copies_the_rest_succeeds() -> None:
    """Streams copied before and now are in one result."""
    seen = asked()
    seen = after(seen, reconcile(seen, replace(OLD, answer=AGAIN)))
    whole = replace(WHOLE, plan=AGAIN.plan)
    around = replace(ended(whole), jobs=(job(2, JobPhase.SUCCEEDED),), plan=plan_seen(AGAIN.plan))
    decision = reconcile(seen, around)
    assert reason(decision) == "Succeeded"
    assert [one.outcome for one in decision.status.history] == ["Failed", "Succeeded"]


def test_a_run_that_was_asked_for_is_not_asked_for_twice() -> None:
    """The run is over once its driver has ended."""
    seen = asked()
    seen = after(seen, reconcile(seen, replace(OLD, answer=AGAIN)))
    again = replace(PARTLY, plan=AGAIN.plan)
    plan = plan_seen(AGAIN.plan)
    around = replace(ended(again), jobs=(job(2, JobPhase.SUCCEEDED),), plan=plan)
    assert not asks_again(seen, around)
    seen = after(seen, reconcile(seen, around))
    assert seen.gave_up
    assert not asks_again(replace(seen, generation=2), replace(around, answer=None))


def test_nobody_asks_for_another_run_of_a_plan_that_is_written() -> None:
    """The plan is carried out, and its result stays until a user requests another run."""
    assert not asks_again(begun(), world(plan=plan_seen(PLAN)))
    assert not asks_again(over(PARTLY), OLD)


@pytest.mark.parametrize("plan", [None, plan_seen(PLAN)])
def test_a_run_whose_plan_was_not_written_is_asked_for_still(plan: PlanSeen | None) -> None:
    """The operator died between the status and the plan, and the next one knows of it."""
    seen = asked()
    seen = after(seen, reconcile(seen, replace(OLD, answer=AGAIN)))
    assert not seen.asked
    around = replace(OLD, plan=plan)
    assert asks_again(seen, around)
    decision = reconcile(seen, replace(around, answer=AGAIN))
    assert decision.actions[-1] == StartJob(2, AGAIN.plan)
    assert decision.status.attempts == 2
    assert not asks_again(after(seen, decision), replace(OLD, plan=plan_seen(AGAIN.plan)))


@pytest.mark.parametrize("plan", [None, plan_seen(PLAN)])
@pytest.mark.parametrize("suspend", [False, True])
def test_a_run_that_could_not_be_planned_when_it_was_asked_for_comes_later(
    plan: PlanSeen | None, *, suspend: bool
) -> None:
    """An unreachable store, a suspension or a deleted plan loses no request."""
    seen = asked()
    away: dict[str, object] = {} if suspend else {"source": AWAY}
    if suspend:
        seen = replace(seen, spec=scope(suspend=True).spec, generation=2)
    decision = reconcile(seen, world(jobs=(SUCCEEDED,), plan=plan, **away))
    assert said(decision) == (SUSPENDED if suspend else WORKING)
    assert decision.status.last_handled_requested_at == "now"
    seen = replace(after(seen, decision), spec=scope().spec, generation=3)
    assert asks_again(seen, replace(OLD, plan=plan))
    decision = reconcile(seen, replace(OLD, answer=AGAIN))
    assert decision.actions[-1] == StartJob(2, AGAIN.plan)


def test_what_became_of_an_attempt_is_said_before_another_run() -> None:
    """If the request comes as the driver ends, its results are published and the end recorded."""
    seen = asked(begun())
    around = world(jobs=(SUCCEEDED,), plan=plan_seen(PLAN))
    assert not asks_again(seen, around)
    assert not asks_again(asked(begun()), world(jobs=(job(),), plan=plan_seen(PLAN)))
    decision = reconcile(seen, ended(PARTLY))
    assert reason(decision) == "PartiallySucceeded"
    assert [one.outcome for one in decision.status.history] == ["Failed"]


def test_a_wish_while_a_driver_runs_stops_nothing() -> None:
    """The driver goes on, and its result is the end, though the request counts as handled."""
    seen = asked(begun())
    running = world(jobs=(job(),), plan=plan_seen(PLAN), reading=reading(1000, copied=1))
    decision = reconcile(seen, running)
    assert (said(decision), decision.actions) == (WORKING, ())
    seen = after(seen, decision)
    assert not seen.asked
    assert reason(reconcile(seen, ended(PARTLY))) == "PartiallySucceeded"


def test_a_wish_stands_until_its_results_are_published() -> None:
    """While the API server is unreachable, a request is neither handled nor forgotten."""
    seen = asked()
    around = ended(WHOLE, results=None, now=later(60))
    decision = reconcile(seen, around)
    assert decision.actions == (WriteResults(WHOLE.results),)
    seen = after(seen, decision)
    decision = after_failure(seen, around, trouble(ApiUnavailable("no answer")))
    assert decision.again is not None
    seen = after(seen, decision)
    assert seen.asked
    assert reason(reconcile(seen, ended(WHOLE, now=later(90)))) == "Succeeded"


def test_a_success_can_be_asked_for_again() -> None:
    """Missing targets are copied anew, and whole targets are found."""
    seen = asked(over(WHOLE))
    assert asks_again(seen, world())
    assert questions(seen, world()) == {Question.STATE}
    decision = reconcile(seen, world(answer=Planned(plan=AGAIN.plan)))
    assert decision.actions[-1] == StartJob(2, AGAIN.plan)
    decision = reconcile(seen, ended(WHOLE, jobs=(), plan=None))
    assert reason(decision) == "Succeeded"
    assert decision.status.last_handled_requested_at == "now"


def test_a_driver_that_is_lost_in_another_run_is_followed_in_that_run() -> None:
    """The written plan of the run counts, whether the driver recorded it or not."""
    seen = asked()
    seen = after(seen, reconcile(seen, replace(OLD, answer=AGAIN)))
    lost = job(2, JobPhase.FAILED, trouble=trouble(DriverLost("the pod is gone")))
    plan = plan_seen(AGAIN.plan)
    seen = after(seen, reconcile(seen, world(jobs=(lost,), plan=plan, now=later(70))))
    around = world(jobs=(lost,), plan=plan, now=later(99))
    assert not asks_again(seen, around)
    newer = AGAIN.plan.model_copy(
        update={"scope": AGAIN.plan.scope.model_copy(update={"begin": 1})}
        if AGAIN.plan.scope
        else {}
    )
    decision = reconcile(seen, replace(around, answer=Planned(plan=newer)))
    assert decision.actions[-1] == StartJob(3, AGAIN.plan)
