from dataclasses import replace

import pytest

from sluice.core.reconcile.copy import after_failure, questions, reconcile
from sluice.core.reconcile.copy_seen import CopySeen
from sluice.core.reconcile.world import (
    Abandon,
    Complete,
    Decision,
    JobPhase,
    Planned,
    Question,
    RemoveFinalizer,
    StartJob,
    WritePositions,
)
from sluice.errors import (
    AuthenticationFailed,
    DigestMismatch,
    DriverEvicted,
    DriverLost,
    OutcomeUnknown,
    QuotaExceeded,
    SluiceError,
    SourceKept,
    SourceNotFound,
    StoreUnavailable,
    TargetExists,
    TargetReplaced,
    WaitingForExecutors,
)
from support.copies import (
    DONE,
    LONGER,
    MAPPED,
    NOW,
    PLAN,
    RECORDED,
    STALLED,
    STORE,
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
    trouble,
    world,
)

SUCCEEDED = job(phase=JobPhase.SUCCEEDED)
DROP = (Abandon(), RemoveFinalizer())


def ended(error: SluiceError | None, seen: CopySeen | None = None, **around: object) -> Decision:
    """What follows when the first attempt's Job failed for this reason."""
    why = None if error is None else trouble(error)
    failed = job(phase=JobPhase.FAILED, trouble=why)
    return reconcile(seen or begun(), world(jobs=(failed,), plan=plan_seen(), **around))


# -- success


def test_a_copy_is_done_when_the_store_says_so() -> None:
    """The driver's word is held against the target, and what it left is tidied up."""
    seen, around = begun(), world(jobs=(SUCCEEDED,), plan=plan_seen(), now=later(7))
    assert questions(seen, around) == {Question.STATE}
    decision = reconcile(seen, replace(around, answer=WHOLE))
    assert said(decision) == DONE
    assert reason(decision) == "Copied"
    assert decision.actions == DROP
    assert decision.again is None
    status = decision.status
    assert [(e.outcome, e.end_time) for e in status.history] == [("Succeeded", NOW)]
    assert status.completion_time == NOW
    assert status.progress is not None
    assert (status.progress.percent, status.progress.bytes) == (100, 1000)
    assert status.verification is not None
    assert (status.verification.digest, status.verification.events) == (WHOLE.digest, 1)


def test_a_success_that_the_target_does_not_show_is_a_failure() -> None:
    """A driver that says it is done beside a target that is not whole is tried again."""
    decision = reconcile(begun(), world(jobs=(SUCCEEDED,), plan=plan_seen(), answer=RECORDED))
    assert (said(decision), reason(decision)) == (WORKING, "DriverLost")
    assert [entry.outcome for entry in decision.status.history] == ["Failed"]
    assert decision.again is not None


def test_a_success_is_believed_when_the_store_is_back() -> None:
    """While the store is away nothing is decided; afterwards the copy is done."""
    away = replace(STORE, ready=False, why="no answer")
    seen = begun()
    decision = reconcile(seen, world(jobs=(SUCCEEDED,), source=away, target=away))
    assert (said(decision), reason(decision)) == (WORKING, "StoreNotReady")
    seen = after(seen, decision)
    why = trouble(StoreUnavailable("no connection"))
    decision = reconcile(seen, world(jobs=(SUCCEEDED,), plan=plan_seen(), trouble=why))
    assert (said(decision), reason(decision)) == (WORKING, "StoreUnavailable")
    assert (decision.actions, decision.status.failures) == ((), 0)
    assert decision.again is not None
    seen = after(seen, decision)
    assert said(reconcile(seen, world(jobs=(SUCCEEDED,), answer=WHOLE))) == DONE


@pytest.mark.parametrize(
    ("error", "recheck"),
    [(TargetReplaced("its segments hold other bytes"), False), (AuthenticationFailed("no"), True)],
)
def test_a_success_that_the_store_contradicts_stalls_the_copy(
    error: SluiceError, *, recheck: bool
) -> None:
    """A target that is not what it should be is not waited for; the attempt did its part."""
    seen = begun()
    decision = reconcile(seen, world(jobs=(SUCCEEDED,), plan=plan_seen(), trouble=trouble(error)))
    assert (said(decision), reason(decision)) == (STALLED, error.reason)
    assert [entry.outcome for entry in decision.status.history] == ["Succeeded"]
    assert (decision.again is not None) == recheck


def test_a_copy_that_somebody_else_completed_is_done() -> None:
    """A target that is whole needs no driver, and its plan need not be known."""
    whole = Complete(digest="e" * 64)
    decision = reconcile(copy(), world(answer=whole))
    assert said(decision) == DONE
    assert decision.actions == ()
    assert decision.status.history == ()
    assert decision.status.completion_time == NOW


def test_a_copy_that_nobody_compared_is_not_said_to_be_verified() -> None:
    """Its target is whole; more than that is not known of it."""
    decision = reconcile(copy(), world(answer=replace(WHOLE, digest="unverified")))
    assert said(decision) == {"Ready": "True", "Succeeded": "True"}
    assert decision.status.verification is not None
    assert decision.status.verification.digest == "unverified"


def test_a_copy_that_is_done_is_left_alone() -> None:
    """Nothing is asked and nothing is done, whatever becomes of stores, Jobs and the spec."""
    seen = begun()
    seen = after(seen, reconcile(seen, world(jobs=(SUCCEEDED,), answer=WHOLE)))
    for changed, around in (
        (seen, world(now=later(99999))),
        (seen, world(source=None, target=None)),
        (replace(seen, generation=2), world()),
    ):
        assert questions(changed, around) == set()
        decision = reconcile(changed, around)
        assert (decision.actions, decision.again, said(decision)) == ((), None, DONE)
        assert decision.status.observed_generation == changed.generation
        assert decision.status.verification == seen.status.verification


def test_tidying_that_was_cut_off_is_done_later() -> None:
    """A done copy with a finalizer has something left in a store."""
    seen = begun()
    seen = after(seen, reconcile(seen, world(jobs=(SUCCEEDED,), answer=WHOLE)))
    seen = replace(seen, finalizer=True)
    assert reconcile(seen, world()).actions == DROP


def test_tidying_that_fails_takes_nothing_back() -> None:
    """A store that goes away after the success does not make it less of one."""
    seen = begun()
    around = world(jobs=(SUCCEEDED,), answer=WHOLE)
    seen = replace(after(seen, reconcile(seen, around)), finalizer=True)
    decision = after_failure(seen, around, trouble(StoreUnavailable("no connection")))
    assert decision.status == seen.status
    assert decision.actions == ()
    assert decision.again is not None


# -- the map of positions

MAPPED_WHOLE = replace(WHOLE, positions=MAPPED)


def test_a_copy_is_done_once_its_positions_are_published() -> None:
    """Whoever waits for Ready can translate positions at once, though an operator was killed."""
    seen, around = begun(), world(jobs=(SUCCEEDED,), plan=plan_seen(), answer=MAPPED_WHOLE)
    decision = reconcile(seen, around)
    assert decision.actions == (WritePositions(MAPPED),)
    assert (decision.status, decision.again) == (seen.status, 0)
    assert questions(seen, around) == {Question.STATE}
    decision = reconcile(seen, replace(around, positions=MAPPED))
    assert (said(decision), decision.actions) == (DONE, DROP)
    assert decision.status.position_map_ref is not None
    assert decision.status.position_map_ref.name.startswith("orders-positions-")


def test_a_map_that_tells_more_stays() -> None:
    """The target's retention takes segments away, and what was known of them is known still."""
    (source,) = MAPPED.sources
    left = source.model_copy(update={"segments": source.segments[1:]})
    answer = replace(WHOLE, positions=MAPPED.model_copy(update={"sources": (left,)}))
    decision = reconcile(copy(), world(answer=answer, positions=MAPPED))
    assert (said(decision), decision.actions) == (DONE, ())
    decision = reconcile(copy(), world(answer=WHOLE, positions=MAPPED))
    assert decision.status.position_map_ref is not None


def test_a_target_that_was_made_anew_has_another_map() -> None:
    """Asked to run again, the copy is done once the map is the new target's, and not before."""
    seen = begun()
    around = world(jobs=(SUCCEEDED,), answer=MAPPED_WHOLE, positions=MAPPED)
    seen = replace(after(seen, reconcile(seen, around)), requested_at="now")
    (source,) = MAPPED.sources
    moved = [one.model_copy(update={"target_segment": 7}) for one in source.segments]
    anew = source.model_copy(update={"segments": tuple(moved)})
    newer = MAPPED.model_copy(update={"sources": (anew,)})
    around = world(answer=replace(WHOLE, positions=newer), positions=MAPPED)
    decision = reconcile(seen, around)
    assert decision.actions == (WritePositions(newer),)
    seen = after(seen, decision)
    assert questions(seen, around) == {Question.STATE}
    decision = reconcile(seen, replace(around, positions=newer))
    assert said(decision) == DONE
    assert decision.status.last_handled_requested_at == "now"


def test_a_map_that_could_not_be_written_is_written_later() -> None:
    """A namespace that is full delays the end of the copy and changes nothing of it."""
    seen, around = begun(), world(jobs=(SUCCEEDED,), plan=plan_seen(), answer=MAPPED_WHOLE)
    decision = after_failure(seen, around, trouble(QuotaExceeded("configmaps are used up")))
    assert (said(decision), reason(decision)) == (WORKING, "QuotaExceeded")
    assert (decision.actions, decision.again) == ((), 15)
    seen = after(seen, decision)
    assert reconcile(seen, around).actions == (WritePositions(MAPPED),)
    assert said(reconcile(seen, replace(around, positions=MAPPED))) == DONE


# -- failures


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
    """After a wait that its category sets, the copy goes on, with the finalizer where it is."""
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
    assert decision.actions == ()  # what is staged stays: somebody may ask for another run


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
    """The copy stalls, drops what it staged and stays stalled, whatever happens around it."""
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


@pytest.mark.parametrize("error", [OutcomeUnknown("who knows"), SourceKept("it has more")])
def test_what_a_person_has_to_decide_stays_as_it_is(error: SluiceError) -> None:
    """Nothing is tidied up, so that the copy asked to run again goes on and does not begin anew."""
    decision = ended(error)
    assert (said(decision), reason(decision)) == (STALLED, error.reason)
    assert decision.actions == ()
    seen = after(begun(), decision)
    assert reconcile(seen, world(jobs=(job(phase=JobPhase.FAILED),))).actions == ()
    asked = replace(seen, requested_at="now")
    around = world(jobs=(job(phase=JobPhase.FAILED),), answer=Planned(plan=LONGER, recorded=True))
    assert any(isinstance(action, StartJob) for action in reconcile(asked, around).actions)


def test_what_is_final_is_said_again_when_it_was_overwritten() -> None:
    """A status whose conditions somebody has damaged says again what became of the copy."""
    seen = after(begun(), ended(DigestMismatch("other bytes", field="spec.target")))
    damaged = replace(seen, status=seen.status.model_copy(update={"conditions": ()}))
    decision = reconcile(damaged, world())
    assert said(decision) == STALLED
    assert message(decision) == message(ended(DigestMismatch("other bytes", field="spec.target")))


def test_staging_that_could_not_be_dropped_is_dropped_later() -> None:
    """A store that is away when a copy fails for good is asked again; the reason stays."""
    seen = replace(after(begun(), ended(DigestMismatch("other bytes"))), finalizer=True)
    around = world(jobs=(job(phase=JobPhase.FAILED),))
    decision = after_failure(seen, around, trouble(StoreUnavailable("no connection")))
    assert (said(decision), reason(decision)) == (STALLED, "DigestMismatch")
    assert decision.again is not None
    seen = after(seen, decision)
    assert reconcile(seen, around).actions == DROP


def test_what_the_spec_has_wrong_is_looked_at_again_slowly() -> None:
    """A target that is in the way may be taken away; until then the copy is stalled."""
    decision = ended(TargetExists("out/orders exists", field="spec.target.stream"))
    assert (said(decision), decision.again) == (STALLED, 30)
    assert decision.actions == DROP
    seen = after(begun(), decision)
    late = world(now=later(31), jobs=(job(phase=JobPhase.FAILED),), answer=Planned(plan=LONGER))
    assert reconcile(seen, late).actions[-1] == StartJob(2, LONGER)


def test_an_attempt_that_could_not_begin_is_the_same_attempt_later() -> None:
    """What failed before there was a Job uses up neither a number nor the limit of failures."""
    seen = begun(backoffLimit=0)
    decision = after_failure(seen, world(), trouble(StoreUnavailable("no connection")))
    assert (said(decision), decision.status.failures) == (WORKING, 0)
    assert message(decision).endswith("It is tried again in 5 s.")
    seen = after(seen, decision)
    again = reconcile(seen, world(now=later(5), plan=plan_seen(), answer=RECORDED))
    assert again.actions[-1] == StartJob(1, PLAN)


def test_a_speed_is_told_only_of_what_moves() -> None:
    """A copy that has failed stands still, however fast it was."""
    seen = begun()
    running = world(jobs=(job(),), plan=plan_seen(), reading=reading(400))
    seen = after(seen, reconcile(seen, running))
    progress = ended(StoreUnavailable("no connection"), seen).status.progress
    assert progress is not None
    assert progress.bytes == 400
    assert (progress.rate, progress.bytes_per_second, progress.eta_seconds) == (None, None, None)


def test_what_keeps_an_attempt_from_beginning_is_tried_ever_more_slowly() -> None:
    """A quota that is used up is waited for without end, at longer and longer intervals."""
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
    """However often a copy fails, its status does not grow."""
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
