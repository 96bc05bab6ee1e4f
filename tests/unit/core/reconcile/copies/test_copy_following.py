"""A StreamCopy that follows its source: its Jobs, its lag, its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice.api.status.common import ConditionType
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.core.follow.lag import Age
from sluice.core.reconcile.copies.actions import (
    Abandon,
    DeleteJob,
    MakeGroup,
    StartJob,
    WritePlan,
    WritePositions,
    WriteWish,
)
from sluice.core.reconcile.copies.decide import questions, reconcile
from sluice.core.reconcile.copies.world import GroupSeen, Question
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.workloads.answers import Planned
from sluice.errors import AccessDenied, DriverLost, SourceNotFound, SourceTruncated, Unschedulable
from support.reconcile.copies import (
    MAPPED,
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
from support.reconcile.copies import reading as staged
from support.reconcile.followed import (
    ENDED,
    LARGE,
    LIVE,
    PLAN,
    UP,
    around,
    continuous,
    follower,
    following,
    look,
    measured,
)

FOLLOWS = {"Ready": "True", "Verified": "True"}
WORKS = {"Ready": "Unknown", "Reconciling": "True"}


def status(found: object) -> StreamCopyStatus:
    """Return a status of a StreamCopy."""
    assert isinstance(found, StreamCopyStatus)
    return found


def begins_follower(seen: object) -> list[bool]:
    """Tell for each started Job whether it is a follower's."""
    return [one.follower for one in getattr(seen, "actions", ()) if isinstance(one, StartJob)]


# Jobs


def test_a_small_copy_is_a_followers_from_the_beginning() -> None:
    """No driver starts before the follower."""
    decision = reconcile(continuous(), world(answer=Planned(plan=PLAN)))
    assert begins_follower(decision) == [True]
    assert said(decision) == WORKS


def test_a_large_first_leg_is_a_drivers_and_then_a_follower_goes_on_at_once() -> None:
    """The driver's end is no failure, and the history has its reason."""
    seen = continuous()
    decision = reconcile(seen, world(answer=Planned(plan=LARGE)))
    assert begins_follower(decision) == [False]
    seen = after(seen, decision)
    ended = job(1, JobPhase.SUCCEEDED)
    live = replace(LIVE, plan=LARGE)
    decision = reconcile(seen, world(jobs=(ended,), plan=plan_seen(LARGE), answer=live))
    assert begins_follower(decision) == [True]
    (first, second) = status(decision.status).history
    assert (first.outcome, first.reason) == ("Succeeded", "CameLive")
    assert (second.attempt, decision.status.failures) == (2, 0)


def test_a_status_that_is_deleted_while_the_first_driver_ends_is_written_anew() -> None:
    """Its pod has ended and its Job has not, so the status reports a wait."""
    seen = continuous()
    seen = after(seen, reconcile(seen, world(answer=Planned(plan=LARGE))))
    seen = replace(seen, status=StreamCopyStatus())
    ending = replace(job(1, JobPhase.SUCCEEDED), ended=None)
    live = replace(LIVE, plan=LARGE)
    decision = reconcile(seen, world(jobs=(ending,), plan=plan_seen(LARGE), answer=live))
    assert begins_follower(decision) == []
    assert said(decision) == WORKS


def test_a_copy_with_executors_has_a_driver_for_its_first_leg() -> None:
    """A follower makes no pods."""
    seen = continuous(runtime={"executors": 1})
    assert begins_follower(reconcile(seen, world(answer=Planned(plan=PLAN)))) == [False]


def test_a_follower_that_ends_well_before_the_target_is_complete_has_failed() -> None:
    """Otherwise the operator would start it again without end."""
    decision = look(following(), 90, jobs=(follower(phase=JobPhase.SUCCEEDED),), answer=LIVE)
    assert reason(decision) == "DriverLost"


@pytest.mark.parametrize("error", [SourceTruncated("gone"), SourceNotFound("gone")])
def test_a_follower_that_fails_for_good_stalls_and_nothing_is_dropped(error: Exception) -> None:
    """By then the target is a user's stream, and a user decides."""
    failed = follower(phase=JobPhase.FAILED, trouble=trouble(error))  # type: ignore[arg-type]
    decision = look(following(backoffLimit=0), 90, jobs=(failed,), reading=None)
    assert said(decision) == {"Ready": "False", "Stalled": "True"}
    assert not any(isinstance(action, Abandon) for action in decision.actions)


def test_failures_months_apart_are_each_the_first() -> None:
    """An attempt that followed for long counts as no failure."""
    seen = following(backoffLimit=2)
    for number in range(1, 9):
        seconds = number * 86_400.0
        failed = follower(
            number,
            JobPhase.FAILED,
            started=later(seconds - 80_000),
            ended=later(seconds),
            trouble=trouble(DriverLost("killed")),
        )
        seen = after(seen, look(seen, seconds, jobs=(failed,), reading=None))
        assert (seen.status.failures, seen.status.condition("Stalled")) == (1, None)
        seen = after(seen, look(seen, seconds + 10, jobs=(failed,), answer=LIVE, reading=None))


def test_failures_in_a_row_stall_a_copy() -> None:
    """The operator does not start a follower for ever."""
    seen = following(backoffLimit=1)
    for number in (1, 2):
        failed = follower(number, JobPhase.FAILED, trouble=trouble(DriverLost("killed")))
        seen = after(seen, look(seen, 100 * number, jobs=(failed,), reading=None))
        if number == 1:
            seen = after(seen, look(seen, 150, jobs=(failed,), answer=LIVE, reading=None))
    assert seen.status.condition("Stalled") is not None


def test_a_pod_that_is_replaced_leaves_a_copy_ready() -> None:
    """Kubernetes replaces the pod, and the lag shows whether that takes too long."""
    waiting = follower(phase=JobPhase.PENDING, trouble=trouble(Unschedulable("no node")))
    decision = look(following(), 90 * 86_400, jobs=(waiting,))
    assert said(decision) == FOLLOWS
    assert "Its pod starts: no node" in message(decision)


def test_another_pod_is_a_restart() -> None:
    """Each new pod counts once."""
    seen = following()
    for seconds, pod, count in ((70, "follower-b", 1), (80, "follower-b", 1), (90, "c", 2)):
        seen = after(seen, look(seen, seconds, jobs=(replace(follower(), pod=pod),)))
        follow = status(seen.status).follow
        assert follow is not None
        assert (follow.restarts, follow.pod) == (count, pod)


def test_a_follower_of_another_version_is_replaced() -> None:
    """Otherwise it would run for months. The bytes that it followed stay."""
    decision = look(following(), 90, jobs=(follower(outdated=True),))
    assert DeleteJob(follower().name) in decision.actions
    assert status(decision.status).history[-1].outcome == "Replaced"


def test_a_suspended_copy_has_no_follower_and_goes_on_later() -> None:
    """No bytes of the copy are dropped."""
    seen = replace(following(suspend=True), generation=2)
    decision = look(seen, 90)
    assert decision.actions == (DeleteJob(follower().name),)
    seen = after(seen, decision)
    seen = after(seen, look(seen, 95, jobs=(), reading=None))
    assert {one.type for one in seen.status.conditions} == {"Ready", "Suspended"}
    seen = replace(seen, spec=seen.spec.model_copy(update={"suspend": False}), generation=3)
    again = reconcile(seen, world(plan=plan_seen(PLAN), answer=LIVE))
    assert begins_follower(again) == [True]


def test_a_follower_whose_plan_is_lost_is_looked_after() -> None:
    """It does not end by itself, so the operator writes a new plan from the stores' answers."""
    seen = following()
    blind = around(later(90), reading=None)
    blind = replace(blind, plan=None)
    assert questions(seen, blind) == {Question.STATE}
    decision = reconcile(seen, replace(blind, answer=LIVE))
    assert any(isinstance(action, WritePlan) for action in decision.actions)


def test_a_follower_begins_once_the_drivers_job_has_ended() -> None:
    """The pod ends a second before its Job."""
    seen = after(continuous(), reconcile(continuous(), world(answer=Planned(plan=LARGE))))
    ending = replace(job(1, JobPhase.SUCCEEDED), ended=None)
    live = replace(LIVE, plan=LARGE)
    decision = reconcile(seen, world(jobs=(ending,), plan=plan_seen(LARGE), answer=live))
    assert (decision.actions, decision.again is not None) == ((), True)


# Lag


def test_a_copy_is_ready_while_it_keeps_up() -> None:
    """The message has the lag, and the time up to which bytes were proved."""
    decision = look(continuous_begun(), 30, reading=measured(unproved=Age(3.0, certain=True)))
    assert said(decision) == FOLLOWS
    assert message(decision) == "0 B, less than 2 s behind; proved to 3 s ago."
    assert reason(decision) == "Following"
    proved = decision.status.condition(ConditionType.VERIFIED)
    assert proved is not None
    assert proved.reason == "ProvedTo"
    follow = status(decision.status).follow
    assert follow is not None
    assert (follow.lag_bytes, follow.lag_seconds, follow.restarts) == (0, 2, 0)
    progress = decision.status.progress
    assert progress is not None
    assert progress.summary == "lag 0 B"


def continuous_begun() -> object:
    """Return a copy whose follower was just started."""
    seen = continuous()
    return after(seen, reconcile(seen, world(answer=LIVE)))


def test_a_copy_that_is_behind_for_longer_than_its_objective_lags() -> None:
    """It becomes ready again once it has caught up."""
    seen = following(lagObjectiveSeconds=5)
    at_most = measured(lag_bytes=10, lag=Age(5.0, certain=True))
    assert reason(look(seen, 90, reading=at_most)) == "Following"
    late = look(seen, 90, reading=measured(lag_bytes=7_000, lag=Age(6.0, certain=True)))
    assert (reason(late), said(late)["Ready"]) == ("Lagging", "Unknown")
    assert "7.0 kB, 6 s behind" in message(late)
    assert reason(look(after(seen, late), 100)) == "Following"


def test_an_unknown_lag_is_no_readiness_and_takes_none_away() -> None:
    """A new operator has not compared yet."""
    unknown = measured(lag_bytes=10, lag=Age(0.0, certain=False, pending=True))
    assert reason(look(continuous_begun(), 30, reading=unknown)) == "CatchingUp"
    assert reason(look(following(), 90, reading=unknown)) == "Following"


def test_a_status_is_written_only_if_it_says_something_new() -> None:
    """Such a status is written once a minute while bytes arrive, else less often."""
    seen = following()
    writes = 0
    for seconds in range(65, 3_661, 5):
        place = 1000 + seconds
        lag = Age(1.0 if seconds % 10 else 0.0, certain=True, pending=bool(seconds % 10))
        decision = look(seen, seconds, reading=measured(position=place, proved=place, lag=lag))
        writes += decision.status != seen.status
        seen = after(seen, decision)
    assert 50 <= writes <= 61
    idle = following()
    writes = 0
    for seconds in range(61, 3_661, 5):
        decision = look(idle, seconds)
        writes += decision.status != idle.status
        idle = after(idle, decision)
    assert 10 <= writes <= 12


def test_the_next_look_comes_soon_while_a_sample_decides() -> None:
    """Otherwise the stores are asked every ten seconds."""
    seen = following()
    assert look(seen, 90).again == 10
    soon = look(seen, 90, reading=measured(lag=Age(0.0, certain=True, pending=True))).again
    assert soon is not None
    assert soon < 2


# The end


def test_a_wish_is_written_as_soon_as_the_journal_can_take_it() -> None:
    """It is written during the first leg, too, and not again once the journal has it."""
    assert WriteWish() in look(following(cutover="Drain"), 90, wished=False).actions
    assert WriteWish() not in look(following(cutover="Drain"), 90).actions
    first = look(continuous_begun(), 5, reading=staged(400), wished=False)
    assert WriteWish() in first.actions
    assert reason(first) == "CatchingUp"


def test_a_seal_that_the_store_refuses_is_named_and_the_copy_follows_on() -> None:
    """No request is written, so no follower seals the source."""
    refused = trouble(AccessDenied("StreamStore 'local' does not allow to Append"))
    seen = following(cutover="SealAndDrain")
    decision = look(seen, 90, wished=False, seal=refused)
    assert (reason(decision), decision.actions) == ("AccessDenied", ())
    assert "does not allow to Append" in message(decision)
    assert "It follows meanwhile: 0 B" in message(decision)


def test_a_cutover_is_drained_sealed_proved_and_done() -> None:
    """The status reports each state with its time."""
    seen = replace(following(cutover="SealAndDrain"), generation=2)
    draining = look(seen, 90, reading=measured(lag_bytes=9))
    assert (reason(draining), said(draining)["Ready"]) == ("Draining", "Unknown")
    seen = after(seen, draining)
    assert status(seen.status).cutover.state == "Draining"  # type: ignore[union-attr]
    seen = after(seen, look(seen, 92, reading=measured(sealed=True)))
    sealed = status(seen.status).cutover
    assert sealed is not None
    assert (sealed.state, sealed.time) == ("Sealed", later(92))
    proving = look(seen, 94, reading=measured(sealed=True, stopped="CutOver"))
    assert reason(proving) == "Proving"
    seen = after(seen, proving)
    complete = replace(ENDED, positions=MAPPED)
    assert look(seen, 96, answer=complete).actions == (WritePositions(MAPPED),)
    done = look(seen, 96, answer=complete, positions=MAPPED)
    assert reason(done) == "CutOver"
    assert said(done) == {"Ready": "True", "Succeeded": "True", "Verified": "True"}
    cutover = status(done.status).cutover
    assert cutover is not None
    assert (cutover.state, cutover.source_cut, cutover.target_cut) == ("Done", "in-cut", "out-cut")


def test_a_copy_that_ends_by_itself_is_copied() -> None:
    """It was not cut over, but the status has the cut."""
    done = look(following(stopWhen={"idleSeconds": 60}), 96, answer=ENDED)
    assert reason(done) == "Copied"
    assert status(done.status).cutover is not None


def test_reader_groups_are_made_first_and_those_that_are_read_are_waited_for() -> None:
    """The message names the group and the readers that it waits for."""
    seen = following(cutover="Drain", readerGroups=[{"name": "a"}, {"name": "b", "as": "c"}])
    busy = GroupSeen(name="a", target="a", why="readers of in/a are online: r1.")
    ready = GroupSeen(name="b", target="c", ready=True)
    making = look(seen, 96, answer=ENDED, groups=(busy, ready))
    assert making.actions == (MakeGroup("b"),)
    seen = after(seen, making)
    waiting = look(seen, 97, answer=ENDED, groups=(busy, replace(ready, ready=False, made=True)))
    assert (reason(waiting), waiting.actions) == ("WaitingForReaders", ())
    assert "a. readers of in/a are online: r1." in message(waiting)
    cutover = status(waiting.status).cutover
    assert cutover is not None, "writers need not wait"
    assert (cutover.state, cutover.time) == ("Done", later(96))
    groups = status(waiting.status).reader_groups
    assert groups is not None
    assert [(one.name, one.made, one.state) for one in groups] == [
        ("a", "a", "Waiting"),
        ("b", "c", "Made"),
    ]
    made = tuple(replace(one, ready=False, made=True, why="") for one in (busy, ready))
    assert reason(look(seen, 99, answer=ENDED, groups=made)) == "CutOver"


def test_a_cutover_that_is_taken_back_before_it_is_decided_follows_on() -> None:
    """The status does not name it any more."""
    seen = following(cutover="Drain")
    assert status(seen.status).cutover is not None
    spec = seen.spec.model_copy(update={"cutover": "None"})
    decision = look(replace(seen, spec=spec, generation=2), 90)
    assert (reason(decision), status(decision.status).cutover) == ("Following", None)


def test_what_is_measured_of_a_copy_at_rest_is_not_written() -> None:
    """A complete copy stays complete, whatever its stores hold later."""
    seen = following(cutover="Drain")
    seen = after(seen, look(seen, 96, answer=ENDED))
    assert seen.done
    later_on = reconcile(seen, around(later(200), reading=measured(UP)))
    assert later_on.status == seen.status
