"""Jobs of drivers as the operator makes them, without an operator."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from sluice.api.kinds.streamcopy import StreamCopySpec
from sluice.config import Settings
from sluice.core.copy.planner import CopyRequest, SourceRequest
from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.workloads.plan import Plan, StreamCopyPlan
from sluice.engine.copy.planning import resolve
from sluice.kube.api.kinds import STREAM_COPY
from sluice.kube.api.names import Child
from sluice.kube.jobs import manifests
from sluice.kube.jobs.pods import JobRequest
from sluice.kube.loop.settings import OperatorSettings, Profile
from sluice.stores.connect import connect
from support.until import NeverHappenedError, until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from localcluster import Cluster, ClusterStore

Object = dict[str, Any]
Stream = tuple[str, str]
T = TypeVar("T")


RIGHTS: list[Object] = [
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sluice-driver"}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "sluice-driver"},
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["pods"],
                "verbs": ["create", "get", "list", "watch", "delete", "deletecollection"],
            }
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "sluice-driver"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": "sluice-driver",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "sluice-driver"}],
    },
]
"""All rights of a driver with executors. A driver without executors has none."""


@dataclass(frozen=True)
class DriverJobs:
    """One namespace in which drivers run.

    Attributes:
        cluster: the cluster.
        namespace: the namespace.
        store: the Pravega to copy within.
        image: Sluice's image.
    """

    cluster: Cluster
    namespace: str
    store: ClusterStore
    image: str
    _copies: list[str] = field(default_factory=list)

    def run(self, *words: str, stdin: str | None = None, timeout: float = 300) -> str:
        """Run kubectl, and return its output."""
        return self.cluster.kubectl(
            f"--namespace={self.namespace}", *words, stdin=stdin, timeout=timeout
        )

    def apply(self, *objects: Object) -> None:
        """Apply objects."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.run("apply", "--filename=-", stdin=json.dumps(listed))

    def plan(self, source: Stream, target: Stream, *, follow: bool = False) -> Plan:
        """Return the plan of a copy, with the store's address as pods know it.

        Args:
            source: the source.
            target: the target.
            follow: whether the copy follows its source.
        """
        request = CopyRequest(
            copy_id=f"{abs(hash(target)):032x}"[-32:],
            sources=(SourceRequest(stream=StreamName(scope=source[0], stream=source[1])),),
            target=StreamName(scope=target[0], stream=target[1]),
            part_bytes=8 << 20,
            follow=follow,
        )
        store = connect(StoreAddress(uri=self.store.host_uri), Settings())
        try:
            found = resolve(request, [store], store)
        finally:
            store.close()
        assert found.plan is not None
        address = StoreAddress(uri=self.store.uri)
        return StreamCopyPlan(sources=(address,), target=address, streams=(found.plan,))

    def start(
        self,
        plan: Plan,
        *,
        executors: int = 0,
        attempt: int = 1,
        bytes_per_second: int | None = None,
        profile: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> DriverJob:
        """Start a driver for a plan.

        Args:
            plan: the plan.
            executors: number of pods beside the driver's.
            attempt: the attempt's number.
            bytes_per_second: the limit in its controls.
            profile: settings that differ from the default profile.
            environment: variables beside those that the operator sets.
        """
        stream = plan.streams[0]
        child = Child(
            kind=STREAM_COPY,
            namespace=self.namespace,
            name=stream.target.stream,
            uid=stream.copy_id,
        )
        request = JobRequest(
            child=child,
            attempt=attempt,
            spec=_spec(plan, executors, bytes_per_second),
            plan=plan,
            profile=Profile.model_validate(_SMALL | dict(profile or {})),
            settings=OperatorSettings(image=self.image, executor_namespaces=[self.namespace]),
        )
        job = manifests.job(request)
        pod = job["spec"]["template"]["spec"]
        pod["containers"][0]["env"] += [
            {"name": name, "value": value} for name, value in (environment or {}).items()
        ]
        objects = [
            manifests.plan_config_map(child, plan),
            manifests.controls_config_map(child, request.spec, request.attempt),
            manifests.run_config_map(request),
            job,
        ]
        for item in objects:
            # There is no such StreamCopy, and objects that it owns would be collected.
            del item["metadata"]["ownerReferences"]
        self.apply(*objects)
        return DriverJob(self, job["metadata"]["name"])


_SIZE: Object = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
_SMALL: Object = {
    "driver": {"resources": _SIZE, "scratchSize": "200Mi"},
    "executor": {"resources": _SIZE, "scratchSize": "200Mi"},
}


def _spec(plan: Plan, executors: int, bytes_per_second: int | None) -> StreamCopySpec:
    stream = plan.streams[0]
    return StreamCopySpec.model_validate(
        {
            "source": {"storeRef": {"name": "store"}, **stream.sources[0].stream.model_dump()},
            "target": {"storeRef": {"name": "store"}, **stream.target.model_dump()},
            "limits": {"bytesPerSecond": bytes_per_second},
            "runtime": {"executors": executors},
            "mode": "Continuous" if stream.follow else "Snapshot",
        }
    )


@dataclass(frozen=True)
class DriverJob:
    """A driver's Job in progress."""

    jobs: DriverJobs
    name: str

    @property
    def pod(self) -> Object:
        """The driver's pod, once it exists."""
        found = self.until("there is a pod", lambda: self._pods(f"job-name={self.name}"))
        return found[0]

    @property
    def executors(self) -> list[Object]:
        """The executors' present pods."""
        return self._pods("app.kubernetes.io/component=executor")

    def running(self, executors: int) -> list[Object]:
        """Wait until `executors` executors run, and return their pods."""

        def check() -> list[Object]:
            pods = [pod for pod in self.executors if pod["status"].get("phase") == "Running"]
            return pods if len(pods) >= executors else []

        return self.until(f"{executors} executors run", check)

    def delete_pod(self, pod: Object) -> None:
        """Kill a pod at once."""
        name = pod["metadata"]["name"]
        self.jobs.run("delete", "pod", name, "--force", "--grace-period=0", "--wait=false")

    def ended(self, *, deleted: str | None = None) -> End:
        """Wait for the end of the driver's container.

        Args:
            deleted: name of the driver's pod if it was deleted. Another pod may have followed, and
                the node may have dropped its log.
        """

        def check() -> Object | None:
            pods = self._pods(f"job-name={self.name}")
            own = [one for one in pods if deleted in {None, one["metadata"]["name"]}]
            statuses = own[0]["status"].get("containerStatuses", []) if own else []
            found: Object | None = statuses[0]["state"].get("terminated") if statuses else None
            return found

        state = self.until("the driver ends", check)
        return End(
            code=state["exitCode"],
            message=json.loads(state.get("message", "{}")),
            log=[] if deleted else self.log(),
        )

    def log(self) -> list[Object]:
        """Return the driver's log, empty before it begins. A line without JSON fails the test."""
        if not self.pod["status"].get("containerStatuses", [{}])[0].get("containerID"):
            return []
        lines = self.jobs.run("logs", self.pod["metadata"]["name"]).splitlines()
        return [json.loads(line) for line in lines]

    def until_step(self, step: str) -> None:
        """Wait until the driver takes a step."""
        self.until(step, lambda: step in [line.get("step") for line in self.log()])

    def until(self, what: str, check: Callable[[], T | None]) -> T:
        """Wait until a check returns a true value, and return that value."""
        try:
            return until(what, check)
        except NeverHappenedError as error:
            error.add_note(self.jobs.run("describe", "pods")[-6000:])
            raise

    def _pods(self, selector: str) -> list[Object]:
        found = json.loads(self.jobs.run("get", "pods", f"--selector={selector}", "--output=json"))
        items: list[Object] = found["items"]
        return items


@dataclass(frozen=True)
class End:
    """The end of a driver: exit code, termination message, log."""

    code: int
    message: Object
    log: list[Object]

    def events(self) -> list[str]:
        """Return the events of the log, line by line."""
        return [line["event"] for line in self.log]
