"""The end of a ScopeCopy that follows its streams."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice.core.follow.lag import FollowedStreams
from sluice.core.reconcile.copies.actions import (
    RemoveFinalizer,
    WriteResults,
    WriteWish,
)
from sluice.core.reconcile.copies.statuses.results import results_hash
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.wish import Wish
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.errors import AccessDenied
from support.reconcile.copies import after, job, later, message, reason, said, trouble
from support.reconcile.followed_scopes import (
    CUT,
    ENDED,
    LOST,
    PLAN,
    STREAMS,
    begins_follower,
    begun,
    follow,
    following,
    look,
    measured,
)
from support.reconcile.scope_copies import copied, failed, of_scope
from support.reconcile.scope_copies import reading as staged


def test_a_wish_is_written_as_soon_as_the_log_can_take_it() -> None:
    """It is written during the first leg, too, and not again once the log has it."""
    assert WriteWish() in look(following(cutover="Drain"), 90, wished=False).actions
    assert WriteWish() not in look(following(cutover="Drain"), 90).actions
    first = look(begun(), 5, reading=staged(400), wished=False)
    assert WriteWish() in first.actions


def test_a_seal_that_the_store_refuses_is_named_and_the_scope_is_followed_on() -> None:
    """No request is written, so no follower seals a source."""
    refused = trouble(AccessDenied("StreamStore 'local' does not allow to Append"))
    decision = look(following(cutover="SealAndDrain"), 90, wished=False, seal=refused)
    assert (reason(decision), decision.actions) == ("AccessDenied", ())
    assert "It follows meanwhile: 3 streams are followed" in message(decision)


def test_a_cutover_is_drained_sealed_proved_and_done() -> None:
    """Once a source is sealed, the cutover cannot be taken back. Each state has its time."""
    seen = replace(following(cutover="SealAndDrain"), generation=2)
    draining = look(seen, 90, reading=measured(lag_bytes=9))
    assert (reason(draining), said(draining)["Ready"]) == ("Draining", "Unknown")
    seen = after(seen, draining)
    assert of_scope(seen.status).cutover.state == "Draining"  # type: ignore[union-attr]
    seen = after(seen, look(seen, 92, reading=measured(STREAMS._replace(sealed=1))))
    sealed = of_scope(seen.status).cutover
    assert sealed is not None
    assert (sealed.state, sealed.time) == ("Sealed", later(92))
    ends = FollowedStreams(followed=1, ended=2, sealed=3)
    assert reason(look(seen, 94, reading=measured(ends, sealed=True, lag_bytes=9))) == "Draining"
    proving = look(seen, 94, reading=measured(ends, sealed=True))
    assert reason(proving) == "Proving"
    seen = after(seen, proving)
    assert look(seen, 96, answer=ENDED).actions == (WriteResults(ENDED.results),)
    done = look(seen, 96, answer=ENDED, results=results_hash(ENDED.results))
    assert reason(done) == "CutOver"
    assert said(done) == {"Ready": "True", "Succeeded": "True", "Verified": "True"}
    cutover = of_scope(done.status).cutover
    assert cutover is not None
    assert cutover.state == "Done"
    assert "3 streams are copied to scope out" in message(done)
    assert (
        RemoveFinalizer() in look(after(seen, done), 98, jobs=(job(1, JobPhase.SUCCEEDED),)).actions
    )
    told = follow(done.status)
    assert (told.lag, told.lag_bytes, told.streams, told.worst) == ("", 0, 0, ())


def test_a_scope_that_ends_by_itself_has_succeeded() -> None:
    """The scope was not cut over."""
    seen = following(stopWhen={"idleSeconds": 60})
    done = look(seen, 96, answer=ENDED, results=results_hash(ENDED.results))
    assert (reason(done), of_scope(done.status).cutover) == ("Succeeded", None)


def test_a_scope_that_ends_without_some_streams_says_so() -> None:
    """The scope is not called cut over, and its log stays for another try of these streams."""
    results = (copied("a", 3000), failed("b", LOST), failed("c", CUT))
    ended = ScopeEnded(plan=PLAN, results=results)
    seen = replace(following(cutover="Drain"), generation=2)
    done = look(seen, 96, answer=ended, results=results_hash(results))
    assert said(done) == {"Ready": "False", "Stalled": "True"}
    assert reason(done) == "PartiallySucceeded"
    assert "b (SourceNotFound), c (SourceTruncated)" in message(done)
    assert RemoveFinalizer() not in done.actions
    cutover = of_scope(done.status).cutover
    assert cutover is not None
    assert cutover.state == "Draining"


def test_a_cutover_that_is_taken_back_before_it_is_decided_follows_on() -> None:
    """The status does not name it any more."""
    seen = following(cutover="Drain")
    assert of_scope(seen.status).cutover is not None
    spec = seen.spec.model_copy(update={"cutover": "None"})
    decision = look(replace(seen, spec=spec, generation=2), 90)
    assert (reason(decision), of_scope(decision.status).cutover) == ("Following", None)


def test_another_run_follows_what_failed() -> None:
    """Its numbers come from the stores, not from the last run."""
    results = (copied("a", 3000), failed("b", LOST), copied("c"))
    ended = ScopeEnded(plan=PLAN, results=results)
    seen = following()
    seen = after(seen, look(seen, 96, answer=ended, results=results_hash(results)))
    asked = replace(seen, requested_at="again")
    second = Planned(plan=PLAN.model_copy(update={"streams": PLAN.streams[1:2]}))
    decision = look(asked, 200, jobs=(), answer=second, reading=None)
    assert begins_follower(decision) == [True]
    assert of_scope(decision.status).follow is None


@pytest.mark.parametrize("wish", [Wish(), Wish(cutover="Drain")])
def test_what_is_measured_of_a_scope_at_rest_is_not_written(wish: Wish) -> None:
    """A complete copy stays complete, whatever its stores hold later."""
    seen = following(cutover=wish.cutover)
    seen = after(seen, look(seen, 96, answer=ENDED, results=results_hash(ENDED.results)))
    assert seen.done
    assert look(seen, 200).status == seen.status
