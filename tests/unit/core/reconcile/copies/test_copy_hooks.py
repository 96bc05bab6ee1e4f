"""A copy with hooks: the time of each Job, and its effect on the copy."""

from dataclasses import replace
from typing import Any

import pytest

from sluice.api.status.common import ConditionType
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.core.reconcile.copies.actions import (
    Abandon,
    Decision,
    DeleteJob,
    RemoveFinalizer,
    StartHook,
    StartJob,
    WritePlan,
)
from sluice.core.reconcile.copies.decide import after_failure, questions, reconcile
from sluice.core.reconcile.copies.hooks.standing import Point, job_of
from sluice.core.reconcile.copies.seen import CopySeen
from sluice.core.reconcile.copies.world import Question
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.errors import HookNotFound, HookRefused, QuotaExceeded, SluiceError
from support.reconcile.copies import (
    LONGER,
    MAPPED,
    NOW,
    PLANNED,
    STALLED,
    UID,
    WHOLE,
    after,
    copy,
    job,
    later,
    message,
    plan_seen,
    reason,
    said,
    trouble,
    world,
)
from support.reconcile.hooks import hook_job, hooks

DONE = {"Ready": "True", "Succeeded": "True", "Verified": "True", "HooksSucceeded": "True"}


def name(point: Point, number: int = 1) -> str:
    """Return the name of a hook's Job."""
    return job_of(UID, point, number)


def hooked(decision: Decision, point: Point) -> Any:
    """Return the state of a hook."""
    status = decision.status
    assert isinstance(status, StreamCopyStatus)
    return getattr(status.hooks, point)


def announced(**changes: Any) -> CopySeen:
    """Return a copy whose hook before it is announced."""
    seen = copy(hooks=hooks(**changes))
    return after(seen, reconcile(seen, world(answer=PLANNED)))


def quiesced() -> CopySeen:
    """Return a copy whose hook before it has succeeded."""
    seen = announced()
    return after(seen, reconcile(seen, world(hooks=hook_job("before", JobPhase.SUCCEEDED))))


def copied() -> CopySeen:
    """Return a copy whose first attempt has begun, after its hook."""
    seen = quiesced()
    return after(seen, reconcile(seen, world(answer=PLANNED)))


WHOLE_WORLD = world(
    jobs=(job(phase=JobPhase.SUCCEEDED),), plan=plan_seen(), answer=WHOLE, positions=WHOLE.positions
)


def ended() -> CopySeen:
    """Return a complete copy whose hook after it is announced."""
    seen = copied()
    return after(seen, reconcile(seen, WHOLE_WORLD))


def test_the_hook_before_runs_first() -> None:
    """The status names the Job before it is made. No plan is written and no driver starts."""
    decision = reconcile(copy(hooks=hooks()), world(answer=PLANNED))
    assert decision.actions == (StartHook("before", name("before")),)
    assert reason(decision) == "HookRunning"
    assert name("before") in message(decision)
    assert hooked(decision, "before").state == "Pending"
    assert decision.status.attempts == 0
    assert decision.status.plan_hash is None


def test_a_copy_that_cannot_be_planned_runs_no_hook() -> None:
    """Writers are not stopped for a copy that cannot succeed."""
    no_room = trouble(QuotaExceeded("used up"))
    decision = reconcile(copy(hooks=hooks()), world(trouble=no_room))
    assert reason(decision) == "QuotaExceeded"
    assert hooked(decision, "before") is None if decision.status.dump().get("hooks") else True


def test_an_operator_that_was_killed_makes_the_same_job() -> None:
    """The Job's name follows from the copy, the hook and the number."""
    decision = reconcile(announced(), world())
    assert decision.actions == (StartHook("before", name("before")),)


def test_while_a_hook_runs_no_store_is_asked() -> None:
    """The source's end counts only after the hook."""
    seen = announced()
    assert questions(seen, world(hooks=hook_job("before"))) == frozenset()
    decision = reconcile(seen, world(hooks=hook_job("before")))
    assert decision.actions == ()
    assert "runs since 2026-01-02T03:04:05Z" in message(decision)
    assert said(decision)["HooksSucceeded"] == "Unknown"
    again = reconcile(after(seen, decision), world(hooks=hook_job("before"), now=later(5)))
    assert again.status == decision.status, "a hook that runs is not worth a write"


def test_after_the_hook_the_copy_is_planned_anew() -> None:
    """One look records the hook's end, and the next one asks the stores."""
    seen = quiesced()
    assert questions(seen, world()) == {Question.STATE}
    longer = replace(PLANNED, plan=LONGER)
    decision = reconcile(seen, world(answer=longer))
    assert WritePlan(LONGER) in decision.actions
    assert StartJob(1, LONGER) in decision.actions
    assert said(decision)["HooksSucceeded"] == "True"


def test_attempts_repeat_no_hook() -> None:
    """A second attempt belongs to the same run."""
    seen = copied()
    decision = reconcile(seen, world(jobs=(job(phase=JobPhase.FAILED),), plan=plan_seen()))
    seen = after(seen, decision)
    decision = reconcile(seen, world(answer=PLANNED, plan=plan_seen(), now=later(600)))
    assert any(isinstance(action, StartJob) for action in decision.actions)


def test_a_copy_is_ready_after_the_hook_after() -> None:
    """The positions are published, the hook runs, then the copy is reported."""
    seen = copied()
    mapped = replace(WHOLE, positions=MAPPED)
    decision = reconcile(seen, replace(WHOLE_WORLD, answer=mapped))
    assert not any(isinstance(action, StartHook) for action in decision.actions)
    decision = reconcile(seen, replace(WHOLE_WORLD, answer=mapped, positions=MAPPED))
    assert decision.actions == (StartHook("after", name("after")),)
    assert said(decision)["Ready"] == "Unknown"
    seen = after(seen, decision)
    decision = reconcile(seen, world(hooks=hook_job("after", JobPhase.SUCCEEDED)))
    assert (said(decision)["Ready"], decision.again) == ("Unknown", 0.0)
    seen = after(seen, decision)
    decision = reconcile(seen, WHOLE_WORLD)
    assert said(decision) == DONE
    assert [entry.outcome for entry in decision.status.history] == ["Succeeded"]


def test_a_driver_that_tidies_is_not_stopped_for_the_hook_after() -> None:
    """A Job with a written end must not run, so the end is written later."""
    seen = copied()
    running = replace(WHOLE_WORLD, jobs=(job(),))
    decision = reconcile(seen, running)
    assert decision.actions == (StartHook("after", name("after")),)
    seen = after(seen, decision)
    decision = reconcile(seen, replace(running, answer=None, hooks=hook_job("after")))
    assert decision.actions == ()
    gone = world(jobs=(job(phase=JobPhase.SUCCEEDED),), hooks=hook_job("after"))
    decision = reconcile(seen, gone)
    assert [entry.outcome for entry in decision.status.history] == ["Succeeded"]


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (hook_job("before", JobPhase.FAILED, words="BackoffLimitExceeded: x"), "BackoffLimit"),
        ({}, "was deleted"),
    ],
    ids=["failed", "deleted"],
)
def test_a_hook_that_fails_stalls_the_copy(found: Any, says: str) -> None:
    """The message names the Job, the field and the next step. No automatic retry follows."""
    seen = announced()
    seen = after(seen, reconcile(seen, world(hooks=hook_job("before"))))
    decision = reconcile(seen, world(hooks=found))
    assert said(decision) == STALLED | {"HooksSucceeded": "False"}
    assert reason(decision) == "HookFailed"
    assert decision.again is None
    for word in (name("before"), says, "spec.hooks.before", "sluice.dev/requestedAt"):
        assert word in message(decision)
    seen = after(seen, decision)
    assert questions(seen, world()) == frozenset()
    assert reconcile(seen, world(now=later(10_000))).actions == ()


def test_a_hook_that_takes_too_long_is_stopped_first() -> None:
    """It has failed once its Job is gone, even after a crash of the operator."""
    seen = announced()
    late = world(hooks=hook_job("before", made=later(-631)))
    for _ in range(2):
        decision = reconcile(seen, late)
        assert decision.actions == (DeleteJob(name("before")),)
        seen = after(seen, decision)
        assert said(decision)["HooksSucceeded"] == "Unknown"
    decision = reconcile(seen, world())
    assert reason(decision) == "HookFailed"
    assert "more than 600 s" in message(decision)


def test_a_hook_that_a_lost_status_left_is_stopped_before_another_begins() -> None:
    """Two hooks at once could work against each other."""
    left = name("before", 2)
    decision = reconcile(copy(hooks=hooks()), world(answer=PLANNED, late_hooks=(left,)))
    assert decision.actions == (DeleteJob(left), StartHook("before", name("before")))


def test_a_hook_that_a_lost_status_left_is_adopted_if_it_is_the_same() -> None:
    """The hook runs on, even if its store does not answer."""
    around = world(answer=PLANNED, late_hooks=(name("before"),))
    decision = reconcile(copy(hooks=hooks()), around)
    assert decision.actions == (StartHook("before", name("before")),)
    assert reconcile(copy(hooks=hooks()), replace(around, answer=None)).actions == ()


def test_a_request_runs_a_failed_hook_again() -> None:
    """The Job has the next number, since the failed Job may still exist."""
    seen = announced()
    failing = world(hooks=hook_job("before", JobPhase.FAILED))
    seen = replace(after(seen, reconcile(seen, failing)), requested_at="now")
    decision = reconcile(seen, world(answer=PLANNED))
    assert decision.actions == (StartHook("before", name("before", 2)),)
    assert said(decision)["HooksSucceeded"] == "Unknown"


def test_a_change_runs_only_a_failed_hook_again() -> None:
    """A hook that succeeded is not repeated for a changed limit."""
    seen = replace(quiesced(), generation=2)
    decision = reconcile(seen, world(answer=PLANNED))
    assert any(isinstance(action, StartJob) for action in decision.actions)


def test_a_request_while_an_attempt_runs_repeats_no_hook() -> None:
    """That attempt fulfils the request."""
    seen = replace(copied(), requested_at="now")
    decision = reconcile(seen, world(jobs=(job(),), plan=plan_seen()))
    assert hooked(decision, "before").state == "Succeeded"


def test_a_failure_that_does_not_matter_is_told() -> None:
    """With onFailure: Continue the copy goes on, and a condition keeps the failure."""
    seen = announced(onFailure="Continue")
    decision = reconcile(seen, world(hooks=hook_job("before", JobPhase.FAILED, words="x")))
    assert (reason(decision), said(decision)["Ready"]) == ("HookFailed", "Unknown")
    decision = reconcile(after(seen, decision), world(answer=PLANNED))
    assert any(isinstance(action, StartJob) for action in decision.actions)
    condition = decision.status.condition(ConditionType.HOOKS)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "HookFailed")
    assert name("before") in condition.message


def test_a_failed_hook_after_leaves_a_complete_copy_that_says_so() -> None:
    """With onFailure: Fail the copy is stalled, and nothing is dropped."""
    strict = {"after": {"cronJobRef": {"name": "switch"}}}
    seen = after(copy(hooks=strict), reconcile(copy(hooks=strict), world(answer=PLANNED)))
    seen = after(seen, reconcile(seen, WHOLE_WORLD))
    decision = reconcile(seen, world(hooks=hook_job("after", JobPhase.FAILED)))
    assert said(decision)["Ready"] == "False"
    assert "Everything is copied and can be read" in message(decision)
    assert not {Abandon(), RemoveFinalizer()} & set(decision.actions)
    seen = replace(after(seen, decision), requested_at="again")
    decision = reconcile(seen, WHOLE_WORLD)
    assert decision.actions == (StartHook("after", name("after", 2)),)


@pytest.mark.parametrize("error", [HookNotFound("no CronJob"), HookRefused("no annotation")])
def test_a_cron_job_that_cannot_be_used_is_waited_for(error: SluiceError) -> None:
    """The copy is stalled before anything begins, and the operator checks it again."""
    missing = {"before": trouble(error)}
    decision = reconcile(copy(hooks=hooks()), world(answer=PLANNED, hooks=missing))
    assert said(decision) == STALLED
    assert (reason(decision), decision.actions) == (error.reason, ())
    assert decision.again == 30
    seen = after(copy(hooks=hooks()), decision)
    decision = reconcile(seen, world(answer=PLANNED, now=later(31)))
    assert decision.actions == (StartHook("before", name("before")),)


def test_a_refused_job_is_tried_again_later_and_later() -> None:
    """Looks in between do not try it, whatever wakes the copy."""
    seen = announced()
    decision = after_failure(seen, world(), trouble(HookRefused("denied by a policy")))
    assert said(decision)["Ready"] == "False"
    seen = after(seen, decision)
    assert reconcile(seen, world(now=later(5))).actions == ()
    assert reconcile(seen, world(now=later(31))).actions == (StartHook("before", name("before")),)


def test_a_hook_that_is_taken_out_of_the_spec_is_stopped() -> None:
    """The copy goes on without it."""
    seen = announced()
    bare = replace(seen, spec=copy().spec, generation=2)
    decision = reconcile(bare, world(hooks=hook_job("before")))
    assert decision.actions == (DeleteJob(name("before")),)
    seen = after(bare, decision)
    seen = after(seen, reconcile(seen, world()))
    decision = reconcile(seen, world(answer=PLANNED))
    assert any(isinstance(action, StartJob) for action in decision.actions)


def test_a_copy_without_hooks_has_no_condition_of_them() -> None:
    """It has no field of hooks either."""
    decision = reconcile(copy(), world(answer=PLANNED))
    assert "HooksSucceeded" not in said(decision)
    assert "hooks" not in decision.status.dump()
    assert decision.status.start_time == NOW


def test_a_hook_that_is_taken_out_and_put_back_gets_another_job() -> None:
    """The first hook's Job may have ended meanwhile, and did not run the new hook's CronJob."""
    bare = announced()
    without = replace(bare, spec=copy().spec, generation=2)
    seen = after(without, reconcile(without, world(hooks=hook_job("before", JobPhase.SUCCEEDED))))
    back = replace(seen, spec=bare.spec, generation=3)
    begun = reconcile(back, world(answer=PLANNED))
    assert begun.actions == (StartHook("before", name("before", 2)),)


def test_a_suspended_copy_begins_no_hook() -> None:
    """An announced hook begins when the copy is resumed. A running hook goes on to its end."""
    bare = announced()
    seen = replace(bare, spec=copy(hooks=hooks(), suspend=True).spec, generation=2)
    decision = reconcile(seen, world())
    assert (reason(decision), decision.actions) == ("Suspended", ())
    assert reason(reconcile(seen, world(hooks=hook_job("before")))) == "HookRunning"
    resumed = replace(after(seen, decision), spec=bare.spec, generation=3)
    assert reconcile(resumed, world()).actions == (StartHook("before", name("before")),)


def test_the_jobs_of_hooks_go_with_those_of_attempts() -> None:
    """They are deleted some minutes after a success. Until then users can read their logs."""
    seen = ended()
    seen = after(seen, reconcile(seen, world(hooks=hook_job("after", JobPhase.SUCCEEDED))))
    seen = after(seen, reconcile(seen, WHOLE_WORLD))
    jobs = {DeleteJob(name("before")), DeleteJob(name("after"))}
    assert not jobs & set(reconcile(seen, world(job_seconds=600, now=later(500))).actions)
    assert jobs <= set(reconcile(seen, world(job_seconds=600, now=later(601))).actions)
