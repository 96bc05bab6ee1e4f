"""A cluster and a store in memory, in which operators and drivers of one copy act step by step.

As little as `reconcile` can notice: one StreamCopy with its Jobs, their pods and the plan's
ConfigMap, and what the target store holds of the copy. Every action happens at once and whole; what
happens between two of them is the test's to say. The engine's own guarantees are taken for granted
here, since the protocol's state machine shows them: a driver of a copy that was abandoned meanwhile
stages nothing more, and what is published is what the recorded plan says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sluice.api.status import StreamCopyStatus
from sluice.core.positions import MappedSegment, MappedSource, PositionMap
from sluice.core.reconcile.copy_status import job_name
from sluice.core.reconcile.world import Answer, Complete, JobPhase, Planned
from sluice.core.trouble import Trouble
from sluice.errors import (
    Category,
    CopyAborted,
    SluiceError,
    StoreUnavailable,
    TargetExists,
    TargetReplaced,
)
from support import copies
from support.plans import segment_plan, stream_plan, whole_plan

if TYPE_CHECKING:
    from sluice.core.plan import Plan
    from sluice.core.reconcile.copy_seen import CopySeen
    from sluice.core.scope import StreamResult


ENDED = (JobPhase.SUCCEEDED, JobPhase.FAILED)


@dataclass
class Driver:
    """A driver's pod.

    Attributes:
        attempt: its number.
        running: whether it was started; until then it waits for a node or an image.
        mounted: the plan that it was started with.
        epoch: of the staging that it works on; None before it has begun.
        stopping: whether it was told to end.
    """

    attempt: int
    running: bool = False
    mounted: Plan | None = None
    epoch: int | None = None
    stopping: bool = False


@dataclass
class Job:
    """An attempt's Job, and the plan that lies beside it."""

    attempt: int
    plan: Plan
    started: datetime
    phase: JobPhase = JobPhase.PENDING
    trouble: Trouble | None = None
    ended: datetime | None = None
    runtime: int = 0


def map_of(plan: Plan) -> PositionMap:
    """The map of a target that was published by this plan."""
    (segment,) = plan.streams[0].segments
    mapped = MappedSegment(
        segment=segment.id, start=0, end=segment.end, target_segment=segment.id, shift=0
    )
    sources = (MappedSource(stream="in/s", segments=(mapped,)),)
    return PositionMap(target="out/t", same_positions=True, sources=sources)


@dataclass
class Store:
    """What the target store holds of the copy, and whether stores can be reached.

    Attributes:
        source, target: whether each answers.
        length: bytes of the source; it may grow.
        recorded: the plan that a driver wrote down in the store.
        staged: bytes that are staged.
        whole: the plan that the target was published by.
        foreign: whether somebody else's stream is in the target's place.
        epoch: counts how often staging was dropped.
    """

    source: bool = True
    target: bool = True
    length: int = 1000
    recorded: Plan | None = None
    staged: int = 0
    whole: Plan | None = None
    foreign: bool = False
    epoch: int = 0

    @property
    def holds_something(self) -> bool:
        """Whether anything of the copy is there that is not whole."""
        return self.recorded is not None or self.staged > 0

    def ask(self, known: Plan | None) -> Answer:
        """As `sluice.engine.settle.ask`."""
        if not (self.source and self.target):
            raise StoreUnavailable("no connection")
        if self.foreign:
            raise TargetExists("out/orders exists", field="spec.target.stream")
        if self.whole is not None and self.recorded is None:
            if known is not None and known.hash != self.whole.hash:
                raise TargetReplaced("the target holds another copy")
            return Complete(
                digest="d" * 64,
                bytes=self.whole.bytes,
                events=1,
                segments=1,
                positions=map_of(self.whole),
            )
        if self.recorded is not None:
            return Planned(plan=self.recorded, recorded=True)
        return Planned(plan=whole_plan(stream_plan(segment_plan(self.length))))

    def abandon(self) -> None:
        """As `sluice.engine.settle.abandon`."""
        if not self.target:
            raise StoreUnavailable("no connection")
        self.recorded, self.staged = None, 0
        self.epoch += 1


class Cluster:
    """The API server's objects, and the drivers in their pods."""

    def __init__(self) -> None:
        self.now = copies.NOW
        self.store = Store()
        self.copy: CopySeen | None = copies.copy()
        self.status = StreamCopyStatus()
        self.version = 0
        self.jobs: dict[str, Job] = {}
        self.drivers: list[Driver] = []
        self.plan: Plan | None = None
        self.positions: PositionMap | None = None
        self.results: tuple[StreamResult, ...] | None = None
        self.spoiled = False
        self.controls: str | None = None
        self.runtime = 0
        self.source_there = self.target_there = True
        self.profile_there = True
        self.deleted_at: datetime | None = None
        self.orphaned = False

    # -- what people and the cluster do

    def change(self, **fields: Any) -> None:
        """Somebody changes the spec."""
        if self.copy is None or self.deleted_at is not None:
            return
        spec = self.copy.spec.model_copy(update=fields)
        self.edit(spec=spec, generation=self.copy.generation + 1)

    def edit(self, **changes: Any) -> None:
        """Something about the object changes."""
        if self.copy is not None:
            self.copy = replace(self.copy, **changes)
            self.version += 1

    def delete(self) -> None:
        """Somebody deletes the copy."""
        if self.copy is None or self.deleted_at is not None:
            return
        self.deleted_at = self.now
        self.edit(generation=self.copy.generation + 1)
        self._collect()

    def remove_job(self, name: str) -> None:
        """A Job goes; its pod is told to stop."""
        job = self.jobs.pop(name, None)
        if job is not None:
            for driver in self.drivers:
                if driver.attempt == job.attempt:
                    driver.stopping = True
            self.drivers = [d for d in self.drivers if d.running or not d.stopping]

    def _collect(self) -> None:
        """The copy goes when it is deleted and nothing holds it, and all that it owns with it."""
        if self.copy is not None and self.deleted_at is not None and not self.copy.finalizer:
            self.copy, self.plan, self.positions, self.results = None, None, None, None
            for name in list(self.jobs):
                self.remove_job(name)

    # -- what drivers do

    def job_of(self, driver: Driver) -> Job | None:
        """The Job that a driver belongs to, if it still exists."""
        job = self.jobs.get(job_name(copies.UID, driver.attempt))
        return None if driver.stopping else job

    def start(self, driver: Driver) -> None:
        """The pod's containers start."""
        job = self.job_of(driver)
        if job is not None:
            driver.running, driver.mounted, job.phase = True, job.plan, JobPhase.RUNNING
            job.trouble = None

    def work(self, driver: Driver) -> None:
        """A driver goes on by one step: begin, stage, publish, end well."""
        store = self.store
        if not driver.running:
            self.start(driver)
        elif driver.epoch is None and driver.stopping:
            self.drivers.remove(driver)  # who is told to stop begins nothing
        elif not (store.source and store.target):
            return
        elif store.foreign:
            self.fail(driver, TargetExists("out/orders exists"))
        elif driver.epoch is None:
            driver.epoch = store.epoch
            if store.whole is None and store.recorded is None:
                store.recorded = driver.mounted
        elif store.whole is not None:
            store.recorded, store.staged = None, 0
            self._end(driver, JobPhase.SUCCEEDED, None)
        elif driver.epoch != store.epoch or store.recorded is None:
            self.fail(driver, CopyAborted("the copy was aborted while it ran"))
        elif store.staged < store.recorded.bytes:
            store.staged = min(store.recorded.bytes, store.staged + 400)
        else:
            store.whole = store.recorded

    def fail(self, driver: Driver, error: SluiceError | None) -> None:
        """A driver ends badly; what the data or the spec are to blame for it drops itself.

        Without an error it ends as if it were done.
        """
        if error is None:
            self._end(driver, JobPhase.SUCCEEDED, None)
            return
        own = driver.epoch == self.store.epoch and self.store.whole is None
        if own and self.store.target and error.category in {Category.SPEC, Category.INTEGRITY}:
            self.store.abandon()
        self._end(driver, JobPhase.FAILED, Trouble.of(error))

    def _end(self, driver: Driver, phase: JobPhase, trouble: Trouble | None) -> None:
        job = self.job_of(driver)
        if job is not None:
            job.phase, job.trouble, job.ended = phase, trouble, self.now
        self.drivers.remove(driver)


def wait(cluster: Cluster, seconds: float) -> None:
    """Time passes."""
    cluster.now += timedelta(seconds=seconds)
