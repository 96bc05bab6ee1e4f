"""A cluster and a store in memory, in which operators and drivers of one copy act step by step.

As little as `reconcile` can notice: one StreamCopy with its Jobs, their pods and the plan's
ConfigMap, and what the target store holds of the copy. Every action happens at once and whole; what
happens between two of them is the test's to say. The engine's own guarantees are taken for granted
here, since the protocol's state machine shows them: a driver of a copy that was abandoned meanwhile
stages nothing more, and what is published is what the recorded plan says.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sluice.api.status import StreamCopyStatus
from sluice.core.progress import Pace, Progress
from sluice.core.reconcile.copy import after_failure, questions, reconcile
from sluice.core.reconcile.copy_status import job_name
from sluice.core.reconcile.world import (
    Abandon,
    AddFinalizer,
    Answer,
    Complete,
    DeleteJob,
    DropPlan,
    HoldStores,
    JobPhase,
    JobSeen,
    Orphan,
    Planned,
    Question,
    Reading,
    RemoveFinalizer,
    StartJob,
    StoreSeen,
    World,
    WriteControls,
    WritePlan,
)
from sluice.core.trouble import Trouble
from sluice.errors import (
    ApiUnavailable,
    Category,
    CopyAborted,
    ProfileNotFound,
    SluiceError,
    StoreNotFound,
    StoreUnavailable,
    TargetExists,
    TargetReplaced,
)
from support import copies
from support.plans import segment_plan, stream_plan, whole_plan

if TYPE_CHECKING:
    from sluice.core.plan import Plan
    from sluice.core.reconcile.copy_seen import CopySeen
    from sluice.core.reconcile.world import Action, Decision

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
            return Complete(digest="d" * 64, bytes=self.whole.bytes, events=1, segments=1)
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
            self.copy, self.plan = None, None
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


@dataclass
class Operator:
    """One operator: looks, writes the status, and acts, one thing at a time.

    Attributes:
        cluster: where.
        known: what it remembers of the plan.
        mirror: the Jobs as its watch has shown them.
        seen, version, world: the copy as it was seen, and what was around it.
        decision, wrote, left: what it is at, whether its status was written, and what is left.
        again: seconds until it looks again.
    """

    cluster: Cluster
    known: Plan | None = None
    mirror: tuple[JobSeen, ...] = ()
    seen: CopySeen | None = None
    version: int = 0
    world: World | None = None
    decision: Decision | None = None
    wrote: bool = False
    left: list[Action] = field(default_factory=list)
    again: float | None = 0.0

    @property
    def busy(self) -> bool:
        """Whether it has something to carry out."""
        return self.decision is not None

    def crash(self) -> None:
        """It ends; another begins in its place."""
        self.known, self.mirror, self.decision = None, (), None
        self.again = 0.0

    def sync(self) -> None:
        """Its watch shows the Jobs as they are."""
        self.mirror = self._jobs()

    def _jobs(self) -> tuple[JobSeen, ...]:
        return tuple(
            JobSeen(
                name=name,
                attempt=job.attempt,
                phase=job.phase,
                started=job.started,
                ended=job.ended,
                trouble=job.trouble,
                outdated=job.runtime != self.cluster.runtime,
            )
            for name, job in sorted(self.cluster.jobs.items(), key=lambda item: item[1].attempt)
        )

    def look(self, *, ready: bool = False) -> None:
        """Look at the copy and decide, as the controller and the observer do.

        Args:
            ready: take the stores for ready, as an answer of a minute ago may say.
        """
        cluster = self.cluster
        self.decision, self.again = None, None
        if cluster.copy is None:
            return
        deleted = None
        if cluster.deleted_at is not None:
            deleted = (cluster.now - cluster.deleted_at).total_seconds()
        status = cluster.status
        self.seen = replace(cluster.copy, status=status, deleted=deleted)
        self.version = cluster.version
        if self.known is None and cluster.plan is not None:
            self.known = cluster.plan
        jobs = self.mirror
        running = any(job.phase is JobPhase.RUNNING for job in jobs)
        if not running or jobs[-1].attempt < status.attempts:
            self.sync()
            jobs = self.mirror
        if self.seen.done and deleted is None:
            jobs = ()
        waits = deleted is not None or (self.seen.spec.suspend and not self.seen.done)
        limits = self.seen.spec.limits.model_dump_json()
        self.world = self._asked(
            World(
                now=cluster.now,
                source=self._store(there=cluster.source_there, up=ready or cluster.store.source),
                target=self._store(there=cluster.target_there, up=ready or cluster.store.target),
                profile=None if cluster.profile_there else Trouble.of(ProfileNotFound("none")),
                plan=None if self.known is None else copies.plan_seen(self.known),
                damaged=self.known is None and cluster.spoiled,
                jobs=jobs,
                pods=len(cluster.drivers) if waits else 0,
                controls=cluster.controls == limits,
            )
        )
        self.decision, self.wrote = reconcile(self.seen, self.world), False
        self.left = list(self.decision.actions)

    def _asked(self, world: World) -> World:
        """The world with the answers to what has to be asked."""
        assert self.seen is not None
        store, wanted = self.cluster.store, questions(self.seen, world)
        try:
            if Question.STATE in wanted:
                return replace(world, answer=store.ask(self.known))
            if Question.PROGRESS in wanted and self.known is not None:
                if not store.target:
                    raise StoreUnavailable("no connection")
                progress = Progress(
                    bytes=self.known.bytes if store.whole else store.staged,
                    total=self.known.bytes,
                    published=store.whole is not None,
                )
                return replace(world, reading=Reading(progress=progress, pace=Pace(0.0, None)))
        except SluiceError as error:
            return replace(world, trouble=Trouble.of(error))
        return world

    def _store(self, *, there: bool, up: bool) -> StoreSeen | None:
        return replace(copies.STORE, ready=up, why="no answer") if there else None

    def step(self, *, lost: str = "") -> None:
        """Do the next thing: write the status, or act.

        Args:
            lost: `request` or `reply` where the call fails before or after it is done.
        """
        assert self.decision is not None
        if not self.wrote:
            self._begin(self.decision, lost)
        elif self.left:
            self._act(self.decision, self.left.pop(0), lost)
        if self.decision is not None and self.wrote and not self.left:
            self._rest(self.decision.again)

    def _begin(self, decision: Decision, lost: str) -> None:
        """Write the status; without that nothing is done."""
        self.wrote = lost != "request" and self.write(decision, insist=True)
        if not self.wrote or lost == "reply":
            self._rest(1.0)

    def _act(self, decision: Decision, action: Action, lost: str) -> None:
        """Do one thing, and what follows if it fails."""
        assert self.seen is not None
        assert self.world is not None
        try:
            _unless(lost == "request")
            self.perform(action)
            _unless(lost == "reply")
        except SluiceError as error:
            seen = replace(self.seen, status=decision.status)
            after = after_failure(seen, self.world, Trouble.of(error))
            self._rest(after.again)
            if self.write(after, insist=False):
                with suppress(SluiceError):
                    for more in after.actions:
                        self.perform(more)

    def _rest(self, again: float | None) -> None:
        self.decision, self.left, self.again = None, [], again

    def write(self, decision: Decision, *, insist: bool) -> bool:
        """Write the status; False where the object is another by now."""
        cluster = self.cluster
        if cluster.copy is None or (insist and cluster.version != self.version):
            return False
        if decision.status != cluster.status:
            cluster.status = StreamCopyStatus.read(decision.status.dump())
            assert cluster.status == decision.status, "a status reads back as it was written"
            cluster.version += 1
        return True

    def perform(self, action: Action) -> None:  # noqa: C901, PLR0912 - one case an action
        """As the performer does it."""
        cluster = self.cluster
        match action:
            case AddFinalizer():
                if cluster.copy is None or (
                    cluster.deleted_at is not None and not cluster.copy.finalizer
                ):
                    raise CopyAborted("the copy was deleted before its driver started")
                cluster.edit(finalizer=True)
            case RemoveFinalizer():
                cluster.edit(finalizer=False)
                self.known = None
                cluster._collect()
            case HoldStores():
                if not (cluster.source_there and cluster.target_there):
                    raise StoreNotFound("there is no StreamStore")
            case WritePlan(plan):
                if cluster.copy is not None and cluster.plan is None and not cluster.spoiled:
                    cluster.plan = plan
            case DropPlan():
                self.known = None
                cluster.plan, cluster.spoiled = None, False
            case WriteControls():
                if cluster.copy is not None:
                    cluster.controls = cluster.copy.spec.limits.model_dump_json()
            case StartJob(attempt, plan):
                name = job_name(copies.UID, attempt)
                if cluster.copy is not None and name not in cluster.jobs:
                    cluster.jobs[name] = Job(attempt, plan, cluster.now, runtime=cluster.runtime)
                    cluster.drivers.append(Driver(attempt))
                elif cluster.copy is not None:
                    cluster.jobs[name].plan = plan
            case DeleteJob(name):
                cluster.remove_job(name)
            case Abandon():
                if not cluster.target_there and cluster.plan is None:
                    raise StoreNotFound("there is no StreamStore any more")
                if cluster.deleted_at is not None:
                    assert cluster.drivers == [], "nothing is dropped under a driver's feet"
                cluster.store.abandon()
            case Orphan():
                cluster.orphaned = True


def wait(cluster: Cluster, seconds: float) -> None:
    """Time passes."""
    cluster.now += timedelta(seconds=seconds)


def _unless(lost: bool) -> None:  # noqa: FBT001 - reads well where it stands
    if lost:
        raise ApiUnavailable("no answer")
