"""The end of a ScopeCopy: all, some or none of it is copied."""

from dataclasses import replace

import pytest

from sluice.api.status.common import ConditionType
from sluice.core.reconcile.copies.actions import (
    Abandon,
    RemoveFinalizer,
    StartHook,
    WriteResults,
)
from sluice.core.reconcile.copies.decide import after_failure, questions, reconcile
from sluice.core.reconcile.copies.world import Question
from sluice.core.scope.scope import LeftOut, Why
from sluice.core.workloads.answers import ScopeEnded
from sluice.errors import (
    ApiUnavailable,
    DigestMismatch,
    SourceNotFound,
    StoreUnavailable,
    TargetReplaced,
)
from support.reconcile.copies import (
    DONE,
    NOW,
    STALLED,
    after,
    later,
    message,
    plan_seen,
    reason,
    said,
    trouble,
    world,
)
from support.reconcile.scope_copies import (
    FAILED,
    PARTLY,
    PLAN,
    SUCCEEDED,
    TAKEN,
    WHOLE,
    begun,
    copied,
    ended,
    failed,
    over,
    scope,
    scope_plan,
    status,
    stopped,
    stream,
)

DROP = (Abandon(), RemoveFinalizer())


def success(answer: ScopeEnded) -> str:
    """Return the message of a copy that succeeds with this answer."""
    decision = reconcile(begun(), ended(answer))
    assert reason(decision) == "Succeeded"
    return message(decision)


# -- all streams


def test_results_are_published_before_anything_is_said() -> None:
    """A client that waits for Ready can read all results, even after a crash of the operator.

    Until then the status does not change.
    """
    seen = begun()
    around = world(jobs=(SUCCEEDED,), plan=plan_seen(PLAN), answer=WHOLE)
    for results in (None, "those of the plan"):
        decision = reconcile(seen, replace(around, results=results))
        assert decision.actions == (WriteResults(WHOLE.results),)
        assert (decision.status, decision.again) == (seen.status, 0)
    assert questions(seen, around) == {Question.STATE}


def test_a_scope_is_done_when_every_stream_is_copied() -> None:
    """The remains in the store are deleted, and the status has the result."""
    decision = reconcile(begun(), ended(WHOLE, now=later(9)))
    assert (said(decision), reason(decision)) == (DONE, "Succeeded")
    assert decision.actions == DROP
    assert decision.again is None
    found = status(decision)
    assert found.streams is not None
    assert (found.streams.total, found.streams.copied, found.streams.summary) == (3, 3, "3/3")
    assert (found.failed_streams, found.last_failure, found.completion_time) == ((), None, NOW)
    assert [(one.outcome, one.reason) for one in found.history] == [("Succeeded", None)]
    assert found.progress is not None
    progress = found.progress
    assert (progress.bytes, progress.total_bytes, progress.percent) == (5000, 5000, 100)
    assert progress.events == 3


def test_a_success_tells_what_was_copied_and_how_far_the_bounds_are_apart() -> None:
    """The ends of streams are read at different moments, and users have to know."""
    assert success(WHOLE) == (
        "3 streams are copied to scope out: 5.0 kB, 3 events. How far each goes was read within "
        "1.2 s."
    )
    plan = scope_plan(stream("a"), end=TAKEN + 70)
    alone = replace(WHOLE, plan=plan, results=(copied("a", events=None),))
    assert success(alone) == (
        "1 stream is copied to scope out: 1.0 kB. How far each goes was read within 70 ms."
    )


def test_a_success_tells_of_what_is_not_copied() -> None:
    """It names streams that are left out, key-value tables, and lost bytes."""
    plan = scope_plan(
        stream("a"),
        left_out=(LeftOut(why=Why.INTERNAL, count=2),),
        tables=("t1", "t2", "t3", "t4", "t5", "t6", "t7"),
    )
    said_of = success(ScopeEnded(plan=plan, results=(copied("a", lost=200),)))
    assert "2 streams are left out." in said_of
    assert "The sources had lost 200 B before they were read." in said_of
    assert "Key-value tables are not copied: t1, t2, t3, t4, t5 and 2 more." in said_of


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (None, "Scope in is deleted."),
        ("stream late is in it", "Scope in stays: stream late is in it."),
    ],
)
def test_a_move_tells_whether_the_scope_is_gone(kept: str | None, words: str) -> None:
    """A scope that is not empty stays, and the status has the reason."""
    moved = replace(WHOLE, plan=scope_plan(*PLAN.streams, move=True), kept=kept)
    assert success(moved).endswith(words)
    assert "Scope in" not in success(WHOLE)


def test_a_scope_of_which_nothing_is_selected_succeeds() -> None:
    """No stream could fail, and the status says that no stream was selected."""
    plan = scope_plan(left_out=(LeftOut(why=Why.NOT_SELECTED, count=1),))
    decision = reconcile(scope(), ended(ScopeEnded(plan=plan, results=()), jobs=(), plan=None))
    assert said(decision) == {"Ready": "True", "Succeeded": "True"}
    assert message(decision) == (
        "No stream of scope in is to be copied: nothing is selected. 1 stream is left out."
    )
    assert decision.actions == ()
    found = status(decision)
    assert found.streams is not None
    assert (found.streams.summary, found.streams.left_out) == ("0/0", 1)
    assert len(found.result_refs) == 1


def test_a_scope_that_nobody_compared_is_not_said_to_be_verified() -> None:
    """One stream without a digest is enough."""
    results = (copied("a"), copied("b", digest=None))
    decision = reconcile(begun(), ended(ScopeEnded(plan=PLAN, results=results)))
    assert said(decision) == {"Ready": "True", "Succeeded": "True"}


def test_a_scope_that_is_done_is_left_alone() -> None:
    """Changes of stores and of the spec cause neither a question nor an action."""
    seen = over(WHOLE)
    for changed in (seen, replace(seen, generation=2)):
        assert questions(changed, world()) == set()
        decision = reconcile(changed, world(source=None, now=later(99999)))
        assert (decision.actions, said(decision)) == ((), DONE)
    again = replace(seen, finalizer=True)
    assert reconcile(again, world()).actions == DROP


# -- some streams


def test_a_scope_that_is_copied_in_part_stalls_and_keeps_what_it_has() -> None:
    """Finalizer and staged bytes stay, so another run can continue."""
    decision = reconcile(begun(), ended(PARTLY))
    assert (said(decision), reason(decision)) == (STALLED, "PartiallySucceeded")
    assert (decision.actions, decision.again) == ((), None)
    found = status(decision)
    assert found.streams is not None
    assert (found.streams.copied, found.streams.failed, found.streams.summary) == (2, 1, "2/3")
    assert [(one.stream, one.reason) for one in found.failed_streams] == [("b", "SourceNotFound")]
    assert found.last_failure is not None
    failure = found.last_failure
    assert (failure.reason, failure.category, failure.attempt) == ("PartiallySucceeded", "Spec", 1)
    assert (found.retry_time, found.completion_time, found.failures) == (None, NOW, 0)
    assert [(one.outcome, one.reason) for one in found.history] == [
        ("Failed", "PartiallySucceeded")
    ]
    assert found.progress is not None
    assert (found.progress.bytes, found.progress.total_bytes) == (4000, 5000)
    assert (found.progress.percent, found.progress.summary) == (80, "80%")


def test_a_scope_of_which_nothing_is_copied_has_failed() -> None:
    """Its reason says so. All else is as for a partial success."""
    decision = reconcile(begun(), ended(FAILED))
    assert (said(decision), reason(decision)) == (STALLED, "Failed")
    assert message(decision).startswith(
        "None of 3 streams are copied, 3 failed: a (SourceNotFound)"
    )
    assert decision.actions == ()
    assert [(one.outcome, one.reason) for one in decision.status.history] == [("Failed", "Failed")]


def test_the_first_failed_streams_are_named_with_the_way_to_try_again() -> None:
    """They have names and reasons. The first one's category decides who has to act."""
    names = [f"s{number:03}" for number in range(60)]
    results = (
        *(failed(name, StoreUnavailable("no")) for name in reversed(names)),
        failed("a", DigestMismatch("other bytes")),
        copied("x"),
        stopped("y"),
    )
    decision = reconcile(begun(), ended(ScopeEnded(plan=PLAN, results=results)))
    assert message(decision).startswith(
        "1 of 63 streams are copied, 61 failed, 1 was not begun: a (DigestMismatch), "
        "s000 (StoreUnavailable), s001 (StoreUnavailable), s002 (StoreUnavailable), "
        "s003 (StoreUnavailable) and 56 more. To try the streams"
    )
    assert "sluice.dev/requestedAt" in message(decision)
    found = status(decision)
    assert [one.stream for one in found.failed_streams] == ["a", *names[:49]]
    assert found.failed_streams[0].message.startswith("other bytes")
    assert found.last_failure is not None
    assert found.last_failure.category == "Integrity"


@pytest.mark.parametrize("error", [TargetReplaced("other"), SourceNotFound("none")])
def test_what_failed_is_not_dropped_whatever_it_failed_for(error: TargetReplaced) -> None:
    """Failures that end a copy of one stream are here failures of one stream among many."""
    seen = over(replace(PARTLY, results=(copied("a"), failed("b", error), copied("c"))))
    assert seen.finalizer
    assert seen.gave_up
    around = world(plan=plan_seen(PLAN), now=later(99999))
    assert questions(seen, around) == set()
    decision = reconcile(seen, around)
    assert (decision.actions, decision.status, decision.again) == ((), seen.status, None)


def test_a_changed_spec_asks_for_no_other_run() -> None:
    """The store is asked again and answers the same."""
    seen = replace(over(PARTLY, parallelism=2), generation=2)
    assert questions(seen, world(plan=plan_seen(PLAN))) == {Question.STATE}
    decision = reconcile(seen, ended(PARTLY, jobs=(), now=later(60)))
    assert (said(decision), reason(decision)) == (STALLED, "PartiallySucceeded")
    assert decision.actions == ()
    assert (
        status(decision).failed_streams == status(reconcile(begun(), ended(PARTLY))).failed_streams
    )
    assert after(seen, decision).gave_up


def test_a_suspended_scope_that_is_copied_in_part_still_names_what_failed() -> None:
    """Neither suspending nor resuming hides the failures or requests a run."""
    seen = replace(over(PARTLY), spec=scope(suspend=True).spec, generation=2)
    decision = reconcile(seen, world(plan=plan_seen(PLAN)))
    assert decision.status.condition(ConditionType.SUSPENDED) is not None
    assert [one.stream for one in status(decision).failed_streams] == ["b"]
    seen = replace(after(seen, decision), spec=scope().spec, generation=3)
    decision = reconcile(seen, ended(PARTLY, jobs=()))
    assert reason(decision) == "PartiallySucceeded"


def test_results_that_could_not_be_published_are_published_later() -> None:
    """Until then the status does not report the end, and the store is asked again."""
    seen = begun()
    around = world(jobs=(SUCCEEDED,), plan=plan_seen(PLAN), answer=PARTLY)
    decision = after_failure(seen, around, trouble(ApiUnavailable("no answer")))
    assert reason(decision) == "ApiUnavailable"
    assert decision.again is not None
    seen = after(seen, decision)
    decision = reconcile(seen, ended(PARTLY, now=later(60)))
    assert reason(decision) == "PartiallySucceeded"


def test_the_status_speaks_of_the_plan_that_is_written() -> None:
    """If the plan is lost, the status names none."""
    assert status(reconcile(begun(), ended(PARTLY))).plan_hash == PLAN.hash
    found = status(reconcile(begun(), ended(PARTLY, plan=None)))
    assert (found.plan_hash, found.plan_ref) == (None, None)


@pytest.mark.parametrize(("answer", "runs"), [(WHOLE, True), (PARTLY, False), (FAILED, False)])
def test_the_hook_after_runs_only_for_a_whole_scope(answer: ScopeEnded, *, runs: bool) -> None:
    """Clients do not switch to a scope that lacks streams. Another run may complete it."""
    seen = begun(hooks={"after": {"cronJobRef": {"name": "switch"}}})
    decision = reconcile(seen, ended(answer))
    assert any(isinstance(action, StartHook) for action in decision.actions) == runs
    assert (reason(decision) == "HookRunning") == runs
