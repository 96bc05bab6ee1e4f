"""Decide what to do next about a StreamArchive's restore drill.

A drill and a run never work at once, and the run goes first: a drill begins while no run is due,
and pauses when one is. A request waits for the drill that goes on, and is handled once: with the
begin of a drill, or with the reason why none can begin. A drill goes through these states, which a
killed operator resumes:

1. The status says that the scratch stream may exist. Then the StreamCopy is made.
2. The StreamCopy has ended. The result is written into the status, and the StreamCopy is deleted.
3. The scratch stream is deleted, and looked for until it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from sluice.api.status.archive_status import DrillStatus, StreamArchiveStatus
from sluice.api.status.common import ConditionType, ObjectRef
from sluice.core.reconcile.copies.actions import (
    Abandon,
    AddFinalizer,
    Decision,
    DeleteDrill,
    DropScratch,
    HoldStores,
    LeaveScratch,
    PauseDrill,
    RemoveFinalizer,
    StartDrill,
    TellDrill,
)
from sluice.core.reconcile.copies.deletion import GONE, GONE_PATIENCE
from sluice.core.reconcile.copies.drill.seen import copy_name, told
from sluice.core.reconcile.copies.statuses.choice import status_of
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.values import text

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.archive_seen import ArchiveSeen
    from sluice.core.reconcile.copies.drill.seen import DrillCopy, DrillSeen
    from sluice.core.reconcile.copies.world import World
    from sluice.core.reconcile.shared.conditions import Tri
    from sluice.core.values.trouble import Trouble

POLL_SECONDS: Final = 3.0
"""Seconds between two looks at a drill."""

AT_ONCE: Final = 0.05
"""Seconds until the look that removes the finalizer, once the scratch stream is gone."""

WAIT_SECONDS: Final = 30.0
"""Seconds between two looks at a store that a drill waits for."""

DAMAGE: Final = frozenset(
    {"ArchiveDamaged", "ArchiveNotFound", "DigestMismatch", "EventsDamaged", "SourceTruncated"}
)
"""Failures of a restore whose cause is the archive. All others leave open whether it is whole."""

PASSED, FAILED, NOT_RUN = "Passed", "Failed", "NotRun"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What a drill needs now.

    Attributes:
        drill: its status.
        actions: in this order.
        again: seconds until the next look in any case.
        holds: whether a run has to wait, since the drill's driver may be at work.
        verdict: the condition RestoreVerified, if it changes.
    """

    drill: DrillStatus
    actions: tuple[Action, ...] = field(default=())
    again: float | None = None
    holds: bool = False
    verdict: tuple[Tri, Saying] | None = None


def beside(seen: ArchiveSeen, world: World, decided: Decision) -> Decision:
    """Add to the decision about an archive's runs what its drill needs."""
    if world.drill is None or not isinstance(decided.status, StreamArchiveStatus):
        return decided
    step = _next(seen, world, world.drill)
    written = step.drill if seen.spec.verify is not None or step.drill.scratch else None
    told: tuple[Action, ...] = ()
    if step.verdict is not None and seen.spec.verify is not None:
        told = (TellDrill(step.verdict[1]),)  # before all else: no later look would tell
    if step.holds:
        status = seen.status.model_copy(update={"drill": written})
        return Decision(
            status=_judged(seen, status, step, world.now),
            actions=(*told, *step.actions),
            again=step.again,
        )
    status = decided.status.model_copy(update={"drill": written})
    actions = decided.actions
    if step.drill.scratch:  # the finalizer stays until the scratch stream is gone
        actions = tuple(one for one in actions if not isinstance(one, Abandon | RemoveFinalizer))
    waits = [one for one in (decided.again, step.again) if one is not None]
    return replace(
        decided,
        status=_judged(seen, status, step, world.now),
        actions=(*told, *actions, *step.actions),
        again=min(waits, default=None),
    )


def on_deletion(seen: ArchiveSeen, world: World, decided: Decision) -> Decision:
    """Have the drill's StreamCopy and its scratch stream go before the archive's finalizer does."""
    if not seen.finalizer or seen.force_orphan:
        return decided
    copy = None if world.drill is None else world.drill.copy
    drill = seen.status.drill
    if copy is not None:
        saying = Saying("Deleting", "The restore drill is being stopped.")
        status = status_of(seen, world.now).deleting(saying)
        noted = drill or DrillStatus()
        if not noted.scratch:
            noted = _noted(seen, copy, noted)
        actions = () if copy.deleting else (DeleteDrill(),)
        return Decision(
            status=status.model_copy(update={"drill": noted}), actions=actions, again=POLL_SECONDS
        )
    # With a lost status, it is unknown whether a drill has left something.
    may_be = drill.scratch if drill is not None else seen.spec.verify is not None
    if not may_be or RemoveFinalizer() not in decided.actions:
        return decided
    return replace(decided, actions=(DropScratch(), *decided.actions))


def _next(seen: ArchiveSeen, world: World, around: DrillSeen) -> _Step:
    """Decide about the drill alone."""
    drill = seen.status.drill or DrillStatus()
    due = seen.drill_due
    if drill.since is None:
        drill = drill.model_copy(update={"since": world.now})
    if due is None:  # else it stays, until the drill begins
        drill = drill.model_copy(update={"next_time": seen.drill_later})
    if around.copy is not None:
        return _with_copy(seen, world, around.copy, drill)
    if drill.scratch and drill.result is not None:
        return _cleaned(around, drill, world.now)
    if drill.scratch and seen.spec.verify is None:
        return _not_run(drill, world.now, _REMOVED)
    begins = drill.scratch or due is not None or seen.drill_asked
    if not begins or not _is_free(seen, world):
        return _Step(drill=drill)
    if drill.scratch:  # the StreamCopy was not made yet, or another client has deleted it
        late = f"{_LATE} {_obstacle(around) or ''}".rstrip()
        return _begun(around, drill) if due is None else _not_run(drill, world.now, late)
    return _due(seen, around, drill, world.now)


def _is_free(seen: ArchiveSeen, world: World) -> bool:
    """Tell whether no run is at work or is to be made now."""
    working = any(job.active or job.deleting for job in world.jobs)
    return (seen.done or seen.gave_up) and not working and not seen.spec.suspend


def _due(seen: ArchiveSeen, around: DrillSeen, drill: DrillStatus, now: datetime) -> _Step:
    """Begin a drill that is due or requested, if there is a run to restore."""
    archive = seen.status.archive
    runs = sorted(one.run for one in archive.last_runs) if archive is not None else []
    drills = seen.spec.drills
    if not runs or seen.spec.verify is None or drills is None:
        waiting = "The drill waits for the first run."
        return _Step(drill=drill.model_copy(update={"message": waiting}), again=WAIT_SECONDS)
    run = runs[-1]
    if seen.spec.verify.sample == "Rotate" and drill.run is not None:
        run = max((one for one in runs if one < drill.run), default=run)
    _, place = drills
    begun = drill.model_copy(
        update={
            "scheduled_time": seen.drill_due,
            "last_handled_requested_at": seen.drill_requested_at or drill.last_handled_requested_at,
            "run": run,
            "copy_ref": ObjectRef(name=copy_name(seen.name, seen.uid)),
            "store": place.store,
            "scope": place.scope,
            "start_time": now,
            "completion_time": None,
            "result": None,
            "bytes": None,
            "events": None,
        }
    )
    trouble = _obstacle(around)
    if trouble is not None and drill.message == str(trouble) and not seen.drill_asked:
        return _Step(drill=drill, again=WAIT_SECONDS)
    if trouble is not None:
        step = _not_run(begun, now, str(trouble))
        kept = step.drill.model_copy(update={"copy_ref": None, "run": drill.run})
        return replace(step, drill=kept, actions=(), again=WAIT_SECONDS)
    begun = begun.model_copy(update={"scratch": True, "next_time": seen.drill_later})
    return _begun(around, begun)


def _begun(around: DrillSeen, drill: DrillStatus) -> _Step:
    """Make the StreamCopy of a drill, of which the status tells already."""
    trouble = _obstacle(around)
    if trouble is not None:
        waiting = drill.model_copy(update={"message": str(trouble)})
        return _Step(drill=waiting, again=WAIT_SECONDS)
    said = f"Run {drill.run} is restored to a scratch stream and compared."
    return _Step(
        drill=drill.model_copy(update={"message": said}),
        actions=(AddFinalizer(), HoldStores(), StartDrill(drill.run or 0)),
        again=POLL_SECONDS,
    )


def _with_copy(seen: ArchiveSeen, world: World, copy: DrillCopy, drill: DrillStatus) -> _Step:
    """Decide about a drill whose StreamCopy exists."""
    if not drill.scratch:  # the status was lost, or another client has changed it
        begun = {"run": copy.run, "start_time": world.now, "completion_time": None}
        drill = _noted(seen, copy, drill).model_copy(update=begun | {"result": None})
    if copy.deleting:
        return _Step(drill=drill, again=POLL_SECONDS, holds=not copy.quiet)
    if drill.result is not None:
        deletion = (DeleteDrill(),)
        return _Step(drill=drill, actions=deletion, again=POLL_SECONDS, holds=not copy.quiet)
    ended = _result(seen, world, copy, drill)
    if ended is not None:
        return replace(ended, holds=not copy.quiet)
    words = f"Run {drill.run} is restored to a scratch stream and compared. {copy.words}"
    drill = drill.model_copy(update={"message": words})
    if _is_free(seen, world) == copy.suspended:
        action = PauseDrill(paused=not copy.suspended)
        # A StreamCopy whose pause is lifted may have a driver from now on.
        return _Step(drill=drill, actions=(action,), again=POLL_SECONDS, holds=not copy.suspended)
    return _Step(drill=drill, again=POLL_SECONDS, holds=not (copy.quiet or _is_free(seen, world)))


def _noted(seen: ArchiveSeen, copy: DrillCopy, drill: DrillStatus) -> DrillStatus:
    """Note where a StreamCopy makes the scratch stream."""
    where: dict[str, Any] = {"scratch": True, "store": copy.store, "scope": copy.scope}
    ref = ObjectRef(name=copy_name(seen.name, seen.uid))
    return drill.model_copy(update=where | {"copy_ref": ref})


def _result(seen: ArchiveSeen, world: World, copy: DrillCopy, drill: DrillStatus) -> _Step | None:
    """Give the end of a drill; None while it goes on."""
    if copy.done:
        progress = copy.status.progress
        drill = drill.model_copy(
            update={
                "bytes": progress.bytes if progress else None,
                "events": progress.events if progress else None,
                "last_success_time": world.now,
                "last_success_run": copy.run,
            }
        )
        said = f"Run {copy.run} was restored"
        if progress is not None:
            said += f": {text.size(progress.bytes)}"
            said += "" if progress.events is None else f", {progress.events} events"
        said += ". All of it was read back and compared."
        return _ended(drill, world.now, PASSED, ("True", Saying("DrillPassed", said)), said)
    failure = copy.failure
    if failure is not None:
        archive = seen.status.archive
        newest = max((one.run for one in archive.last_runs), default=0) if archive else 0
        # Retention may have removed an older run since it was listed.
        gone = failure.reason == "ArchiveNotFound" and copy.run < newest
        if gone or failure.reason not in DAMAGE:
            return _not_run(drill, world.now, told(failure))
        said = f"Run {copy.run} cannot be restored: {told(failure)}"
        verdict: tuple[Tri, Saying] = ("False", Saying(failure.reason, said))
        return _ended(drill, world.now, FAILED, verdict, said)
    if seen.spec.verify is None:
        return _not_run(drill, world.now, _REMOVED)
    if seen.drill_due is not None and _is_free(seen, world):
        return _not_run(drill, world.now, f"{_LATE} {copy.words}")
    return None


def _not_run(drill: DrillStatus, now: datetime, message: str) -> _Step:
    """End a drill that says nothing about the archive."""
    last = " No drill has passed yet."
    if drill.last_success_time is not None:
        when = f"{drill.last_success_time:%Y-%m-%dT%H:%M:%SZ}"
        last = f" The last drill that passed was of run {drill.last_success_run}, at {when}."
    said = f"The drill could not run, which says nothing about the archive. {message}{last}"
    verdict: tuple[Tri, Saying] = ("Unknown", Saying("DrillNotRun", said))
    return _ended(drill, now, NOT_RUN, verdict, message)


def _ended(
    drill: DrillStatus, now: datetime, result: str, verdict: tuple[Tri, Saying], message: str
) -> _Step:
    """Write the end of a drill, and then delete its StreamCopy."""
    end = {"result": result, "message": message, "completion_time": now}
    return _Step(
        drill=drill.model_copy(update=end),
        actions=(DeleteDrill(),),
        again=POLL_SECONDS,
        verdict=verdict,
    )


def _cleaned(around: DrillSeen, drill: DrillStatus, now: datetime) -> _Step:
    """Delete the scratch stream of a drill that has ended, and look until it is gone.

    The operator waits for ever for a store that does not answer, but not for a StreamStore or a
    Secret that is gone: after GONE_PATIENCE it reports the scratch stream as left behind.
    """
    found = (drill.message or "").partition(_STUCK)[0]
    over = {"scratch": False, "copy_ref": None, "message": found}
    if around.scratch is None and _is_lost(around.trouble, drill, now):
        left = over | {"message": f"{found} The scratch stream is left behind: {around.trouble}"}
        orphan = LeaveScratch(str(around.trouble))
        return _Step(drill=drill.model_copy(update=left), actions=(orphan,), again=AT_ONCE)
    if around.scratch is None:
        told = f"{found}{_STUCK}{around.trouble}"
        return _Step(drill=drill.model_copy(update={"message": told}), again=WAIT_SECONDS)
    if around.scratch:
        return _Step(drill=drill, actions=(DropScratch(),), again=POLL_SECONDS)
    return _Step(drill=drill.model_copy(update=over), again=AT_ONCE)


def _is_lost(trouble: Trouble | None, drill: DrillStatus, now: datetime) -> bool:
    """Tell whether the scratch stream of a drill that has ended cannot be deleted any more."""
    if trouble is None or trouble.reason not in GONE or drill.completion_time is None:
        return False
    return (now - drill.completion_time).total_seconds() > GONE_PATIENCE


def _obstacle(around: DrillSeen) -> Trouble | str | None:
    """Tell why the StreamCopy of a drill cannot be made; None if it can."""
    if around.taken:
        return "Another StreamCopy has the name that the drill's would have: delete it."
    if around.place is None:
        return "There is no StreamStore of that name to restore to."
    if not isinstance(around.place, StoreSeen):
        return around.place
    return None if around.place.ready else around.place.why


def _judged(
    seen: ArchiveSeen, status: StreamArchiveStatus, step: _Step, now: datetime
) -> StreamArchiveStatus:
    """Write the condition RestoreVerified."""
    if step.verdict is None or seen.spec.verify is None:
        return status
    kind = ConditionType.RESTORE_VERIFIED
    merged = conditions.judged(
        seen.status, status, kind, step.verdict, generation=seen.generation, now=now
    )
    return status.model_copy(update={"conditions": merged})


_STUCK: Final = " The scratch stream is not deleted yet: "
_LATE: Final = "It was not done when the next drill was due."
_REMOVED: Final = "spec.verify was removed while the drill went on."
