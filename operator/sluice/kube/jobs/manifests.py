"""Build the objects that the operator makes for a copy: ConfigMaps and Jobs.

The ConfigMaps hold the plan, the controls and the map of positions. All functions are pure: they
build objects from the copy, its plan and the administrator's profile.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Final

import yaml
from pydantic import ValidationError

from sluice.api.fields.common import GROUP
from sluice.api.kinds.scopecopy import ScopeCopySpec
from sluice.api.kinds.streamarchive import ArchiveLimits
from sluice.core.reconcile.copies.object_names import plan_name, positions_name
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.values import text
from sluice.core.values.positions import PositionMap
from sluice.core.workloads.plan import MOST_PLAN_JSON, ScopeCopyPlan, compressed, expanded
from sluice.core.workloads.request import retention_of
from sluice.core.workloads.unplanned import read_plan
from sluice.errors import EXIT_CODES, Category
from sluice.kube.api.names import (
    ATTEMPT_LABEL,
    FOLLOWS_ANNOTATION,
    RUNTIME_ANNOTATION,
    child_labels,
    controls_name,
    is_child,
    run_name,
)
from sluice.kube.jobs.pods import PLAN_FILE, SCOPE_PLAN_FILE, Given, driver_pod, executor_template

if TYPE_CHECKING:
    from sluice.core.workloads.plan import Plan
    from sluice.kube.api.kinds import Object
    from sluice.kube.api.names import Child
    from sluice.kube.api.objects import CopySpec
    from sluice.kube.jobs.pods import JobRequest
    from sluice.kube.loop.settings import OperatorSettings, Profile


DRAINED: Final[Object] = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}
"""The rule by which a node that is drained is no failure of a pod, however often it is."""

REPLACED: Final[Object] = {
    "backoffLimit": 6,
    "podFailurePolicy": {
        "rules": [
            DRAINED,
            # Another pod would fail for the same reason: in the spec, or in the data.
            {
                "action": "FailJob",
                "onExitCodes": {
                    "containerName": "driver",
                    "operator": "In",
                    "values": [EXIT_CODES[Category.SPEC], EXIT_CODES[Category.INTEGRITY]],
                },
            },
        ]
    },
}
"""The part of a follower's Job by which Kubernetes replaces its pod, also while no operator runs.

Each pod that fails is replaced later than the one before. The Job gives up after six failures, and
the operator begins another attempt.
"""

POSITIONS_KEY: Final = "positions.json"


def plan_config_map(child: Child, plan: Plan) -> Object:
    """Build the immutable ConfigMap that holds the plan."""
    notes = {f"{GROUP}/plan-hash": plan.hash}
    if isinstance(plan, ScopeCopyPlan):  # which people cannot read without unpacking it
        notes |= {
            f"{GROUP}/streams": str(len(plan.items)),
            f"{GROUP}/bytes": str(plan.bytes),
            f"{GROUP}/run": str(plan.scope.run),
        }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child.metadata(plan_name(child.name, child.uid), "plan")
        | {"annotations": notes},
        "immutable": True,
        **_plan_data(plan),
    }


def _plan_data(plan: Plan) -> Object:
    """Build a ConfigMap's data from a plan. A scope's plan is compressed, or it would not fit."""
    if isinstance(plan, ScopeCopyPlan):
        return {"binaryData": {SCOPE_PLAN_FILE: base64.b64encode(compressed(plan)).decode()}}
    return {"data": {PLAN_FILE: plan.model_dump_json()}}


def believed_plan(config_map: Object, uid: str, digest: str | None) -> Plan | None:
    """Read the plan of a ConfigMap if the operator wrote it. Return None otherwise.

    The plan decides to which stores the operator connects, and which Secret it sends there. Any
    user who may write ConfigMaps could forge one. So its digest must be the one in the copy's
    status, which only the operator writes. The object must be immutable and belong to the copy.

    Args:
        config_map: the object in the cluster.
        uid: the copy's UID.
        digest: the digest of the plan in the copy's status.
    """
    if not config_map.get("immutable") or not is_child(config_map, uid):
        return None
    plan = plan_of(config_map)
    return plan if plan is not None and plan.digest == digest else None


def plan_of(config_map: Object) -> Plan | None:
    """Return the plan that a ConfigMap holds; None if it holds no valid plan."""
    packed = (config_map.get("binaryData") or {}).get(SCOPE_PLAN_FILE)
    try:
        if packed is not None:
            return expanded(base64.b64decode(packed), most=MOST_PLAN_JSON)
        return read_plan((config_map.get("data") or {}).get(PLAN_FILE, ""))
    except ValueError:  # pydantic's ValidationError is a ValueError too
        return None


def positions_config_map(child: Child, positions: PositionMap) -> Object:
    """Build the ConfigMap that publishes the map of positions.

    The map needs less room for a segment than the plan does. So it fits into a ConfigMap if the
    plan did.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child.metadata(positions_name(child.name, child.uid), "positions"),
        "data": {POSITIONS_KEY: positions.model_dump_json()},
    }


def positions_of(config_map: Object | None) -> PositionMap | None:
    """Return the map of positions that a ConfigMap holds; None if there is no valid map."""
    written = ((config_map or {}).get("data") or {}).get(POSITIONS_KEY, "")
    try:
        return PositionMap.model_validate_json(written)
    except ValidationError:
        return None


def controls_data(spec: CopySpec) -> dict[str, str]:
    """Build the data of the controls: limits, and an archive's retention or a scope's policy.

    The driver reads them again several times a second.
    """
    limits = spec.limits
    found: dict[str, int | bool | None] = {"bytesPerSecond": limits.bytes_per_second}
    if not isinstance(limits, ArchiveLimits):
        found["inFlightBytes"] = limits.in_flight_bytes
    retention = retention_of(spec)
    if retention.has_rule:
        found["keepLast"] = retention.keep_last
        found["keepSeconds"] = retention.keep_seconds
    if isinstance(spec, ScopeCopySpec):
        found["parallelism"] = spec.parallelism
        found["stopAtFailure"] = spec.failure_policy == "Stop"
    return {"controls.json": json.dumps(found)}


def controls_config_map(child: Child, spec: CopySpec, attempt: int) -> Object:
    """Build the ConfigMap with the controls, which may change while the driver runs.

    Its label has the number of the latest attempt that it was written for.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child.metadata(
            controls_name(child.name, child.uid), "controls", **{ATTEMPT_LABEL: str(attempt)}
        ),
        "data": controls_data(spec),
    }


def runtime_hash(spec: CopySpec, profile: Profile, settings: OperatorSettings) -> str:
    """Return a hash of the runtime. A Job with another hash was made for an older runtime."""
    parts = [
        spec.runtime.model_dump_json(),
        profile.model_dump_json(),
        settings.image,
        settings.image_pull_policy,
        ",".join(settings.image_pull_secrets),
    ]
    return text.short_hash("\n".join(parts))


def job(request: JobRequest) -> Object:
    """Build the Job of an attempt. Its name follows from the copy and the attempt alone."""
    child, profile, settings = request.child, request.profile, request.settings
    name = job_name(child.uid, request.attempt)
    attempt = {ATTEMPT_LABEL: str(request.attempt)}
    metadata = child.metadata(name, "driver", **attempt)
    metadata["annotations"] = child.notes | {
        RUNTIME_ANNOTATION: runtime_hash(request.spec, profile, settings),
        f"{GROUP}/copy": child.name,
        **({FOLLOWS_ANNOTATION: "true"} if request.follower else {}),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            **(REPLACED if request.follower else {"backoffLimit": 0}),
            "podReplacementPolicy": "Failed",
            # The operator deletes the Jobs of a copy that has succeeded earlier; see `decide`.
            "ttlSecondsAfterFinished": max(
                profile.ttl_seconds_after_finished, profile.failed_ttl_seconds_after_finished
            ),
            "template": {
                "metadata": {
                    "labels": profile.labels | child_labels(child.uid, "driver") | attempt,
                    "annotations": profile.annotations | child.notes,
                },
                "spec": driver_pod(request, _given(request)),
            },
        },
    }


def run_config_map(request: JobRequest) -> Object:
    """Build the ConfigMap that an attempt's driver reads: the plan and the executors' template.

    Each attempt has a ConfigMap with a name of its own, although `plan_config_map` has the plan as
    well. That object is deleted and made again when a copy is planned anew. A node may cache an
    immutable object by its name for as long as pods use it, and would mount the old plan.
    """
    child = request.child
    name = run_name(job_name(child.uid, request.attempt))
    plan = _plan_data(request.plan)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child.metadata(name, "run", **{ATTEMPT_LABEL: str(request.attempt)}),
        "immutable": True,
        **plan,
        "data": {**plan.get("data", {}), "executor.yaml": _template(request)},
    }


def _template(request: JobRequest) -> str:
    # The dumper in C, for an operator that starts hundreds of copies.
    return yaml.dump(executor_template(request), Dumper=yaml.CSafeDumper, sort_keys=False)


def _given(request: JobRequest) -> Given:
    """Return the digests of the files that an attempt's driver may run from."""
    plan = _plan_data(request.plan)
    packed = plan.get("binaryData", {}).get(SCOPE_PLAN_FILE)
    data = plan["data"][PLAN_FILE].encode() if packed is None else base64.b64decode(packed)
    template = _template(request).encode()
    return Given(*(hashlib.sha256(one).hexdigest() for one in (data, template)))
