from dataclasses import replace
from datetime import timedelta

import pytest

from sluice.core.reconcile.copies.actions import WritePositions
from sluice.core.reconcile.copies.decide import after_failure, questions, reconcile
from sluice.core.reconcile.copies.world import Question
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.workloads.answers import Complete
from sluice.errors import (
    AuthenticationFailed,
    QuotaExceeded,
    SluiceError,
    StoreUnavailable,
    TargetReplaced,
)
from support.reconcile.copies import (
    DONE,
    DROP,
    MAPPED,
    NOW,
    PLANNED,
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
    reason,
    said,
    trouble,
    world,
)

SUCCEEDED = job(phase=JobPhase.SUCCEEDED)


# -- success


def test_a_copy_is_done_when_the_store_says_so() -> None:
    """The driver's result is checked against the target, and its leftovers are deleted."""
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


def test_a_copy_that_is_done_says_what_became_of_target_and_source() -> None:
    """The message tells a new target from an append, and says that a moved source was deleted."""

    def told(whole: Complete = WHOLE, **spec: str) -> str:
        return message(reconcile(begun(**spec), world(jobs=(SUCCEEDED,), answer=whole)))

    appended = replace(WHOLE, appended=True, events=500)
    assert told() == "out/orders is whole: 1 event, 1.0 kB."
    assert told(replace(WHOLE, events=0, bytes=0)) == (
        "out/orders is whole: 0 events, 0 B. The source, or the part of it that was copied, held no"
        " events."
    )
    assert told(appended) == "500 events, 1.0 kB were appended to out/orders."
    assert told(replace(appended, held=3000)) == (
        "500 events, 1.0 kB were appended to out/orders, which then held 3.0 kB."
    )
    assert told(sourceOnComplete="Delete") == (
        "out/orders is whole: 1 event, 1.0 kB. The source in/orders was deleted."
    )


def test_a_table_has_both_sides_and_how_much_was_copied_in_which_time() -> None:
    """Each side has its store, scope and stream.

    With several sources, the first one and a count.
    """
    seen = begun()
    begin = seen.status.start_time
    assert begin is not None
    ended = job(phase=JobPhase.SUCCEEDED, ended=begin + timedelta(seconds=83))
    status = reconcile(seen, world(jobs=(ended,), plan=plan_seen(), answer=WHOLE)).status
    assert (status.source, status.target) == ("local/in/orders", "local/out/orders")
    assert status.duration == "1m23s"
    assert status.progress is not None
    assert (status.progress.size, status.progress.events) == ("1.0 kB", 1)
    several = [{"storeRef": {"name": "a"}, "scope": "in", "stream": name} for name in "xyz"]
    merging = copy(source=None, sources=several)
    store = replace(STORE, name="a")
    status = reconcile(merging, world(sources=(store,) * 3, answer=PLANNED)).status
    assert status.source == "a/in/x and 2 more"
    assert status.duration is None


def test_a_copy_that_needed_no_attempt_took_no_time() -> None:
    """A table shows nothing, not zero seconds."""
    assert reconcile(copy(), world(answer=WHOLE)).status.duration is None


def test_a_success_that_the_target_does_not_show_is_a_failure() -> None:
    """A driver that reports success without a whole target is tried again."""
    decision = reconcile(begun(), world(jobs=(SUCCEEDED,), plan=plan_seen(), answer=RECORDED))
    assert (said(decision), reason(decision)) == (WORKING, "DriverLost")
    assert [entry.outcome for entry in decision.status.history] == ["Failed"]
    assert decision.again is not None


def test_a_success_is_believed_when_the_store_is_back() -> None:
    """Nothing is decided while the store is unreachable. Afterwards the copy is done."""
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
    """A wrong target is not waited for, and the attempt counts as succeeded."""
    seen = begun()
    decision = reconcile(seen, world(jobs=(SUCCEEDED,), plan=plan_seen(), trouble=trouble(error)))
    assert (said(decision), reason(decision)) == (STALLED, error.reason)
    assert [entry.outcome for entry in decision.status.history] == ["Succeeded"]
    assert (decision.again is not None) == recheck


def test_a_copy_that_somebody_else_completed_is_done() -> None:
    """A whole target needs no driver, and its plan may be unknown."""
    whole = Complete(digest="e" * 64)
    decision = reconcile(copy(), world(answer=whole))
    assert said(decision) == DONE
    assert decision.actions == ()
    assert decision.status.history == ()
    assert decision.status.completion_time == NOW


def test_a_copy_that_nobody_compared_is_not_said_to_be_verified() -> None:
    """Its target is whole, but was not compared."""
    decision = reconcile(copy(), world(answer=replace(WHOLE, digest="unverified")))
    assert said(decision) == {"Ready": "True", "Succeeded": "True"}
    assert decision.status.verification is not None
    assert decision.status.verification.digest == "unverified"


def test_a_copy_that_is_done_is_left_alone() -> None:
    """No change of stores, Jobs or the spec causes a question or an action."""
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
    """A done copy with a finalizer has leftovers in a store."""
    seen = begun()
    seen = after(seen, reconcile(seen, world(jobs=(SUCCEEDED,), answer=WHOLE)))
    seen = replace(seen, finalizer=True)
    assert reconcile(seen, world()).actions == DROP


def test_tidying_that_fails_takes_nothing_back() -> None:
    """A store that fails after the success does not change it."""
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
    """A client that waits for Ready can translate positions at once, even after a crash."""
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
    """The target's retention deletes segments, but their known positions stay."""
    (source,) = MAPPED.sources
    left = source.model_copy(update={"segments": source.segments[1:]})
    answer = replace(WHOLE, positions=MAPPED.model_copy(update={"sources": (left,)}))
    decision = reconcile(copy(), world(answer=answer, positions=MAPPED))
    assert (said(decision), decision.actions) == (DONE, ())
    decision = reconcile(copy(), world(answer=WHOLE, positions=MAPPED))
    assert decision.status.position_map_ref is not None


def test_a_target_that_was_made_anew_has_another_map() -> None:
    """A rerun copy is done once the map is that of the new target, not before."""
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
    """A namespace without room delays the end of the copy and changes nothing else."""
    seen, around = begun(), world(jobs=(SUCCEEDED,), plan=plan_seen(), answer=MAPPED_WHOLE)
    decision = after_failure(seen, around, trouble(QuotaExceeded("configmaps are used up")))
    assert (said(decision), reason(decision)) == (WORKING, "QuotaExceeded")
    assert (decision.actions, decision.again) == ((), 15)
    seen = after(seen, decision)
    assert reconcile(seen, around).actions == (WritePositions(MAPPED),)
    assert said(reconcile(seen, replace(around, positions=MAPPED))) == DONE
