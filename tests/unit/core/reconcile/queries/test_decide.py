"""The operator's decisions about a StreamQuery, look by look."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sluice import errors
from sluice.core.reconcile.queries.world import (
    DropLive,
    ProtectQuery,
    StartDriver,
    StopDriver,
    UnprotectQuery,
)
from sluice.core.reconcile.shared.jobs import JobPhase, job_name
from sluice.core.values.trouble import Trouble
from sluice.kube.api.objects import FORCE_ORPHAN, QUERY_FINALIZER
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


def test_a_query_is_protected_before_its_driver_starts(query: QueryRecorder) -> None:
    """The status reports the attempt before its Job is made."""
    decision = query.look()
    assert decision.actions == (ProtectQuery(), StartDriver(1))
    assert (query.reason, status(query)["attempts"]) == ("Starting", 1)
    assert status(query)["jobRef"] == {"name": job_of(query)}
    assert status(query)["result"] == "local: in/counts"


def test_a_query_runs_once_the_ledger_has_its_attempt_and_a_batch(query: QueryRecorder) -> None:
    """A batch of an earlier attempt does not count: the driver may still be refused."""
    query.start()
    query.write()
    assert query.reason == "Running"
    query.end(LOST)
    assert (query.reason, status(query)["failures"]) == ("DriverLost", 1)
    query.later(60)
    query.look()
    query.becomes(JobPhase.RUNNING)
    query.look()
    assert query.reason == "Starting"
    query.write(1)
    assert query.reason == "Running"
    assert (status(query)["attempts"], status(query)["failures"]) == (2, 0)
    assert status(query)["progress"]["rows"] == 6


def test_a_failed_driver_is_made_again_later_each_time(query: QueryRecorder) -> None:
    """As long as no batch is written, the waits grow."""
    waits = []
    query.look()
    for attempt in range(1, 5):
        decision = query.end(LOST)
        assert decision.again is not None
        waits.append(decision.again)
        assert query.look().actions == ()
        query.later(decision.again + 1)
        assert query.look().actions == (ProtectQuery(), StartDriver(attempt + 1))
    assert waits == sorted(waits)
    assert waits[0] < waits[-1]


@pytest.mark.parametrize(
    "error",
    [
        CHANGED,
        errors.InvalidQuery("a query may not call rand", field="spec.query.sql"),
        errors.CheckpointLost("there is no checkpoint"),
        errors.CheckpointDiverged("the checkpoint ends with batch 3"),
        errors.MalformedEvents("in/clicks/0@12: no JSON"),
        errors.ResultTooLarge("a row is too long"),
        errors.SourceTruncated("bytes are gone"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_driver_is_made_in_vain(query: QueryRecorder, error: errors.SluiceError) -> None:
    """A failure that each attempt would repeat waits for a user without end."""
    query.start()
    assert query.end(error).again is None
    said = query.reason
    assert said == type(error).__name__
    query.later(1e6)
    query.jobs = ()
    assert query.look().actions == ()
    assert query.reason == said
    query.change(onChange="Restart")
    assert query.look().actions == (ProtectQuery(), StartDriver(2))


def test_a_request_makes_another_attempt(query: QueryRecorder) -> None:
    """sluice.dev/requestedAt ends the wait for a user."""
    query.start()
    query.end(CHANGED)
    query.request("now")
    assert query.look().actions == (ProtectQuery(), StartDriver(2))
    assert status(query)["lastHandledRequestedAt"] == "now"


def test_a_changed_query_gets_another_driver_once_the_first_is_gone(query: QueryRecorder) -> None:
    """Two drivers on one checkpoint would end each other."""
    query.start()
    query.write()
    query.change(trigger={"intervalSeconds": 5})
    query.becomes(JobPhase.RUNNING, outdated=True)
    assert query.look().actions == (StopDriver(job_of(query)),)
    assert query.reason == "Restarting"
    query.becomes(JobPhase.RUNNING, outdated=True, deleting=True)
    assert query.look().actions == ()
    query.jobs = ()
    assert query.look(pods=1).actions == ()
    assert query.look().actions == (ProtectQuery(), StartDriver(2))


def test_an_old_failure_of_another_spec_counts_no_more(query: QueryRecorder) -> None:
    """The Job of the refused spec still exists, and is not reported again."""
    query.start()
    query.end(CHANGED)
    query.change(query={"sql": "SELECT event FROM clicks"})
    (job,) = query.jobs
    query.jobs = (replace(job, outdated=True),)
    assert query.look().actions == (ProtectQuery(), StartDriver(2))


def test_a_suspended_query_runs_nothing_and_goes_on(query: QueryRecorder) -> None:
    """It is suspended only when none of its pods runs."""
    query.start()
    query.write()
    query.change(suspend=True)
    assert query.look(pods=1).actions == (StopDriver(job_of(query)),)
    assert query.reason == "Stopping"
    query.jobs = ()
    query.look(pods=1)
    assert query.reason == "Stopping"
    query.look()
    assert query.reason == "Suspended"
    query.change(suspend=False)
    assert query.look().actions == (ProtectQuery(), StartDriver(2))


def test_a_store_that_is_away_is_left_to_the_driver(query: QueryRecorder) -> None:
    """No other attempt begins, and the running driver goes on."""
    query.start()
    query.write()
    away = replace(READY, ready=False, why=str(Trouble.of(DOWN)))
    assert query.look(stores=(away, away)).actions == ()
    assert query.reason == "StoreNotReady"
    query.look()
    assert query.reason == "Running"


def test_a_store_that_is_withdrawn_stops_the_driver(query: QueryRecorder) -> None:
    """The driver may not continue with its login."""
    query.start()
    query.write()
    denied = Trouble.of(errors.AccessDenied("not allowed"))
    assert query.look(stores=(denied, READY)).actions == (StopDriver(job_of(query)),)
    assert query.reason == "AccessDenied"


def test_a_missing_claim_is_looked_for_again(query: QueryRecorder) -> None:
    """It may be applied a moment later, and no attempt counts."""
    missing = Trouble.of(errors.ClaimNotFound("there is no PersistentVolumeClaim 'c'"))
    decision = query.look(hindrance=missing)
    assert decision.actions == ()
    assert decision.again is not None
    assert decision.again <= 30
    assert status(query).get("attempts") == 0
    assert query.look().actions == (ProtectQuery(), StartDriver(1))


def test_a_query_that_ends_lets_its_stores_go() -> None:
    """With mode: Once it is done for good, also when its Job is gone."""
    query = QueryRecorder("counts", mode="Once")
    query.start()
    query.write()
    assert query.reason == "Running"
    query.becomes(JobPhase.SUCCEEDED)
    assert query.look().actions == (UnprotectQuery(),)
    assert query.reason == "Completed"
    query.jobs = ()
    query.later(1e6)
    assert query.look().actions == ()
    assert query.reason == "Completed"


def test_a_deleted_query_goes_when_its_driver_is_gone(query: QueryRecorder) -> None:
    """Its results stay, so no cleanup follows."""
    query.start()
    query.write()
    query.delete()
    assert query.look(pods=1).actions == (StopDriver(job_of(query)),)
    query.jobs = ()
    assert query.look(pods=1).actions == ()
    assert query.look().actions == (UnprotectQuery(),)


def test_a_forced_orphan_goes_at_once(query: QueryRecorder) -> None:
    """The annotation releases it in any state, and the Job is deleted with it."""
    query.start()
    query.body["metadata"]["annotations"] = {"sluice.dev/force-orphan": "true"}
    query.delete()
    assert query.look(pods=1).actions == (StopDriver(job_of(query)), UnprotectQuery())


def test_a_job_that_a_killed_operator_left_is_stopped(query: QueryRecorder) -> None:
    """Only the latest attempt may run."""
    query.start()
    query.write()
    (job,) = query.jobs
    late = replace(job, name="sluice-late", attempt=0)
    query.jobs = (late, job)
    assert query.look().actions == (StopDriver("sluice-late"),)


def test_an_action_that_fails_is_tried_again(query: QueryRecorder) -> None:
    """A used-up quota is reported and waited for."""
    query.look()
    decision = query.fail(errors.QuotaExceeded("exceeded quota: pods"))
    assert decision.again is not None
    assert query.reason == "QuotaExceeded"
    query.later(decision.again + 1)
    assert any(isinstance(action, StartDriver) for action in query.look().actions)


def test_the_status_is_not_written_when_nothing_is_new(query: QueryRecorder) -> None:
    """Each look of an idle query gives the same status, times included."""
    query.start()
    query.write()
    before = status(query)
    query.now += timedelta(minutes=5)
    query.look()
    assert status(query) == before


LIVE: Any = [{"live": {"storeRef": {"name": "local"}, "scope": "in", "stream": "shown"}}]


def test_the_streams_of_live_sinks_go_with_the_query_and_after_its_driver() -> None:
    """The finalizer stays until they are deleted, and a store that is away is waited for."""
    query = QueryRecorder("counts", sinks=LIVE)
    query.start()
    query.write()
    query.delete()
    assert query.look().actions == (StopDriver(job_of(query)),)
    query.jobs = ()
    assert query.look(pods=1).actions == ()
    assert query.look().actions == (DropLive(), UnprotectQuery())
    query.body["metadata"]["finalizers"] = [QUERY_FINALIZER]  # the first action failed
    failed = query.fail(errors.StoreUnavailable("the store does not answer"))
    assert failed.again is not None
    assert (
        "cannot be deleted yet: the store does not answer"
        in status(query)["conditions"][0]["message"]
    )
    assert query.look().actions == (DropLive(), UnprotectQuery())
    assert "cannot be deleted yet" in status(query)["conditions"][0]["message"]  # until it works


def test_a_query_with_an_end_keeps_its_live_sinks_until_it_is_deleted() -> None:
    """It holds its StreamStore, by which they are deleted."""
    query = QueryRecorder("counts", mode="Once", sinks=LIVE)
    query.start()
    query.write()
    query.becomes(JobPhase.SUCCEEDED)
    assert query.look().actions == ()
    assert query.reason == "Completed"
    assert query.look().actions == ()
    query.delete()
    query.jobs = ()
    assert query.look().actions == (DropLive(), UnprotectQuery())
    query = QueryRecorder("counts", mode="Once")
    query.start()
    query.write()
    query.becomes(JobPhase.SUCCEEDED)
    assert query.look().actions == (UnprotectQuery(),)


def test_live_sinks_of_an_orphaned_query_stay() -> None:
    """A user insists on the deletion, for example because the store is gone."""
    query = QueryRecorder("counts", sinks=LIVE)
    query.start()
    query.jobs = ()
    query.delete()
    query.body["metadata"].setdefault("annotations", {})[FORCE_ORPHAN] = "true"
    assert query.look().actions == (UnprotectQuery(),)


@pytest.mark.parametrize(
    ("latency", "said"),
    [((712, 1250), "0.7 s (p99 1.2 s)"), ((12, 95), "12 ms (p99 0.1 s)")],
)
def test_the_status_has_what_the_last_batch_says(latency: tuple[int, int], said: str) -> None:
    """Time of batches, open windows and malformed events come from the ledger."""
    query = QueryRecorder("counts")
    query.start()
    query.write()
    assert "latency" not in status(query)["progress"]
    assert query.ledger.last is not None
    last = query.ledger.last.model_copy(
        update={"batch": 1, "state_rows": 7, "state_bytes": 4096, "latency": latency}
    )
    query.ledger = query.ledger._replace(last=last, malformed=3)
    query.look()
    progress = status(query)["progress"]
    assert (progress["stateRows"], progress["stateBytes"]) == (7, 4096)
    assert tuple(progress["latency"].values()) == latency
    assert progress["latencySummary"] == said
    assert progress["malformedEvents"] == 3
