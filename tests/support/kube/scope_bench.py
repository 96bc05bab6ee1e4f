"""An operator of one ScopeCopy: an API server in memory, a model store, a bucket or a volume."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.reconcile.copies.decide import reconcile
from sluice.core.reconcile.copies.scheduled.decide import reconcile_scheduled
from sluice.core.reconcile.copies.scheduled.seen import ScheduledSeen
from sluice.core.reconcile.copies.statuses.results import results_name
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.workloads.unplanned import Unplanned
from sluice.engine.scope.query import plan_run
from sluice.engine.scope.runner import ScopeRunner
from sluice.engine.tasks.executor import InlineExecutor
from sluice.kube.api.kinds import CONFIG_MAP, JOB, POD, SCOPE_COPY, SECRET, STREAM_STORE
from sluice.kube.api.names import ATTEMPT_LABEL, child_labels, run_name
from sluice.kube.jobs.manifests import plan_of
from sluice.kube.stores.connections import unseen
from support.cases.resources import BUCKET, SCOPE, STORE, VOLUME, changed
from support.engine.scope_drivers import SharedStore, put_scope
from support.kube.operator_bench import OperatorBench
from support.reconcile.copies import UID

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from sluice.core.reconcile.copies.actions import Action, Decision
    from sluice.core.values.model import StoreAddress
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.scope.report import ScopeReport
    from sluice.kube.api.kinds import Object
    from sluice.kube.copies.situation import Situation

SHAPES = ([[40, 40], [9]], [[400]], [[]])
"""Event sizes of each segment of the streams s000, s001 and s002."""

NOWHERE = Path("nobody-needs-archives")


class ScopeBench(OperatorBench):
    """An operator of one ScopeCopy, a store, a bucket, and the events about the copy.

    Args:
        threads: threads for calls to stores.
        folder: directory of the bucket, if the test needs archives.
        spec: fields of the copy's spec.

    Attributes:
        store: the only store of streams.
        root: the bucket, and the volume for pods that have mounted it.
    """

    def __init__(self, threads: ThreadPoolExecutor, *, folder: Path = NOWHERE, **spec: Any) -> None:
        super().__init__(threads)
        self.world.scopes |= {"in", "out"}
        put_scope(self.world, *SHAPES)
        self.store = SharedStore(self.world)
        self.root = ArchiveRoot("s3://archives", lambda path: DirectoryObjects(folder / path))
        for store in (STORE, BUCKET, VOLUME):
            self.server.put(STREAM_STORE, changed(store, "metadata.uid", store["metadata"]["name"]))
        self.server.put(SECRET, {"metadata": {"name": "keys"}})
        body = changed(SCOPE, "metadata", {"name": "shop", "uid": UID, "generation": 1})
        self.server.put(SCOPE_COPY, body | {"spec": body["spec"] | spec})
        self.begin()

    # -- stand-ins

    async def place(self, _: str, address: StoreAddress) -> Place:
        """See Connections.place."""
        if address.claim is not None:
            return ArchiveRoot(address.uri, unseen)
        return self._place(address)

    def _place(self, address: StoreAddress) -> Place:
        return self.store if address.backend == "pravega" else self.root

    # -- actions

    @property
    def body(self) -> Object:
        """The resource."""
        return self.server.objects[SCOPE_COPY.name, "default", "shop"]

    def config_map(self, name: str) -> Object | None:
        """Return a ConfigMap."""
        return self.server.objects.get((CONFIG_MAP.name, "default", name))

    def look(self) -> Situation:
        """Return the situation that the operator sees."""

        async def at_once() -> Situation:
            body = await self.server.get(SCOPE_COPY, "default", "shop")
            assert body is not None
            return await self.observer.look(body)

        return asyncio.run(at_once())

    def perform(self, situation: Situation, *actions: Action) -> None:
        """Perform actions for the copy."""

        async def each() -> None:
            for action in actions:
                await self.performer.perform(situation, action)

        asyncio.run(each())

    def step(self) -> Decision:
        """Look, decide, write the status and act, as the operator does. Return the decision."""
        situation = self.look()
        seen = situation.seen
        decide = reconcile_scheduled if isinstance(seen, ScheduledSeen) else reconcile
        decision = decide(seen, situation.world)
        self.body["status"] = decision.status.dump()
        self.perform(situation, *decision.actions)
        for (kind, *_), one in self.server.objects.items():
            if kind == JOB.name:  # as a real server does
                one["metadata"].setdefault("creationTimestamp", "2026-01-02T03:04:05Z")
        return decision

    def plan(self, attempt: int = 1) -> Plan:
        """Return the plan that the driver of an attempt runs from."""
        found = plan_of(self.config_map(run_name(job_name(UID, attempt))) or {})
        assert found is not None
        return found

    def planned(self, attempt: int = 1) -> Plan:
        """Return the plan that the driver of an attempt works on, even if the driver makes it."""
        plan = self.plan(attempt)
        if not isinstance(plan, Unplanned):
            return plan
        assert plan.scoping is not None
        source, target = [(one, self._place(one)) for one in (*plan.sources, plan.target)]
        return plan_run(plan.scoping, plan.run, source=source, target=target)

    def drive(self, attempt: int = 1) -> ScopeReport:
        """Do the work of an attempt's driver, and end it well."""
        plan = self.planned(attempt)
        sources, target = [self._place(one) for one in plan.sources], self._place(plan.target)
        executor = InlineExecutor(sources, target)
        runner = ScopeRunner(plan, sources=sources, target=target, executor=executor, patience=0.2)
        report = runner.run()
        self.end_job(attempt)
        return report

    def put_pod(self, attempt: int = 1) -> None:
        """Make the running pod of an attempt's driver."""
        owner = self.server.objects[JOB.name, "default", job_name(UID, attempt)]["metadata"]
        labels = child_labels(UID, "driver") | {ATTEMPT_LABEL: str(attempt)}
        pod = {"name": f"driver-{attempt}", "labels": labels}
        pod["ownerReferences"] = [{"uid": owner["uid"]}]
        self.server.put(POD, {"metadata": pod, "status": {"phase": "Running"}})

    def end_job(self, attempt: int = 1) -> None:
        """End the driver of an attempt well."""
        job = self.server.objects[JOB.name, "default", job_name(UID, attempt)]
        ended = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-02T03:05:05Z"}
        job["status"] = {"conditions": [ended]}

    def results(self) -> list[dict[str, Any]]:
        """Return the published result of each stream."""
        body = self.config_map(results_name("shop", UID, 0))
        assert body is not None
        found: list[dict[str, Any]] = json.loads(body["data"]["streams.json"])
        return found
