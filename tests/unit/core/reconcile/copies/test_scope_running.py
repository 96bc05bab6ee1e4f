"""A ScopeCopy whose driver runs, fails, or is given up."""

from dataclasses import replace

from sluice.api.status.scope_status import StreamCounts
from sluice.core.reconcile.copies.actions import DeleteJob, DropPlan, StartJob
from sluice.core.reconcile.copies.decide import after_failure, questions, reconcile
from sluice.core.reconcile.copies.world import Question
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.errors import ApiUnavailable, DriverLost, SourceNotFound, StoreUnavailable
from support.reconcile.copies import (
    STALLED,
    SUSPENDED,
    WORKING,
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
from support.reconcile.scope_copies import (
    PLAN,
    PLANNED,
    RECORDED,
    begun,
    reading,
    status,
)

LOST = job(phase=JobPhase.FAILED, trouble=trouble(DriverLost("the pod is gone")))


def test_streams_are_counted_while_they_are_copied() -> None:
    """A table shows how many are done. The message also has the failed streams and the bytes."""
    seen, around = begun(), world(jobs=(job(),), plan=plan_seen(PLAN))
    assert questions(seen, around) == {Question.PROGRESS}
    decision = reconcile(seen, replace(around, reading=reading(1000, copied=1, failed=1)))
    assert status(decision).streams == StreamCounts(total=3, copied=1, failed=1, summary="1/3")
    assert (said(decision), reason(decision)) == (WORKING, "Copying")
    assert message(decision) == "1 of 3 streams are copied, 1 failed; 1.0 kB of 5.0 kB."
    decision = reconcile(seen, replace(around, reading=reading(1000)))
    assert message(decision) == "None of 3 streams are copied; 1.0 kB of 5.0 kB."


def test_staged_streams_are_compared_and_published_one_by_one() -> None:
    """Once all bytes are staged, streams end one by one, and then only the cleanup is left."""
    seen, around = begun(), world(jobs=(job(),), plan=plan_seen(PLAN))
    decision = reconcile(seen, replace(around, reading=reading(5000, copied=2)))
    assert reason(decision) == "Verifying"
    assert message(decision).endswith("2 of 3 streams are copied.")
    decision = reconcile(seen, replace(around, reading=reading(5000, copied=3, published=True)))
    assert reason(decision) == "Publishing"


def test_a_stream_that_ends_is_written_at_once() -> None:
    """An unchanged reading causes no write. A newly copied empty stream does."""
    seen, around = begun(), world(jobs=(job(),), plan=plan_seen(PLAN), now=later(2))
    seen = after(seen, reconcile(seen, replace(around, reading=reading(1000, copied=1))))
    same = reconcile(seen, replace(around, now=later(4), reading=reading(1000, copied=1)))
    assert same.status == seen.status
    news = reconcile(seen, replace(around, now=later(4), reading=reading(1000, copied=2)))
    assert news.status != seen.status
    assert status(news).streams == StreamCounts(total=3, copied=2, summary="2/3")


def test_a_stream_that_ends_is_progress() -> None:
    """Earlier failures are forgotten, though the stream had no bytes."""
    seen = begun()
    around = world(jobs=(LOST,), plan=plan_seen(PLAN), reading=reading(1000, copied=1))
    seen = after(seen, reconcile(seen, around))
    assert seen.status.failures == 1
    seen = after(seen, reconcile(seen, world(answer=RECORDED, plan=plan_seen(PLAN), now=later(9))))
    running = world(jobs=(job(2),), plan=plan_seen(PLAN), now=later(10))
    same = reconcile(seen, replace(running, reading=reading(1000, copied=1)))
    assert same.status.failures == 1
    more = reconcile(seen, replace(running, reading=reading(1000, copied=2)))
    assert more.status.failures == 0


def test_a_driver_that_is_lost_is_followed_by_another_one_of_the_same_run() -> None:
    """The counts stay, and the next attempt follows the plan that the driver recorded."""
    seen = begun()
    around = world(jobs=(LOST,), plan=plan_seen(PLAN), reading=reading(1000, copied=1))
    decision = reconcile(seen, around)
    assert (said(decision), reason(decision)) == (WORKING, "DriverLost")
    seen = after(seen, decision)
    decision = reconcile(seen, world(answer=RECORDED, plan=plan_seen(PLAN), now=later(9)))
    assert decision.actions[-1] == StartJob(2, PLAN)
    assert DropPlan() not in decision.actions
    found = status(decision)
    assert (found.run, found.attempts) == (1, 2)
    assert found.streams is not None
    assert found.streams.summary == "1/3"


def test_giving_up_tells_how_many_streams_are_copied() -> None:
    """The reason is the driver's failure, and the message shows that copied streams stay."""
    seen = begun(backoffLimit=0)
    around = world(jobs=(LOST,), plan=plan_seen(PLAN), reading=reading(1000, copied=2))
    decision = reconcile(seen, around)
    assert (said(decision), reason(decision)) == (STALLED, "DriverLost")
    assert "2 of 3 streams are copied." in message(decision)
    assert "sluice.dev/requestedAt" in message(decision)
    seen = after(seen, decision)
    assert seen.gave_up
    assert questions(seen, world(plan=plan_seen(PLAN))) == set()


def test_a_failure_of_all_tells_how_many_streams_were_copied_before() -> None:
    """The message still counts whole streams if the scope disappears midway."""
    error = trouble(SourceNotFound("there is no scope in", field="spec.source.scope"))
    failed = job(phase=JobPhase.FAILED, trouble=error)
    around = world(jobs=(failed,), plan=plan_seen(PLAN), reading=reading(1000, copied=2))
    decision = reconcile(begun(), around)
    assert (said(decision), reason(decision)) == (STALLED, "SourceNotFound")
    assert message(decision).endswith("2 of 3 streams are copied.")


def test_suspending_stops_the_driver_and_keeps_what_is_there() -> None:
    """The message counts copied streams and the staged bytes of others."""
    seen = begun()
    running = world(jobs=(job(),), plan=plan_seen(PLAN), reading=reading(4000, copied=2))
    seen = after(seen, reconcile(seen, running))
    seen = replace(seen, spec=begun(suspend=True).spec, generation=2)
    decision = reconcile(seen, world(jobs=(job(),), plan=plan_seen(PLAN)))
    assert decision.actions == (DeleteJob(job().name),)
    seen = after(seen, decision)
    decision = reconcile(seen, world(plan=plan_seen(PLAN)))
    assert said(decision) == SUSPENDED
    assert "2 of 3 streams are copied. 4.0 kB of 5.0 kB are staged and stay." in message(decision)


def test_what_cannot_be_written_is_tried_again() -> None:
    """If the API server refuses the results, the driver waits for a while."""
    seen = begun()
    around = world(answer=PLANNED)
    decision = after_failure(seen, around, trouble(ApiUnavailable("no answer")))
    assert said(decision) == WORKING
    assert decision.again is not None


def test_progress_that_cannot_be_read_stops_nothing() -> None:
    """The driver goes on, and the counts do not change."""
    seen, around = begun(), world(jobs=(job(),), plan=plan_seen(PLAN))
    seen = after(seen, reconcile(seen, replace(around, reading=reading(1000, copied=1))))
    away = trouble(StoreUnavailable("no connection"))
    decision = reconcile(seen, replace(around, trouble=away))
    assert (said(decision), reason(decision)) == (WORKING, "Copying")
    assert status(decision).streams == StreamCounts(total=3, copied=1, summary="1/3")
