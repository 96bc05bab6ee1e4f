"""A cluster and stores in memory, in which operators and drivers of one copy act step by step.

The API server has one StreamCopy, its StreamStores, and the operator's objects. Kubernetes' Job
controller, garbage collector and kubelet exist as far as the operator can notice them. The test
decides the events between two calls. The engine's own guarantees are assumed, since the protocol's
state machine shows them. A driver of an abandoned copy stages nothing more, and the published bytes
follow the recorded plan.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sluice.api.fields.common import GROUP
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.values.trouble import Trouble
from sluice.errors import (
    EXIT_CODES,
    Category,
    CopyAborted,
    DriverLost,
    DriverOutOfMemory,
    InfrastructureError,
    SluiceError,
    StoreUnavailable,
    TargetExists,
)
from sluice.kube.api.kinds import CONFIG_MAP, JOB, POD
from sluice.kube.api.names import Child, is_child, run_name
from sluice.kube.jobs.hooks import is_hook
from sluice.kube.jobs.manifests import plan_of
from sluice.kube.jobs.pods import PLAN_FILE, SCOPE_PLAN_FILE
from sluice.pipelines.driver import termination
from support.reconcile import copies
from support.simulation.copy_objects import CopyObjects, has_ended
from support.simulation.copy_store import Store, planned
from support.simulation.simulated import CLOCK, Place

if TYPE_CHECKING:
    from sluice.core.scope.progress import Progress
    from sluice.core.workloads.answers import Answer, ScopeEnded
    from sluice.core.workloads.plan import Plan
    from sluice.kube.api.kinds import Object
    from support.simulation.simulated import Stores


@dataclass
class Driver:
    """A driver's pod.

    Attributes:
        pod: the pod's name.
        attempt: the attempt's number.
        running: whether it has started; before, it waits for a node or an image.
        mounted: the plan that it started with; None if that is not the plan that its Job names.
        epoch: epoch of the staging that it works on; None before it has begun.
    """

    pod: str
    attempt: int
    running: bool = False
    mounted: Plan | None = None
    epoch: int | None = None


@lru_cache
def _plan_of(data: str, *, packed: bool) -> Plan | None:
    part = {"binaryData": {SCOPE_PLAN_FILE: data}} if packed else {"data": {PLAN_FILE: data}}
    return plan_of(part)


class Cluster(CopyObjects):
    """The API server with its controllers, the drivers in their pods, and the stores.

    Attributes:
        store: the contents of the stores.
        place: the operator's view of the stores' addresses.
        drivers: drivers whose pods have not ended.
        lagging: whether the Job controller stands still.
        orphaned: whether an operator has reported remains that it leaves behind.
        alone: whether there is one operator, as it should be.
    """

    store: Any

    def __init__(self, **spec: Any) -> None:
        super().__init__()
        self.now = copies.NOW
        self.server.clock = lambda: self.now
        self.server.changed = self._controllers
        self.store = Store()
        self.place = Place(self)
        self.drivers: list[Driver] = []
        self.lagging = self.orphaned = False
        self.alone = True
        self._given: set[str] = set()
        self._at_work = False
        for which in ("source", "target"):
            self.put_store(which)
        self.apply(spec)

    @property
    def child(self) -> Child:
        """The copy, as its objects name it."""
        return Child(kind=self.kind, namespace="default", name=self.name, uid=copies.UID)

    # -- the time

    @property
    def now(self) -> datetime:
        """The time."""
        return CLOCK.now

    @now.setter
    def now(self, now: datetime) -> None:
        CLOCK.now = now

    def forge_run(self, driver: Driver) -> None:
        """Replace the ConfigMap that a driver has to run from by a forged one."""
        job = job_name(copies.UID, driver.attempt)
        found = self.server.body(CONFIG_MAP, run_name(job), self.space)
        if found is not None:
            self.server.remove(CONFIG_MAP, run_name(job), self.space)
            forged = found | {"data": {PLAN_FILE: planned(7).model_dump_json()}, "binaryData": {}}
            self.server.put(CONFIG_MAP, forged | {"metadata": dict(found["metadata"])})

    # -- actions of Kubernetes

    def _controllers(self) -> None:
        """Run the garbage collector and the Job controller until nothing is left to do."""
        if self._at_work:
            return
        self._at_work = True
        try:
            while self.server.collect() or (not self.lagging and self._run_jobs()):
                pass
        finally:
            self._at_work = False
        there = {pod["metadata"]["name"] for pod in self.server.all(POD) if not _is_over(pod)}
        self.drivers = [driver for driver in self.drivers if driver.pod in there]

    def lag(self, *, on: bool) -> None:
        """Stop the Job controller, or let it go on."""
        self.lagging = on
        self._controllers()

    def _run_jobs(self) -> bool:
        """Make a pod for a new Job, or end a Job whose pod has ended. Return False if none is."""
        for job in self.server.all(JOB):
            meta = job["metadata"]
            if is_hook(job) or job["spec"].get("suspend"):  # the test decides how it ends
                continue
            if has_ended(job) or "deletionTimestamp" in meta or not self.child.has(job):
                continue
            pods = [pod for pod in self.server.all(POD) if is_child(pod, meta["uid"])]
            if self._run_job(job, pods):
                return True
        return False

    def _run_job(self, job: Object, pods: list[Object]) -> bool:
        """Make a pod for a new Job, or end it if its pod has ended. Return False if neither is."""
        uid = job["metadata"]["uid"]
        if uid not in self._given:
            self._given.add(uid)
            self._make_pod(job)
            return True
        if not pods or _is_over(pods[0]):
            done = bool(pods) and pods[0]["status"]["phase"] == "Succeeded"
            self._end_job(job, "Complete" if done else "Failed")
            return True
        return False

    def _end_job(self, job: Object, kind: str) -> None:
        end = {"type": kind, "status": "True", "lastTransitionTime": self.now.isoformat()}
        meta, status = job["metadata"], job["status"] | {"conditions": [end]}
        self.server.edit(JOB, meta["name"], meta["namespace"], status=status)

    def _make_pod(self, job: Object) -> None:
        meta, template = job["metadata"], job["spec"]["template"]["metadata"]
        name = f"{meta['name']}-{len(self._given)}"
        owner = {"kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}
        body = {
            "metadata": {"name": name, "namespace": meta["namespace"], "ownerReferences": [owner]},
            "status": {"phase": "Pending"},
        }
        body["metadata"] |= template
        attempt = int(template["labels"][f"{GROUP}/attempt"])
        self.drivers.append(Driver(name, attempt))
        self.server.put(POD, body)
        began = {"startTime": self.now.isoformat()}
        self.server.edit(JOB, meta["name"], meta["namespace"], status=began)

    def is_stopping(self, driver: Driver) -> bool:
        """Tell whether a driver was told to end."""
        pod = self.server.body(POD, driver.pod, self.space)
        return pod is None or "deletionTimestamp" in pod["metadata"]

    def cannot_start(self, driver: Driver, error: SluiceError) -> None:
        """Let the image of a pod be unavailable."""
        waiting = {"reason": "ErrImagePull", "message": error.message}
        said = {"name": "driver", "image": "i", "state": {"waiting": waiting}}
        status = {"phase": "Pending", "containerStatuses": [said]}
        self.server.edit(POD, driver.pod, self.space, status=status)

    def can_start(self) -> None:
        """Make all images available."""
        for driver in self.drivers:
            if not driver.running:
                self.server.edit(POD, driver.pod, self.space, status={"phase": "Pending"})

    def start(self, driver: Driver) -> None:
        """Start the pod's containers, if the ConfigMap they run from exists."""
        job = self.server.body(JOB, job_name(copies.UID, driver.attempt), self.space)
        if job is None or self.is_stopping(driver):
            return
        found = self.server.body(CONFIG_MAP, run_name(job["metadata"]["name"]), self.space)
        if found is None:
            return
        driver.running, driver.mounted = True, _given(job, found)
        self.server.edit(POD, driver.pod, self.space, status={"phase": "Running"})

    def end(self, driver: Driver, error: SluiceError | None) -> None:
        """End a pod's containers. A pod that was told to end is gone then."""
        if self.is_stopping(driver):
            self.server.destroy(POD, driver.pod, self.space)
            return
        ended: Object = {"exitCode": 0 if error is None else EXIT_CODES[error.category]}
        if isinstance(error, DriverOutOfMemory):
            ended |= {"reason": "OOMKilled"}
        elif not isinstance(error, DriverLost):
            trouble = None if error is None else Trouble.of(error)
            ended |= {"message": termination.message(trouble).decode()}
        container = {"name": "driver", "image": "i", "state": {"terminated": ended}}
        phase = "Succeeded" if error is None else "Failed"
        status = {"phase": phase, "containerStatuses": [container]}
        self.server.edit(POD, driver.pod, self.space, status=status)

    def lose_node(self, driver: Driver) -> None:
        """Remove a pod without a report."""
        self.server.destroy(POD, driver.pod, self.space)

    # -- actions of drivers

    def work(self, driver: Driver) -> None:
        """Take a driver's next step: begin, stage, publish, end well."""
        store = self.store
        if not driver.running:
            self.start(driver)
        elif driver.epoch is None and self.is_stopping(driver):
            self.end(driver, None)  # a driver that is told to stop begins nothing
        elif not (store.source and store.target):
            return
        elif driver.mounted is None:
            self.end(driver, InfrastructureError("it is not what the operator wrote"))
        else:
            self.advance(driver, driver.mounted)

    def advance(self, driver: Driver, mounted: Plan) -> None:
        """Take the next step of a driver that can go on."""
        store = self.store
        if store.foreign:
            self.fail(driver, TargetExists("out/orders exists"))
        elif driver.epoch is None:
            driver.epoch = store.epoch
            if store.whole is None and store.recorded is None:
                store.recorded = mounted
        elif store.whole is not None:
            store.recorded, store.staged = None, 0
            self.end(driver, None)
        elif driver.epoch != store.epoch or store.recorded is None:
            self.fail(driver, CopyAborted("the copy was aborted while it ran"))
        elif store.staged < store.recorded.bytes:
            store.staged = min(store.recorded.bytes, store.staged + 400)
        else:
            store.whole = store.recorded

    def fail(self, driver: Driver, error: SluiceError | None) -> None:
        """End a driver badly. It drops its staging itself if the data or the spec are to blame.

        Without an error it ends as if it were done.
        """
        own = driver.epoch == self.store.epoch and self.store.whole is None
        blamed = error is not None and error.category in {Category.SPEC, Category.INTEGRITY}
        if own and blamed and self.store.target:
            self.store.abandon()
        self.end(driver, error)

    # -- answers of the engine to the operator

    def of(self, request: Any) -> Stores:  # noqa: ARG002 - one copy has one run
        """Return the data that a request is about."""
        return self

    def record(self, ended: ScopeEnded) -> int:
        """See `engine.scope.query.record_scope_run`."""
        raise AssertionError(f"this copy has no runs to record: {ended}")

    def ask(self, known: Any, *, again: bool) -> Answer:
        """See `engine.copy.query.ask` and its like."""
        answer: Answer = self.store.ask(known, again=again)
        return answer

    def progress(self, known: Plan) -> tuple[Progress, Plan | None]:
        """Return the progress of a plan."""
        if not self.store.target:
            raise StoreUnavailable("no connection")
        return self.store.progress(known), None

    def abandon(self) -> None:
        """See `engine.copy.query.abandon` and its like."""
        if self.alone and self.deleted:
            assert self.drivers == [], "nothing is dropped under a driver's feet"
        self.store.abandon()


def _given(job: Object, config_map: Object) -> Plan | None:
    """Return the plan that a driver finds; None if it is not the plan that its Job names."""
    packed = (config_map.get("binaryData") or {}).get(SCOPE_PLAN_FILE)
    data = packed or (config_map.get("data") or {}).get(PLAN_FILE, "")
    plan = _plan_of(data, packed=packed is not None)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    if packed is None and hashlib.sha256(data.encode()).hexdigest() not in "".join(
        container["args"]
    ):
        return None
    return plan


def _is_over(pod: Object) -> bool:
    return pod["status"]["phase"] in {"Succeeded", "Failed"}


def wait(cluster: Cluster, seconds: float) -> None:
    """Let time pass."""
    cluster.now += timedelta(seconds=seconds)
