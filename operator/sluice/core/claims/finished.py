"""Tell whether an owner's work is over, by the status of its kind.

The states are those of:

- Job, Pod: the Kubernetes API (batch/v1 JobConditionType, v1 PodPhase). A Job whose success is
  certain (SuccessCriteriaMet) still has running pods: it is not over.
- SparkApplication of sparkoperator.k8s.io: kubeflow/spark-operator, `IsTerminated` in
  pkg/util/sparkapplication.go. After SUCCEEDING, FAILING and SUBMISSION_FAILED it may run again.
- SparkApplication of spark.apache.org: apache/spark-kubernetes-operator,
  `ApplicationStateSummary.isTerminated`. Succeeded and Failed may be followed by a restart.
- FlinkDeployment, FlinkSessionJob: apache/flink-kubernetes-operator, `CommonStatus`. A job that is
  stopped for an upgrade, or suspended, has the state FINISHED or CANCELED too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_JOB: Final = frozenset({"Complete", "Failed"})
_POD: Final = frozenset({"Succeeded", "Failed"})
_KUBEFLOW: Final = frozenset({"COMPLETED", "FAILED"})
_APACHE_SPARK: Final = frozenset({"ResourceReleased", "TerminatedWithoutReleaseResources"})
_FLINK: Final = frozenset({"FINISHED", "FAILED", "CANCELED"})
_FLINK_ON_THE_WAY: Final = frozenset({"UPGRADING", "ROLLING_BACK"})
_ANY: Final = frozenset({"Complete", "Succeeded", "Finished", "Failed"})


def finished(api_version: str, kind: str, body: object) -> bool:
    """Tell whether the work of an object is over, successfully or not.

    Args:
        api_version: the API version of its kind.
        kind: its kind.
        body: the object. If it does not have the form of its kind, it is not over.
    """
    group, slash, _ = api_version.partition("/")
    rule = _RULES.get((group if slash else "", kind))
    return rule(body) if rule else _has_condition(body, _ANY)


def _has_condition(body: object, types: frozenset[str]) -> bool:
    """Tell whether an object has one of these conditions with status True."""
    conditions = _at(body, "status", "conditions")
    return isinstance(conditions, list) and any(
        _word(one, "type") in types and _word(one, "status") == "True" for one in conditions
    )


def _flink(body: object) -> bool:
    return (
        _word(body, "status", "jobStatus", "state") in _FLINK
        and _word(body, "status", "reconciliationStatus", "state") not in _FLINK_ON_THE_WAY
        and _word(body, "spec", "job", "state").lower() != "suspended"
    )


def _at(body: object, *path: str) -> Any:
    """Return the value at a path of keys; None if there is none."""
    for key in path:
        if not isinstance(body, dict):
            return None
        body = body.get(key)
    return body


def _word(body: object, *path: str) -> str:
    """Return the text at a path of keys; empty if there is none."""
    found = _at(body, *path)
    return found if isinstance(found, str) else ""


_RULES: Final[Mapping[tuple[str, str], Callable[[object], bool]]] = {
    ("batch", "Job"): lambda body: _has_condition(body, _JOB),
    ("", "Pod"): lambda body: _word(body, "status", "phase") in _POD,
    ("sparkoperator.k8s.io", "SparkApplication"): lambda body: (
        _word(body, "status", "applicationState", "state") in _KUBEFLOW
    ),
    ("spark.apache.org", "SparkApplication"): lambda body: (
        _word(body, "status", "currentState", "currentStateSummary") in _APACHE_SPARK
    ),
    ("flink.apache.org", "FlinkDeployment"): _flink,
    ("flink.apache.org", "FlinkSessionJob"): _flink,
}
