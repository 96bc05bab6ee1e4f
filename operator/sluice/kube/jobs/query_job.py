"""Build the Job of a StreamQuery, and the ConfigMap that its pods mount. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.api.fields.common import GROUP
from sluice.api.scalars.quantities import Bytes
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.values import text
from sluice.kube.api.names import ATTEMPT_LABEL, RUNTIME_ANNOTATION, child_labels, run_name
from sluice.kube.jobs.manifests import REPLACED
from sluice.kube.jobs.mounts import CREDENTIALS_DIR, VOLUMES_DIR, mounted_volumes
from sluice.kube.jobs.pods import (
    GRACE_SECONDS,
    RUN_DIR,
    own_fields,
    shared_container,
    shared_pod,
    sized,
)
from sluice.kube.jobs.traced import trace_variables

if TYPE_CHECKING:
    from sluice.api.kinds.streamquery import StreamQuerySpec
    from sluice.core.query.plan import QueryRequest
    from sluice.core.values.model import StoreAddress
    from sluice.kube.api.kinds import Object
    from sluice.kube.api.names import Child
    from sluice.kube.loop.settings import OperatorSettings, Profile

REQUEST_FILE: Final = "request.json"
CHECKPOINTS_DIR: Final = "/var/run/sluice/checkpoints"

_CHECKPOINTS: Final = "checkpoints"
_LEAST: Final = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryJob:
    """Everything that the Job of an attempt depends on.

    Attributes:
        child: the query, as the owner of the Job.
        attempt: the number of the attempt, from 1.
        spec: the query's spec.
        request: what its driver runs.
        claim: the PersistentVolumeClaim of its checkpoint.
        profile: the runtime profile that the spec names.
        settings: the operator's settings.
        trace: the context in which the driver goes on with the operator's trace.
    """

    child: Child
    attempt: int
    spec: StreamQuerySpec
    request: QueryRequest
    claim: str
    profile: Profile
    settings: OperatorSettings
    trace: str = ""

    @property
    def addresses(self) -> tuple[StoreAddress, ...]:
        """The stores that the driver opens."""
        found = [*(source.store for source in self.request.sources)]
        found += [one.archive for one in self.request.sources if one.archive is not None]
        return (*found, *(sink.store for sink in self.request.sinks))


def runtime_hash(job: QueryJob) -> str:
    """Return a hash of the query and its runtime. A Job with another hash is replaced."""
    parts = [
        request_data(job),
        job.claim,
        job.spec.runtime.model_dump_json(),
        job.profile.model_dump_json(),
        job.settings.queries.image,
        job.settings.image_pull_policy,
        ",".join(job.settings.image_pull_secrets),
    ]
    return text.short_hash("\n".join(parts))


def request_config_map(job: QueryJob) -> Object:
    """Build the ConfigMap with the request. Each attempt has one of its own."""
    name = run_name(job_name(job.child.uid, job.attempt))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": job.child.metadata(name, "run", **{ATTEMPT_LABEL: str(job.attempt)}),
        "immutable": True,
        "data": {REQUEST_FILE: request_data(job)},
    }


def query_job(job: QueryJob) -> Object:
    """Build the Job. Kubernetes replaces its pod, also while no operator runs."""
    child, profile = job.child, job.profile
    attempt = {ATTEMPT_LABEL: str(job.attempt)}
    metadata = child.metadata(job_name(child.uid, job.attempt), "driver", **attempt)
    metadata["annotations"] = {RUNTIME_ANNOTATION: runtime_hash(job), f"{GROUP}/query": child.name}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            **REPLACED,
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": profile.failed_ttl_seconds_after_finished,
            "template": {
                "metadata": {
                    "labels": profile.labels | child_labels(child.uid, "driver") | attempt,
                    "annotations": profile.annotations,
                },
                "spec": _pod(job),
            },
        },
    }


def _pod(job: QueryJob) -> Object:
    pod = query_pod(
        job,
        run_name(job_name(job.child.uid, job.attempt)),
        job.attempt,
        [
            f"--checkpoints-dir={CHECKPOINTS_DIR}",
            f"--slots={job.profile.slots}",
            f"--heap={half_of_memory(job)}",
        ],
    )
    claim = {"claimName": job.claim}
    pod["volumes"].append({"name": _CHECKPOINTS, "persistentVolumeClaim": claim})
    mount = {"name": _CHECKPOINTS, "mountPath": CHECKPOINTS_DIR}
    pod["containers"][0]["volumeMounts"].append(mount)
    return pod


def query_pod(
    job: QueryJob, run: str, number: int, options: list[str], *, command: str = "query-driver"
) -> Object:
    """Build the spec of a pod that reads a query's request and reaches its stores.

    Args:
        job: the query.
        run: the name of the ConfigMap with the request.
        number: the number of the pod's Job.
        options: options of the command, besides those of the request.
        command: Sluice's command that the pod runs.
    """
    size = job.profile.query
    volumes, mounts = mounted_volumes(job.addresses, scratch=size.scratch_size)
    volumes.append({"name": "run", "configMap": {"name": run}})
    mounts.append({"name": "run", "mountPath": RUN_DIR, "readOnly": True})
    sha256 = hashlib.sha256(request_data(job).encode()).hexdigest()
    return shared_pod(job.profile, job.settings) | {
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "volumes": volumes,
        "containers": [
            shared_container(job.settings, job.profile)
            | {
                "name": "driver",
                "image": job.settings.queries.image,
                "args": [
                    "sluice",
                    "--log-json",
                    "--log-level=info",
                    command,
                    f"--request={RUN_DIR}/{REQUEST_FILE}",
                    f"--request-sha256={sha256}",
                    *options,
                ],
                "env": _environment(job, number),
                "resources": sized(size, job.spec.runtime.driver.resources),
                "terminationMessagePolicy": "File",
                "volumeMounts": mounts,
            }
        ],
    }


def _environment(job: QueryJob, number: int) -> list[Object]:
    values = {
        "SLUICE_CREDENTIALS_DIR": CREDENTIALS_DIR,
        "SLUICE_VOLUMES_DIR": VOLUMES_DIR,
        "SLUICE_RESOURCE": str(job.child),
        "SLUICE_ATTEMPT": str(number),
        "HOME": "/tmp",  # noqa: S108 - the pod's own emptyDir
    }
    plain = [{"name": name, "value": value} for name, value in values.items()]
    return [*plain, *own_fields(), *trace_variables(job.settings.tracing, job.trace)]


def half_of_memory(job: QueryJob) -> int:
    """Return half of the bytes of a pod's memory: for the JVM, or for the other engine.

    Python has the rest.
    """
    resources = sized(job.profile.query, job.spec.runtime.driver.resources)
    limit = (resources.get("limits") or {}).get("memory")
    return max(_LEAST, (Bytes("1", "100Ti").read(limit) if limit else 2 << 30) // 2)


def request_data(job: QueryJob) -> str:
    """Return the request as its ConfigMap has it."""
    return job.request.model_dump_json(exclude_none=True)
