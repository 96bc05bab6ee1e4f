"""Build the pods of a copy: the driver's pod, and the template of executor pods.

All functions are pure. Every pod satisfies the pod security standard `restricted`. Only a driver
with executors gets an API token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.core.workloads.request import retention_of
from sluice.kube.api.names import child_labels, controls_name, run_name
from sluice.kube.jobs.mounts import CREDENTIALS_DIR, VOLUMES_DIR, claims_of, store_volumes
from sluice.kube.jobs.traced import trace_variables

if TYPE_CHECKING:
    from sluice.api.fields.running import ResourcesSpec
    from sluice.core.workloads.plan import Plan
    from sluice.kube.api.kinds import Object
    from sluice.kube.api.names import Child
    from sluice.kube.api.objects import CopySpec
    from sluice.kube.loop.settings import OperatorSettings, PodSize, Profile

RUN_DIR: Final = "/etc/sluice/run"
PLAN_FILE: Final = "plan.json"
SCOPE_PLAN_FILE: Final = "plan.json.gz"
CONTROLS_DIR: Final = "/etc/sluice/controls"
USER: Final = 65532

POD_SECURITY: Final = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
    # A volume of archives may have millions of files, so they change their group only once.
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security context of all pods."""

CONTAINER_SECURITY: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
"""The security context of all containers."""

BYTES_PER_EXECUTOR: Final = 8 << 30
"""Bytes for each executor, if the spec does not say how many executors there are."""

NO_EXECUTORS_BELOW: Final = 1 << 30
"""Bytes below which the driver does all work itself: starting executors would take longer."""

EXECUTOR_HEAP: Final = "512Mi"
"""The heap of an executor's JVM, which only hands tasks on. Python uses the rest of the memory."""

GRACE_SECONDS: Final = 30
"""Seconds that a driver has to finish its tasks and stop Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """Everything that an attempt's Job depends on.

    Attributes:
        child: the copy, as the owner of the Job.
        attempt: the number of the attempt, from 1.
        spec: the copy's spec.
        plan: the plan.
        profile: the runtime profile that the spec names.
        settings: the operator's settings.
        follower: whether its pod follows the source, in a process of its own and without Spark.
        behind: the bytes that a live target is behind, which a driver is to stage; else 0.
        trace: the context in which the driver goes on with the operator's trace.
    """

    child: Child
    attempt: int
    spec: CopySpec
    plan: Plan
    profile: Profile
    settings: OperatorSettings
    follower: bool = False
    behind: int = 0
    trace: str = ""

    @property
    def size(self) -> PodSize:
        """The size of the pod."""
        return self.profile.follower if self.follower else self.profile.driver


def executors_for(request: JobRequest) -> int:
    """Return the number of executors: from the spec, or by the plan's size if the spec has none.

    There are none in the namespace of a StreamStore: their driver could make pods there.
    """
    if request.child.host is not None or request.follower:
        return 0
    wanted = request.spec.runtime.executors
    if wanted is not None:
        return wanted
    if request.child.namespace not in request.settings.executor_namespaces:
        return 0
    size = max(request.plan.bytes, request.behind)
    suitable = 0 if size < NO_EXECUTORS_BELOW else -(-size // BYTES_PER_EXECUTOR)
    return min(suitable, request.profile.max_executors)


def tasks_for(spec: CopySpec, profile: Profile) -> int:
    """Return how many tasks will run at once, for planning.

    If the spec does not say how many executors there are, the plan's size will decide, which is not
    known yet. Then the driver's own slots count: a plan that is large enough for executors has
    enough parts for them anyway.
    """
    executors = spec.runtime.executors or 0
    return executors * profile.executor.cores or profile.slots


class Given(NamedTuple):
    """The SHA-256 of the files that a driver may run from, in hexadecimal digits."""

    plan: str
    template: str


def driver_pod(request: JobRequest, given: Given) -> Object:
    """Build the spec of the driver's pod."""
    profile, spec = request.profile, request.spec
    executors = executors_for(request)
    volumes, mounts = _volumes(request)
    pod = shared_pod(profile, request.settings)
    if executors:
        pod["serviceAccountName"] = profile.service_account_name
    return pod | {
        "automountServiceAccountToken": executors > 0,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "volumes": volumes,
        "containers": [
            shared_container(request.settings, profile)
            | {
                "name": "driver",
                "args": _arguments(request, given, executors),
                "env": _environment(request),
                "resources": sized(
                    request.size, None if request.follower else spec.runtime.driver.resources
                ),
                "terminationMessagePolicy": "File",
                "volumeMounts": mounts,
            }
        ],
    }


def _arguments(request: JobRequest, given: Given, executors: int) -> list[str]:
    """Build the driver's command line."""
    profile = request.profile
    plan = SCOPE_PLAN_FILE if isinstance(request.plan, ScopeCopyPlan) else PLAN_FILE
    found = [
        "sluice",
        "--log-json",
        "--log-level=info",
        "driver",
        f"--plan={RUN_DIR}/{plan}",
        f"--plan-sha256={given.plan}",
        f"--controls={CONTROLS_DIR}/controls.json",
        f"--slots={profile.slots}",
    ]
    if request.plan.follows:
        found += [f"--owner={request.child.uid}", "--here" if request.follower else "--until-live"]
    found += _retention(request.spec)
    if executors:
        found += [
            f"--executors={executors}",
            f"--executor-template={RUN_DIR}/executor.yaml",
            f"--executor-template-sha256={given.template}",
            f"--executor-memory={EXECUTOR_HEAP}",
            f"--executor-cores={profile.executor.cores}",
        ]
    return found + [f"--spark-conf={key}={value}" for key, value in profile.spark_conf.items()]


def _retention(spec: CopySpec) -> list[str]:
    """Build the arguments for the retention of archives.

    The controls have the retention, too, but other users may be able to change their ConfigMap. So
    the controls can only make the driver keep more runs than these arguments do.
    """
    retention = retention_of(spec)
    rules = {"last": retention.keep_last, "seconds": retention.keep_seconds}
    return [f"--keep-{rule}={value}" for rule, value in rules.items() if value is not None]


def _names(request: JobRequest) -> list[Object]:
    """Build the environment that drivers and executors share: the copy's name, and folders."""
    claims = claims_of(request.plan)
    volumes = [{"name": "SLUICE_VOLUMES_DIR", "value": VOLUMES_DIR}] if claims else []
    return [
        {"name": "SLUICE_CREDENTIALS_DIR", "value": CREDENTIALS_DIR},
        *volumes,
        {"name": "SLUICE_RESOURCE", "value": str(request.child)},
        {"name": "SLUICE_ATTEMPT", "value": str(request.attempt)},
        {"name": "HOME", "value": "/tmp"},  # noqa: S108 - the pod's own emptyDir
    ]


def _environment(request: JobRequest) -> list[Object]:
    catches_up = request.plan.follows and not request.follower
    far = [{"name": "SLUICE_FAR_BYTES", "value": str(request.profile.catch_up_from)}]
    return [
        *_names(request),
        *(far if catches_up else []),
        *own_fields(),
        *trace_variables(request.settings.tracing, request.trace),
    ]


def own_fields() -> list[Object]:
    """Return the part of a driver's environment that tells what its pod is."""
    fields = {
        "POD_NAME": "metadata.name",
        "POD_UID": "metadata.uid",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_IP": "status.podIP",
    }
    return [
        {"name": "SLUICE_TERMINATION_LOG", "value": "/dev/termination-log"},
        *(
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for name, path in fields.items()
        ),
    ]


def _volumes(request: JobRequest) -> tuple[list[Object], list[Object]]:
    """Return the driver's volumes and their mounts."""
    child = request.child
    volumes: list[Object] = [
        {
            "name": "run",
            "configMap": {"name": run_name(job_name(child.uid, request.attempt))},
        },
        {"name": "controls", "configMap": {"name": controls_name(child.name, child.uid)}},
    ]
    mounts: list[Object] = [
        {"name": "run", "mountPath": RUN_DIR, "readOnly": True},
        {"name": "controls", "mountPath": CONTROLS_DIR, "readOnly": True},
    ]
    more_volumes, more_mounts = store_volumes(request.plan, scratch=request.size.scratch_size)
    return volumes + more_volumes, mounts + more_mounts


def executor_template(request: JobRequest) -> Object:
    """Build the pod template from which Spark makes executors."""
    profile, wanted = request.profile, request.spec.runtime.executor
    volumes, mounts = store_volumes(request.plan, scratch=profile.executor.scratch_size)
    pod = shared_pod(profile, request.settings)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": profile.labels | child_labels(request.child.uid, "executor"),
            "annotations": profile.annotations | request.child.notes,
        },
        "spec": pod
        | {
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "volumes": volumes,
            "containers": [
                shared_container(request.settings, profile)
                | {
                    "name": "executor",
                    "env": _names(request),
                    "resources": sized(profile.executor, wanted.resources if wanted else None),
                    "volumeMounts": mounts,
                }
            ],
        },
    }


def shared_pod(profile: Profile, settings: OperatorSettings) -> Object:
    """Build the part of a pod's spec that all pods share."""
    pod: Object = {"securityContext": POD_SECURITY, "enableServiceLinks": False}
    optional: dict[str, Any] = {
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
        "nodeSelector": profile.node_selector,
        "tolerations": profile.tolerations,
        "affinity": profile.affinity,
        "priorityClassName": profile.priority_class_name,
    }
    return pod | {key: value for key, value in optional.items() if value}


def shared_container(settings: OperatorSettings, profile: Profile) -> Object:
    """Build the part that all containers share."""
    return {
        "image": profile.image or settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "securityContext": CONTAINER_SECURITY,
    }


def sized(size: PodSize, wanted: ResourcesSpec | None) -> dict[str, dict[str, Any]]:
    """Build a container's resources: the profile's, with the sizes that the tenant asks for."""
    found: dict[str, dict[str, Any]] = {
        kind: dict(values) for kind, values in size.resources.items()
    }
    if wanted is not None and wanted.cpu is not None:
        found.setdefault("requests", {})["cpu"] = f"{wanted.cpu}m"
    if wanted is not None and wanted.cpu_limit is not None:
        found.setdefault("limits", {})["cpu"] = f"{wanted.cpu_limit}m"
    if wanted is not None and wanted.memory is not None:
        # Request and limit are the same: a node that is short of memory first evicts pods that use
        # more than they requested.
        found.setdefault("requests", {})["memory"] = str(wanted.memory)
        found.setdefault("limits", {})["memory"] = str(wanted.memory)
    return found
