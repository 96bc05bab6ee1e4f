"""Every situation that a ScopeCopy can be in: a part of the table in `situations`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from sluice import errors
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.core.reconcile.copies.statuses.results import results_hash
from sluice.core.reconcile.copies.world import Reading
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.scope.progress import Pace, Progress
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Planned
from sluice.kube.api.status import of_invalid
from support.reconcile.scope_archives import ARCHIVED, RESTORED, UNPLANNED
from support.situations.recorder import READY
from support.situations.scope_recorder import ScheduledScopeRecorder, ScopeRecorder
from support.situations.situation import CURRENT, DOWN, FAILED, IN_PROGRESS, TERMINATING, Situation

if TYPE_CHECKING:
    from collections.abc import Callable

LOST: Final = errors.DriverLost("the driver's pod is gone")
THERE: Final = errors.TargetExists(
    "7 targets exist and are not this copy's: out/a, out/b, out/c, out/d, out/e and 2 more",
    field="spec.onExists",
)
MOVE: Final = {"sourceOnComplete": "Delete"}
NIGHTLY: Final[dict[str, Any]] = {**ARCHIVED, "schedule": {"cron": "0 3 * * *"}}

_made: list[Situation] = []


def _scope(
    name: str, means: str, kstatus: str, **spec: Any
) -> Callable[[Callable[[ScopeRecorder], None]], None]:
    """Add a state, into which the decorated function brings a new resource."""

    def add(play: Callable[[ScopeRecorder], None]) -> None:
        kind = ScheduledScopeRecorder if "schedule" in spec else ScopeRecorder
        scope = kind(name, **spec)
        play(scope)
        _made.append(
            Situation(kind="ScopeCopy", name=name, means=means, kstatus=kstatus, body=scope.body)
        )

    return add


def _copy(scope: ScopeRecorder) -> None:
    scope.start()
    scope.copy(12, staged=0.6)


def _stop(scope: ScopeRecorder) -> None:
    _copy(scope)
    scope.change(suspend=True)
    scope.look(jobs=(scope.job(JobPhase.RUNNING),))


def _end(scope: ScopeRecorder, *, failed: int = 0, stopped: int = 0) -> None:
    _copy(scope)
    scope.finish(failed=failed, stopped=stopped)


@_scope("unseen", "applied, the operator has not looked yet", IN_PROGRESS)
def _(scope: ScopeRecorder) -> None:
    pass


@_scope("no-store", "there is no such StreamStore", IN_PROGRESS)
def _(scope: ScopeRecorder) -> None:
    scope.look(source=None)


@_scope("store-not-ready", "a StreamStore is not ready", IN_PROGRESS)
def _(scope: ScopeRecorder) -> None:
    scope.look(target=replace(READY, ready=False, why=str(Trouble.of(DOWN))))


@_scope("no-source", "there is no such scope; it is looked for again now and then", FAILED)
def _(scope: ScopeRecorder) -> None:
    error = errors.SourceNotFound("there is no scope in", field="spec.source.scope")
    scope.look(trouble=Trouble.of(error))


@_scope("target-exists", "some targets have another owner, and onExists is Fail", FAILED)
def _(scope: ScopeRecorder) -> None:
    scope.look(trouble=Trouble.of(THERE))


@_scope("starting", "the driver's Job was made", IN_PROGRESS)
def _(scope: ScopeRecorder) -> None:
    scope.start()


@_scope("looking", "its driver looks what the archives in a volume hold", IN_PROGRESS, **RESTORED)
def _(scope: ScopeRecorder) -> None:
    scope.look(answer=Planned(plan=UNPLANNED))
    scope.later(5)
    nothing = Reading(progress=Progress(0, 0, published=False), pace=Pace(0.0, None))
    scope.look(jobs=(scope.job(JobPhase.RUNNING),), reading=nothing)


@_scope("copying", "12 of 30 streams are copied", IN_PROGRESS)
def _(scope: ScopeRecorder) -> None:
    _copy(scope)


@_scope("copying-some-failed", "the same, and one cannot be copied: the others go on", IN_PROGRESS)
def _(scope: ScopeRecorder) -> None:
    scope.start()
    scope.copy(12, staged=0.6, failed=1)


@_scope("retrying", "an attempt failed, another one follows", IN_PROGRESS)
def _(scope: ScopeRecorder) -> None:
    _copy(scope)
    scope.lose(LOST, staged=0.6)


@_scope("gave-up", "more attempts failed in a row than spec.backoffLimit", FAILED, backoffLimit=0)
def _(scope: ScopeRecorder) -> None:
    _copy(scope)
    scope.lose(LOST, staged=0.6)


@_scope("not-understood", "this version of the operator cannot read the spec", FAILED)
def _(scope: ScopeRecorder) -> None:
    error = errors.InvalidSpec("is no field of a ScopeCopy", field="spec.publish")
    scope.change(publish="Progressive")
    scope.body["status"] = of_invalid(ScopeCopyStatus(), scope.body, error, bounded=True).dump()


@_scope("suspended", "spec.suspend was true from the start", IN_PROGRESS, suspend=True)
def _(scope: ScopeRecorder) -> None:
    scope.look(answer=Planned(plan=scope.plan))


@_scope("stopping", "spec.suspend was set while it ran: the driver is being stopped", IN_PROGRESS)
def _(scope: ScopeRecorder) -> None:
    _stop(scope)


@_scope("suspended-midway", "the driver is gone, what it copied and staged stays", IN_PROGRESS)
def _(scope: ScopeRecorder) -> None:
    _stop(scope)
    scope.later(5)
    scope.look()


@_scope("succeeded", "every target is whole", CURRENT)
def _(scope: ScopeRecorder) -> None:
    _end(scope)


@_scope("succeeded-moved", "every target is whole, streams and scope are deleted", CURRENT, **MOVE)
def _(scope: ScopeRecorder) -> None:
    _end(scope)


@_scope(
    "succeeded-kept", "every target is whole; the scope has something else in it", CURRENT, **MOVE
)
def _(scope: ScopeRecorder) -> None:
    _copy(scope)
    scope.finish(kept="it has 2 streams that were not copied")


@_scope("succeeded-nothing", "the spec selects no stream that is there", CURRENT)
def _(scope: ScopeRecorder) -> None:
    ended = scope.select_nothing()
    scope.look(answer=ended)
    scope.look(answer=ended, results=results_hash(()))


@_scope("archiving", "12 of 30 streams are archived", IN_PROGRESS, **ARCHIVED)
def _(scope: ScopeRecorder) -> None:
    _copy(scope)


@_scope("succeeded-archived", "every stream is archived", CURRENT, **ARCHIVED)
def _(scope: ScopeRecorder) -> None:
    _end(scope)


@_scope("succeeded-restored", "every stream is restored from its archive", CURRENT, **RESTORED)
def _(scope: ScopeRecorder) -> None:
    _end(scope)


@_scope("partially-succeeded", "3 of 30 streams cannot be copied", FAILED)
def _(scope: ScopeRecorder) -> None:
    _end(scope, failed=3)


@_scope(
    "partially-stopped",
    "one cannot be copied, and no other was begun since",
    FAILED,
    failurePolicy="Stop",
)
def _(scope: ScopeRecorder) -> None:
    _end(scope, failed=1, stopped=17)


@_scope("failed", "no stream can be copied", FAILED)
def _(scope: ScopeRecorder) -> None:
    scope.start()
    scope.finish(failed=30)


@_scope("asked-again", "some failed, then sluice.dev/requestedAt was set; not looked at", FAILED)
def _(scope: ScopeRecorder) -> None:
    _end(scope, failed=3)
    scope.request("2026-05-05")


@_scope("asked-again-failed", "the same, looked at: what failed is copied", IN_PROGRESS)
def _(scope: ScopeRecorder) -> None:
    _end(scope, failed=3)
    scope.request("2026-05-05")
    scope.start_again(failed=3)


def _night(scope: ScopeRecorder, *, failed: int = 0) -> None:
    """Let a nightly run be made. The resource was made at noon."""
    scope.now = scope.now.replace(hour=3, minute=0, second=0) + timedelta(days=1)
    _end(scope, failed=failed)


@_scope("scheduled", "no run was due yet", CURRENT, **NIGHTLY)
def _(scope: ScopeRecorder) -> None:
    scope.look()


@_scope("scheduled-running", "a run is made", IN_PROGRESS, **NIGHTLY)
def _(scope: ScopeRecorder) -> None:
    scope.later(15 * 3600)
    _copy(scope)


@_scope("scheduled-succeeded", "the last run archived every stream", CURRENT, **NIGHTLY)
def _(scope: ScopeRecorder) -> None:
    _night(scope)


@_scope("scheduled-partially", "3 streams failed in the last run", FAILED, **NIGHTLY)
def _(scope: ScopeRecorder) -> None:
    _night(scope)
    _night(scope, failed=3)


@_scope("scheduled-suspended", "suspended after the last run", CURRENT, **NIGHTLY)
def _(scope: ScopeRecorder) -> None:
    _night(scope)
    scope.change(suspend=True)
    scope.look()


@_scope("deleting", "it was deleted while it ran: the driver is being stopped", TERMINATING)
def _(scope: ScopeRecorder) -> None:
    _copy(scope)
    scope.delete()
    scope.look(jobs=(scope.job(JobPhase.RUNNING),), pods=1)


@_scope("deletion-stuck", "the same, and the store does not answer", TERMINATING)
def _(scope: ScopeRecorder) -> None:
    _copy(scope)
    scope.delete()
    scope.fail(DOWN)


SCOPES: Final = tuple(_made)
