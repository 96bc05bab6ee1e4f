"""Requests for an attempt's Job, and the pods that they lead to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import yaml

from sluice.api.kinds.scopecopy import ScopeCopySpec
from sluice.core.scope.scope import ScopePlan
from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.workloads.plan import Plan, ScopeCopyPlan, StreamCopyPlan
from sluice.kube.api import names
from sluice.kube.api.kinds import SCOPE_COPY, STREAM_COPY
from sluice.kube.api.names import Child
from sluice.kube.jobs import manifests
from sluice.kube.jobs.pods import JobRequest
from sluice.kube.loop.settings import OperatorSettings, Profile
from support.cases import resources
from support.engine.plans import segment_plan, stream_plan, whole_plan, whole_scope
from support.reconcile.copies import PLAN, UID, spec

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Object


GIB = 1 << 30
RICH = {
    "image": "registry.example/sluice:1",
    "serviceAccountName": "runner",
    "slots": 3,
    "maxExecutors": 4,
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "batch", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "low",
    "labels": {"team": "data", names.UID_LABEL: "mine", "app.kubernetes.io/name": "mine"},
    "annotations": {"mesh": "off"},
    "sparkConf": {"spark.executor.extraJavaOptions": "-Xss4m"},
}


def request(
    *,
    name: str = "orders",
    uid: str = UID,
    attempt: int = 1,
    size: int | None = None,
    login: str | None = None,
    profile: dict[str, Any] | None = None,
    operator: dict[str, Any] | None = None,
    **fields: Any,
) -> JobRequest:
    """Return the request for an attempt's Job, with some fields of the spec set."""
    plan = PLAN if size is None else whole_plan(stream_plan(segment_plan(size)))
    if login is not None:
        target = StoreAddress(uri="tcp://there:9090", secret=login)
        plan = StreamCopyPlan(sources=plan.sources, target=target, streams=plan.streams)
    own = {"image": "localhost/sluice:dev", "executorNamespaces": ["team"]} | (operator or {})
    return JobRequest(
        child=Child(kind=STREAM_COPY, namespace="team", name=name, uid=uid),
        attempt=attempt,
        spec=spec(**fields),
        plan=plan,
        profile=Profile.model_validate(profile or {}),
        settings=OperatorSettings.model_validate(own),
    )


def scope_plan(count: int = 3) -> ScopeCopyPlan:
    """Return a plan of `count` streams of a scope."""
    streams = [
        stream_plan(
            segment_plan(1000 + number),
            copy=f"{number:032x}",
            source=StreamName(scope="in", stream=f"stream-{number:05}"),
            target=StreamName(scope="out", stream=f"stream-{number:05}"),
        )
        for number in range(count)
    ]
    scope = ScopePlan(scope_id="cd" * 16, source="in", target="out", begin=1_000, end=1_020)
    return whole_scope(scope, *streams)


def scope_request(plan: Plan | None = None, **fields: Any) -> JobRequest:
    """Return the request for the Job of a scope's attempt, with some fields of the spec set."""
    return replace(
        request(),
        child=Child(kind=SCOPE_COPY, namespace="team", name="shop", uid=UID),
        spec=ScopeCopySpec.model_validate(resources.SCOPE["spec"] | fields),
        plan=plan or scope_plan(),
    )


def pod_of(made: JobRequest) -> Object:
    """Return the driver's pod."""
    pod: Object = manifests.job(made)["spec"]["template"]["spec"]
    return pod


def driver(made: JobRequest) -> Object:
    """Return the driver's container."""
    (container,) = pod_of(made)["containers"]
    return dict(container)


def executor(made: JobRequest) -> Object:
    """Return the executors' pod, as Spark reads it."""
    template: Object = yaml.safe_load(manifests.run_config_map(made)["data"]["executor.yaml"])
    return template


PLATFORM: Final = "platform"


def hosted(**how: Any) -> JobRequest:
    """Return the request for an attempt whose driver runs in the platform's namespace."""
    made = request(**how)
    return type(made)(
        child=made.child.at(PLATFORM),
        attempt=made.attempt,
        spec=made.spec,
        plan=made.plan,
        profile=made.profile,
        settings=made.settings,
    )
