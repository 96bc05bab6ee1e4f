"""The operator's actions on a copy, as values: decisions need no connection and no clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.hooks.standing import Point
    from sluice.core.reconcile.shared.conditions import Saying
    from sluice.core.scope.scope import StreamResult
    from sluice.core.values.positions import PositionMap
    from sluice.core.workloads.answers import ScopeEnded
    from sluice.core.workloads.plan import Plan


POLL_SECONDS: Final = 2.0
"""Seconds between two looks at a running copy's progress, or at a hook that begins."""

WAIT_SECONDS: Final = 10.0
"""Seconds between two looks at a copy that waits; events usually wake it sooner."""

STORE_SECONDS: Final = 60.0
"""Seconds between two looks at a copy that waits for a StreamStore, which wakes it then. Thousands
may wait for one."""

AT_ONCE: Final = 0.0
"""Seconds until the look that finds what was just published, or that a hook has ended."""


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Put the staging finalizer on the copy."""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Remove the staging finalizer from the copy."""


@dataclass(frozen=True, slots=True)
class HoldStores:
    """Put the in-use finalizer on the stores and their Secrets."""


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Write the plan into a ConfigMap that never changes."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class DropPlan:
    """Delete the plan's ConfigMap: the copy is planned anew."""


@dataclass(frozen=True, slots=True)
class WritePositions:
    """Publish the position map in a ConfigMap, in place of a map of another target."""

    positions: PositionMap


@dataclass(frozen=True, slots=True)
class WriteResults:
    """Publish the results of a scope's streams, in ConfigMaps of bounded size."""

    results: tuple[StreamResult, ...]


@dataclass(frozen=True, slots=True)
class RecordScopeRun:
    """Record the run of a scope in the folder of its archives: which run each stream has got."""

    ended: ScopeEnded


@dataclass(frozen=True, slots=True)
class WriteControls:
    """Write the limits into the ConfigMap that the driver reads."""


@dataclass(frozen=True, slots=True)
class WriteWish:
    """Write into the copy's journal how it is to end, where its follower sees it."""


@dataclass(frozen=True, slots=True)
class MakeGroup:
    """Make a reader group in the target, where the group of this name stands in the source."""

    name: str


@dataclass(frozen=True, slots=True)
class DropControls:
    """Delete the ConfigMap with the limits, unless it was written for a later attempt."""


@dataclass(frozen=True, slots=True)
class StartJob:
    """Make the Job of an attempt, or adopt it: a follower's, or a driver's."""

    attempt: int
    plan: Plan
    follower: bool = False


@dataclass(frozen=True, slots=True)
class StartHook:
    """Make the Job of a hook from its CronJob, or adopt it."""

    point: Point
    job: str


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete a Job, its pods, and its driver's ConfigMap; any of them may be gone already."""

    name: str


@dataclass(frozen=True, slots=True)
class Abandon:
    """Delete staging and an unpublished target; if publishing has begun, finish it instead."""


@dataclass(frozen=True, slots=True)
class Erase:
    """Delete an archive with all its runs."""


@dataclass(frozen=True, slots=True)
class Expire:
    """Delete the resource of a copy that succeeded, if no client has changed it since this look."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """Report by log, metric and event what the copy leaves behind in a store."""

    why: str


@dataclass(frozen=True, slots=True)
class StartDrill:
    """Make the StreamCopy that restores this run of an archive to the scratch stream."""

    run: int


@dataclass(frozen=True, slots=True)
class PauseDrill:
    """Have the StreamCopy of a drill pause for a run, or go on after it."""

    paused: bool


@dataclass(frozen=True, slots=True)
class DeleteDrill:
    """Delete the StreamCopy of a drill. It deletes what it has staged before it goes."""


@dataclass(frozen=True, slots=True)
class DropScratch:
    """Delete the scratch stream of a drill. No StreamCopy may write to it any more."""


@dataclass(frozen=True, slots=True)
class TellDrill:
    """Report the result of a drill by an event."""

    saying: Saying


@dataclass(frozen=True, slots=True)
class TellStreams:
    """Report by an event that streams of a scope are followed no more, while the others are."""

    saying: Saying


@dataclass(frozen=True, slots=True)
class LeaveScratch:
    """Report by log, metric and event that the scratch stream of a drill is left behind."""

    why: str


Action = (
    AddFinalizer
    | RemoveFinalizer
    | HoldStores
    | WritePlan
    | DropPlan
    | WriteControls
    | WriteWish
    | MakeGroup
    | DropControls
    | WritePositions
    | WriteResults
    | RecordScopeRun
    | StartJob
    | StartHook
    | DeleteJob
    | Abandon
    | Erase
    | Expire
    | StartDrill
    | PauseDrill
    | DeleteDrill
    | DropScratch
    | TellDrill
    | TellStreams
    | LeaveScratch
    | Orphan
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Decision about a copy.

    Attributes:
        status: the status to write before the actions.
        actions: to do in this order.
        again: seconds until the next look in any case; None to wait for an event.
    """

    status: CopyingStatus
    actions: tuple[Action, ...] = field(default=())
    again: float | None = None
