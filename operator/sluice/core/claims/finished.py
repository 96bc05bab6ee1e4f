"""Whether the work of an owner is over, as its kind says it.

The words are those of:

- Job, Pod: the Kubernetes API (batch/v1 JobConditionType, v1 PodPhase). A Job whose success is
  certain (SuccessCriteriaMet) has pods that run still: it is not over.
- SparkApplication of sparkoperator.k8s.io: kubeflow/spark-operator, `IsTerminated` in
  pkg/util/sparkapplication.go. SUCCEEDING, FAILING and SUBMISSION_FAILED may be tried again.
- SparkApplication of spark.apache.org: apache/spark-kubernetes-operator,
  `ApplicationStateSummary.isTerminated`. Succeeded and Failed may be followed by a restart.
- FlinkDeployment, FlinkSessionJob: apache/flink-kubernetes-operator, `CommonStatus`. The state
  of a job is FINISHED or CANCELED also while it is stopped for an upgrade, or suspended.
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
    """Whether the work of an object is over, well or not.

    Args:
        api_version: of its kind.
        kind: its kind.
        body: the object. Of what does not look as its kind should, nothing is over.
    """
    group, slash, _ = api_version.partition("/")
    rule = _RULES.get((group if slash else "", kind))
    return rule(body) if rule else _has_condition(body, _ANY)


def _has_condition(body: object, types: frozenset[str]) -> bool:
    """Whether one of these conditions is True."""
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
    """What is at a path of keys; None when there is nothing."""
    for key in path:
        if not isinstance(body, dict):
            return None
        body = body.get(key)
    return body


def _word(body: object, *path: str) -> str:
    """The text at a path of keys; empty when there is none."""
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
