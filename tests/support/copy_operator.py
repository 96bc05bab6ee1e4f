"""An operator in memory: it looks, decides and acts on a simulated cluster, step by step."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sluice.core.progress import Pace, Progress
from sluice.core.reconcile.copy import after_failure, questions, reconcile
from sluice.core.reconcile.copy_status import job_name
from sluice.core.reconcile.world import (
    Abandon,
    AddFinalizer,
    Complete,
    DeleteJob,
    DropPlan,
    HoldStores,
    JobPhase,
    JobSeen,
    Orphan,
    Question,
    Reading,
    RemoveFinalizer,
    StartJob,
    StoreSeen,
    World,
    WriteControls,
    WritePlan,
    WritePositions,
    WriteResults,
)
from sluice.core.trouble import Trouble
from sluice.errors import (
    ApiUnavailable,
    CopyAborted,
    ProfileNotFound,
    SluiceError,
    StoreNotFound,
    StoreUnavailable,
)
from support import copies
from support.copy_cluster import Cluster, Driver, Job

if TYPE_CHECKING:
    from sluice.core.plan import Plan
    from sluice.core.reconcile.copy_seen import CopySeen
    from sluice.core.reconcile.world import Action, Decision


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
                sources=(
                    self._store(there=cluster.source_there, up=ready or cluster.store.source),
                ),
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
        wanted = questions(self.seen, world)
        try:
            if Question.STATE in wanted:
                return self.state(world)
            if Question.PROGRESS in wanted and self.known is not None:
                if not self.cluster.store.target:
                    raise StoreUnavailable("no connection")
                progress = self.progress(self.known)
                return replace(world, reading=Reading(progress=progress, pace=Pace(0.0, None)))
        except SluiceError as error:
            return replace(world, trouble=Trouble.of(error))
        return world

    def state(self, world: World) -> World:
        """The world with what the stores say of the copy."""
        answer = self.cluster.store.ask(self.known)
        positions = self.cluster.positions if isinstance(answer, Complete) else None
        return replace(world, answer=answer, positions=positions)

    def progress(self, known: Plan) -> Progress:
        """How far the copy is."""
        store = self.cluster.store
        return Progress(
            bytes=known.bytes if store.whole else store.staged,
            total=known.bytes,
            published=store.whole is not None,
        )

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
            cluster.status = type(decision.status).read(decision.status.dump())
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
            case WritePositions(positions):
                if cluster.copy is not None:
                    cluster.positions = positions
            case WriteResults(results):
                if cluster.copy is not None:
                    cluster.results = results
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


def _unless(lost: bool) -> None:  # noqa: FBT001 - reads well where it stands
    if lost:
        raise ApiUnavailable("no answer")
