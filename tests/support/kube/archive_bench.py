"""An operator of one StreamArchive: an API server in memory, a model store, a bucket."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.values.model import StoreAddress, StreamName
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.workloads.archive import ArchiveWorkload
from sluice.kube.api.kinds import CONFIG_MAP, JOB, POD, SECRET, STREAM_ARCHIVE, STREAM_STORE
from sluice.kube.api.names import ATTEMPT_LABEL, child_labels, run_name
from sluice.kube.copies.workings import CopyWorkings
from sluice.kube.jobs.manifests import plan_of
from sluice.kube.stores.connections import unseen
from support.cases.resources import ARCHIVE, BUCKET, STORE, VOLUME, changed
from support.engine.runners import archive_runner
from support.engine.scope_drivers import SharedStore
from support.engine.sources import put_source
from support.kube.operator_bench import OperatorBench
from support.model.memory_objects import MemoryObjects
from support.reconcile.copies import UID

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from sluice.core.archive.request import ArchiveRequest
    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.workloads.plan import Plan
    from sluice.kube.api.kinds import Object
    from sluice.kube.copies.situation import Situation
    from sluice.stores.base import Store

SOURCE = StreamName(scope="in", stream="orders")


class ArchiveBench(OperatorBench):
    """An operator of one StreamArchive, a store, a bucket, and the events about the archive.

    Attributes:
        store: the stream's store.
        objects: the archive's objects.
    """

    def __init__(self, threads: ThreadPoolExecutor, **spec: Any) -> None:
        super().__init__(threads)
        self.world.scopes.add("in")
        put_source(self.world, [40, 40], [9], name=SOURCE)
        self.store, self.objects = SharedStore(self.world), MemoryObjects()
        self.root = ArchiveRoot("s3://archives", lambda _: self.objects)
        self.server.put(STREAM_STORE, changed(STORE, "metadata.uid", "store"))
        self.server.put(STREAM_STORE, changed(BUCKET, "metadata.uid", "bucket"))
        self.server.put(STREAM_STORE, changed(VOLUME, "metadata.uid", "volume"))
        self.server.put(SECRET, {"metadata": {"name": "keys"}})
        meta = {"name": "orders", "uid": UID, "generation": 1}
        meta |= {"creationTimestamp": "2026-01-02T03:04:05Z"}
        body = changed(ARCHIVE, "metadata", meta)
        self.server.put(STREAM_ARCHIVE, body | {"spec": body["spec"] | spec})
        self.begin()

    def begin(self) -> None:
        """See OperatorBench."""
        super().begin()
        self.workings = CopyWorkings(STREAM_ARCHIVE, self.observer, self.performer, self.metrics)

    # -- stand-ins

    async def place(self, _: str, address: StoreAddress) -> Store | ArchiveRoot:
        """See Connections.place."""
        if address.claim is not None:
            return ArchiveRoot(address.uri, unseen)
        return self.store if address.backend == "pravega" else self.root

    async def get(self, _: str, address: StoreAddress) -> Store:
        """See Connections.get."""
        assert address.backend == "pravega"
        return self.store

    # -- actions

    @property
    def body(self) -> Object:
        """The resource."""
        return self.server.objects[STREAM_ARCHIVE.name, "default", "orders"]

    @property
    def request(self) -> ArchiveRequest:
        """The resource's present request."""
        workload = self.look().workload
        assert isinstance(workload, ArchiveWorkload)
        return workload.request

    def plan(self, attempt: int = 1) -> Plan:
        """Return the plan that the driver of an attempt runs from."""
        name = run_name(job_name(UID, attempt))
        found = plan_of(self.server.objects[CONFIG_MAP.name, "default", name])
        assert found is not None
        return found

    def look(self) -> Situation:
        """Return the situation that the operator sees."""

        async def at_once() -> Situation:
            body = await self.server.get(STREAM_ARCHIVE, "default", "orders")
            assert body is not None
            return await self.observer.look(body)

        return asyncio.run(at_once())

    def step(self) -> Decision:
        """Look, decide, write the status and act, as the operator does. Return the decision."""
        situation = self.look()
        decision = self.workings.decide(situation)
        self.body["status"] = decision.status.dump()

        async def act() -> None:
            for action in decision.actions:
                await self.workings.perform(situation, action)

        asyncio.run(act())
        for (kind, *_), one in self.server.objects.items():
            if kind == JOB.name:  # as a real server does
                one["metadata"].setdefault("creationTimestamp", "2026-01-02T03:04:05Z")
        return decision

    def drive(self, attempt: int = 1) -> None:
        """Do the work of an attempt's driver, and end it well."""
        plan = self.plan(attempt)
        assert plan.archive is not None
        executor = InlineExecutor([self.store], self.root)
        runner = archive_runner(
            plan.archive, sources=[self.store], root=self.root, executor=executor, patience=0
        )
        (report,) = runner.run()
        assert report.error is None
        self.end(attempt)

    def end(self, attempt: int = 1, *, said: dict[str, Any] | None = None) -> None:
        """End the driver of an attempt well, with a termination message."""
        job = self.server.objects[JOB.name, "default", job_name(UID, attempt)]
        message = json.dumps({"outcome": "Succeeded", **(said or {})})
        state = {"terminated": {"exitCode": 0, "message": message}}
        self.put_pod(attempt, "Succeeded", [{"name": "driver", "state": state}])
        ended = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-02T03:05:05Z"}
        job["status"] = {"conditions": [ended]}

    def put_pod(
        self, attempt: int, phase: str, containers: list[dict[str, Any]] | None = None
    ) -> None:
        """Make the pod of an attempt."""
        job = self.server.objects[JOB.name, "default", job_name(UID, attempt)]
        meta = {
            "name": f"driver-{attempt}",
            "labels": child_labels(UID, "driver") | {ATTEMPT_LABEL: str(attempt)},
            "ownerReferences": [{"uid": job["metadata"]["uid"]}],
        }
        status = {"phase": phase, "containerStatuses": containers or []}
        self.server.put(POD, {"metadata": meta, "status": status})

    def run(self, attempt: int = 1) -> Decision:
        """Run an attempt from its plan to the status of its result. Return the last decision."""
        self.step()
        self.drive(attempt)
        return self.step()

    def delete(self) -> Decision:
        """Delete the resource, and its Jobs and pods with it. Return the decision after that."""
        self.body["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
        gone = {JOB.name, POD.name}
        self.server.objects = {k: one for k, one in self.server.objects.items() if k[0] not in gone}
        return self.step()

    def ask(self, token: str) -> None:
        """Request another run, as a user does."""
        self.body["metadata"]["annotations"] = {"sluice.dev/requestedAt": token}
