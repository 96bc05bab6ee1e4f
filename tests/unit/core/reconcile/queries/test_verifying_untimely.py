"""Verifications that cannot be begun or ended, are cut off, or are about another version."""

from __future__ import annotations

from sluice import errors
from sluice.core.reconcile.queries.verifying import after_failure
from sluice.core.reconcile.queries.world import (
    StartVerifier,
    StopVerifier,
    TellVerification,
    UnprotectQuery,
)
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.trouble import Trouble
from sluice.kube.api.objects import QUERY_FINALIZER
from support.situations.query_recorder import QueryRecorder
from support.situations.verified_queries import (
    acts,
    begun,
    name_of,
    query_with,
    recount,
    request,
    verification,
    verified,
)


def test_a_job_that_cannot_be_made_or_deleted_is_no_failure_of_the_query() -> None:
    """The query stays as it is; the status of the verification says what is wrong."""
    quota = Trouble.of(errors.QuotaExceeded("no more Jobs"))
    for mode, reason in (("Continuous", "Running"), ("Once", "Completed")):
        query = query_with(mode=mode)
        if mode == "Once":
            query.becomes(JobPhase.SUCCEEDED)
        request(query)
        decision = query.look()
        assert decision.actions[-1] == StartVerifier(1)
        after = after_failure(decision, quota)
        assert after.actions == ()
        assert after.again is not None
        query.put(after)
        assert query.reason == reason
        assert "lastFailure" not in query.body["status"]
        assert verification(query)["message"].startswith("no more Jobs")
        assert acts(query) == [StartVerifier(1)]
        assert query.reason == reason


def test_a_query_that_is_done_stays_so_if_its_finalizer_cannot_be_removed() -> None:
    """The removal is tried again."""
    query = QueryRecorder("counts", mode="Once")
    query.start()
    query.write()
    query.becomes(JobPhase.SUCCEEDED)
    query.look()
    query.body["metadata"]["finalizers"] = [QUERY_FINALIZER]
    failed = query.fail(errors.ApiUnavailable("no answer"))
    assert failed.again is not None
    assert query.reason == "Completed"
    assert query.look().actions == (UnprotectQuery(),)


def test_a_job_that_was_given_up_is_deleted_though_the_operator_was_killed() -> None:
    """The end is in the status before the Job is deleted."""
    query = begun()
    query.body["spec"]["suspend"] = True
    query.look()
    assert acts(query) == [StopVerifier(name_of(query))]
    query.verifies(JobPhase.RUNNING, deleting=True)
    assert acts(query) == []


def test_jobs_that_users_have_made_are_deleted_a_few_at_a_time() -> None:
    """However many there are, one look makes few calls."""
    query = query_with()
    for number in range(1, 100):
        query.verifies(JobPhase.RUNNING, number)
    stops = [one for one in acts(query) if isinstance(one, StopVerifier)]
    assert 1 <= len(stops) <= 10


def test_a_schedule_that_is_never_due_stops_nothing_but_itself() -> None:
    """The query is cared for, and a request is still carried out."""
    query = QueryRecorder("counts", verify={"schedule": {"cron": "0 0 31 2 *"}})
    (told,) = acts(query)
    assert isinstance(told, TellVerification)
    assert "is never due" in told.saying.message
    assert "is never due" in verification(query)["scheduleError"]
    query.write()
    assert query.reason == "Running"
    assert acts(query) == []
    request(query)
    assert acts(query) == [StartVerifier(1)]
    query.verifies(JobPhase.SUCCEEDED, recount=recount())
    query.look()
    for _ in range(3):
        assert acts(query) == []
        assert verified(query) == ("True", "ResultsMatch")
    query.body["spec"]["suspend"] = True
    query.look()
    assert query.reason == "Stopping"


def test_another_version_is_not_taken_for_verified() -> None:
    """What was found about its rows is about the version that has written them."""
    query = begun()
    query.verifies(JobPhase.SUCCEEDED, recount=recount())
    query.look()
    assert verified(query) == ("True", "ResultsMatch")
    assert query.ledger.version is not None
    second = query.ledger.version.model_copy(update={"number": 2})
    query.ledger = query.ledger._replace(version=second)
    query.look()
    assert verified(query) == ("Unknown", "VerificationNotRun")


def test_a_configmap_whose_job_is_gone_goes_with_the_next_verification() -> None:
    """Kubernetes deletes Jobs some time after their end, and not what they have read."""
    query = begun()
    query.verifies(JobPhase.SUCCEEDED, recount=recount())
    query.look()
    query.verifiers = ()
    request(query, "again")
    assert acts(query) == [StopVerifier(name_of(query)), StartVerifier(2)]


def test_a_query_without_a_batch_at_its_end_does_not_wait_for_one() -> None:
    """The pod finds out that nothing is to be compared."""
    query = QueryRecorder("counts", mode="Once", verify={})
    query.start()
    query.becomes(JobPhase.SUCCEEDED)
    assert acts(query) == [StartVerifier(1)]


def test_a_missing_claim_of_the_checkpoint_hinders_no_verification() -> None:
    """Its pod mounts none. Without an image there is no pod."""
    query = query_with()
    request(query)
    none = Trouble.of(errors.QueriesNotOffered("no image"))
    assert acts(query, hindrance=none) == []
    missing = Trouble.of(errors.ClaimNotFound("there is no claim"))
    assert acts(query, hindrance=missing) == [StartVerifier(1)]
