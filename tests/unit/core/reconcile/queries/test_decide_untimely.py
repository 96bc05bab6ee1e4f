"""The operator's decisions about a StreamQuery at wrong times or with forged objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sluice import errors
from sluice.core.reconcile.queries.decide import LOOK_SECONDS, POLL_SECONDS
from sluice.core.reconcile.queries.world import (
    ProtectQuery,
    StartDriver,
    StopDriver,
    UnprotectQuery,
)
from sluice.core.reconcile.shared.jobs import JobPhase, job_name
from sluice.core.values.trouble import Trouble
from support.situations.query_recorder import QueryRecorder
from support.situations.recorder import READY
from support.situations.situation import DOWN

LOST = errors.DriverLost("the driver's pod is gone")
CHANGED = errors.QueryChanged("spec.query.sql was changed")


@pytest.fixture
def query() -> QueryRecorder:
    """Return a new query."""
    return QueryRecorder("counts")


def job_of(query: QueryRecorder, attempt: int = 1) -> str:
    """Return the name of an attempt's Job."""
    return job_name(query.body["metadata"]["uid"], attempt)


def status(query: QueryRecorder) -> dict[str, Any]:
    """Return the status."""
    found: dict[str, Any] = query.body["status"]
    return found


OTHER = {"sql": "SELECT upper(event) AS event FROM clicks"}
NO_PROFILE = Trouble.of(errors.ProfileNotFound("there is no runtime profile 'x'"))


def test_a_changed_spec_that_cannot_run_is_said_and_the_old_one_runs_no_more(
    query: QueryRecorder,
) -> None:
    """Otherwise it would be Ready, though its spec asks for another query."""
    query.start()
    query.write()
    query.change(query=OTHER)
    decision = query.look(hindrance=NO_PROFILE)
    assert decision.actions == (StopDriver(job_of(query)),)
    assert query.reason == "ProfileNotFound"
    query.jobs = ()
    assert query.look(hindrance=NO_PROFILE).actions == ()
    assert query.reason == "ProfileNotFound"
    assert query.look().actions == (ProtectQuery(), StartDriver(2))


def test_settings_that_change_leave_a_running_query_alone(query: QueryRecorder) -> None:
    """The administrator removes the profile, and the next attempt reports it."""
    query.start()
    query.write()
    assert query.look(hindrance=NO_PROFILE).actions == ()
    assert query.reason == "Running"


def test_a_change_that_names_a_missing_store_stops_the_driver(query: QueryRecorder) -> None:
    """Its stores are not those of the spec any more, and no finalizer protects them."""
    query.start()
    query.write()
    query.change(query=OTHER)
    assert query.look(stores=(None, READY)).actions == (StopDriver(job_of(query)),)
    assert query.reason == "StoreNotFound"


def test_the_end_of_a_query_outlives_its_store() -> None:
    """Once it is done, its StreamStore may be deleted, and it stays done."""
    query = QueryRecorder("counts", mode="Once")
    query.start()
    query.write()
    query.becomes(JobPhase.SUCCEEDED)
    query.look()
    query.jobs = ()
    query.look(stores=(None, None))
    assert query.reason == "Completed"


def test_a_refusal_outlives_a_store_that_is_away(query: QueryRecorder) -> None:
    """The refusal is reported until the spec is changed."""
    query.start()
    query.end(CHANGED)
    away = replace(READY, ready=False, why=str(Trouble.of(DOWN)))
    query.look(stores=(away, away))
    assert query.reason == "QueryChanged"


def test_the_cause_is_said_while_another_attempt_is_waited_for(query: QueryRecorder) -> None:
    """Other reports in between do not replace it."""
    query.start()
    for _ in range(6):
        query.end(LOST)
        query.later(1000)
        query.look()
        query.becomes(JobPhase.PENDING)
    query.end(LOST)
    query.look(stores=(None, READY))
    assert query.reason == "StoreNotFound"
    query.look()
    assert query.reason == "DriverLost"


def test_a_request_that_comes_while_a_store_is_away_is_heard() -> None:
    """The end of the attempt before it is no answer."""
    query = QueryRecorder("counts", mode="Once")
    query.start()
    query.write()
    query.becomes(JobPhase.SUCCEEDED)
    query.look()
    query.request("again")
    query.look(stores=(None, READY))
    assert query.reason == "StoreNotFound"
    assert query.look().actions == (ProtectQuery(), StartDriver(2))


def test_a_changed_query_is_not_completed_by_the_one_before_it() -> None:
    """This holds even if it could not begin at first."""
    query = QueryRecorder("counts", mode="Once")
    query.start()
    query.write()
    query.becomes(JobPhase.SUCCEEDED)
    query.look()
    query.change(query=OTHER)
    query.look(hindrance=NO_PROFILE)
    assert query.reason == "ProfileNotFound"
    assert query.look().actions == (ProtectQuery(), StartDriver(2))


def test_a_lost_status_finds_the_number_of_the_last_attempt(query: QueryRecorder) -> None:
    """No Job gets an earlier Job's name, and none is stopped for a lower number."""
    query.start()
    query.write()
    query.body["status"] = {}
    assert query.look().actions == ()
    (job,) = query.jobs
    query.jobs = (replace(job, attempt=7, phase=JobPhase.FAILED),)
    query.body["status"] = {}
    assert query.look().actions == (ProtectQuery(), StartDriver(8))


def test_a_forged_number_of_an_attempt_begins_nothing_again_and_again(
    query: QueryRecorder,
) -> None:
    """Users may label their own Jobs as they like."""
    query.start()
    query.write()
    (job,) = query.jobs
    forged = replace(job, name="forged", attempt=999_999_999, phase=JobPhase.SUCCEEDED)
    query.jobs = (job, forged)
    assert query.look().actions == ()
    assert query.reason == "Running"
    near = replace(forged, attempt=5)
    query.jobs = (job, near)
    assert query.look(pods=1).actions == (StopDriver(job_of(query)),)
    query.jobs = (near,)
    assert query.look(pods=1).actions == ()
    assert query.look().actions == (ProtectQuery(), StartDriver(6))


def test_a_query_is_not_ready_while_its_pod_is_replaced(query: QueryRecorder) -> None:
    """With bytes to read, it is ready only after the new pod has written a batch."""
    query.start()
    query.write()
    query.becomes(JobPhase.RUNNING, pod=None)
    query.look()
    assert query.reason == "Starting"
    query.becomes(JobPhase.RUNNING, waiting=query.now)
    query.look()
    assert query.reason == "Starting"
    query.becomes(JobPhase.RUNNING)
    query.ledger = query.ledger._replace(attempt=2)
    query.lag = 500
    query.look()
    assert query.reason == "Starting"
    query.lag = 0
    query.look()
    assert query.reason == "Running"


def test_another_attempt_follows_one_that_was_superseded(query: QueryRecorder) -> None:
    """The other attempt may have been run by hand, and have ended since."""
    query.start()
    assert query.end(errors.QuerySuperseded("another attempt has begun")).again is not None
    query.later(1000)
    assert query.look().actions == (ProtectQuery(), StartDriver(2))


def test_a_killed_operator_leaves_no_store_protected() -> None:
    """The status says that the query is done, and the finalizer still exists."""
    query = QueryRecorder("counts", mode="Once")
    query.start()
    query.write()
    query.becomes(JobPhase.SUCCEEDED)
    held = list(query.body["metadata"]["finalizers"])
    query.look()
    query.jobs = ()
    query.body["metadata"]["finalizers"] = held
    assert query.look().actions == (UnprotectQuery(),)


def test_numbers_of_a_forged_ledger_fit_into_a_status(query: QueryRecorder) -> None:
    """Any client of the store may write beside a sink."""
    query.start()
    query.write()
    version = query.ledger.version
    last = query.ledger.last
    assert version is not None
    assert last is not None
    query.ledger = query.ledger._replace(
        version=version.model_copy(update={"number": (1 << 40) - 1}),
        last=last.model_copy(update={"batch": (1 << 40) - 1, "watermark": 1 << 62}),
        rows=1 << 60,
        attempt=(1 << 40) - 1,
    )
    query.look()
    assert status(query)["version"]["number"] == (1 << 40) - 1
    assert "watermark" not in status(query)["progress"]


@pytest.mark.parametrize("away", [True, False], ids=["while-the-store-is-away", "at-once"])
def test_a_request_after_an_unseen_end_is_not_lost(query: QueryRecorder, *, away: bool) -> None:
    """The driver failed for good while its StreamStore was away, and its user asked after that.

    The operator sees both at once. It reports the failure, and makes another attempt.
    """
    query.start()
    query.write()
    query.becomes(JobPhase.FAILED, trouble=Trouble.of(CHANGED))
    query.look(stores=(None, READY))
    query.request("after the end")
    if away:
        query.look(stores=(None, READY))
        assert query.reason == "StoreNotFound"
    assert query.look().again == POLL_SECONDS
    assert query.reason == "QueryChanged"
    assert query.look().actions == (ProtectQuery(), StartDriver(2))
    assert status(query)["lastHandledRequestedAt"] == "after the end"


def test_a_request_beside_a_good_end_is_not_lost() -> None:
    """With mode: Once, events that came meanwhile may be missing. Another attempt reads them."""
    query = QueryRecorder("counts", mode="Once")
    query.start()
    query.write()
    query.becomes(JobPhase.SUCCEEDED)
    query.request("after the end")
    ended = query.look()
    assert query.reason == "Completed"
    assert (ended.again, ended.actions) == (POLL_SECONDS, ())
    assert query.look().actions == (ProtectQuery(), StartDriver(2))
    assert status(query)["lastHandledRequestedAt"] == "after the end"
    query.becomes(JobPhase.SUCCEEDED, attempt=2)
    assert query.look().actions == (UnprotectQuery(),)
    assert query.reason == "Completed"


def test_a_driver_that_is_long_in_starting_is_looked_at_less_often(query: QueryRecorder) -> None:
    """The wait is a tenth of the time so far, within bounds."""
    query.start()
    waits = []
    for _ in range(6):
        waits.append(query.look().again)
        query.later(25)
    assert waits == [POLL_SECONDS, 2.5, 5.0, 7.5, LOOK_SECONDS, LOOK_SECONDS]
