"""A bench for an operator of a StreamArchive and of its restore drills; see `archive_bench`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from sluice.core.copy.plan import pinned
from sluice.core.reconcile.copies.drill.seen import copy_name
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.values.model import StreamName
from sluice.core.values.scratch import scratch_name
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.engine.tasks.executor import InlineExecutor
from sluice.errors import StoreUnavailable
from sluice.kube.api.kinds import CONFIG_MAP, JOB, POD, STREAM_COPY, STREAM_STORE
from sluice.kube.api.names import run_name
from sluice.kube.api.objects import DRILL_REQUESTED_AT
from sluice.kube.copies.workings import CopyWorkings
from sluice.kube.jobs.manifests import plan_of
from support.cases.resources import STORE, changed
from support.engine.runners import copy_runner
from support.kube.archive_bench import ArchiveBench
from support.reconcile.copies import UID

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from sluice.api.status.archive_status import DrillStatus
    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.values.model import StoreAddress
    from sluice.engine.copy.report import StreamReport
    from sluice.kube.api.kinds import Object
    from sluice.kube.copies.situation import Situation
    from sluice.kube.stores.probes import Probed
    from sluice.stores.base import Store

SCRATCH = StreamName(scope="in", stream=scratch_name(UID))
NAME = copy_name("orders", UID)
WEEKLY = {"schedule": {"cron": "@weekly"}}
SPARE = WEEKLY | {"target": {"storeRef": {"name": "spare"}, "scope": "in"}}
"""Drills in a StreamStore that the runs do not use."""

_SPARE_URI = "tcp://spare:9090"


class DrillBench(ArchiveBench):
    """A bench for an operator of a StreamArchive with one run, and of the StreamCopy of its drills.

    Attributes:
        away: whether the StreamStore `spare` does not answer.
    """

    def __init__(self, threads: ThreadPoolExecutor, **spec: Any) -> None:
        self.away = False
        super().__init__(threads, **{"verify": WEEKLY} | spec)
        spare = changed(STORE, "metadata", {"name": "spare", "uid": "spare"})
        self.server.put(STREAM_STORE, changed(spare, "spec.pravega.controllerURI", _SPARE_URI))
        self.run()
        self.settle()

    async def _probed(self, *args: object, **__: object) -> Probed:
        body = cast("Object", args[0])
        found = await super()._probed()
        if not self.away or body["metadata"]["name"] != "spare":
            return found
        return replace(found, answer=Trouble.of(StoreUnavailable("away")))

    async def place(self, namespace: str, address: StoreAddress) -> Store | ArchiveRoot:
        """See Connections.place."""
        self._check(address)
        return await super().place(namespace, address)

    async def get(self, namespace: str, address: StoreAddress) -> Store:
        """See Connections.get."""
        self._check(address)
        return await super().get(namespace, address)

    def _check(self, address: StoreAddress) -> None:
        if self.away and address.uri == _SPARE_URI:
            raise StoreUnavailable("away")

    def begin(self) -> None:
        """See OperatorBench."""
        super().begin()
        self.copies = CopyWorkings(STREAM_COPY, self.observer, self.performer, self.metrics)

    @property
    def drill(self) -> DrillStatus:
        """The drill in the resource's status."""
        found = self.look().seen.status.drill  # type: ignore[attr-defined]
        assert found is not None
        return found  # type: ignore[no-any-return]

    @property
    def copy(self) -> Object | None:
        """The StreamCopy of the drill."""
        return self.server.body(STREAM_COPY, NAME)

    @property
    def verdict(self) -> tuple[str, str, str]:
        """Status, reason and message of RestoreVerified."""
        found = [
            one for one in self.body["status"]["conditions"] if one["type"] == "RestoreVerified"
        ]
        return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else ("",) * 3

    def due(self) -> None:
        """Set the next drill's time to the past."""
        status = self.body["status"]
        drill = status.get("drill") or {}
        self.body["status"] = status | {"drill": drill | {"nextTime": "2026-01-02T00:00:00Z"}}

    def ask_drill(self, value: str) -> None:
        """Ask for a drill, as users do."""
        meta = self.body["metadata"]
        meta["annotations"] = (meta.get("annotations") or {}) | {DRILL_REQUESTED_AT: value}

    def settle(self, most: int = 9) -> None:
        """Step until no action and no early look is due."""
        for _ in range(most):
            decision = self.step()
            if not decision.actions and (decision.again or 60) > 1:
                return
        raise AssertionError("the operator does not come to rest")

    def act(self, situation: Situation, action: Any) -> None:
        """Carry out one action."""
        asyncio.run(self.workings.perform(situation, action))

    def copy_step(self) -> Decision | None:
        """Look at the StreamCopy, and act on it, as the operator does; None if it is gone."""
        if self.copy is None:
            return None

        async def at_once() -> Decision:
            body = await self.server.get(STREAM_COPY, "default", NAME)
            assert body is not None
            situation = await self.observer.look(body)
            decision = self.copies.decide(situation)
            if self.copy is not None:
                self.server.edit(STREAM_COPY, NAME, status=decision.status.dump())
            for action in decision.actions:
                try:
                    await self.copies.perform(situation, action)
                except StoreUnavailable:
                    break  # the operator tries again later
            return decision

        decision = asyncio.run(at_once())
        for one in self.server.all(JOB):
            one["metadata"].setdefault("creationTimestamp", "2026-01-02T03:04:05Z")
        return decision

    def restore(self, attempt: int = 1, *, patience: float = 0) -> StreamReport:
        """Do the work of the StreamCopy's driver, and end its Job accordingly."""
        assert self.copy is not None
        uid = self.copy["metadata"]["uid"]
        job = self.server.objects[JOB.name, "default", job_name(uid, attempt)]
        plan = plan_of(
            self.server.objects[CONFIG_MAP.name, "default", run_name(job["metadata"]["name"])]
        )
        assert isinstance(plan, StreamCopyPlan)
        (stream,) = plan.streams
        (address,) = pinned(stream, plan.sources)
        assert address.archive is not None
        sources = [self.root.run(address.archive)]
        (report,) = copy_runner(
            plan,
            sources=sources,
            target=self.store,
            executor=InlineExecutor(sources, self.store),
            patience=patience,
        ).run()
        self._end(job, report)
        return report

    def _end(self, job: Object, report: StreamReport) -> None:
        """End the Job of a driver with its termination message."""
        kind = "Complete" if report.error is None else "Failed"
        message: dict[str, Any] = {"outcome": "Succeeded"}
        if report.error is not None:
            message = {"outcome": "Failed", **report.error.model_dump(mode="json")}
        ended = {"type": kind, "status": "True", "lastTransitionTime": "2026-01-02T03:05:05Z"}
        job["status"] = {"conditions": [ended]}
        name = job["metadata"]["name"]
        pod = {
            "metadata": {
                "name": f"{name}-pod",
                "labels": job["spec"]["template"]["metadata"]["labels"],
                "ownerReferences": [
                    {
                        "kind": "Job",
                        "name": name,
                        "uid": job["metadata"]["uid"],
                        "controller": True,
                    }
                ],
            },
            "status": {
                "phase": "Failed",
                "containerStatuses": [
                    {
                        "name": "driver",
                        "state": {"terminated": {"exitCode": 1, "message": json.dumps(message)}},
                    }
                ],
            },
        }
        self.server.put(POD, pod)

    def scratch(self) -> bool:
        """Tell whether the scratch stream exists."""
        return SCRATCH in self.world.streams

    def whole_drill(self) -> StreamReport:
        """Carry out a whole drill, with its StreamCopy."""
        self.due()
        self.step()
        self.copy_step()
        report = self.restore()
        self.copy_step()
        self.finish()
        return report

    def finish(self) -> None:
        """Let the operator see the end of the StreamCopy, and clean up."""
        for _ in range(8):
            self.step()
            self.copy_step()
        self.settle()


def started(bench: DrillBench) -> None:
    """Begin a drill, up to the Job of its driver."""
    bench.due()
    bench.step()
    bench.copy_step()
    assert len(bench.server.all(JOB)) > 0
