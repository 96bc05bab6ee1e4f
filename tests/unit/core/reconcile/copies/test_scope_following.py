"""A ScopeCopy that follows its streams: its Jobs, its lag, streams that join or fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sluice.api.status.common import ConditionType
from sluice.core.follow.catching_up import FAR
from sluice.core.follow.lag import Age, FollowedStreams, StreamLag
from sluice.core.reconcile.copies.actions import (
    Abandon,
    DeleteJob,
    TellStreams,
    WritePlan,
    WriteResults,
)
from sluice.core.reconcile.copies.decide import questions, reconcile
from sluice.core.reconcile.copies.statuses.results import results_hash
from sluice.core.reconcile.copies.world import Question
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.workloads.answers import Following, Planned
from sluice.errors import (
    DigestMismatch,
    DriverLost,
    Unschedulable,
)
from support.reconcile.copies import (
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
from support.reconcile.followed_scopes import (
    CUT,
    LARGE,
    LIVE,
    LOST,
    PLAN,
    STREAMS,
    around,
    begins_follower,
    begun,
    continuous,
    follow,
    follower,
    following,
    is_followed,
    look,
    measured,
)
from support.reconcile.scope_copies import failed, of_scope, published

FOLLOWS = {"Ready": "True", "Verified": "True"}
WORKS = {"Ready": "Unknown", "Reconciling": "True"}


# Jobs


def test_a_scope_of_little_is_a_followers_from_the_beginning() -> None:
    """No driver starts before the follower."""
    decision = reconcile(continuous(), world(answer=Planned(plan=PLAN)))
    assert begins_follower(decision) == [True]
    assert said(decision) == WORKS


def test_a_large_first_leg_is_a_drivers_and_then_one_follower_goes_on() -> None:
    """The driver's end is no failure once the log says that the streams are followed."""
    seen = continuous()
    decision = reconcile(seen, world(answer=Planned(plan=LARGE)))
    assert begins_follower(decision) == [False]
    seen = after(seen, decision)
    around_it: dict[str, Any] = {"jobs": (job(1, JobPhase.SUCCEEDED),), "plan": plan_seen(LARGE)}
    live = Following(plan=LARGE, recorded=True)
    decision = reconcile(seen, world(answer=live, **around_it))
    assert begins_follower(decision) == [True]
    (first, second) = of_scope(decision.status).history
    assert (first.outcome, first.reason) == ("Succeeded", "CameLive")
    assert (second.attempt, decision.status.failures) == (2, 0)
    unfinished = Planned(plan=LARGE, recorded=True)
    assert reason(reconcile(seen, world(answer=unfinished, **around_it))) == "DriverLost"


def test_a_scope_with_executors_has_a_driver_for_its_first_leg() -> None:
    """A follower makes no pods."""
    seen = continuous(runtime={"executors": 1})
    assert begins_follower(reconcile(seen, world(answer=Planned(plan=PLAN)))) == [False]


def test_a_follower_that_ends_well_before_its_streams_have_failed() -> None:
    """Otherwise the operator would start it again without end."""
    ended = follower(phase=JobPhase.SUCCEEDED)
    decision = look(following(), 90, jobs=(ended,), answer=LIVE)
    assert reason(decision) == "DriverLost"


def test_nothing_of_a_scope_is_dropped_when_its_follower_fails_for_good() -> None:
    """By then the targets are users' streams, and a user decides."""
    damaged = follower(phase=JobPhase.FAILED, trouble=trouble(DigestMismatch("differs")))
    decision = look(following(backoffLimit=0), 90, jobs=(damaged,), reading=None)
    assert said(decision) == {"Ready": "False", "Stalled": "True"}
    assert not any(isinstance(action, Abandon) for action in decision.actions)


def test_a_pod_that_is_replaced_leaves_a_scope_ready() -> None:
    """The pod counts as a restart once it runs."""
    waiting = follower(phase=JobPhase.PENDING, trouble=trouble(Unschedulable("no node")))
    seen = following()
    decision = look(seen, 70, jobs=(replace(waiting, pod=None),))
    assert said(decision) == FOLLOWS
    assert "Its pod starts: no node" in message(decision)
    seen = after(seen, decision)
    seen = after(seen, look(seen, 80, jobs=(replace(follower(), pod="follower-b"),)))
    assert (follow(seen.status).restarts, follow(seen.status).pod) == (1, "follower-b")


def test_a_follower_of_another_version_is_replaced() -> None:
    """Otherwise it would run for months. The bytes that it followed stay."""
    decision = look(following(), 90, jobs=(follower(outdated=True),))
    assert DeleteJob(follower().name) in decision.actions
    assert of_scope(decision.status).history[-1].outcome == "Replaced"


def test_a_suspended_scope_has_no_follower_and_goes_on_later() -> None:
    """The message says what stays. A resumed scope gets a follower, not a driver."""
    seen = following()
    asleep = seen.spec.model_copy(update={"suspend": True})
    seen = replace(seen, spec=asleep, generation=2)
    decision = look(seen, 90)
    assert decision.actions == (DeleteJob(follower().name),)
    seen = after(seen, decision)
    seen = after(seen, look(seen, 95, jobs=(), reading=None))
    assert {one.type for one in seen.status.conditions} == {"Ready", "Suspended"}
    ready = seen.status.condition(ConditionType.READY)
    assert ready is not None
    assert "The targets have 5.0 kB and stay as they are." in ready.message
    seen = replace(seen, spec=seen.spec.model_copy(update={"suspend": False}), generation=3)
    again = reconcile(seen, world(plan=plan_seen(PLAN), answer=LIVE))
    assert begins_follower(again) == [True]


def test_a_follower_whose_plan_is_lost_is_looked_after() -> None:
    """It does not end by itself, so the operator writes a new plan from the log."""
    seen = following()
    blind = replace(around(later(90), reading=None), plan=None)
    assert questions(seen, blind) == {Question.STATE}
    decision = reconcile(seen, replace(blind, answer=LIVE))
    assert any(isinstance(action, WritePlan) for action in decision.actions)


# Lag


def test_a_scope_is_ready_while_all_its_streams_keep_up() -> None:
    """The message has the number of streams, their lag, and the time of the last proof."""
    decision = look(begun(), 30, reading=measured(unproved=Age(3.0, certain=True)))
    assert said(decision) == FOLLOWS
    assert message(decision) == (
        "3 streams are followed; 0 B, less than 2 s behind; proved to 3 s ago."
    )
    assert reason(decision) == "Following"
    told = follow(decision.status)
    assert (told.streams, told.coming, told.joined, told.failed, told.gone) == (3, 0, 0, 0, 0)
    assert (told.lag_bytes, told.lag_seconds, told.bytes, told.worst) == (0, 2, 5000, ())
    counts = of_scope(decision.status).streams
    assert counts is not None
    assert (counts.total, counts.copied, counts.summary) == (3, 0, "3/3")
    progress = decision.status.progress
    assert progress is not None
    assert progress.summary == "lag 0 B"


def test_a_first_leg_catches_up_and_says_how_many_streams_are_there() -> None:
    """The driver copies large streams, and some are followed by then."""
    seen = continuous()
    seen = after(seen, reconcile(seen, world(answer=Planned(plan=LARGE))))
    streams = FollowedStreams(followed=1, coming=2)
    reading = measured(streams, live=False, lag_bytes=7_000)
    decision = reconcile(
        seen, world(now=later(30), plan=plan_seen(LARGE), jobs=(job(1),), reading=reading)
    )
    assert (reason(decision), said(decision)) == ("CatchingUp", WORKS)
    assert "1 stream is followed, 2 are copied first" in message(decision)
    counts = of_scope(decision.status).streams
    assert counts is not None
    assert counts.summary == "1/3"
    assert of_scope(decision.status).follow is None


def test_a_scope_is_not_ready_before_all_planned_streams_are_there() -> None:
    """Later, a stream that joins delays readiness only if it takes longer than the objective."""
    coming = FollowedStreams(followed=2, coming=1)
    first = look(begun(), 30, reading=measured(coming, live=False))
    assert (reason(first), said(first)["Ready"]) == ("CatchingUp", "Unknown")
    seen = following()
    joins = FollowedStreams(followed=3, coming=1, joined=1)
    behind = measured(joins, lag_bytes=700, lag=Age(9.0, certain=True))
    decision = look(seen, 90, reading=behind)
    assert (reason(decision), said(decision)["Ready"]) == ("Following", "True")
    assert "3 streams are followed, 1 is copied first; 700 B, 9 s behind" in message(decision)
    assert follow(decision.status).joined == 1
    late = measured(joins, lag_bytes=700, lag=Age(40.0, certain=True))
    assert reason(look(after(seen, decision), 120, reading=late)) == "Lagging"


def test_a_scope_that_lags_names_the_streams_that_are_behind_most() -> None:
    """One stream behind its objective is enough. The status has ten, the message five."""
    worst = tuple(StreamLag(f"s{at}", 1000 * (9 - at), 90.0 - at) for at in range(8))
    behind = STREAMS._replace(worst=worst)
    reading = measured(behind, lag_bytes=9_000, lag=Age(90.0, certain=True))
    seen = following()
    decision = look(seen, 90, reading=reading)
    assert (reason(decision), said(decision)["Ready"]) == ("Lagging", "Unknown")
    assert "Behind most: s0 (9.0 kB, 1m30s), s1 (8.0 kB, 1m29s)" in message(decision)
    assert "s5" not in message(decision)
    named = follow(decision.status).worst
    assert [(one.stream, one.lag_bytes, one.lag_seconds) for one in named][:2] == [
        ("s0", 9000, 90),
        ("s1", 8000, 89),
    ]
    assert reason(look(after(seen, decision), 100)) == "Following"


def test_a_stream_that_fails_is_named_and_takes_no_readiness_from_the_others() -> None:
    """The status has its reason. A stream that is gone from the source counts apart."""
    seen = following()
    streams = FollowedStreams(followed=1, failed=2, failures=(failed("b", LOST), failed("c", CUT)))
    decision = look(seen, 70, reading=measured(streams))
    assert decision.status != seen.status, "it is written at once"
    assert said(decision) == FOLLOWS
    assert "1 stream is followed" in message(decision)
    assert "Followed no more: b (SourceNotFound), c (SourceTruncated)." in message(decision)
    told = follow(decision.status)
    assert (told.streams, told.failed, told.gone) == (1, 1, 1)
    named = of_scope(decision.status).failed_streams
    assert [(one.stream, one.reason) for one in named] == [
        ("b", "SourceNotFound"),
        ("c", "SourceTruncated"),
    ]
    counts = of_scope(decision.status).streams
    assert counts is not None
    assert (counts.failed, counts.summary) == (2, "1/3")
    (told,) = decision.actions
    assert isinstance(told, TellStreams)
    assert told.saying == (
        "StreamFailed",
        "Followed no more: b (SourceNotFound), c (SourceTruncated).",
    )
    assert look(after(seen, decision), 80, reading=measured(streams)).actions == ()


def test_of_many_streams_that_fail_the_message_names_some() -> None:
    """The message counts the others."""
    failures = tuple(failed(f"s{at:02}", CUT) for at in range(50))
    streams = FollowedStreams(followed=1, failed=70, failures=failures)
    decision = look(following(), 70, reading=measured(streams))
    assert "s04 (SourceTruncated) and 65 more." in message(decision)
    assert len(of_scope(decision.status).failed_streams) == 50


def test_streams_that_join_or_fail_are_published_once() -> None:
    """The list of all streams is right during the following, and is seldom written."""
    before = tuple(is_followed(name) for name in "abc")
    with_d = (*before, is_followed("d"))
    seen = following()
    same = measured(results=before)
    assert look(seen, 90, reading=same, results=results_hash(before)).actions == ()
    joined = measured(FollowedStreams(followed=4, joined=1), results=with_d)
    decision = look(seen, 90, reading=joined, results=results_hash(before))
    assert decision.actions == (WriteResults(with_d),)
    seen = after(seen, decision)
    assert look(seen, 100, reading=joined, results=results_hash(with_d)).actions == ()
    assert of_scope(seen.status).result_refs
    lost = follower(phase=JobPhase.FAILED, trouble=trouble(DriverLost("killed")))
    seen = after(seen, look(seen, 110, jobs=(lost,), reading=None))
    told: dict[str, Any] = {"jobs": (lost,), "reading": None, "answer": LIVE}
    again = look(seen, 600, results=results_hash(with_d), **told)
    assert begins_follower(again) == [True]
    assert published(again) is None, "the next attempt knows no better"


def test_a_status_is_written_only_if_it_says_something_new() -> None:
    """Such a status is written once a minute while bytes arrive, else less often."""
    seen = following()
    writes = 0
    for seconds in range(61, 3_661, 10):
        worst = (StreamLag("a", seconds, 1.0),)
        reading = measured(STREAMS._replace(worst=worst), position=5000 + seconds)
        decision = look(seen, seconds, reading=reading)
        writes += decision.status != seen.status
        seen = after(seen, decision)
    assert 40 <= writes <= 61
    idle = following()
    writes = 0
    for seconds in range(61, 3_661, 10):
        decision = look(idle, seconds)
        writes += decision.status != idle.status
        idle = after(idle, decision)
    assert 10 <= writes <= 12


def test_looks_at_a_scope_come_every_ten_seconds_and_sooner_while_it_ends() -> None:
    """If the stores answer slowly, most of the time is left for their other work."""
    assert look(following(), 90).again == 10
    soon = look(replace(following(cutover="Drain"), generation=2), 90).again
    assert soon is not None
    assert soon < 2
    assert look(following(), 90, reading=measured(took=8.0)).again == 40


# Catching up


def test_a_scope_that_stays_far_behind_as_a_whole_gets_a_driver() -> None:
    """The driver copies the streams that are most behind, and no stream is followed meanwhile."""
    whole = (
        StreamLag("a", FAR + 1, 61.0),
        StreamLag("b", FAR + 1, 90.0),
        StreamLag("c", FAR + 1, 60.0),
    )
    assert is_replaced(*whole)
    for other in (
        StreamLag("c", FAR, 90.0),
        StreamLag("c", FAR + 1, 59.0),
        StreamLag("joined", FAR + 1, 90.0),
    ):
        assert not is_replaced(*whole[:2], other)
    assert not is_replaced(*whole[:2])


def is_replaced(*worst: StreamLag) -> bool:
    """Tell whether a follower is replaced whose streams are so far behind."""
    lag = {"lag_bytes": 9 * FAR, "lag": Age(90.0, certain=True)}
    reading = measured(STREAMS._replace(worst=worst), **lag)
    decision = look(following(), 120, reading=reading)
    history = of_scope(decision.status).history
    deleted = DeleteJob(follower().name) in decision.actions
    assert [one.reason for one in history if one.outcome] == ["FarBehind"] * deleted
    return deleted
