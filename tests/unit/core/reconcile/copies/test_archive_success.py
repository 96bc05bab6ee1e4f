"""The time of a StreamArchive's last success, in its status."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from sluice.api.status.archive_status import StreamArchiveStatus
from sluice.core.archive.recorded import RunFacts
from sluice.core.reconcile.copies.decide_archive import reconcile_archive
from sluice.core.reconcile.copies.world import World
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.errors import DriverLost
from support.reconcile.archives_seen import (
    EVERY_HOUR,
    PLANNED,
    after,
    archive,
    ended,
    plan_seen,
    recorded,
    status,
)
from support.reconcile.copies import NOW, STALLED, job, trouble, world

HOUR = NOW.replace(hour=4, minute=0, second=0)
NEXT = HOUR + timedelta(hours=1)
LOST = trouble(DriverLost("lost"))


def good(*, at: datetime = HOUR, backoff: int = 0, **changes: object) -> StreamArchiveStatus:
    """Return the status after a scheduled run whose driver ended at `at`."""
    seen = archive(schedule=EVERY_HOUR, backoffLimit=backoff, at=at)
    seen = after(seen, reconcile_archive(seen, world(now=at, answer=PLANNED)), at=at)
    over = job(phase=JobPhase.SUCCEEDED, ended=at)
    around = replace(ended(now=at), jobs=(over,), **changes)  # type: ignore[arg-type]
    return status(reconcile_archive(seen, around))


def tried(before: StreamArchiveStatus, last: World, *, at: datetime = NEXT) -> StreamArchiveStatus:
    """Return the status after the planned run of NEXT, which ends as `last` shows."""
    seen = archive(status=before, schedule=EVERY_HOUR, backoffLimit=0, at=at)
    seen = after(seen, reconcile_archive(seen, world(now=at, answer=PLANNED)), at=at)
    return status(reconcile_archive(seen, replace(last, now=at)))


def test_a_recorded_run_is_a_success_when_its_driver_ended() -> None:
    """The time is that of the driver's end, however late the operator looks."""
    assert good().last_success_time == HOUR
    late = good(now=HOUR + timedelta(minutes=30))
    assert (late.last_success_time, late.last_run_time) == (HOUR, HOUR)


def test_a_run_that_fails_leaves_the_last_success() -> None:
    """The failed run is the last run, but not the last successful one."""
    failed = world(jobs=(job(2, JobPhase.FAILED, trouble=LOST),), plan=plan_seen())
    found = tried(good(), failed)
    assert said_of(found) == STALLED
    assert (found.last_success_time, found.last_run_time) == (HOUR, NEXT)


def test_without_any_good_run_there_is_no_success() -> None:
    """Neither a failed nor a current run counts."""
    failed = world(jobs=(job(1, JobPhase.FAILED, trouble=LOST),), plan=plan_seen())
    assert tried(StreamArchiveStatus(), failed).last_success_time is None
    goes_on = world(jobs=(job(1),), plan=plan_seen())
    assert tried(StreamArchiveStatus(), goes_on).last_success_time is None


def test_a_new_operator_finds_the_last_success() -> None:
    """It reads the old operator's status, and a look at rest changes nothing."""
    written = good().dump()
    assert written["lastSuccessTime"] == f"{HOUR:%Y-%m-%dT%H:%M:%SZ}"
    seen = archive(status=StreamArchiveStatus.read(written), schedule=EVERY_HOUR, at=HOUR)
    later = world(now=HOUR + timedelta(minutes=9))
    assert status(reconcile_archive(seen, later)).last_success_time == HOUR


def test_a_status_of_an_earlier_version_is_completed() -> None:
    """The time up to which the last run holds the stream counts. No alert fires on upgrade."""
    earlier = good().model_copy(update={"last_success_time": None})
    seen = archive(status=earlier, schedule=EVERY_HOUR, at=HOUR)
    later = world(now=HOUR + timedelta(minutes=9))
    assert status(reconcile_archive(seen, later)).last_success_time == NOW


@pytest.mark.parametrize("known", [True, False])
def test_a_run_whose_end_nobody_saw_is_no_younger_than_its_events(known: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """An operator that was down for long finds the run in the archive, and its Job gone."""
    taken = NEXT + timedelta(seconds=3)
    runs = (RunFacts(run=2, time=taken, bytes=9),) if known else ()
    answer = recorded(2).model_copy(update={"runs": runs})
    found = tried(good(), world(plan=plan_seen(), answer=answer), at=NEXT + timedelta(minutes=50))
    assert found.last_success_time == (taken if known else HOUR)


def test_a_success_of_a_clock_that_was_ahead_is_corrected() -> None:
    """Otherwise no alert would report failing runs until that time."""
    wrong = good().model_copy(update={"last_success_time": HOUR + timedelta(days=30)})
    over = replace(ended(2), jobs=(job(2, JobPhase.SUCCEEDED, ended=NEXT),))
    assert tried(wrong, over).last_success_time == NEXT


def test_a_run_that_ended_by_a_clock_ahead_of_the_operators_is_a_success() -> None:
    """The success has the operator's present time."""
    over = replace(ended(2), jobs=(job(2, JobPhase.SUCCEEDED, ended=NEXT + timedelta(seconds=5)),))
    assert tried(good(), over).last_success_time == NEXT


def test_a_success_never_goes_back() -> None:
    """A clock that is behind does not date a success before the previous one."""
    behind = replace(
        ended(2), jobs=(job(2, JobPhase.SUCCEEDED, ended=HOUR - timedelta(minutes=9)),)
    )
    assert tried(good(), behind).last_success_time == HOUR


def said_of(found: StreamArchiveStatus) -> dict[str, str]:
    """Return the status of each condition by its type."""
    return {one.type: one.status for one in found.conditions}
