"""Decide what to do next about a StreamCopy, a ScopeCopy or a run of an archive.

The functions are called on every event and at intervals. Each call starts from nothing but its
arguments: spec, status and surroundings. The status is a report; decisions rest on the cluster
(plan, Jobs, pods) and on the target store. Only the status remembers the attempts, the failures in
a row, the time of the next attempt, the plan's hash and the request that was handled.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sluice.api.status.common import ConditionType
from sluice.core.archive.recorded import Recorded
from sluice.core.reconcile.copies import deletion, finished, following
from sluice.core.reconcile.copies.actions import (
    AT_ONCE,
    POLL_SECONDS,
    STORE_SECONDS,
    WAIT_SECONDS,
    AddFinalizer,
    Decision,
    DeleteJob,
    HoldStores,
    StartJob,
    WriteControls,
)
from sluice.core.reconcile.copies.failing import dropped, failed
from sluice.core.reconcile.copies.hooks import standing
from sluice.core.reconcile.copies.hooks.steps import hooked, stopped_by
from sluice.core.reconcile.copies.plan import plan_to_write, too_large
from sluice.core.reconcile.copies.seen import (
    follows,
    host_trouble,
    is_misplaced,
    late_jobs,
    recorded,
    running_job,
    seconds_left,
    stores_trouble,
    too_late,
    waits,
)
from sluice.core.reconcile.copies.statuses.choice import status_of
from sluice.core.reconcile.copies.world import Question
from sluice.core.reconcile.shared.jobs import JobPhase, job_name
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Complete, Planned, ScopeEnded
from sluice.errors import DeadlineExceeded, DriverLost, DriverNotStarted

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.statuses.base import CopyStatus
    from sluice.core.reconcile.copies.world import World
    from sluice.core.reconcile.shared.jobs import JobSeen

YOUNG_SECONDS: Final = 0.25
"""Seconds between two looks at a copy that has just begun: a small one is done within a second."""

TIDY_SECONDS: Final = 30.0
"""Seconds before a failed cleanup is tried again."""

_WITHDRAWN: Final = frozenset({"AccessDenied", "StoreNotShared", "LoginNotShared"})
"""Reasons for which a running driver is stopped: it may not use a store any more."""

_HOPELESS: Final = frozenset({"InvalidSpec", "LoginNotShared"})
"""Reasons that waiting does not mend."""

START_PATIENCE: Final = timedelta(minutes=10)
"""How long a driver's pod may take to start before its attempt counts as failed."""


def questions(copy: CopySeen, world: World) -> frozenset[Question]:
    """List the questions whose answers `reconcile` needs from the stores."""
    away = not world.ready or host_trouble(copy, world) is not None
    if copy.deleted is not None or copy.done or away or standing.under_way(copy.status):
        return frozenset()
    job = world.job
    if job is not None and job.deleting:
        return frozenset()
    if job is not None and not recorded(copy, job):
        return _about(copy, world, job)
    if copy.gave_up or waits(copy, world) or (copy.spec.suspend and world.plan is not None):
        return frozenset()
    return frozenset({Question.STATE})


def _about(copy: CopySeen, world: World, job: JobSeen) -> frozenset[Question]:
    """List the questions about an attempt whose end is not recorded."""
    if job.phase is JobPhase.SUCCEEDED:
        return frozenset({Question.STATE})
    if job.active and copy.spec.suspend:
        return frozenset()
    if world.plan is not None:
        return frozenset({Question.PROGRESS})
    # A follower does not end by itself, and without a plan no decision would end it.
    return frozenset({Question.STATE} if follows(copy) else ())


def reconcile(copy: CopySeen, world: World) -> Decision:
    """Decide what to do now. `world` has the answers to `questions`, or why there are none."""
    if copy.deleted is not None:
        return deletion.reconcile_deletion(copy, world)
    status = status_of(copy, world.now)
    if copy.done:
        return finished.tidied(copy, world, status.unchanged())
    if copy.asked or copy.changed:
        status.forget_failures()
        # A request while an attempt is at work is answered by that attempt.
        status.forget_hooks(asked=copy.asked and running_job(copy, world) is None)
    decision = hooked(copy, world, status) or _decide(copy, world, status)
    planned = {action for action in decision.actions if isinstance(action, DeleteJob)}
    # Delete first the Jobs that only a delayed or killed operator can have left.
    late = [DeleteJob(name) for name in late_jobs(copy, world)]
    more = tuple(action for action in late if action not in planned)
    return replace(decision, actions=(*more, *decision.actions))


def _decide(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """Decide about a copy that is not done and not being deleted."""
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
    """End a copy: publish positions or results first, then report the end.

    Until they are published the status stays as it is. Otherwise a requested run would count as
    handled and done. Staged bytes of streams that failed stay if another run goes on from there.
    """
    grouping = following.regrouped(world, status)
    if grouping is not None:
        return grouping
    missing = status.unpublished(world)
    if missing is not None:
        return Decision(status=copy.status, actions=(missing,), again=AT_ONCE)
    waiting = _after(copy, world, status)
    if waiting is not None:
        return waiting
    said = status.over(world)
    needed = said.condition(ConditionType.STALLED) is not None and not copy.begins_anew
    return Decision(status=said) if needed else finished.tidied(copy, world, said)


def _after(copy: CopySeen, world: World, status: CopyStatus) -> Decision | None:
    """Run the hook after a copy that is complete; None if it is not, or nothing is to run."""
    if standing.spec_of(copy, standing.AFTER) is None:
        return None
    if status_of(copy, world.now).over(world).condition(ConditionType.STALLED) is not None:
        return None
    return stopped_by(copy, world, status, standing.AFTER)


def _blocked(copy: CopySeen, world: World, status: CopyStatus) -> Decision | None:
    """Decide about a copy that cannot go on; None if nothing is in the way."""
    running = running_job(copy, world)
    stop: tuple[Action, ...] = ()
    if running is not None and is_misplaced(running, world):
        status.end(running, outcome="Stopped", reason="LoginNotShared")
        stop = (DeleteJob(running.name),)
    if stop or (world.job is not None and world.job.deleting):
        said = status.given_up() if copy.gave_up else status.stopping()
        return Decision(status=said, actions=stop, again=POLL_SECONDS)
    if copy.gave_up and running is None:
        return Decision(status=status.given_up(), actions=dropped(copy, status))
    if too_late(copy, world):
        return _deadline(copy, world, status)
    trouble = stores_trouble(copy, world) or _withdrawn(world)
    if trouble is None or (copy.spec.suspend and (running is not None or world.plan is not None)):
        return None
    stopping: tuple[Action, ...] = ()
    if running is not None:
        if trouble.reason not in _WITHDRAWN:
            return Decision(status=status.working_on(world, trouble), again=WAIT_SECONDS)
        status.end(running, outcome="Stopped", reason=trouble.reason)
        stopping = (DeleteJob(running.name),)
    hopeless = trouble.reason in _HOPELESS
    said = status.refused(trouble) if hopeless else status.waiting(trouble)
    again = WAIT_SECONDS if stopping else STORE_SECONDS
    return Decision(status=said, actions=stopping, again=again)


def _withdrawn(world: World) -> Trouble | None:
    """Return why a store may not be used any more, if that came out when it was to be asked.

    The answer of its last probe counts for up to a minute.
    """
    trouble = world.trouble
    return trouble if trouble is not None and trouble.reason in _WITHDRAWN else None


def after_failure(copy: CopySeen, world: World, trouble: Trouble) -> Decision:
    """Decide what to do after an action that failed. It is tried again, later each time.

    Args:
        copy: with the status that was written before the actions.
        world: as it was seen before the actions.
        trouble: why an action failed.
    """
    if copy.deleted is not None:
        return deletion.deletion_failed(copy, world, trouble)
    status = status_of(copy, world.now)
    stalled = copy.status.condition(ConditionType.STALLED) is not None
    if stalled and copy.asked:
        # The requested run has not begun; the status says so until it has.
        return Decision(status=copy.status, again=WAIT_SECONDS)
    if copy.done or stalled:
        # The status has the copy's end already. A failed cleanup does not change it.
        return Decision(status=status.unchanged(), again=TIDY_SECONDS)
    at_work = world.job is not None and world.job.active
    if copy.spec.suspend or at_work or trouble.reason in _WITHDRAWN - _HOPELESS:
        return Decision(status=status.waiting(trouble), again=WAIT_SECONDS)
    return failed(copy, status, trouble, attempt=None)


def _running(copy: CopySeen, world: World, status: CopyStatus, job: JobSeen) -> Decision:
    """Watch over a driver that runs or starts."""
    guard: tuple[Action, ...] = () if copy.finalizer else (AddFinalizer(), HoldStores())
    followed = following.running(world, status, job)
    if followed is not None:
        return replace(followed, actions=(*guard, *followed.actions))
    if job.phase is JobPhase.PENDING:
        if job.outdated:
            status.end(job, outcome="Replaced", reason="SpecChanged")
            return Decision(
                status=status.starting(job), actions=(DeleteJob(job.name),), again=POLL_SECONDS
            )
        since = _waits_since(job)
        if since is not None and world.now - since > START_PATIENCE:
            decision = failed(copy, status, job.trouble or _not_started(job), attempt=job)
            return Decision(
                status=decision.status, actions=(DeleteJob(job.name),), again=decision.again
            )
        placed = job.away is not None and job.away == world.host and world.profile is None
        if placed and world.plan is not None and not world.controls:
            # Its ConfigMaps follow it there. An operator may have been killed in between.
            guard = (*guard, StartJob(job.attempt, world.plan.plan, follower=job.follower))
        # Events tell what keeps a pod away, and are not watched. The cause rarely changes late.
        waited = (world.now - job.started).total_seconds()
        again = min(max(POLL_SECONDS, waited / 10), WAIT_SECONDS)
        return Decision(status=status.starting(job), actions=guard, again=again)
    controls: tuple[Action, ...] = () if world.controls else (WriteControls(),)
    made: tuple[Action, ...] = ()
    if isinstance(world.answer, Planned):  # by the driver: only pods can look into volumes
        plan, made = plan_to_write(world, status)
        status.planned(plan)
    return Decision(
        status=status.working_on(world, world.trouble),
        actions=(*guard, *made, *controls, *following.wish_to_write(world)),
        again=_look_again(world, job),
    )


def _look_again(world: World, job: JobSeen) -> float:
    """Return the seconds until the next look at a running copy: fewer while it is young.

    Once all bytes are published the end is near, and the store tells it first.
    """
    published = world.reading is not None and world.reading.progress.published
    age = (world.now - job.started).total_seconds()
    return min(POLL_SECONDS, max(YOUNG_SECONDS, age / (20 if published else 2)))


def _waits_since(job: JobSeen) -> datetime | None:
    """Return since when a driver's pod is waited for; None to wait as long as it takes.

    A follower's Job may be months old, and Kubernetes is about to make another pod.
    """
    return job.waiting if job.follower else job.started


def _not_started(job: JobSeen) -> Trouble:
    """Describe a driver that has not started for an unknown reason."""
    minutes = START_PATIENCE.total_seconds() / 60
    words = f": {job.words}" if job.words else ""
    return Trouble.of(DriverNotStarted(f"the driver has not started in {minutes:.0f} min{words}"))


def _ended(copy: CopySeen, world: World, status: CopyStatus, job: JobSeen) -> Decision:
    """Record the end of an attempt that did not complete the target."""
    if job.phase is JobPhase.SUCCEEDED and world.answer is None:
        # The driver reports success, but the store does not answer, or reports an error.
        if world.trouble is None or world.trouble.retryable:
            said = status.waiting(world.trouble) if world.trouble else _kept(copy, world, status)
            return Decision(status=said, again=WAIT_SECONDS)
        status.end(job, outcome="Succeeded")
        return failed(copy, status, world.trouble, attempt=None)
    if following.came_live(world, job):
        if job.ended is None:  # its pod has; the Job's own condition follows a second later
            return Decision(status=_kept(copy, world, status), again=POLL_SECONDS)
        status.end(job, outcome="Succeeded", reason="CameLive")
        return _begin(copy, world, status)
    trouble = job.trouble or Trouble.of(
        DriverLost("the driver ended without a word, and the target is not whole")
    )
    status.measure(world)
    return failed(copy, status, trouble, attempt=job)


def _begin(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """Start a driver, unless there is a reason to wait."""
    if waits(copy, world):
        return Decision(status=status.unchanged(), again=seconds_left(copy, world))
    hindrance = world.profile or world.trouble
    if hindrance is not None:
        return failed(copy, status, hindrance, attempt=None)
    if not isinstance(world.answer, Planned):
        # There is no answer yet. A new observedGeneration would claim that the spec was checked.
        return Decision(status=copy.status, again=POLL_SECONDS)
    plan, actions = plan_to_write(world, status)
    trouble = too_large(plan)
    if trouble is not None:
        return failed(copy, status, trouble, attempt=None)
    # The plan shows that the copy is possible. After the hook it is made anew, up to the end then.
    waiting = stopped_by(copy, world, status, standing.BEFORE)
    if waiting is not None:
        return waiting
    number, history = status.next_attempt(), status.value.history
    status.planned(plan)
    least = number - world.job_history
    old = {job.name: job.attempt for job in world.jobs if job.attempt < least}
    if least > 1:  # the latest of them may have gone by its age, but not all of it
        names = {entry.attempt: entry.job for entry in copy.status.history}
        old[names.get(least - 1, job_name(copy.uid, least - 1))] = least - 1
    return Decision(
        status=status.starting_attempt(number, plan, world.host),
        actions=(
            AddFinalizer(),
            HoldStores(),
            *actions,
            # In another namespace they follow the Job, which owns them.
            *((WriteControls(),) if world.host is None else ()),
            *(DeleteJob(name) for name in sorted(old, key=old.__getitem__)),
            StartJob(number, plan.plan, follower=following.by_follower(copy, plan, history)),
        ),
        again=POLL_SECONDS,
    )


def _suspended(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """Stop the driver of a suspended copy. Staged bytes stay; the plan is written to look at."""
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
            return failed(copy, status, trouble, attempt=None)
        status.planned(plan)
    elif world.plan is None and world.trouble is not None:
        return failed(copy, status, world.trouble, attempt=None)
    elif world.plan is None and waits(copy, world):
        return Decision(status=status.unchanged(), again=seconds_left(copy, world))
    return Decision(status=status.suspended(world), actions=actions)


def _deadline(copy: CopySeen, world: World, status: CopyStatus) -> Decision:
    """Fail a copy that took too long, and end its latest attempt, even if that just failed."""
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


def _kept(copy: CopySeen, world: World, status: CopyStatus) -> CopyingStatus:
    """Keep the conditions. A status that a user has deleted has none, and gets new ones."""
    return status.unchanged() if copy.status.conditions else status.working_on(world, None)
