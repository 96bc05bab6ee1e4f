from dataclasses import replace

import pytest

from sluice.core.reconcile.copies.actions import Decision, StartJob
from sluice.core.reconcile.copies.decide import after_failure, questions, reconcile
from sluice.core.reconcile.copies.seen import CopySeen
from sluice.core.reconcile.copies.world import Question
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.workloads.answers import Planned
from sluice.errors import (
    CutInsideEvent,
    DigestMismatch,
    DriverEvicted,
    DriverLost,
    OutcomeUnknown,
    PermissionDenied,
    QuotaExceeded,
    SluiceError,
    SourceKept,
    SourceNotFound,
    StoreUnavailable,
    TargetExists,
    TargetReplaced,
    WaitingForExecutors,
)
from support.reconcile.copies import (
    DROP,
    LONGER,
    NOW,
    PLAN,
    RECORDED,
    STALLED,
    STORE,
    WORKING,
    after,
    begun,
    job,
    later,
    message,
    plan_seen,
    reading,
    reason,
    said,
    trouble,
    world,
)


def ended(error: SluiceError | None, seen: CopySeen | None = None, **around: object) -> Decision:
    """Return the decision after the first attempt's Job failed for this reason."""
    why = None if error is None else trouble(error)
    failed = job(phase=JobPhase.FAILED, trouble=why)
    return reconcile(seen or begun(), world(jobs=(failed,), plan=plan_seen(), **around))


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (StoreUnavailable("no connection"), 5),
        (DriverLost("the pod is gone"), 2),
        (DriverEvicted("low on disk"), 2),
        (WaitingForExecutors("none came"), 15),
        (None, 2),
    ],
)
def test_a_failure_that_passes_is_followed_by_another_attempt(
    error: SluiceError | None, wait: int
) -> None:
    """After a wait that its category sets, the copy goes on with the finalizer in place."""
    decision = ended(error)
    assert said(decision) == WORKING
    assert decision.actions == ()
    assert decision.again == wait
    assert decision.status.retry_time == later(wait)
    assert message(decision).endswith(f"Attempt 2 begins in {wait} s.")
    seen = after(begun(), decision)
    failed = job(phase=JobPhase.FAILED)
    early = world(now=later(wait - 1), jobs=(failed,), plan=plan_seen())
    assert questions(seen, early) == set()
    assert reconcile(seen, early).status == seen.status
    due = world(now=later(wait), jobs=(failed,), plan=plan_seen(), answer=RECORDED)
    assert questions(seen, replace(due, answer=None)) == {Question.STATE}
    assert reconcile(seen, due).actions[-1] == StartJob(2, PLAN)


def test_waits_grow_with_failures_in_a_row() -> None:
    """Each failure without progress doubles the wait, up to the category's longest."""
    waits = []
    for failures in range(7):
        seen = begun(backoffLimit=9)
        seen = replace(seen, status=seen.status.model_copy(update={"failures": failures}))
        waits.append(ended(StoreUnavailable("no connection"), seen).again)
    assert waits == [5, 10, 20, 40, 80, 160, 300]


@pytest.mark.parametrize("limit", [0, 1, 6])
def test_a_copy_gives_up_after_its_limit_of_failures(limit: int) -> None:
    """One failure more than backoffLimit, without progress, stalls the copy for good."""
    seen = begun(backoffLimit=limit)
    status = seen.status.model_copy(update={"failures": limit})
    decision = ended(StoreUnavailable("no connection"), replace(seen, status=status))
    assert said(decision) == STALLED
    times = f"{limit + 1} failures" if limit else "a failure"
    assert message(decision).startswith(f"Gave up after {times} without progress. ")
    assert "sluice.dev/requestedAt" in message(decision)
    assert decision.again is None
    assert decision.status.completion_time == NOW
    assert decision.actions == ()  # staged bytes stay: a user may ask for another run


def test_an_attempt_that_moved_bytes_counts_from_the_beginning() -> None:
    """An attempt that failed after it had staged something is the first failure in a row."""
    seen = begun(backoffLimit=0)
    status = seen.status.model_copy(update={"failures": 5})
    around = world(jobs=(job(phase=JobPhase.FAILED),), plan=plan_seen(), reading=reading(10))
    decision = reconcile(replace(begun(backoffLimit=6), status=status), around)
    assert decision.status.failures == 1
    assert decision.status.progress is not None
    assert decision.status.progress.bytes == 10


@pytest.mark.parametrize("error", [DigestMismatch("other bytes"), TargetReplaced("not ours")])
def test_what_is_wrong_with_the_data_is_never_tried_again_by_itself(error: SluiceError) -> None:
    """The copy drops its staged bytes and stays stalled, whatever happens around it."""
    decision = ended(error)
    assert (said(decision), reason(decision)) == (STALLED, error.reason)
    assert decision.actions == DROP
    assert decision.again is None
    seen = after(begun(), decision)
    failed = job(phase=JobPhase.FAILED)
    away = replace(STORE, ready=False, why="no answer")
    for around in (
        world(now=later(10**6), plan=plan_seen(), jobs=(failed,)),
        world(now=later(10**6), plan=plan_seen()),
        world(source=away, target=away),
        world(source=None, target=None),
        world(jobs=(replace(failed, deleting=True),)),
        world(profile=trouble(SourceNotFound("x"))),
    ):
        assert questions(seen, around) == set()
        decision = reconcile(seen, around)
        assert (said(decision), reason(decision)) == (STALLED, error.reason)
        assert decision.actions == ()
        seen = after(seen, decision)


def test_a_failure_that_cannot_pass_copies_nothing_again() -> None:
    """The range does not change: only a new spec or a user's request begins anew."""
    decision = ended(CutInsideEvent("offset 5 of segment 0", field="spec.source.ranges[0].from"))
    assert (said(decision), reason(decision)) == (STALLED, "CutInsideEvent")
    assert decision.actions == DROP
    assert decision.again is None
    assert decision.status.retry_time is None
    seen = after(begun(), decision)
    failed = job(phase=JobPhase.FAILED)
    much_later = world(now=later(10**6), jobs=(failed,), plan=plan_seen(), answer=RECORDED)
    assert questions(seen, much_later) == set()
    assert reconcile(seen, much_later).actions == ()
    for again in (replace(seen, requested_at="now"), replace(seen, generation=2)):
        assert questions(again, replace(much_later, answer=None)) == {Question.STATE}
        assert reconcile(again, much_later).actions[-1] == StartJob(2, PLAN)


@pytest.mark.parametrize("error", [TargetExists("it is there"), PermissionDenied("no right")])
def test_attempts_that_wait_for_a_person_are_limited(error: SluiceError) -> None:
    """With backoffLimit 0 the first failure of a driver is the last. The message has the remedy."""
    decision = ended(error, begun(backoffLimit=0))
    assert (said(decision), reason(decision)) == (STALLED, error.reason)
    assert decision.again is None
    assert message(decision).startswith("Gave up after a failure without progress. ")
    assert "sluice.dev/requestedAt" in message(decision)
    assert ended(error, begun(backoffLimit=1)).again == 30


@pytest.mark.parametrize("error", [OutcomeUnknown("who knows"), SourceKept("it has more")])
def test_what_a_person_has_to_decide_stays_as_it_is(error: SluiceError) -> None:
    """Nothing is dropped, so a rerun continues the copy."""
    decision = ended(error)
    assert (said(decision), reason(decision)) == (STALLED, error.reason)
    assert decision.actions == ()
    seen = after(begun(), decision)
    assert reconcile(seen, world(jobs=(job(phase=JobPhase.FAILED),))).actions == ()
    asked = replace(seen, requested_at="now")
    around = world(jobs=(job(phase=JobPhase.FAILED),), answer=Planned(plan=LONGER, recorded=True))
    assert any(isinstance(action, StartJob) for action in reconcile(asked, around).actions)


def test_what_is_final_is_said_again_when_it_was_overwritten() -> None:
    """If another client damaged the conditions, the status is written again."""
    seen = after(begun(), ended(DigestMismatch("other bytes", field="spec.target")))
    damaged = replace(seen, status=seen.status.model_copy(update={"conditions": ()}))
    decision = reconcile(damaged, world())
    assert said(decision) == STALLED
    assert message(decision) == message(ended(DigestMismatch("other bytes", field="spec.target")))


def test_staging_that_could_not_be_dropped_is_dropped_later() -> None:
    """If the store is unreachable when a copy fails for good, the drop is retried later."""
    seen = replace(after(begun(), ended(DigestMismatch("other bytes"))), finalizer=True)
    around = world(jobs=(job(phase=JobPhase.FAILED),))
    decision = after_failure(seen, around, trouble(StoreUnavailable("no connection")))
    assert (said(decision), reason(decision)) == (STALLED, "DigestMismatch")
    assert decision.again is not None
    seen = after(seen, decision)
    assert reconcile(seen, around).actions == DROP


def test_what_the_spec_has_wrong_is_looked_at_again_slowly() -> None:
    """Until the obstructing target is removed, the copy is stalled."""
    decision = ended(TargetExists("out/orders exists", field="spec.target.stream"))
    assert (said(decision), decision.again) == (STALLED, 30)
    assert decision.actions == DROP
    seen = after(begun(), decision)
    late = world(now=later(31), jobs=(job(phase=JobPhase.FAILED),), answer=Planned(plan=LONGER))
    assert reconcile(seen, late).actions[-1] == StartJob(2, LONGER)


def test_an_attempt_that_could_not_begin_is_the_same_attempt_later() -> None:
    """A failure before the Job exists counts neither as an attempt nor as a failure."""
    seen = begun(backoffLimit=0)
    decision = after_failure(seen, world(), trouble(StoreUnavailable("no connection")))
    assert (said(decision), decision.status.failures) == (WORKING, 0)
    assert message(decision).endswith("It is tried again in 5 s.")
    seen = after(seen, decision)
    again = reconcile(seen, world(now=later(5), plan=plan_seen(), answer=RECORDED))
    assert again.actions[-1] == StartJob(1, PLAN)


def test_a_speed_is_told_only_of_what_moves() -> None:
    """A failed copy has no speed, however fast it was."""
    seen = begun()
    running = world(jobs=(job(),), plan=plan_seen(), reading=reading(400))
    seen = after(seen, reconcile(seen, running))
    progress = ended(StoreUnavailable("no connection"), seen).status.progress
    assert progress is not None
    assert progress.bytes == 400
    assert (progress.rate, progress.bytes_per_second, progress.eta_seconds) == (None, None, None)


def test_what_keeps_an_attempt_from_beginning_is_tried_ever_more_slowly() -> None:
    """A copy waits for a used-up quota without end, at growing intervals."""
    seen, now, waits = begun(backoffLimit=0), 0.0, []
    for _ in range(8):
        around = world(now=later(now), plan=plan_seen(), answer=RECORDED)
        seen = after(seen, reconcile(seen, around))
        decision = after_failure(seen, around, trouble(QuotaExceeded("used up")))
        assert (said(decision), reason(decision)) == (WORKING, "QuotaExceeded")
        assert decision.again is not None
        waits.append(decision.again)
        seen = after(seen, decision)
        now += decision.again
    assert waits == [15, 30, 60, 120, 240, 300, 300, 300]
    assert (seen.status.attempts, seen.status.failures) == (1, 0)


def test_history_remembers_the_last_ten_attempts() -> None:
    """The status does not grow, however often a copy fails."""
    seen = begun(backoffLimit=100)
    now = 0.0
    for number in range(1, 26):
        failed = job(number, JobPhase.FAILED)
        decision = reconcile(seen, world(now=later(now), jobs=(failed,), plan=plan_seen()))
        seen = after(seen, decision)
        now += decision.again or 0
        around = world(now=later(now), jobs=(failed,), plan=plan_seen(), answer=RECORDED)
        seen = after(seen, reconcile(seen, around))
    assert [entry.attempt for entry in seen.status.history] == list(range(17, 27))
    assert seen.status.attempts == 26
    assert seen.status.failures == 25
