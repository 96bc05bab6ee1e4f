"""The pods of a copy: its driver's, and the template that executors are made from.

Pure. Every pod here satisfies the `restricted` pod security standard, and none but a driver with
executors gets an API token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sluice.api.kinds.streamarchive import StreamArchiveSpec
from sluice.core.reconcile.copies.copy_status import job_name
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.kube.api.names import child_labels, controls_name, run_name
from sluice.kube.jobs.mounts import CREDENTIALS_DIR, VOLUMES_DIR, claims_of, store_volumes

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

BYTES_PER_EXECUTOR: Final = 8 << 30
"""Where the spec leaves the number of executors open: one for each of these."""

NO_EXECUTORS_BELOW: Final = 1 << 30
"""Bytes up to which the driver does it all: starting executors would take longer."""

EXECUTOR_HEAP: Final = "512Mi"
"""For an executor's JVM, which only hands tasks on; the rest of its memory is Python's."""

GRACE_SECONDS: Final = 30
"""For the driver to finish its slice and stop Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """Everything that an attempt's Job depends on.

    Attributes:
        child: the copy.
        attempt: its number.
        spec: the copy's.
        plan: what to copy.
        profile: what to copy it on.
        settings: the operator's.
    """

    child: Child
    attempt: int
    spec: CopySpec
    plan: Plan
    profile: Profile
    settings: OperatorSettings


def executors_for(request: JobRequest) -> int:
    """Executor pods for a copy: what the spec says, or by the plan's size where it says nothing."""
    wanted = request.spec.runtime.executors
    if wanted is not None:
        return wanted
    if request.child.namespace not in request.settings.executor_namespaces:
        return 0
    size = request.plan.bytes
    suitable = 0 if size < NO_EXECUTORS_BELOW else -(-size // BYTES_PER_EXECUTOR)
    return min(suitable, request.profile.max_executors)


def tasks_for(spec: CopySpec, profile: Profile) -> int:
    """How many tasks will run at once, for planning.

    Where the spec leaves the number of executors open, the plan's size decides, which is not known
    yet: a driver's own then, since what is large enough for executors has parts enough for them.
    """
    executors = spec.runtime.executors or 0
    return executors * profile.executor.cores or profile.slots


class Given(NamedTuple):
    """What a driver may run from, by the SHA-256 of the files in hexadecimal digits."""

    plan: str
    template: str


def driver_pod(request: JobRequest, given: Given) -> Object:
    """The driver's pod."""
    profile, spec = request.profile, request.spec
    executors = executors_for(request)
    volumes, mounts = _volumes(request)
    pod = _pod(profile, request.settings)
    if executors:
        pod["serviceAccountName"] = profile.service_account_name
    return pod | {
        "automountServiceAccountToken": executors > 0,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "volumes": volumes,
        "containers": [
            _container(request.settings, profile)
            | {
                "name": "driver",
                "args": _arguments(request, given, executors),
                "env": _environment(request),
                "resources": _resources(profile.driver, spec.runtime.driver.resources),
                "terminationMessagePolicy": "File",
                "volumeMounts": mounts,
            }
        ],
    }


def _arguments(request: JobRequest, given: Given, executors: int) -> list[str]:
    """The driver's command line."""
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
    """Which runs of an archive the driver may let go of.

    The controls say so, too, and may be anybody's: so they can only have it keep more.
    """
    if not isinstance(spec, StreamArchiveSpec) or spec.retention is None:
        return []
    rules = {"last": spec.retention.keep_last, "seconds": spec.retention.seconds}
    return [f"--keep-{rule}={value}" for rule, value in rules.items() if value is not None]


def _names(request: JobRequest) -> list[Object]:
    """What drivers and executors are told alike: whose they are, and where things lie."""
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
    fields = {
        "POD_NAME": "metadata.name",
        "POD_UID": "metadata.uid",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_IP": "status.podIP",
    }
    return [
        *_names(request),
        {"name": "SLUICE_TERMINATION_LOG", "value": "/dev/termination-log"},
        *(
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for name, path in fields.items()
        ),
    ]


def _volumes(request: JobRequest) -> tuple[list[Object], list[Object]]:
    """The driver's volumes and where they are mounted."""
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
    more_volumes, more_mounts = store_volumes(
        request.plan, scratch=request.profile.driver.scratch_size
    )
    return volumes + more_volumes, mounts + more_mounts


def executor_template(request: JobRequest) -> Object:
    """The pod that Spark makes its executors from."""
    profile, wanted = request.profile, request.spec.runtime.executor
    volumes, mounts = store_volumes(request.plan, scratch=profile.executor.scratch_size)
    pod = _pod(profile, request.settings)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": profile.labels | child_labels(request.child.uid, "executor"),
            "annotations": dict(profile.annotations),
        },
        "spec": pod
        | {
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "volumes": volumes,
            "containers": [
                _container(request.settings, profile)
                | {
                    "name": "executor",
                    "env": _names(request),
                    "resources": _resources(profile.executor, wanted.resources if wanted else None),
                    "volumeMounts": mounts,
                }
            ],
        },
    }


def _pod(profile: Profile, settings: OperatorSettings) -> Object:
    """What all pods have alike."""
    pod: Object = {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            # A volume of archives may have millions of files: they are given to the group once.
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "enableServiceLinks": False,
    }
    optional: dict[str, Any] = {
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
        "nodeSelector": profile.node_selector,
        "tolerations": profile.tolerations,
        "affinity": profile.affinity,
        "priorityClassName": profile.priority_class_name,
    }
    return pod | {key: value for key, value in optional.items() if value}


def _container(settings: OperatorSettings, profile: Profile) -> Object:
    """What all containers have alike."""
    return {
        "image": profile.image or settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _resources(size: PodSize, wanted: ResourcesSpec | None) -> dict[str, dict[str, Any]]:
    """A container's resources: the profile's, with the sizes that the tenant asks for."""
    found: dict[str, dict[str, Any]] = {
        kind: dict(values) for kind, values in size.resources.items()
    }
    if wanted is not None and wanted.cpu is not None:
        found.setdefault("requests", {})["cpu"] = f"{wanted.cpu}m"
    if wanted is not None and wanted.memory is not None:
        # Asked for and allowed alike: a pod that may use more than it asks for is the first to be
        # taken off a node that runs short.
        found.setdefault("requests", {})["memory"] = str(wanted.memory)
        found.setdefault("limits", {})["memory"] = str(wanted.memory)
    return found
