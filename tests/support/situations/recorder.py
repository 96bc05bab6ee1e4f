"""Resources whose statuses the operator's own pure functions write, without a cluster.

A recorder plays the API server and the operator's loop for one resource, and holds the object. Each
look gives `reconcile` a world and records its answer. So the record has the words that a cluster
would show.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sluice.api.kinds.scopecopy import ScopeCopy
from sluice.api.kinds.streamcopy import StreamCopy
from sluice.api.status.store_status import StreamStoreStatus
from sluice.core.reconcile.copies.actions import AddFinalizer, RemoveFinalizer, WritePositions
from sluice.core.reconcile.copies.decide import after_failure, questions, reconcile
from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.copies.world import PlanSeen, Question, Reading, World
from sluice.core.reconcile.shared.jobs import JobPhase, JobSeen, job_name
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.reconcile.store import StoreWorld, reconcile_store
from sluice.core.scope.progress import Pace, Progress
from sluice.core.values.model import StoreHealth, StreamName
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Complete, Planned
from sluice.core.workloads.request import copy_request, scope_request
from sluice.kube.api.objects import (
    IN_USE_FINALIZER,
    REQUESTED_AT,
    STAGING_FINALIZER,
    copy_seen,
    parse,
    parse_copy,
)
from support.cases import resources
from support.engine.plans import ADDRESS, segment_plan, stream_plan, whole_plan
from support.reconcile.copies import MAPPED

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.workloads.plan import Plan
    from sluice.errors import SluiceError

NOON = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
READY = StoreSeen(namespace="team-a", name="local", address=ADDRESS, ready=True)
BYTES, EVENTS = 48 * 2**20, 1_000_000
DIGEST = "5d" * 32
WHOLE = Complete(digest=DIGEST, bytes=BYTES, events=EVENTS, segments=2, positions=MAPPED)


def _object(like: dict[str, Any], name: str, clock: datetime) -> dict[str, Any]:
    """Return a new object, as the API server keeps it."""
    body = copy.deepcopy(like)
    body["metadata"] = {
        "name": name,
        "namespace": "team-a",
        "uid": f"00000000-0000-4000-8000-{int.from_bytes(name.encode()[:6]):012x}",
        "generation": 1,
        "creationTimestamp": time_text(clock),
    }
    body["status"] = {"observedGeneration": -1}  # the default of the schema
    return body


def time_text(moment: datetime) -> str:
    """Return a moment as the API server writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Recorder:
    """The part that the recorders of all kinds share.

    Args:
        like: the resource as a user writes it.
        name: the resource's name.
    """

    def __init__(self, like: dict[str, Any], name: str) -> None:
        self.now = NOON
        self.body = _object(like, name, self.now)

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def change(self, **spec: Any) -> None:
        """Change fields of the spec."""
        self.body["spec"] |= spec
        self.body["metadata"]["generation"] += 1

    def delete(self) -> None:
        """Delete the resource. A finalizer must hold it, or nothing would be left to record."""
        assert self.body["metadata"]["finalizers"]
        self.body["metadata"]["deletionTimestamp"] = time_text(self.now)
        self.body["metadata"]["generation"] += 1  # as the API server does

    @property
    def deleted(self) -> float | None:
        """The seconds since the resource's deletion began; None if it is not being deleted."""
        since = self.body["metadata"].get("deletionTimestamp")
        return None if since is None else (self.now - datetime.fromisoformat(since)).total_seconds()

    def request(self, token: str) -> None:
        """Set the annotation that asks the operator to act now."""
        self.body["metadata"].setdefault("annotations", {})[REQUESTED_AT] = token


class CopyingRecorder(Recorder):
    """A recorder of one copy, of a stream or of a scope.

    Args:
        like: the resource as a user writes it.
        name: the resource's name.
        spec: fields of its spec that differ.
    """

    plan: Plan
    """The plan of the copy."""

    def __init__(self, like: dict[str, Any], name: str, **spec: Any) -> None:
        super().__init__(like, name)
        self.body["spec"] |= spec
        self._uid = self.body["metadata"]["uid"]

    @property
    def copy_id(self) -> str:
        """The copy's identity in stores."""
        if self.body["kind"] == "ScopeCopy":
            return scope_request(parse(self.body, ScopeCopy), cluster="c").scope_id
        return copy_request(parse(self.body, StreamCopy), cluster="c").copy_id

    def look(self, **world: Any) -> Decision:
        """Let the operator look at the copy and write its status.

        Args:
            world: the operator's surroundings, as fields of World. Stores are ready by default.
                The plan is recorded once an attempt has begun. An `answer` is allowed only for a
                question that the operator asks.
        """
        seen, around = self._seen(), self._world(**world)
        asked = questions(seen, replace(around, answer=None, reading=None))
        assert around.answer is None or Question.STATE in asked, "the state was not asked for"
        assert around.reading is None or Question.PROGRESS in asked, "progress was not asked for"
        return self._write(reconcile(seen, around))

    def fail(self, error: SluiceError, **world: Any) -> Decision:
        """Let an action of the last look fail."""
        return self._write(after_failure(self._seen(), self._world(**world), Trouble.of(error)))

    def start(self) -> None:
        """Begin an attempt, with both stores present."""
        decision = self.look(answer=Planned(plan=self.plan))
        assert AddFinalizer() in decision.actions

    def run(self, staged: float) -> None:
        """Let the driver run until it has staged a fraction of the bytes, from 0 to 1."""
        self.later(20)
        self.look(jobs=(self.job(JobPhase.RUNNING),), reading=self.reading(staged))

    def lose(self, error: SluiceError, *, staged: float = 0.4) -> None:
        """End the driver with an error."""
        self.later(20)
        job = self.job(JobPhase.FAILED, error=error)
        self.look(jobs=(job,), reading=self.reading(staged))

    def job(self, phase: JobPhase, *, error: SluiceError | None = None) -> JobSeen:
        """Return the Job of the latest attempt."""
        number = self.body["status"]["attempts"]
        over = phase in {JobPhase.SUCCEEDED, JobPhase.FAILED}
        return JobSeen(
            name=job_name(self._uid, number),
            attempt=number,
            phase=phase,
            started=self.now - timedelta(seconds=15),
            ended=self.now if over else None,
            trouble=None if error is None else Trouble.of(error),
        )

    def reading(self, staged: float, *, published: bool = False) -> Reading:
        """Return a reading with this fraction of the bytes staged, at 2 MiB/s."""
        done = round(BYTES * staged)
        progress = Progress(bytes=done, total=BYTES, published=published)
        return Reading(progress=progress, pace=Pace(2.0 * 2**20, (BYTES - done) / 2**21))

    def _seen(self) -> CopySeen:
        seen = copy_seen(self.body, parse_copy(self.body), self.copy_id)
        return replace(seen, deleted=self.deleted)

    def _world(self, **world: Any) -> World:
        begun = "planRef" in self.body["status"]
        name = plan_name(self.body["metadata"]["name"], self._uid)
        plan = PlanSeen(plan=self.plan, name=name) if begun else None
        usual: dict[str, Any] = {"now": self.now, "source": READY, "target": READY, "plan": plan}
        given = usual | world
        return World(sources=(given.pop("source"),), **given)

    def _write(self, decision: Decision) -> Decision:
        self.body["status"] = type(decision.status).read(decision.status.dump()).dump()
        meta = self.body["metadata"]
        if AddFinalizer() in decision.actions:
            meta["finalizers"] = [STAGING_FINALIZER]
        if RemoveFinalizer() in decision.actions:
            meta.pop("finalizers", None)
        return decision


class CopyRecorder(CopyingRecorder):
    """A recorder of one StreamCopy.

    Args:
        name: the resource's name.
        spec: fields of its spec besides source and target.
    """

    def __init__(self, name: str, **spec: Any) -> None:
        super().__init__(resources.COPY, name, **spec)
        # The API server sets these defaults.
        self.body["spec"]["target"] |= {"onExists": "Fail", "sealWhenDone": False}
        resource = parse(self.body, StreamCopy)
        source, target = resource.spec.source, resource.spec.target
        assert source is not None
        self.plan = whole_plan(
            stream_plan(
                segment_plan(BYTES // 2, events=EVENTS // 2, number=0),
                segment_plan(BYTES // 2, events=EVENTS // 2, number=1),
                copy=self.copy_id,
                source=StreamName(scope=source.scope, stream=source.stream),
                target=StreamName(scope=target.scope, stream=target.stream),
            )
        )

    def finish(self, answer: Complete = WHOLE) -> None:
        """End the driver well, with the target whole."""
        self.later(20)
        jobs = (self.job(JobPhase.SUCCEEDED),)
        assert self.look(jobs=jobs, answer=answer).actions == (WritePositions(MAPPED),)
        decision = self.look(jobs=jobs, answer=answer, positions=MAPPED)
        assert RemoveFinalizer() in decision.actions


class StoreRecorder(Recorder):
    """A recorder of one StreamStore.

    Args:
        name: the resource's name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(resources.STORE, name)

    def look(self, found: StoreHealth | SluiceError, *, users: tuple[str, ...] = ()) -> None:
        """Let the operator probe the store and write the status.

        Args:
            found: the store's answer, or the error in its place.
            users: copies that need the store.
        """
        self.later(5)
        meta = self.body["metadata"]
        decision = reconcile_store(
            StreamStoreStatus.read(self.body["status"]),
            StoreWorld(
                now=self.now,
                probed=self.now,
                probe=found if isinstance(found, StoreHealth) else Trouble.of(found),
                users=users,
            ),
            generation=meta["generation"],
            deleting="deletionTimestamp" in meta,
        )
        self.body["status"] = decision.status.dump()
        if decision.hold:
            meta["finalizers"] = [IN_USE_FINALIZER]
        else:
            meta.pop("finalizers", None)
