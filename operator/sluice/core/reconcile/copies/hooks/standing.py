"""Decide about a copy's hooks: the user's Jobs before its first byte, and after its end.

A hook is announced in the status before its Job is made, and the Job's name follows from the copy,
the hook and a number. So an operator that is killed in between makes the same Job, and two
operators make one. While a hook is under way, nothing else is decided and no store is asked: the
end of the source is read after the hook that stops its writers.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from sluice.api.status.common import HookedStatus, HooksStatus, HookStatus
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values import text
from sluice.core.values.trouble import Trouble
from sluice.errors import HookFailed

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.fields.hooks import HookSpec
    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import HookSeen
    from sluice.core.reconcile.shared.conditions import Tri

Point = Literal["before", "after"]
BEFORE: Final = "before"
AFTER: Final = "after"
POINTS: Final[tuple[Point, ...]] = (BEFORE, AFTER)

GRACE: Final = timedelta(seconds=30)
"""Time after a hook's timeout for Kubernetes to end its Job. Then the operator deletes it: the
timeout does not count while another controller keeps the Job from starting."""

_UNDER_WAY: Final = frozenset({"Pending", "Running"})


def job_of(uid: str, point: Point, number: int) -> str:
    """Return the name of a hook's Job. Two operators give the same name."""
    return f"{JOB_PREFIX}{text.short_hash(uid)}-{point}-{number}"


JOB_PREFIX: Final = "sluice-hook-"
"""Beginning of the names of all hooks' Jobs, which no attempt's Job has."""


def spec_of(copy: CopySeen, point: Point) -> HookSpec | None:
    """Return a hook as the spec has it; None if there is none."""
    hooks = getattr(copy.spec, "hooks", None)  # archives have none
    found: HookSpec | None = getattr(hooks, point, None)
    return found


def status_of(status: CopyingStatus, point: Point) -> HookStatus | None:
    """Return how a hook stands; None if it was never due."""
    hooks = status.hooks if isinstance(status, HookedStatus) else None
    found: HookStatus | None = getattr(hooks, point, None)
    return found


def jobs_of(status: CopyingStatus) -> list[str]:
    """List the names of the hooks' latest Jobs."""
    return [hook.job for point in POINTS if (hook := status_of(status, point)) is not None]


def under_way(status: CopyingStatus) -> tuple[Point, HookStatus] | None:
    """Return the hook that was announced and has not ended; None if there is none."""
    for point in POINTS:
        hook = status_of(status, point)
        if hook is not None and hook.state in _UNDER_WAY:
            return point, hook
    return None


def is_due(copy: CopySeen, status: CopyingStatus, point: Point) -> bool:
    """Tell whether a hook has to run before the copy goes on."""
    hook = status_of(status, point)
    return spec_of(copy, point) is not None and (hook is None or hook.state is None)


def needs_template(copy: CopySeen, *, at_work: bool) -> tuple[Point, ...]:
    """List the hooks whose CronJobs are looked at before a decision.

    Args:
        copy: the copy.
        at_work: whether an attempt is at work, so that no hook begins.
    """
    due = [point for point in POINTS if is_due(copy, copy.status, point)]
    begun = [
        point
        for point in POINTS
        if (hook := status_of(copy.status, point)) is not None and hook.state == "Pending"
    ]
    return (*begun, *(() if at_work else due))


def announced(copy: CopySeen, status: CopyingStatus, point: Point) -> HookStatus:
    """Return a hook whose Job is made next."""
    before = status_of(status, point)
    number = 1 if before is None else before.number + 1
    return HookStatus(number=number, job=job_of(copy.uid, point, number), state="Pending")


def forgotten(status: CopyingStatus, *, asked: bool) -> dict[str, Any]:
    """Give the status fields in which hooks are due again.

    Args:
        status: the present status.
        asked: whether another run is requested. Otherwise only failed hooks are due again.
    """
    over = {"Succeeded", "Failed"} if asked else {"Failed"}
    changes = {
        point: hook.model_copy(
            update={"state": None, "start_time": None, "end_time": None, "message": None}
        )
        for point in POINTS
        if (hook := status_of(status, point)) is not None and hook.state in over
    }
    return with_hooks(status, **changes) if changes else {}


def with_hooks(status: CopyingStatus, **hooks: HookStatus) -> dict[str, Any]:
    """Give the status field with some hooks replaced."""
    standing = status.hooks if isinstance(status, HookedStatus) else None
    return {"hooks": (standing or HooksStatus()).model_copy(update=hooks)}


def moved_on(
    spec: HookSpec, hook: HookStatus, seen: HookSeen | None, *, point: Point, now: datetime
) -> HookStatus:
    """Return how a hook under way stands after a look at its Job.

    Args:
        spec: the hook, as the spec has it.
        hook: as the status has it.
        seen: its Job; None if there is none.
        point: which hook.
        now: the time.
    """
    if seen is None:
        if hook.state == "Pending":
            return hook
        return _failed(point, hook, hook.message or "it was deleted before it ended", now)
    started = hook.model_copy(update={"state": "Running", "start_time": seen.made})
    if seen.phase is JobPhase.SUCCEEDED:
        return started.model_copy(update={"state": "Succeeded", "end_time": seen.ended or now})
    if seen.phase is JobPhase.FAILED:
        return _failed(point, started, seen.words, seen.ended or now)
    if is_late(spec, seen, now):
        return started.model_copy(update={"message": f"it took more than {spec.timeout_seconds} s"})
    return started


def is_late(spec: HookSpec, seen: HookSeen, now: datetime) -> bool:
    """Tell whether a hook's Job has to be deleted, since it has not ended in time."""
    return seen.active and now - seen.made > timedelta(seconds=spec.timeout_seconds) + GRACE


def _failed(point: Point, hook: HookStatus, why: str, when: datetime) -> HookStatus:
    message = f"Hook {point}: Job {hook.job} failed: {why.rstrip('.')}."
    return hook.model_copy(update={"state": "Failed", "end_time": when, "message": message})


def failure(copy: CopySeen, status: CopyingStatus, point: Point) -> Trouble | None:
    """Tell why a copy must not go on after a hook; None if it may."""
    spec, hook = spec_of(copy, point), status_of(status, point)
    if spec is None or spec.on_failure == "Continue" or hook is None or hook.state != "Failed":
        return None
    there = " Everything is copied and can be read." if point == AFTER else ""
    message = f"{hook.message or 'The hook has failed.'}{there}"
    return Trouble.of(HookFailed(message, field=f"spec.hooks.{point}"))


def said(point: Point, hook: HookStatus) -> Saying:
    """Give reason and message for a hook that has run, runs, or runs next."""
    job = f"Job {hook.job}"
    match hook.state:
        case "Failed":
            return Saying("HookFailed", hook.message or "")
        case "Succeeded":
            return Saying("HookSucceeded", f"Hook {point} is done: {job}.")
        case "Running" if hook.start_time is not None:
            since = f"{hook.start_time:%Y-%m-%dT%H:%M:%SZ}"
            return Saying("HookRunning", f"Hook {point} runs since {since}: {job}.")
        case _:
            return Saying("HookRunning", f"Hook {point} starts: {job}.")


def condition(copy: CopySeen, status: CopyingStatus) -> tuple[Tri, Saying] | None:
    """Give the condition HooksSucceeded; None while no hook was due."""
    standing = [
        (point, hook)
        for point in POINTS
        if spec_of(copy, point) is not None
        and (hook := status_of(status, point)) is not None
        and hook.state is not None
    ]
    if not standing:
        return None
    states: dict[str | None, Tri] = {"Failed": "False", "Succeeded": "True"}
    tellings = [(states.get(hook.state, "Unknown"), said(point, hook)) for point, hook in standing]
    worst = min(tellings, key=lambda one: ("False", "Unknown", "True").index(one[0]))
    if worst[0] != "True":
        return worst
    return "True", Saying("HookSucceeded", " ".join(saying.message for _, saying in tellings))
