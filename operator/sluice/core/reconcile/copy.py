"""StreamCopy: what to do next, from its spec, its status and what was seen.

Called again and again, on every event and at intervals; each call starts from nothing but its
arguments. The status is a report: everything that decides is found in the cluster (plan, Jobs,
pods) or in the target store, except for counts of failures and the time of the next attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sluice.api.status import ConditionType
from sluice.core.reconcile import copy_deletion
from sluice.core.reconcile.copy_status import CopyStatus
from sluice.core.reconcile.world import (
    Abandon,
    AddFinalizer,
    Complete,
    Decision,
    DeleteJob,
    DropPlan,
    HoldStores,
    JobPhase,
    Planned,
    Question,
    RemoveFinalizer,
    StartJob,
    WriteControls,
    WritePlan,
)
from sluice.core.trouble import Trouble
from sluice.errors import (
    Category,
    DeadlineExceeded,
    DriverLost,
    StoreNotFound,
    StoreNotReady,
)

if TYPE_CHECKING:
    from sluice.api.status import StreamCopyStatus
    from sluice.api.streamcopy import StreamCopySpec
    from sluice.core.reconcile.world import Action, JobSeen, StoreSeen, World

POLL_SECONDS: Final = 2.0
"""Between two looks at a running copy's progress."""

WAIT_SECONDS: Final = 10.0
"""Between two looks at what is waited for; events usually come first."""

START_PATIENCE: Final = timedelta(minutes=10)
"""How long a driver's pod may take to start before its attempt counts as failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySeen:
    """A StreamCopy as the API server has it.

    Attributes:
        name, uid, generation: from its metadata.
        copy_id: its identity in stores.
        spec, status: as they are written.
        requested_at: the annotation that asks for another run, if any.
        finalizer: whether the staging finalizer stands on it.
        deleted: since when it is being deleted, in seconds; None if it is not.
        force_orphan: whether it may go without its staging being dropped.
    """

    name: str
    uid: str
    generation: int
    copy_id: str
    spec: StreamCopySpec
    status: StreamCopyStatus
    requested_at: str | None = None
    finalizer: bool = False
    deleted: float | None = None
    force_orphan: bool = False

    @property
    def done(self) -> bool:
        """Whether it succeeded, and nobody asked for another run since."""
        said = self.status.condition(ConditionType.SUCCEEDED)
        return said is not None and said.status == "True" and not self.asked

    @property
    def asked(self) -> bool:
        """Whether somebody asked for another run and was not heard yet."""
        return (
            self.requested_at is not None
            and self.requested_at != self.status.last_handled_requested_at
        )

    @property
    def changed(self) -> bool:
        """Whether the spec was changed since the operator last looked."""
        return self.generation != self.status.observed_generation


def questions(copy: CopySeen, world: World) -> frozenset[Question]:
    """What the stores have to be asked before `reconcile` can decide."""
    if copy.deleted is not None or copy.done or not _both_ready(world):
        return frozenset()
    job = world.job
    if job is not None and job.active:
        return (
            frozenset({Question.PROGRESS})
            if world.plan and not copy.spec.suspend
            else (frozenset())
        )
    if job is not None and job.phase is JobPhase.FAILED and not _recorded(copy, job):
        return frozenset({Question.PROGRESS}) if world.plan else frozenset()
    if _waits(copy, world) or (copy.spec.suspend and world.plan is not None):
        return frozenset()
    return frozenset({Question.STATE})


def reconcile(copy: CopySeen, world: World) -> Decision:
    """What to do now. `world` has the answers to `questions`, or why there are none."""
    if copy.deleted is not None:
        return copy_deletion.reconcile_deletion(copy, world)
    status = CopyStatus(copy, world.now)
    if copy.done:
        return Decision(status=status.unchanged(), actions=_tidy(copy))
    if copy.asked or copy.changed:
        status.forget_failures()
    blocked = _blocked(copy, world, status)
    if blocked is not None:
        return blocked
    if isinstance(world.answer, Complete):
        return Decision(status=status.completed(world, world.answer), actions=_tidy(copy))
    if copy.spec.suspend:
        return _suspended(copy, world, status)
    job = world.job
    if job is not None and job.active:
        return _running(copy, world, status, job)
    if job is not None and not _recorded(copy, job):
        return _ended(copy, world, status, job)
    return _begin(copy, world, status)


def _blocked(copy: CopySeen, world: World, status: CopyStatus) -> Decision | None:
    """What there is to do while nothing else can be done; None when nothing is in the way."""
    job = world.job
    trouble = _stores_trouble(copy, world)
    if trouble is not None:
        if job is not None and job.active and not copy.spec.suspend:
            return Decision(status=status.working_on(world, trouble), again=WAIT_SECONDS)
        return Decision(status=status.waiting(trouble), again=WAIT_SECONDS)
    if job is not None and job.deleting:
        return Decision(status=status.stopping(), again=POLL_SECONDS)
    if _too_late(copy, world):
        return _deadline(copy, world, status)
    return None


def after_failure(copy: CopySeen, world: World, trouble: Trouble) -> Decision:
    """What to do when an action failed: what was to be done is tried again, later each time."""
    if copy.deleted is not None:
        return copy_deletion.deletion_failed(copy, world, trouble)
    status = CopyStatus(copy, world.now)
    if copy.asked or copy.changed:
        status.forget_failures()
    return _failed(copy, status, trouble, attempt=None)


def _tidy(copy: CopySeen) -> tuple[Action, ...]:
    """Nothing is left to protect; the stores' finalizers go when the stores are looked at."""
    return (Abandon(), RemoveFinalizer()) if copy.finalizer else ()


def _running(copy: CopySeen, world: World, status: CopyStatus, job: JobSeen) -> Decision:
    """A driver runs or is about to."""
    if job.phase is JobPhase.PENDING:
        if job.outdated:
            status.end(job, outcome="Replaced", reason="SpecChanged")
            return Decision(
                status=status.starting(job), actions=(DeleteJob(job.name),), again=POLL_SECONDS
            )
        if job.trouble is not None and world.now - job.started > START_PATIENCE:
            decision = _failed(copy, status, job.trouble, attempt=job)
            return Decision(
                status=decision.status, actions=(DeleteJob(job.name),), again=decision.again
            )
        return Decision(status=status.starting(job), again=POLL_SECONDS)
    actions: tuple[Action, ...] = () if world.controls else (WriteControls(),)
    return Decision(
        status=status.working_on(world, world.trouble), actions=actions, again=POLL_SECONDS
    )


def _ended(copy: CopySeen, world: World, status: CopyStatus, job: JobSeen) -> Decision:
    """An attempt is over, and the target is not whole."""
    if job.phase is JobPhase.SUCCEEDED and world.answer is None:
        # It says that it is done, and the store could not be asked.
        return Decision(status=status.working_on(world, world.trouble), again=WAIT_SECONDS)
    trouble = job.trouble or Trouble.of(
        DriverLost("the driver ended without a word, and the target is not whole")
    )
    status.measure(world)
    return _failed(copy, status, trouble, attempt=job)


def _failed(
    copy: CopySeen, status: CopyStatus, trouble: Trouble, *, attempt: JobSeen | None
) -> Decision:
    """Something failed: try again later, or give up."""
    verdict = status.fail(trouble, attempt)
    actions: tuple[Action, ...] = ()
    if verdict.final and copy.finalizer and trouble.category in {Category.SPEC, Category.INTEGRITY}:
        # The driver dropped what it had staged; make sure, and let the copy go free.
        actions = (Abandon(), RemoveFinalizer())
    return Decision(status=status.value, actions=actions, again=verdict.wait)


def _begin(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """No driver runs: start one, unless there is a reason to wait."""
    if _waits(copy, world):
        left = (copy.status.retry_time - world.now).total_seconds() if copy.status.retry_time else 0
        return Decision(status=status.unchanged(), again=max(left, 0.05) if left else None)
    if world.profile is not None:
        return _failed(copy, status, world.profile, attempt=None)
    if world.trouble is not None:
        return _failed(copy, status, world.trouble, attempt=None)
    if not isinstance(world.answer, Planned):
        return Decision(status=status.unchanged(), again=POLL_SECONDS)
    plan, actions = _plan(world, status)
    number = copy.status.attempts + (1 if status.attempt_is_over() else 0)
    number = max(number, 1)
    status.planned(plan)
    old = [DeleteJob(job.name) for job in world.jobs if job.attempt < number - 1]
    return Decision(
        status=status.starting_attempt(number, plan),
        actions=(
            AddFinalizer(),
            HoldStores(),
            *actions,
            WriteControls(),
            *old,
            StartJob(number, plan.plan),
        ),
        again=POLL_SECONDS,
    )


def _plan(world: World, status: CopyStatus) -> tuple[Planned, tuple[Action, ...]]:
    """The plan to go by, and what has to be written for it.

    The plan that a driver began to carry out holds; otherwise the one that was written down, which
    somebody may have looked at and approved; a new run takes the bounds anew.
    """
    answer = world.answer
    assert isinstance(answer, Planned)  # noqa: S101 - for the type checker
    written = world.plan
    if written is None:
        return answer, (WritePlan(answer.plan),)
    if answer.plan.hash == written.plan.hash:
        return answer, ()
    if answer.recorded or status.value.plan_hash != written.plan.hash:
        return answer, (DropPlan(), WritePlan(answer.plan))
    return Planned(plan=written.plan), ()


def _suspended(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """Nothing runs; what is staged stays, and the plan is there to look at."""
    job = world.job
    if job is not None and job.active:
        status.end(job, outcome="Suspended", reason="Suspended")
        return Decision(
            status=status.stopping(), actions=(DeleteJob(job.name),), again=POLL_SECONDS
        )
    actions: tuple[Action, ...] = ()
    if isinstance(world.answer, Planned):
        plan, actions = _plan(world, status)
        status.planned(plan)
    elif world.trouble is not None:
        return _failed(copy, status, world.trouble, attempt=None)
    return Decision(status=status.suspended(world), actions=actions)


def _deadline(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """The copy as a whole took too long."""
    job = world.job
    running = job is not None and job.active
    trouble = Trouble.of(
        DeadlineExceeded(
            f"the copy is not done {copy.spec.active_deadline_seconds} s after its first attempt",
            field="spec.activeDeadlineSeconds",
        )
    )
    if job is not None and running:
        status.fail(trouble, job)
        return Decision(status=status.value, actions=(DeleteJob(job.name),))
    if copy.status.last_failure is None or copy.status.last_failure.reason != trouble.reason:
        status.fail(trouble, None)
        return Decision(status=status.value)
    return Decision(status=status.unchanged())


def _too_late(copy: CopySeen, world: World) -> bool:
    """Whether the deadline has passed, and nobody asked to go on nevertheless."""
    limit, begun = copy.spec.active_deadline_seconds, copy.status.start_time
    return (
        limit is not None
        and begun is not None
        and not copy.asked
        and not copy.spec.suspend
        and world.now - begun > timedelta(seconds=limit)
    )


def _recorded(copy: CopySeen, job: JobSeen) -> bool:
    """Whether the end of this attempt was written down."""
    return any(entry.attempt == job.attempt and entry.outcome for entry in copy.status.history)


def _waits(copy: CopySeen, world: World) -> bool:
    """Whether a failure of before asks to wait still."""
    if copy.asked or copy.changed or copy.status.last_failure is None:
        return False
    at = copy.status.retry_time
    if at is None:  # a final failure; one that was followed by a new attempt has no Stalled
        return copy.status.condition(ConditionType.STALLED) is not None
    return world.now < at


def _both_ready(world: World) -> bool:
    return all(store is not None and store.ready for store in (world.source, world.target))


def _stores_trouble(copy: CopySeen, world: World) -> Trouble | None:
    """Why a store cannot be worked with."""
    for side, store in (("source", world.source), ("target", world.target)):
        found = _store_trouble(copy, side, store, begun=copy.finalizer)
        if found is not None:
            return found
    return None


def _store_trouble(
    copy: CopySeen, side: str, store: StoreSeen | None, *, begun: bool
) -> Trouble | None:
    field = f"spec.{side}.storeRef.name"
    name = getattr(copy.spec, side).store_ref.name
    if store is None:
        return Trouble.of(StoreNotFound(f"there is no StreamStore {name!r}", field=field))
    if store.deleting and not begun:
        return Trouble.of(StoreNotReady(f"StreamStore {name!r} is being deleted", field=field))
    if not store.ready:
        return Trouble.of(StoreNotReady(f"StreamStore {name!r}: {store.why}", field=field))
    return None
