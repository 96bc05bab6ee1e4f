"""What the operator makes for a copy: a ConfigMap with the plan, one with the controls, Jobs.

Pure: from the copy, its plan and the administrator's profile to objects.
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
from sluice.api.kinds.streamarchive import ArchiveLimits, StreamArchiveSpec
from sluice.core.reconcile.copies.copy_status import job_name, plan_name, positions_name
from sluice.core.values import text
from sluice.core.values.positions import PositionMap
from sluice.core.workloads.plan import MOST_PLAN_JSON, ScopeCopyPlan, compressed, expanded
from sluice.core.workloads.unplanned import read_plan
from sluice.kube.api.names import (
    ATTEMPT_LABEL,
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


POSITIONS_KEY: Final = "positions.json"


def plan_config_map(child: Child, plan: Plan) -> Object:
    """The ConfigMap that holds the plan, which never changes."""
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
    """A plan as data of a ConfigMap; that of a scope is compressed, or it would not fit into it."""
    if isinstance(plan, ScopeCopyPlan):
        return {"binaryData": {SCOPE_PLAN_FILE: base64.b64encode(compressed(plan)).decode()}}
    return {"data": {PLAN_FILE: plan.model_dump_json()}}


def believed_plan(config_map: Object, uid: str, digest: str | None) -> Plan | None:
    """Read the plan of a ConfigMap, if it is the one that the operator wrote; None otherwise.

    Whoever may write ConfigMaps could make this one, and it says to which stores the operator
    connects and which Secret it sends there. So it has to be the plan that the status names, which
    only the operator writes, in an object that is the copy's and cannot be changed.

    Args:
        config_map: as it was found.
        uid: the copy's.
        digest: of the plan, as the copy's status has it.
    """
    if not config_map.get("immutable") or not is_child(config_map, uid):
        return None
    plan = plan_of(config_map)
    return plan if plan is not None and plan.digest == digest else None


def plan_of(config_map: Object) -> Plan | None:
    """The plan that a ConfigMap holds; None where it holds none, or somebody spoiled it."""
    packed = (config_map.get("binaryData") or {}).get(SCOPE_PLAN_FILE)
    try:
        if packed is not None:
            return expanded(base64.b64decode(packed), most=MOST_PLAN_JSON)
        return read_plan((config_map.get("data") or {}).get(PLAN_FILE, ""))
    except ValueError:  # which also pydantic's is
        return None


def positions_config_map(child: Child, positions: PositionMap) -> Object:
    """The ConfigMap that publishes the map of positions.

    A segment takes less room in it than in the plan, so the map of a plan that a ConfigMap could
    hold fits as well.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child.metadata(positions_name(child.name, child.uid), "positions"),
        "data": {POSITIONS_KEY: positions.model_dump_json()},
    }


def positions_of(config_map: Object | None) -> PositionMap | None:
    """The map that a ConfigMap holds; None where there is none, or somebody spoiled it."""
    written = ((config_map or {}).get("data") or {}).get(POSITIONS_KEY, "")
    try:
        return PositionMap.model_validate_json(written)
    except ValidationError:
        return None


def controls_data(spec: CopySpec) -> dict[str, str]:
    """What the driver reads again between rounds."""
    limits = spec.limits
    found: dict[str, int | bool | None] = {"bytesPerSecond": limits.bytes_per_second}
    if not isinstance(limits, ArchiveLimits):
        found["inFlightBytes"] = limits.in_flight_bytes
    if isinstance(spec, StreamArchiveSpec) and spec.retention is not None:
        found["keepLast"] = spec.retention.keep_last
        found["keepSeconds"] = spec.retention.seconds
    if isinstance(spec, ScopeCopySpec):
        found["parallelism"] = spec.parallelism
        found["stopAtFailure"] = spec.failure_policy == "Stop"
    return {"controls.json": json.dumps(found)}


def controls_config_map(child: Child, spec: CopySpec) -> Object:
    """The ConfigMap that holds what may change while the driver runs."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child.metadata(controls_name(child.name, child.uid), "controls"),
        "data": controls_data(spec),
    }


def runtime_hash(spec: CopySpec, profile: Profile, settings: OperatorSettings) -> str:
    """Tells whether a Job was made for the runtime that is wanted now."""
    parts = [
        spec.runtime.model_dump_json(),
        profile.model_dump_json(),
        settings.image,
        settings.image_pull_policy,
        ",".join(settings.image_pull_secrets),
    ]
    return text.short_hash("\n".join(parts))


def job(request: JobRequest) -> Object:
    """The Job of an attempt. Its name follows from the copy and the attempt alone."""
    child, profile, settings = request.child, request.profile, request.settings
    name = job_name(child.uid, request.attempt)
    attempt = {ATTEMPT_LABEL: str(request.attempt)}
    metadata = child.metadata(name, "driver", **attempt)
    metadata["annotations"] = {
        RUNTIME_ANNOTATION: runtime_hash(request.spec, profile, settings),
        f"{GROUP}/copy": child.name,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": profile.ttl_seconds_after_finished,
            "template": {
                "metadata": {
                    "labels": profile.labels | child_labels(child.uid, "driver") | attempt,
                    "annotations": dict(profile.annotations),
                },
                "spec": driver_pod(request, _given(request)),
            },
        },
    }


def run_config_map(request: JobRequest) -> Object:
    """The ConfigMap that an attempt's driver runs from: the plan, a template for executors.

    The plan has a ConfigMap of its own, for people. That one is deleted and made again where a copy
    is planned anew, and a node may remember an immutable object by its name for as long as there
    are pods that used it; this one's name is used once.
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
    return yaml.safe_dump(executor_template(request), sort_keys=False)


def _given(request: JobRequest) -> Given:
    """Tell what an attempt's driver may run from."""
    plan = _plan_data(request.plan)
    packed = plan.get("binaryData", {}).get(SCOPE_PLAN_FILE)
    data = plan["data"][PLAN_FILE].encode() if packed is None else base64.b64decode(packed)
    template = _template(request).encode()
    return Given(*(hashlib.sha256(one).hexdigest() for one in (data, template)))
