"""What an attempt's Job is made from, and the pods that come of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from sluice.core.model import StoreAddress
from sluice.core.plan import Plan
from sluice.kube import manifests, names
from sluice.kube.names import Child
from sluice.kube.pods import JobRequest
from sluice.kube.settings import OperatorSettings, Profile
from support.copies import PLAN, UID, spec
from support.plans import segment_plan, stream_plan, whole_plan

if TYPE_CHECKING:
    from sluice.kube.kinds import Object


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
    """What an attempt's Job is made from; fields of the spec may be set."""
    plan = PLAN if size is None else whole_plan(stream_plan(segment_plan(size)))
    if login is not None:
        target = StoreAddress(uri="tcp://there:9090", secret=login)
        plan = Plan(sources=plan.sources, target=target, streams=plan.streams)
    own = {"image": "localhost/sluice:dev", "executorNamespaces": ["team"]} | (operator or {})
    return JobRequest(
        child=Child(namespace="team", name=name, uid=uid),
        attempt=attempt,
        spec=spec(**fields),
        plan=plan,
        profile=Profile.model_validate(profile or {}),
        settings=OperatorSettings.model_validate(own),
    )


def pod_of(made: JobRequest) -> Object:
    """The driver's pod."""
    pod: Object = manifests.job(made)["spec"]["template"]["spec"]
    return pod


def driver(made: JobRequest) -> Object:
    """The driver's container."""
    (container,) = pod_of(made)["containers"]
    return dict(container)


def executor(made: JobRequest) -> Object:
    """The executors' pod, as Spark reads it."""
    template: Object = yaml.safe_load(manifests.run_config_map(made)["data"]["executor.yaml"])
    return template
