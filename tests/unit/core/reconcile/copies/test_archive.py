"""A StreamArchive: its runs and their times."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from sluice.core.archive.recorded import LostBytes
from sluice.core.reconcile.copies.actions import (
    Abandon,
    AddFinalizer,
    DeleteJob,
    DropPlan,
    HoldStores,
    RemoveFinalizer,
    StartJob,
    WriteControls,
    WritePlan,
)
from sluice.core.reconcile.copies.decide import questions
from sluice.core.reconcile.copies.decide_archive import reconcile_archive
from sluice.core.reconcile.copies.scheduled.decide import after_failure
from sluice.core.reconcile.copies.world import Question, World
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.workloads.answers import Planned
from sluice.errors import (
    ArchiveDamaged,
    DriverLost,
    QuotaExceeded,
    StoreUnavailable,
    TooManyEvents,
)
from support.reconcile.archives_seen import (
    EVERY_HOUR,
    PLAN,
    PLANNED,
    after,
    archive,
    begun,
    done,
    ended,
    plan,
    plan_seen,
    recorded,
    seen_at,
    status,
)
from support.reconcile.copies import (
    DONE,
    NOW,
    STALLED,
    UID,
    WORKING,
    job,
    later,
    message,
    reading,
    reason,
    said,
    trouble,
    world,
)

FIRST = f"first:{UID}"
"""The key of the run that is made without a schedule."""

HOUR = NOW.replace(hour=4, minute=0, second=0)
"""When the first run is due by EVERY_HOUR: NOW is four minutes past three."""


def test_without_a_schedule_one_run_is_made() -> None:
    """The run is planned and its driver starts, as for a copy."""
    seen = archive()
    assert seen.run_key == FIRST
    assert questions(seen, world()) == {Question.STATE}
    decision = reconcile_archive(seen, world(answer=PLANNED))
    assert decision.actions == (
        AddFinalizer(),
        HoldStores(),
        WritePlan(PLAN),
        WriteControls(),
        StartJob(1, PLAN),
    )
    assert (said(decision), reason(decision)) == (WORKING, "Starting")
    assert message(decision) == "The driver starts; 1.0 kB to archive."
    found = status(decision)
    assert (found.run_key, found.run, found.source) == (FIRST, 1, "local/in/orders")
    assert (found.start_cut, found.end_cut) == ("0=0", "0=1000")


def test_a_run_that_goes_on_is_told_of() -> None:
    """The message has the progress that the archive shows."""
    around = world(jobs=(job(),), plan=plan_seen(), reading=reading(400))
    decision = reconcile_archive(begun(), around)
    assert reason(decision) == "Archiving"
    assert message(decision) == "400 B of 1.0 kB are written."
    every = replace(around, reading=reading(1000))
    assert reason(reconcile_archive(begun(), every)) == "Verifying"


def test_a_run_that_is_recorded_can_be_restored() -> None:
    """The status lists the runs, and the resource holds nothing any more."""
    decision = reconcile_archive(begun(), ended(answer=recorded(3, runs=2)))
    assert (said(decision), reason(decision)) == (DONE, "Archived")
    assert message(decision) == "Run 3 is recorded: 1.0 kB are new. 2 runs can be restored."
    found = status(decision)
    assert found.archive is not None
    assert [one.run for one in found.archive.last_runs] == [3, 2]
    assert (found.archive.runs, found.archive.bytes, found.archive.sha256) == (2, 3000, "e" * 64)
    assert (found.last_run_time, found.run) == (NOW, 3)
    assert [entry.outcome for entry in found.history] == ["Succeeded"]


def test_what_was_lost_is_said() -> None:
    """This is so with onTruncation: Record."""
    gap = LostBytes(segment=0, begin=10, end=110)
    decision = reconcile_archive(begun(), ended(answer=recorded(gaps=(gap,), lost=100)))
    assert reason(decision) == "ArchivedWithGaps"
    assert "The source had lost 100 B before." in message(decision)
    assert status(decision).gaps is not None


def test_what_nobody_knows_of_is_said() -> None:
    """A segment was gone when the run came back to it."""
    gap = LostBytes(segment=3, begin=10)
    decision = reconcile_archive(begun(), ended(answer=recorded(gaps=(gap,))))
    assert reason(decision) == "ArchivedWithGaps"
    assert message(decision).endswith(
        "Segment 3 was gone: what it had from offset 10 on is unknown."
    )
    assert [one.to for one in status(decision).gaps or ()] == [None]


def test_an_archive_that_is_done_asks_nothing() -> None:
    """It releases its finalizer, so its store may be deleted."""
    assert reconcile_archive(begun(), ended()).actions == (Abandon(), RemoveFinalizer())
    seen = done()
    assert seen.done
    assert questions(seen, world()) == set()
    decision = reconcile_archive(seen, world())
    assert said(decision) == DONE
    assert (decision.actions, decision.again) == ((), None)


@pytest.mark.parametrize("seconds", [0, 90])
def test_a_lost_status_makes_no_run_twice(seconds: float) -> None:
    """The archive knows the key under which a run was recorded."""
    seen = archive(finalizer=True, at=later(seconds))
    decision = reconcile_archive(seen, world(now=later(seconds), answer=recorded()))
    assert said(decision) == DONE
    assert decision.actions == (Abandon(), RemoveFinalizer())


# -- another run


def test_a_wish_makes_another_run() -> None:
    """The request's run has a key and plan of its own. The status keeps earlier runs."""
    seen = replace(done(), requested_at="today")
    assert seen.run_key is not None
    assert seen.run_key.startswith("requested:")
    second = Planned(plan=plan(500, run=2))
    decision = reconcile_archive(seen, world(answer=second, plan=plan_seen()))
    assert DropPlan() in decision.actions
    assert StartJob(2, second.plan) in decision.actions
    found = status(decision)
    assert (found.run_key, found.run) == (seen.run_key, 2)
    assert found.last_handled_requested_at == "today"
    assert found.archive is not None


def test_a_wish_while_a_run_goes_on_is_heard_after_it() -> None:
    """The current run lacks bytes that were written after its bounds were taken."""
    seen = replace(begun(), requested_at="today")
    running = reconcile_archive(seen, world(jobs=(job(),), plan=plan_seen(), reading=reading(1)))
    assert status(running).last_handled_requested_at is None
    over = after(seen, reconcile_archive(after(seen, running), ended()))
    assert not over.done
    assert over.run_key is not None
    assert over.run_key.startswith("requested:")


def test_a_wish_tries_a_failed_run_at_once() -> None:
    """It is the same run, and its staged bytes stay."""
    failed = world(jobs=(job(phase=JobPhase.FAILED, trouble=trouble(DriverLost("lost"))),))
    seen = begun()
    waiting = after(seen, reconcile_archive(seen, replace(failed, plan=plan_seen())))
    assert waiting.status.retry_time is not None
    asked = replace(waiting, requested_at="now")
    assert asked.run_key == FIRST
    decision = reconcile_archive(asked, world(answer=replace(PLANNED, recorded=True)))
    assert StartJob(2, PLAN) in decision.actions


# -- schedules


def test_a_schedule_waits_for_its_first_time() -> None:
    """The operator asks no store before, and the archive is ready."""
    seen = archive(schedule=EVERY_HOUR)
    assert questions(seen, world()) == set()
    decision = reconcile_archive(seen, world())
    assert (said(decision), reason(decision)) == ({"Ready": "True"}, "Scheduled")
    assert message(decision) == "The first run is due at 2026-01-02T04:00:00Z."
    assert decision.again == (HOUR - NOW).total_seconds()
    assert status(decision).next_run_time == HOUR
    assert not decision.actions


def test_a_run_begins_when_it_is_due() -> None:
    """The status remembers the run's time as its key."""
    seen = archive(schedule=EVERY_HOUR, at=HOUR)
    assert seen.run_key == "scheduled:2026-01-02T04:00:00Z"
    decision = reconcile_archive(seen, world(now=HOUR, answer=PLANNED))
    assert StartJob(1, PLAN) in decision.actions
    found = status(decision)
    assert (found.scheduled_time, found.run_key) == (HOUR, seen.run_key)
    assert found.next_run_time == HOUR + timedelta(hours=1)


def test_a_time_is_heeded_once() -> None:
    """Between two times the archive is done."""
    seen = archive(schedule=EVERY_HOUR, at=HOUR)
    seen = after(seen, reconcile_archive(seen, world(now=HOUR, answer=PLANNED)), at=HOUR)
    seen = after(seen, reconcile_archive(seen, ended(now=HOUR)), at=HOUR + timedelta(minutes=1))
    assert seen.done
    decision = reconcile_archive(seen, world(now=HOUR + timedelta(minutes=1)))
    assert decision.again == 59 * 60
    assert said(decision) == DONE
    following = seen_at(seen, HOUR + timedelta(hours=1))
    assert not following.done
    assert following.run_key == "scheduled:2026-01-02T05:00:00Z"


@pytest.mark.parametrize("ended_at", [HOUR, HOUR + timedelta(days=30), None])
def test_a_clock_that_was_ahead_stops_no_schedule(ended_at: datetime | None) -> None:
    """Once the clock is right, the next time counts again and is remembered."""
    seen = archive(schedule=EVERY_HOUR, at=HOUR)
    seen = after(seen, reconcile_archive(seen, world(now=HOUR, answer=PLANNED)), at=HOUR)
    over = after(seen, reconcile_archive(seen, ended(now=HOUR)))
    ahead = {"scheduled_time": HOUR + timedelta(days=30), "last_run_time": ended_at}
    wrong = replace(over, status=over.status.model_copy(update=ahead))
    following = HOUR + timedelta(hours=1)
    seen = seen_at(wrong, following)
    assert seen.run_key == "scheduled:2026-01-02T05:00:00Z"
    decision = reconcile_archive(seen, world(now=following, answer=PLANNED))
    assert status(decision).scheduled_time == following


def test_a_clock_that_was_ahead_makes_no_run_before_its_time() -> None:
    """The end of the last run shows which times were handled."""
    seen = archive(schedule=EVERY_HOUR, at=HOUR)
    seen = after(seen, reconcile_archive(seen, world(now=HOUR, answer=PLANNED)), at=HOUR)
    over = after(seen, reconcile_archive(seen, ended(now=HOUR)))
    ahead = {"scheduled_time": HOUR + timedelta(days=30), "last_run_time": HOUR}
    wrong = replace(over, status=over.status.model_copy(update=ahead))
    assert seen_at(wrong, HOUR + timedelta(minutes=59)).done


def test_runs_do_not_overlap() -> None:
    """The next run waits for the current one, then begins once for all times that were due."""
    late = HOUR + timedelta(hours=3, minutes=5)
    seen = archive(schedule=EVERY_HOUR, at=HOUR)
    seen = after(seen, reconcile_archive(seen, world(now=HOUR, answer=PLANNED)), at=late)
    assert seen.run_key == "scheduled:2026-01-02T04:00:00Z"
    around = world(now=late, jobs=(job(),), plan=plan_seen(), reading=reading(10))
    assert reason(reconcile_archive(seen, around)) == "Archiving"
    seen = after(seen, reconcile_archive(seen, ended(now=late)), at=late)
    assert seen.run_key == "scheduled:2026-01-02T07:00:00Z"


def test_a_run_that_failed_for_good_is_followed_by_the_next() -> None:
    """The next run begins anew, with all its attempts."""
    seen = begun(schedule=None, backoffLimit=0)
    lost = job(phase=JobPhase.FAILED, trouble=trouble(DriverLost("lost")))
    decision = reconcile_archive(seen, world(jobs=(lost,), plan=plan_seen()))
    assert said(decision) == STALLED
    failed = after(seen, decision)
    assert failed.gave_up
    scheduled = replace(failed, spec=archive(schedule=EVERY_HOUR).spec)
    scheduled = seen_at(scheduled, HOUR)
    assert scheduled.run_key == "scheduled:2026-01-02T04:00:00Z"
    again = reconcile_archive(scheduled, world(now=HOUR, answer=PLANNED))
    assert StartJob(2, PLAN) in again.actions
    assert status(again).failures == 0


@pytest.mark.parametrize(
    "last",
    [
        world(jobs=(job(phase=JobPhase.FAILED),), plan=plan_seen()),
        world(plan=plan_seen()),
    ],
)
def test_a_run_that_took_too_long_is_followed_by_the_next(last: World) -> None:
    """This holds if its driver failed at the same time, and if its Job is gone."""
    late = NOW + timedelta(seconds=61)
    seen = begun(activeDeadlineSeconds=60)
    seen = after(seen, reconcile_archive(seen, replace(last, now=late)))
    assert seen.gave_up
    assert replace(seen, requested_at="today").asked
    scheduled = replace(seen, spec=archive(schedule=EVERY_HOUR, activeDeadlineSeconds=60).spec)
    assert seen_at(scheduled, HOUR).run_key == "scheduled:2026-01-02T04:00:00Z"


def test_a_run_whose_job_was_refused_is_followed_by_the_next() -> None:
    """The attempt failed for good before its Job could be made, after it was announced."""
    seen = begun()
    refused = after_failure(seen, world(answer=PLANNED), trouble(QuotaExceeded("exceeded quota")))
    seen = after(seen, refused)
    around = world(now=later(60), trouble=trouble(ArchiveDamaged("the head is damaged")))
    failed = after(seen, reconcile_archive(seen, around))
    assert failed.gave_up
    asked = replace(failed, requested_at="today")
    assert asked.run_key != FIRST
    decision = reconcile_archive(asked, world(answer=PLANNED))
    assert StartJob(1, PLAN) in decision.actions


def test_a_run_that_is_recorded_is_followed_by_the_next_though_its_job_is_gone() -> None:
    """The end of the attempt is unknown, but the archive shows that it succeeded."""
    seen = begun()
    seen = after(seen, reconcile_archive(seen, world(plan=plan_seen(), answer=recorded())))
    assert seen.succeeded
    assert replace(seen, requested_at="today").asked


def test_what_only_a_person_can_mend_stalls_the_archive() -> None:
    """The condition names the cause, and the operator checks it again from time to time."""
    error = TooManyEvents("in/orders has 2000000 events", field="spec.maxEvents")
    decision = reconcile_archive(archive(), world(trouble=trouble(error)))
    assert (said(decision), reason(decision)) == (STALLED, "TooManyEvents")
    assert decision.again is not None


def test_a_suspended_schedule_begins_nothing() -> None:
    """The status reports that, beside the result of the last run."""
    seen = archive(schedule=EVERY_HOUR, suspend=True, at=HOUR)
    assert (seen.due, seen.run_key) == (None, None)
    decision = reconcile_archive(seen, world(now=HOUR))
    assert said(decision) == {"Ready": "True", "Suspended": "True"}
    assert message(decision) == "There was no run yet."
    assert (decision.again, status(decision).next_run_time) == (None, None)
    again = reconcile_archive(after(seen, decision), world(now=HOUR))
    assert said(again) == said(decision)
    resumed = replace(after(seen, decision), spec=archive(schedule=EVERY_HOUR).spec)
    assert said(reconcile_archive(seen_at(resumed, NOW), world())) == {"Ready": "True"}


def test_a_run_that_is_suspended_stops() -> None:
    """Its written bytes stay, and the run continues from there."""
    seen = begun(suspend=True)
    decision = reconcile_archive(seen, world(jobs=(job(),), plan=plan_seen()))
    assert DeleteJob(job().name) in decision.actions
    assert message(decision) == "The driver is being stopped; what is written stays."


def test_a_look_comes_no_later_than_the_next_run() -> None:
    """This holds for any retry time of a failure."""
    at = HOUR - timedelta(seconds=3)
    seen = begun(schedule=EVERY_HOUR, at=HOUR)
    lost = job(phase=JobPhase.FAILED, trouble=trouble(StoreUnavailable("away")))
    decision = reconcile_archive(seen_at(seen, at), world(now=at, jobs=(lost,), plan=plan_seen()))
    assert decision.again is not None
    assert decision.again <= 3
