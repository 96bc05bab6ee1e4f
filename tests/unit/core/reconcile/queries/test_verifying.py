"""The operator's decisions about the verification of a query's results, look by look."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sluice import errors
from sluice.core.reconcile.queries.verifying import GRACE
from sluice.core.reconcile.queries.world import StartVerifier, StopVerifier, TellVerification
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.trouble import Trouble
from support.situations.query_recorder import QueryRecorder
from support.situations.recorder import READY
from support.situations.verified_queries import (
    AWAY,
    DENIED,
    TIMEOUT,
    acts,
    begun,
    name_of,
    query_with,
    recount,
    request,
    verification,
    verified,
)


def test_a_query_that_is_not_to_be_verified_has_no_trace_of_it() -> None:
    """Neither a request nor a status brings a verification about without spec.verify."""
    query = query_with(verify=None)
    request(query)
    assert acts(query) == []
    assert "verification" not in query.body["status"]
    assert verified(query) == ("", "")


def test_a_request_is_announced_before_its_job_is_made_and_handled_once() -> None:
    """An operator that is killed after the status was written makes the same Job."""
    query = query_with()
    assert acts(query) == []
    assert "verification" not in query.body["status"]
    request(query)
    assert acts(query) == [StartVerifier(1)]
    assert verification(query)["jobRef"] == {"name": name_of(query)}
    assert verification(query)["lastHandledRequestedAt"] == "now"
    assert acts(query) == [StartVerifier(1)]  # the Job is not there yet
    query.verifies(JobPhase.PENDING, words="the image is pulled")
    assert acts(query) == []
    assert verification(query)["message"] == "The Job starts: the image is pulled"
    query.verifies(JobPhase.SUCCEEDED, recount=recount())
    assert [type(one) for one in acts(query)] == [TellVerification]
    assert acts(query) == []


def test_equal_results_are_verified() -> None:
    """The condition names rows, sink and batch. The query itself goes on as before."""
    query = begun()
    query.verifies(JobPhase.SUCCEEDED, recount=recount())
    (told,) = acts(query)
    assert isinstance(told, TellVerification)
    assert told.saying.message == (
        "4,800 rows of in/counts, up to batch 71, are those that DuckDB computes."
    )
    assert verified(query) == ("True", "ResultsMatch")
    assert query.reason == "Running"
    found = verification(query)
    assert (found["result"], found["rows"], found["batch"]) == ("Equal", 4800, 71)
    assert found["lastSuccessTime"] == found["completionTime"]


def test_a_difference_stays_until_a_verification_finds_none() -> None:
    """A verification that compared nothing does not take it back."""
    query = begun()
    query.verifies(JobPhase.SUCCEEDED, recount=recount(missing=2, extra=1))
    (told,) = acts(query)
    assert isinstance(told, TellVerification)
    assert "2 are missing, 1 too many" in told.saying.message
    assert verified(query) == ("False", "ResultsDiffer")
    request(query, "again")
    assert acts(query) == [StopVerifier(name_of(query)), StartVerifier(2)]
    assert verified(query) == ("False", "ResultsDiffer")
    lost = Trouble.of(errors.SourceTruncated("events are gone"))
    query.verifiers = ()
    query.verifies(JobPhase.FAILED, 2, trouble=lost)
    (told,) = acts(query)
    assert isinstance(told, TellVerification)
    assert told.saying.reason == "VerificationNotRun"
    assert "events are gone" in told.saying.message
    assert verified(query) == ("False", "ResultsDiffer")
    request(query, "and again")
    query.look()
    query.verifies(JobPhase.SUCCEEDED, 3, recount=recount())
    query.look()
    assert verified(query) == ("True", "ResultsMatch")


def test_late_events_leave_it_open() -> None:
    """DuckDB counts them, so a difference says nothing, and equal results say all."""
    query = begun()
    query.verifies(JobPhase.SUCCEEDED, recount=recount(missing=2, late=3))
    query.look()
    assert verified(query) == ("Unknown", "ResultsInconclusive")
    assert verification(query)["result"] == "Inconclusive"
    request(query, "again")
    query.look()
    query.verifies(JobPhase.SUCCEEDED, 2, recount=recount(late=3))
    query.look()
    assert verified(query) == ("True", "ResultsMatch")


def test_late_events_explain_no_more_than_they_can() -> None:
    """One late event of years ago hides no loss of thousands of rows."""
    query = begun()
    query.verifies(JobPhase.SUCCEEDED, recount=recount(missing=4000, late=1))
    query.look()
    assert verified(query) == ("False", "ResultsDiffer")


def test_a_job_without_a_report_has_verified_nothing() -> None:
    """A pod that ends without a word proves nothing."""
    query = begun()
    query.verifies(JobPhase.SUCCEEDED)
    query.look()
    assert verified(query) == ("Unknown", "VerificationNotRun")


def test_a_schedule_counts_from_its_first_look() -> None:
    """A time before the query was seen is not due. One that is missed is made up for once."""
    query = query_with(verify={"schedule": {"cron": "0 * * * *"}})
    assert acts(query) == []
    assert verification(query)["nextTime"] == "2026-05-04T13:00:00Z"
    query.later(2.5 * 3600)
    query.becomes(JobPhase.RUNNING)
    assert acts(query) == [StartVerifier(1)]
    assert verification(query)["scheduledTime"] == "2026-05-04T14:00:00Z"
    assert verification(query)["nextTime"] == "2026-05-04T15:00:00Z"
    query.verifies(JobPhase.SUCCEEDED, recount=recount())
    decision = query.look()
    assert decision.again is not None
    assert acts(query) == []
    query.later(3600)
    assert acts(query) == [StopVerifier(name_of(query)), StartVerifier(2)]


def test_a_query_with_an_end_is_verified_once_it_is_done() -> None:
    """It is verified once for each end, and needs no schedule."""
    query = query_with(mode="Once")
    assert acts(query) == []
    query.becomes(JobPhase.SUCCEEDED)
    assert acts(query) == [StartVerifier(1)]
    assert query.reason == "Completed"
    query.verifies(JobPhase.RUNNING)
    assert acts(query) == []
    query.verifies(JobPhase.SUCCEEDED, recount=recount())
    query.look()
    assert verified(query) == ("True", "ResultsMatch")
    assert query.reason == "Completed"
    assert acts(query) == []


def test_nothing_is_verified_before_the_first_batch() -> None:
    """The request waits, and the status says for what."""
    query = QueryRecorder("counts", verify={})
    query.start()
    request(query)
    assert acts(query) == []
    assert verification(query)["message"] == (
        "The verification waits: The query has written no batch yet."
    )
    query.write()
    query.verifiers = ()
    assert verification(query)["number"] == 1


@pytest.mark.parametrize(
    "stores", [(AWAY, READY), (None, READY), (DENIED, READY)], ids=["away", "missing", "denied"]
)
def test_a_store_that_cannot_be_used_is_waited_for(stores: Any) -> None:
    """A request is kept until the store is ready."""
    query = query_with()
    request(query)
    assert acts(query, stores=stores) == []
    assert verification(query)["message"].startswith("The verification waits: ")
    assert acts(query) == [StartVerifier(1)]


def test_a_store_that_is_withdrawn_ends_the_pod() -> None:
    """A pod that may not use the store any more is stopped; a store that is away is waited for."""
    query = begun()
    assert acts(query, stores=(AWAY, READY)) == []
    told, stop = acts(query, stores=(DENIED, READY))
    assert isinstance(told, TellVerification)
    assert stop == StopVerifier(name_of(query))
    assert verified(query) == ("Unknown", "VerificationNotRun")


def test_a_verification_that_takes_too_long_is_ended() -> None:
    """Kubernetes ends the Job; the operator does where no Job can be made, or none starts."""
    query = begun()
    query.later(TIMEOUT)
    assert acts(query) == []
    query.later(GRACE.total_seconds() + 1)
    told, stop = acts(query)
    assert isinstance(told, TellVerification)
    assert f"after {TIMEOUT} s" in told.saying.message
    assert stop == StopVerifier(name_of(query))
    query = query_with()
    request(query)
    query.look()
    query.later((timedelta(seconds=TIMEOUT) + GRACE).total_seconds() + 1)
    assert [type(one) for one in acts(query)] == [TellVerification]


def test_a_suspended_query_has_no_pod_that_verifies() -> None:
    """A request waits until it goes on."""
    query = begun()
    query.body["spec"]["suspend"] = True
    told, stop = acts(query)
    assert isinstance(told, TellVerification)
    assert stop == StopVerifier(name_of(query))
    query.verifiers = ()
    request(query, "again")
    assert acts(query) == []
    query.body["spec"]["suspend"] = False
    query.jobs = ()
    assert acts(query)[-1] == StartVerifier(2)


def test_without_spec_verify_the_job_is_stopped_and_nothing_is_left() -> None:
    """Status and condition go too."""
    query = begun()
    query.verifies(JobPhase.SUCCEEDED, recount=recount())
    query.look()
    request(query, "again")
    query.look()
    query.verifiers = ()
    query.verifies(JobPhase.RUNNING, 2)
    query.look()
    del query.body["spec"]["verify"]
    assert acts(query) == [StopVerifier(name_of(query, 2))]
    query.verifiers = ()
    query.look()
    assert "verification" not in query.body["status"]
    assert verified(query) == ("", "")


def test_a_lost_status_takes_no_old_report_for_a_new_one() -> None:
    """The number goes on behind that of Jobs that exist, but for one that is made up."""
    query = query_with()
    query.verifies(JobPhase.SUCCEEDED, 7, recount=recount())
    query.verifies(JobPhase.SUCCEEDED, 999_999_999, recount=recount())
    request(query)
    assert acts(query)[-1] == StartVerifier(8)


def test_a_query_that_is_deleted_begins_no_verification() -> None:
    """One that goes on is stopped."""
    query = query_with()
    request(query)
    query.delete()
    assert acts(query) == []
    query.verifies(JobPhase.RUNNING)
    assert acts(query) == [StopVerifier(name_of(query))]
