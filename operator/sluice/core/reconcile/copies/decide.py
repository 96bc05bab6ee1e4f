"""StreamCopy, ScopeCopy, a run of an archive: what to do next, from spec, status and what was seen.

Called again and again, on every event and at intervals; each call starts from nothing but its
arguments. The status is a report: everything that decides is found in the cluster (plan, Jobs,
pods) or in the target store, except for counts of failures and the time of the next attempt.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sluice.api.status.common import ConditionType
from sluice.core.archive.recorded import Recorded
from sluice.core.reconcile.copies import deletion
from sluice.core.reconcile.copies.actions import (
    Abandon,
    AddFinalizer,
    Decision,
    DeleteJob,
    HoldStores,
    RemoveFinalizer,
    StartJob,
    WriteControls,
)
from sluice.core.reconcile.copies.copy_status import job_name
from sluice.core.reconcile.copies.plan import plan_to_write, too_large
from sluice.core.reconcile.copies.seen import (
    late_jobs,
    recorded,
    running_job,
    seconds_left,
    too_late,
    waits,
)
from sluice.core.reconcile.copies.status_of import status_of
from sluice.core.reconcile.copies.world import JobPhase, Question
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Complete, Planned, ScopeEnded
from sluice.errors import (
    UNDECIDED,
    AccessDenied,
    Category,
    DeadlineExceeded,
    DriverLost,
    DriverNotStarted,
    InvalidSpec,
    StoreNotFound,
    StoreNotReady,
)

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.copy_status import CopyStatus
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import JobSeen, World

POLL_SECONDS: Final = 2.0
"""Between two looks at a running copy's progress."""

AT_ONCE: Final = 0.0
"""What was just made is looked at, and then the copy goes on."""

WAIT_SECONDS: Final = 10.0
"""Between two looks at what is waited for; events usually come first."""

TIDY_SECONDS: Final = 30.0
"""Before what a copy left is tried to be tidied up again."""

MISSING: Final = frozenset(
    {"StoreNotFound", "SecretNotFound", "ClaimNotFound", "ProfileNotFound", "InvalidSpec"}
)
"""Reasons that are not about the streams: when they are mended, the copy goes on where it was."""

HELD: Final = frozenset(error.__name__ for error in UNDECIDED) | {"PartiallySucceeded", "Failed"}
"""Reasons after which all stays as it is until a person has decided, and deletes the copy."""

START_PATIENCE: Final = timedelta(minutes=10)
"""How long a driver's pod may take to start before its attempt counts as failed."""


def questions(copy: CopySeen, world: World) -> frozenset[Question]:
    """What the stores have to be asked before `reconcile` can decide."""
    if copy.deleted is not None or copy.done or not _all_ready(world):
        return frozenset()
    job = world.job
    if job is not None and job.deleting:
        return frozenset()
    if job is not None and not recorded(copy, job):
        if job.phase is JobPhase.SUCCEEDED:
            return frozenset({Question.STATE})
        wanted = world.plan is not None and not (job.active and copy.spec.suspend)
        return frozenset({Question.PROGRESS}) if wanted else frozenset()
    if copy.gave_up or waits(copy, world) or (copy.spec.suspend and world.plan is not None):
        return frozenset()
    return frozenset({Question.STATE})


def reconcile(copy: CopySeen, world: World) -> Decision:
    """What to do now. `world` has the answers to `questions`, or why there are none."""
    if copy.deleted is not None:
        return deletion.reconcile_deletion(copy, world)
    status = status_of(copy, world.now)
    if copy.done:
        return Decision(status=status.unchanged(), actions=_tidy(copy))
    decision = _decide(copy, world, status)
    planned = {action for action in decision.actions if isinstance(action, DeleteJob)}
    # First: Jobs that only a late operator, or one that was cut off, can have left.
    late = [DeleteJob(job.name) for job in late_jobs(copy, world)]
    more = tuple(action for action in late if action not in planned)
    return replace(decision, actions=(*more, *decision.actions))


def _decide(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """What to do about a copy that is not done and not being deleted."""
    if copy.asked or copy.changed:
        status.forget_failures()
    if isinstance(world.answer, Complete | ScopeEnded | Recorded):
        return _over(copy, world, status)
    blocked = _blocked(copy, world, status)
    if blocked is not None:
        return blocked
    if copy.spec.suspend:
        return _suspended(copy, world, status)
    job = running_job(copy, world)
    if job is not None:
        return _running(copy, world, status, job)
    if world.job is not None and not recorded(copy, world.job):
        return _ended(copy, world, status, world.job)
    return _begin(copy, world, status)


def _over(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """Nothing is left to do. That is said once positions or results can be read, not before.

    Nothing is said in between, or a copy that was asked to run again would count as heard and done.
    What streams that failed have staged stays, for another run.
    """
    missing = status.unpublished(world)
    if missing is not None:
        return Decision(status=copy.status, actions=(missing,), again=AT_ONCE)
    said = status.over(world)
    whole = said.condition(ConditionType.STALLED) is None
    return Decision(status=said, actions=_tidy(copy) if whole else ())


def _blocked(copy: CopySeen, world: World, status: CopyStatus) -> Decision | None:
    """What there is to do while nothing else can be done; None when nothing is in the way."""
    running = running_job(copy, world)
    if world.job is not None and world.job.deleting:
        said = status.given_up() if copy.gave_up else status.stopping()
        return Decision(status=said, again=POLL_SECONDS)
    if copy.gave_up and running is None:
        return Decision(status=status.given_up(), actions=_drop(copy, status))
    if too_late(copy, world):
        return _deadline(copy, world, status)
    trouble = _stores_trouble(copy, world)
    if trouble is None or (copy.spec.suspend and (running is not None or world.plan is not None)):
        return None
    stopping: tuple[Action, ...] = ()
    if running is not None:
        if trouble.reason != AccessDenied.__name__:
            return Decision(status=status.working_on(world, trouble), again=WAIT_SECONDS)
        status.end(running, outcome="Stopped", reason=trouble.reason)
        stopping = (DeleteJob(running.name),)
    hopeless = trouble.reason == InvalidSpec.__name__  # waiting mends nothing
    said = status.refused(trouble) if hopeless else status.waiting(trouble)
    return Decision(status=said, actions=stopping, again=WAIT_SECONDS)


def after_failure(copy: CopySeen, world: World, trouble: Trouble) -> Decision:
    """What to do when an action failed: what was to be done is tried again, later each time.

    Args:
        copy: with the status that was written before the actions.
        world: as it was seen before them.
        trouble: why an action failed.
    """
    if copy.deleted is not None:
        return deletion.deletion_failed(copy, world, trouble)
    status = status_of(copy, world.now)
    stalled = copy.status.condition(ConditionType.STALLED) is not None
    if stalled and copy.asked:
        # What was asked for is not begun: it stands in the status as soon as it is.
        return Decision(status=copy.status, again=WAIT_SECONDS)
    if copy.done or stalled:
        # It is said already what became of the copy; tidying up behind it changes nothing of that.
        return Decision(status=status.unchanged(), again=TIDY_SECONDS)
    if copy.spec.suspend or (world.job is not None and world.job.active):
        return Decision(status=status.waiting(trouble), again=WAIT_SECONDS)
    return _failed(copy, status, trouble, attempt=None)


def _tidy(copy: CopySeen) -> tuple[Action, ...]:
    """Nothing is left to protect; the stores' finalizers go when the stores are looked at."""
    return (Abandon(), RemoveFinalizer()) if copy.finalizer and not copy.keeps else ()


def _running(copy: CopySeen, world: World, status: CopyStatus, job: JobSeen) -> Decision:
    """A driver runs or is about to."""
    guard: tuple[Action, ...] = () if copy.finalizer else (AddFinalizer(), HoldStores())
    if job.phase is JobPhase.PENDING:
        if job.outdated:
            status.end(job, outcome="Replaced", reason="SpecChanged")
            return Decision(
                status=status.starting(job), actions=(DeleteJob(job.name),), again=POLL_SECONDS
            )
        if world.now - job.started > START_PATIENCE:
            decision = _failed(copy, status, job.trouble or _not_started(job), attempt=job)
            return Decision(
                status=decision.status, actions=(DeleteJob(job.name),), again=decision.again
            )
        return Decision(status=status.starting(job), actions=guard, again=POLL_SECONDS)
    controls: tuple[Action, ...] = () if world.controls else (WriteControls(),)
    made: tuple[Action, ...] = ()
    if isinstance(world.answer, Planned):  # by the driver
        plan, made = plan_to_write(world, status)
        status.planned(plan)
    return Decision(
        status=status.working_on(world, world.trouble),
        actions=(*guard, *made, *controls),
        again=POLL_SECONDS,
    )


def _not_started(job: JobSeen) -> Trouble:
    """Why a driver has failed to start of whose trouble nobody tells."""
    minutes = START_PATIENCE.total_seconds() / 60
    words = f": {job.words}" if job.words else ""
    return Trouble.of(DriverNotStarted(f"the driver has not started in {minutes:.0f} min{words}"))


def _ended(copy: CopySeen, world: World, status: CopyStatus, job: JobSeen) -> Decision:
    """An attempt is over, and the target is not whole."""
    if job.phase is JobPhase.SUCCEEDED and world.answer is None:
        # It says that it is done, and the store says nothing, or that it is not so.
        if world.trouble is None or world.trouble.retryable:
            said = status.waiting(world.trouble) if world.trouble else status.unchanged()
            return Decision(status=said, again=WAIT_SECONDS)
        status.end(job, outcome="Succeeded")
        return _failed(copy, status, world.trouble, attempt=None)
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
    return Decision(status=status.value, actions=_drop(copy, status), again=verdict.wait)


def _drop(copy: CopySeen, status: CopyStatus) -> tuple[Action, ...]:
    """After a failure that leaves no way on from here, nothing stays, and the copy goes free.

    The driver has dropped what it had staged; this makes sure. What is only missing around the
    copy and can be put there again, such as a Secret, is no reason to throw away what is staged.
    """
    failure = status.value.last_failure
    hopeless = (
        failure is not None
        and failure.category in {Category.SPEC, Category.INTEGRITY}
        and failure.reason not in MISSING | HELD
    )
    if not (copy.finalizer and hopeless):
        return ()
    return (Abandon(),) if copy.keeps else (Abandon(), RemoveFinalizer())


def _begin(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """No driver runs: start one, unless there is a reason to wait."""
    if waits(copy, world):
        return Decision(status=status.unchanged(), again=seconds_left(copy, world))
    if world.profile is not None:
        return _failed(copy, status, world.profile, attempt=None)
    if world.trouble is not None:
        return _failed(copy, status, world.trouble, attempt=None)
    if not isinstance(world.answer, Planned):
        # Nothing is known; to say that this generation was looked at would say that all is well.
        return Decision(status=copy.status, again=POLL_SECONDS)
    plan, actions = plan_to_write(world, status)
    trouble = too_large(plan)
    if trouble is not None:
        return _failed(copy, status, trouble, attempt=None)
    number = status.next_attempt()
    status.planned(plan)
    old = {job.name: job.attempt for job in world.jobs if job.attempt < number - 1}
    if number > 2:  # noqa: PLR2004 - the last but one may have gone by its age, but not all of it
        old[job_name(copy.uid, number - 2)] = number - 2
    return Decision(
        status=status.starting_attempt(number, plan),
        actions=(
            AddFinalizer(),
            HoldStores(),
            *actions,
            WriteControls(),
            *(DeleteJob(name) for name in sorted(old, key=old.__getitem__)),
            StartJob(number, plan.plan),
        ),
        again=POLL_SECONDS,
    )


def _suspended(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """Nothing runs; what is staged stays, and the plan is there to look at."""
    job = running_job(copy, world)
    if job is not None:
        status.end(job, outcome="Suspended", reason="Suspended")
        return Decision(
            status=status.stopping(), actions=(DeleteJob(job.name),), again=POLL_SECONDS
        )
    if world.pods:  # the Job goes before its pods, which have some seconds to end
        return Decision(status=status.stopping(), again=POLL_SECONDS)
    actions: tuple[Action, ...] = ()
    if isinstance(world.answer, Planned):
        plan, actions = plan_to_write(world, status)
        trouble = too_large(plan)
        if trouble is not None:
            return _failed(copy, status, trouble, attempt=None)
        status.planned(plan)
    elif world.plan is None and world.trouble is not None:
        return _failed(copy, status, world.trouble, attempt=None)
    elif world.plan is None and waits(copy, world):
        return Decision(status=status.unchanged(), again=seconds_left(copy, world))
    return Decision(status=status.suspended(world), actions=actions)


def _deadline(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """The copy as a whole took too long; so its last attempt is over, also one that just failed."""
    job = world.job if world.job is not None and not recorded(copy, world.job) else None
    trouble = Trouble.of(
        DeadlineExceeded(
            f"the copy is not done {copy.spec.active_deadline_seconds} s after its first attempt",
            field="spec.activeDeadlineSeconds",
        )
    )
    status.fail(trouble, job)
    actions = (DeleteJob(job.name),) if job is not None and job.active else ()
    return Decision(status=status.value, actions=actions)


def _all_ready(world: World) -> bool:
    stores = (*world.sources, world.target)
    return all(isinstance(store, StoreSeen) and store.ready for store in stores)


def _stores_trouble(copy: CopySeen, world: World) -> Trouble | None:
    """Why a store cannot be worked with."""
    places = (*copy.spec.origins, copy.spec.goal)
    named = [(f"{field}.{one.store_field}", one.store) for field, one in places]
    for (field, name), store in zip(named, (*world.sources, world.target), strict=True):
        found = _store_trouble(field, name, store, begun=copy.finalizer)
        if found is not None:
            return found
    return None


def _store_trouble(
    field: str, name: str, store: StoreSeen | Trouble | None, *, begun: bool
) -> Trouble | None:
    if store is None:
        return Trouble.of(StoreNotFound(f"there is no StreamStore {name!r}", field=field))
    if isinstance(store, Trouble):
        return store
    if store.deleting and not begun:
        return Trouble.of(StoreNotReady(f"StreamStore {name!r} is being deleted", field=field))
    if not store.ready:
        return Trouble.of(StoreNotReady(f"StreamStore {name!r}: {store.why}", field=field))
    return None
