from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.claims.finished import finished

KUBEFLOW = ("sparkoperator.k8s.io/v1beta2", "SparkApplication")
APACHE = ("spark.apache.org/v1", "SparkApplication")
FLINK = ("flink.apache.org/v1beta1", "FlinkDeployment")
SESSION_JOB = ("flink.apache.org/v1beta1", "FlinkSessionJob")
JOB = ("batch/v1", "Job")
POD = ("v1", "Pod")
OTHER = ("example.com/v1", "Train")


def conditions(**stand: str) -> dict[str, Any]:
    """Return a status with these conditions."""
    return {"conditions": [{"type": name, "status": status} for name, status in stand.items()]}


def kubeflow(state: str) -> dict[str, Any]:
    """Return a status as kubeflow's Spark operator writes it."""
    return {"applicationState": {"state": state}}


def apache(state: str) -> dict[str, Any]:
    """Return a status as Apache's Spark operator writes it."""
    return {"currentState": {"currentStateSummary": state}}


def flink(state: str, reconciliation: str = "DEPLOYED") -> dict[str, Any]:
    """Return a status as the Flink operator writes it."""
    return {"jobStatus": {"state": state}, "reconciliationStatus": {"state": reconciliation}}


OVER = [
    (JOB, conditions(SuccessCriteriaMet="True", Complete="True")),
    (JOB, conditions(FailureTarget="True", Failed="True")),
    (POD, {"phase": "Succeeded"}),
    (POD, {"phase": "Failed"}),
    (KUBEFLOW, kubeflow("COMPLETED")),
    (KUBEFLOW, kubeflow("FAILED")),
    (APACHE, apache("ResourceReleased")),
    (APACHE, apache("TerminatedWithoutReleaseResources")),
    *[(kind, flink(state)) for kind in (FLINK, SESSION_JOB) for state in ("FINISHED", "FAILED")],
    (FLINK, flink("CANCELED")),
    (FLINK, {"jobStatus": {"state": "FINISHED"}}),
    *[(OTHER, conditions(**{name: "True"})) for name in ("Complete", "Succeeded", "Finished")],
    (OTHER, conditions(Ready="False", Failed="True")),
]
NOT_OVER = [
    (JOB, {}),
    (JOB, conditions(SuccessCriteriaMet="True")),
    (JOB, conditions(Complete="False", Suspended="True")),
    (POD, {"phase": "Running"}),
    (POD, {"phase": "Unknown"}),
    *[(KUBEFLOW, kubeflow(state)) for state in ("", "RUNNING", "SUCCEEDING", "FAILING")],
    *[(KUBEFLOW, kubeflow(state)) for state in ("SUBMISSION_FAILED", "PENDING_RERUN")],
    *[(APACHE, apache(state)) for state in ("RunningHealthy", "Succeeded", "Failed")],
    (APACHE, apache("ScheduledToRestart")),
    *[(FLINK, flink(state)) for state in ("RUNNING", "RESTARTING", "RECONCILING", "SUSPENDED")],
    (FLINK, flink("FINISHED", "UPGRADING")),
    (SESSION_JOB, flink("CANCELED", "ROLLING_BACK")),
    (OTHER, conditions(Ready="True", Failed="False")),
    (OTHER, conditions(Succeeded="Unknown")),
    (OTHER, {"phase": "Succeeded"}),
    (("apps/v1", "Deployment"), conditions(Available="False", Progressing="True")),
]


@pytest.mark.parametrize(("kind", "status"), OVER, ids=str)
def test_work_is_over(kind: tuple[str, str], status: dict[str, Any]) -> None:
    """A final state, after success or failure, ends the owner's work."""
    assert finished(*kind, {"status": status})


@pytest.mark.parametrize(("kind", "status"), NOT_OVER, ids=str)
def test_work_goes_on(kind: tuple[str, str], status: dict[str, Any]) -> None:
    """A state that a retry, a restart or an upgrade may follow does not end the owner's work."""
    assert not finished(*kind, {"status": status})


@pytest.mark.parametrize("kind", [FLINK, SESSION_JOB], ids=str)
def test_a_suspended_flink_job_is_not_over(kind: tuple[str, str]) -> None:
    """A suspended job has the state FINISHED, but needs its streams again when it is resumed."""
    body = {"status": flink("FINISHED"), "spec": {"job": {"state": "suspended"}}}
    assert not finished(*kind, body)
    assert finished(*kind, body | {"spec": {"job": {"state": "running"}}})


def test_the_group_decides_and_not_the_version() -> None:
    """A kind has its rule in any version of its API group, but not in another group."""
    assert finished("sparkoperator.k8s.io/v2", "SparkApplication", {"status": kubeflow("FAILED")})
    assert not finished("example.com/v1", "Pod", {"status": {"phase": "Failed"}})
    assert not finished("Pod/v1", "Pod", {"status": {"phase": "Failed"}})


WORDS = st.sampled_from(
    ["status", "conditions", "type", "state", "phase", "jobStatus", "spec", "job", "True", "Failed"]
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from([JOB, POD, KUBEFLOW, APACHE, FLINK, SESSION_JOB, OTHER]), ODD)
def test_odd_bodies_are_borne(kind: tuple[str, str], body: object) -> None:
    """The result is True or False for any JSON value, without an error."""
    assert finished(*kind, body) in {True, False}
    assert finished(*kind, {"status": body}) in {True, False}
    assert finished(*kind, {"status": {"conditions": body, "jobStatus": body}}) in {True, False}


@given(st.text(max_size=20), st.text(max_size=20))
def test_odd_kinds_are_borne(api_version: str, kind: str) -> None:
    """An object of an unknown kind without conditions is not over, and raises no error."""
    if (kind, api_version.partition("/")[0]) == ("Job", "batch"):
        return
    assert not finished(api_version, kind, {})
