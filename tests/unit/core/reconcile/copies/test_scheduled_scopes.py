"""A ScopeCopy with a schedule: its runs, their times, and its status."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.core.reconcile.copies.actions import (
    Abandon,
    AddFinalizer,
    DeleteJob,
    DropPlan,
    HoldStores,
    RecordScopeRun,
    RemoveFinalizer,
    StartJob,
    WriteControls,
    WritePlan,
    WriteResults,
)
from sluice.core.reconcile.copies.decide import questions
from sluice.core.reconcile.copies.scheduled.decide import after_failure, reconcile_scheduled
from sluice.core.reconcile.copies.world import Question
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.workloads.answers import ScopeEnded
from sluice.errors import DriverLost, SourceNotFound, StoreUnavailable
from support.reconcile.copies import (
    DONE,
    NOW,
    STALLED,
    STORE,
    WORKING,
    job,
    later,
    message,
    plan_seen,
    reason,
    said,
    trouble,
    world,
)
from support.reconcile.scheduled_scopes import (
    HOUR,
    PARTLY,
    RECORDED,
    after,
    begun,
    ended,
    over,
    scheduled,
    seen_at,
)
from support.reconcile.scope_archives import ARCHIVING, archive_plan, run_plan
from support.reconcile.scope_copies import status

NEXT = HOUR + timedelta(hours=1)
FIRST = "scheduled:2026-01-02T04:00:00Z"
SECOND = "scheduled:2026-01-02T05:00:00Z"
DROP = (Abandon(), RemoveFinalizer())


def test_nothing_is_done_before_the_first_run_is_due() -> None:
    """No store is asked. The status has the due time, and a look comes then."""
    seen = scheduled()
    assert seen.run_key is None
    assert questions(seen, world()) == set()
    decision = reconcile_scheduled(seen, world())
    assert (said(decision), reason(decision)) == ({"Ready": "True"}, "Scheduled")
    assert message(decision) == "The first run is due at 2026-01-02T04:00:00Z."
    assert (decision.actions, decision.again) == ((), (HOUR - NOW).total_seconds())
    assert status(decision).next_run_time == HOUR


def test_a_run_begins_when_it_is_due() -> None:
    """Its key is its time. It is planned and attempted as any copy of a scope."""
    seen = scheduled(at=HOUR)
    assert seen.run_key == FIRST
    assert questions(seen, world(now=HOUR)) == {Question.STATE}
    decision = reconcile_scheduled(seen, world(now=HOUR, answer=ARCHIVING))
    assert decision.actions == (
        AddFinalizer(),
        HoldStores(),
        WriteResults(decision.actions[2].results),  # type: ignore[union-attr]
        WritePlan(ARCHIVING.plan),
        WriteControls(),
        StartJob(1, ARCHIVING.plan),
    )
    assert (said(decision), reason(decision)) == (WORKING, "Starting")
    found = status(decision)
    assert (found.run_key, found.scheduled_time, found.run) == (FIRST, HOUR, 0)
    assert found.next_run_time == NEXT


def test_a_run_that_is_over_is_recorded_before_it_is_told() -> None:
    """First its results are published, then the run of the scope gets its record."""
    unrecorded = replace(RECORDED, number=None)
    decision = reconcile_scheduled(begun(), ended(unrecorded, results=None))
    assert decision.actions == (WriteResults(unrecorded.results),)
    decision = reconcile_scheduled(begun(), ended(unrecorded))
    assert decision.actions == (RecordScopeRun(unrecorded),)
    assert reason(decision) == "Starting"
    decision = reconcile_scheduled(begun(), ended(RECORDED))
    assert (said(decision), reason(decision)) == (DONE, "Succeeded")
    assert decision.actions == DROP
    found = status(decision)
    assert (found.run, found.last_run_time, found.last_success_time) == (1, HOUR, HOUR)
    assert (found.next_run_time, found.run_key) == (NEXT, FIRST)


def test_between_two_runs_nothing_is_asked() -> None:
    """The conditions of the last run stay until the next one is due."""
    seen = over()
    assert seen.done
    assert questions(seen, world()) == set()
    decision = reconcile_scheduled(seen, world(now=HOUR))
    assert (said(decision), decision.actions) == (DONE, ())
    assert decision.again == 3600


def test_each_time_makes_a_run_of_its_own() -> None:
    """It has a new plan and a new key, and attempts are counted on."""
    seen = seen_at(over(), NEXT)
    assert seen.run_key == SECOND
    anew = replace(ARCHIVING, plan=archive_plan(run_plan("a", 5000), run_plan("d")))
    there = world(
        now=NEXT,
        jobs=(job(1, JobPhase.SUCCEEDED),),
        plan=plan_seen(ARCHIVING.plan),
        answer=anew,
    )
    decision = reconcile_scheduled(seen, there)
    assert DropPlan() in decision.actions
    assert decision.actions[-1] == StartJob(2, anew.plan)
    found = status(decision)
    assert (found.run_key, found.scheduled_time, found.run) == (SECOND, NEXT, 1)
    assert (found.last_run_time, found.last_success_time) == (HOUR, HOUR)
    assert found.streams is not None
    assert (found.streams.total, found.streams.copied) == (2, 0)


def test_a_stream_that_fails_makes_the_run_no_success() -> None:
    """The others are archived. The run keeps nothing, since the next one begins anew."""
    decision = reconcile_scheduled(begun(), ended(PARTLY))
    assert (said(decision), reason(decision)) == (STALLED, "PartiallySucceeded")
    assert message(decision).startswith(
        "2 of 3 streams are archived, 1 failed: b (SourceNotFound). The next run at "
        "2026-01-02T05:00:00Z archives all streams again; to begin it now, annotate the copy with "
        "sluice.dev/requestedAt"
    )
    assert decision.actions == DROP
    found = status(decision)
    assert (found.run, found.last_run_time, found.last_success_time) == (1, HOUR, None)
    assert [one.stream for one in found.failed_streams] == ["b"]


def test_a_run_in_which_streams_failed_waits_for_the_next() -> None:
    """A changed spec does not change that. The status shows the failed run until then."""
    seen = over(PARTLY)
    assert seen.done
    again = replace(seen, generation=2)
    for one in (seen, again):
        assert questions(one, world(now=HOUR)) == set()
        decision = reconcile_scheduled(one, world(now=HOUR))
        assert (said(decision), reason(decision)) == (STALLED, "PartiallySucceeded")
        assert decision.actions == ()
    seen = seen_at(seen, NEXT)
    assert (seen.run_key, seen.done) == (SECOND, False)


def test_the_last_success_stays_until_another_run_succeeds() -> None:
    """A run in which a stream failed moves the time of the last run only."""
    first = over()
    seen = seen_at(first, NEXT)
    seen = after(seen, reconcile_scheduled(seen, world(now=NEXT, answer=ARCHIVING)), at=NEXT)
    partly = replace(PARTLY, number=2)
    found = status(reconcile_scheduled(seen, ended(partly, at=NEXT, attempt=2)))
    assert (found.run, found.last_run_time, found.last_success_time) == (2, NEXT, HOUR)


def test_a_success_whose_job_is_gone_counts_from_its_bounds() -> None:
    """The end is unknown then. The recorded time may be early, and never late."""
    decision = reconcile_scheduled(begun(), ended(RECORDED, jobs=()))
    found = ScopeCopyStatus.read(decision.status.dump())
    assert found.last_success_time == later(1)
    assert found.last_run_time == HOUR


def test_a_run_of_no_streams_is_no_success() -> None:
    """It is not recorded, so the last run that can be restored has streams."""
    nothing = ScopeEnded(plan=archive_plan(), results=())
    decision = reconcile_scheduled(begun(), ended(nothing))
    assert reason(decision) == "Succeeded"
    assert "nothing is selected" in message(decision)
    assert decision.actions == DROP
    assert (status(decision).last_success_time, status(decision).run) == (None, 0)


def test_a_request_makes_a_run_of_all_streams() -> None:
    """Each value makes one run. A request during a run waits for its end."""
    seen = replace(over(PARTLY), requested_at="now")
    assert seen.asked
    assert seen.run_key is not None
    assert seen.run_key.startswith("requested:")
    seen = after(seen, reconcile_scheduled(seen, world(now=HOUR, answer=ARCHIVING)))
    assert not seen.asked
    assert seen.status.last_handled_requested_at == "now"
    assert seen.status.scheduled_time == HOUR
    during = replace(seen, requested_at="later")
    assert (during.asked, during.run_key) == (False, seen.run_key)
    second = replace(RECORDED, number=2)
    done = after(during, reconcile_scheduled(during, ended(second, attempt=2)))
    assert done.asked
    assert done.run_key not in {seen.run_key, FIRST}


def test_no_run_begins_while_it_is_suspended() -> None:
    """The status reports that beside the last run's result."""
    seen = scheduled(at=HOUR, suspend=True)
    assert seen.run_key is None
    decision = reconcile_scheduled(seen, world(now=HOUR))
    assert said(decision) == {"Ready": "True", "Suspended": "True"}
    assert status(decision).next_run_time is None


def test_a_run_that_failed_before_any_stream_had_ended_is_no_last_success() -> None:
    """An example is a run without its scope. A corrected spec continues the same run."""
    gone = SourceNotFound("scope 'in' does not exist", field="spec.source.scope")
    seen = scheduled(at=HOUR)
    decision = reconcile_scheduled(seen, world(now=HOUR, trouble=trouble(gone)))
    assert (said(decision), reason(decision)) == (STALLED, "SourceNotFound")
    found = status(decision)
    assert (found.last_run_time, found.last_success_time, found.run) == (HOUR, None, 0)
    seen = after(seen, decision)
    assert replace(seen, generation=2).run_key == FIRST
    assert not replace(seen, generation=2).done


def gave_up(*, finalizer: bool = True) -> object:
    """Return a copy whose first run was given up, with some remains."""
    seen = begun(backoffLimit=0)
    lost = job(1, JobPhase.FAILED, trouble=trouble(DriverLost("gone")), started=HOUR, ended=HOUR)
    around = world(now=HOUR, jobs=(lost,), plan=plan_seen(ARCHIVING.plan), answer=ARCHIVING)
    seen = after(seen, reconcile_scheduled(seen, around))
    assert seen.gave_up
    assert seen.finalizer
    return replace(seen, finalizer=finalizer)


def test_what_is_left_of_a_run_is_deleted_before_the_next_one_begins() -> None:
    """Each run has a log of its own, so the earlier log would not be found any more."""
    seen = gave_up()
    assert reconcile_scheduled(seen, world(now=HOUR)).actions == ()  # type: ignore[arg-type]
    seen = seen_at(seen, NEXT)  # type: ignore[arg-type]
    assert (seen.asked, seen.run_key, seen.waits_for_rest) == (False, FIRST, True)
    running = world(now=NEXT, jobs=(job(1),))
    assert reconcile_scheduled(seen, running).actions == (DeleteJob(job(1).name),)
    decision = reconcile_scheduled(seen, world(now=NEXT))
    assert decision.actions == DROP
    assert reason(decision) == "DriverLost"
    seen = after(seen, decision, at=NEXT)
    assert (seen.asked, seen.run_key) == (True, SECOND)


def test_a_tidying_that_fails_is_tried_again_and_the_next_run_waits() -> None:
    """The reported end of the run stays."""
    seen = begun()
    decision = reconcile_scheduled(seen, ended(RECORDED))
    seen = seen_at(replace(seen, status=status(decision)), NEXT)
    assert seen.finalizer
    failure = after_failure(seen, world(now=NEXT), trouble(StoreUnavailable("away")))
    assert said(failure) == DONE
    assert failure.again == 30
    assert not seen.asked
    assert reconcile_scheduled(seen, world(now=NEXT)).actions == DROP


def test_a_lost_status_makes_no_run_twice() -> None:
    """The record of the run is in the folder, under its time as key.

    If the key is lost, the remains of a run are deleted first, and its driver before that.
    """
    seen = scheduled(at=HOUR, finalizer=True)
    assert (seen.asked, seen.waits_for_rest) == (False, True)
    decision = reconcile_scheduled(seen, world(now=HOUR, jobs=(job(1),)))
    assert decision.actions == (DeleteJob(job(1).name),)
    decision = reconcile_scheduled(seen, world(now=HOUR))
    assert decision.actions == DROP
    seen = after(seen, decision)
    assert seen.run_key == FIRST
    decision = reconcile_scheduled(seen, ended(RECORDED, jobs=()))
    assert said(decision) == DONE
    assert status(decision).run == 1


def test_a_copy_that_is_deleted_during_a_run_drops_that_run() -> None:
    """The run that would be due next is not dropped."""
    seen = replace(begun(), deleted=1.0, due=None, later=None)
    assert seen.run_key == FIRST
    assert reconcile_scheduled(seen, world(now=HOUR)).actions == DROP


def test_a_store_that_is_away_at_the_time_of_a_run_delays_it() -> None:
    """The run counts as begun, and continues when the store is back."""
    seen = scheduled(at=HOUR)
    away = replace(STORE, ready=False, why="it does not answer")
    decision = reconcile_scheduled(seen, world(now=HOUR, target=away))
    assert (said(decision), reason(decision)) == (WORKING, "StoreNotReady")
    seen = after(seen, decision, at=later(3700))
    assert seen.run_key == FIRST
    assert not seen.done
