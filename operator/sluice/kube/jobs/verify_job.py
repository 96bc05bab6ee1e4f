"""Build the Job that verifies the results of a StreamQuery, and its ConfigMap. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.api.fields.common import GROUP
from sluice.api.fields.query_verify import QueryVerifySpec
from sluice.api.scalars.quantities import Bytes
from sluice.core.reconcile.shared.jobs import verifier_name
from sluice.kube.api.names import ATTEMPT_LABEL, child_labels, run_name
from sluice.kube.jobs.manifests import DRAINED
from sluice.kube.jobs.query_job import REQUEST_FILE, half_of_memory, query_pod, request_data

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Object
    from sluice.kube.jobs.query_job import QueryJob

_COMPONENT: Final = "verifier"

_DISK_SHARE: Final = 0.8
"""The part of the pod's scratch space that the other engine may fill."""


def verify_config_map(job: QueryJob, number: int) -> Object:
    """Build the ConfigMap with the request that a verification reads."""
    name = run_name(verifier_name(job.child.uid, number))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": job.child.metadata(name, "run", **{ATTEMPT_LABEL: str(number)}),
        "immutable": True,
        "data": {REQUEST_FILE: request_data(job)},
    }


def verify_job(job: QueryJob, number: int) -> Object:
    """Build the Job. It has one pod, and another one if the cluster evicts that one.

    Args:
        job: the query.
        number: the number of the verification, from 1.
    """
    child, profile, verify = job.child, job.profile, job.spec.verify or QueryVerifySpec()
    labels = {ATTEMPT_LABEL: str(number)}
    name = verifier_name(child.uid, number)
    metadata = child.metadata(name, _COMPONENT, **labels)
    metadata["annotations"] = {f"{GROUP}/query": child.name}
    disk = int(Bytes("1", "100Ti").read(profile.query.scratch_size) * _DISK_SHARE)
    pod = query_pod(
        job,
        run_name(name),
        number,
        [f"--memory={half_of_memory(job)}", f"--disk={disk}", f"--slots={profile.slots}"],
        command="query-verifier",
    )
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": 0,
            "podFailurePolicy": {"rules": [DRAINED]},
            "activeDeadlineSeconds": verify.timeout_seconds,
            "ttlSecondsAfterFinished": profile.failed_ttl_seconds_after_finished,
            "template": {
                "metadata": {
                    "labels": profile.labels | child_labels(child.uid, _COMPONENT) | labels,
                    "annotations": profile.annotations,
                },
                "spec": pod,
            },
        },
    }
