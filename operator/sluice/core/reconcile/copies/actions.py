"""What the operator can do about a copy, as values: it decides without a connection or a clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.api.status.common import CopyingStatus
    from sluice.core.scope.scope import StreamResult
    from sluice.core.values.positions import PositionMap
    from sluice.core.workloads.plan import Plan


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Put the staging finalizer on the copy."""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Take it off."""


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
    """Publish the map of positions in a ConfigMap, in place of one of another target."""

    positions: PositionMap


@dataclass(frozen=True, slots=True)
class WriteResults:
    """Publish what is known of each stream of a scope, in ConfigMaps of bounded size."""

    results: tuple[StreamResult, ...]


@dataclass(frozen=True, slots=True)
class WriteControls:
    """Tell the driver the limits."""


@dataclass(frozen=True, slots=True)
class StartJob:
    """Make the Job of an attempt, or adopt it."""

    attempt: int
    plan: Plan


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete a Job, its pods, and what its driver ran from; any of them may be gone already."""

    name: str


@dataclass(frozen=True, slots=True)
class Abandon:
    """Drop staging and the target if it is unpublished; finish it if publishing has begun."""


@dataclass(frozen=True, slots=True)
class Erase:
    """Delete an archive with all its runs."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """Say loudly what is left in a store that nobody can reach any more."""

    why: str


Action = (
    AddFinalizer
    | RemoveFinalizer
    | HoldStores
    | WritePlan
    | DropPlan
    | WriteControls
    | WritePositions
    | WriteResults
    | StartJob
    | DeleteJob
    | Abandon
    | Erase
    | Orphan
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do now.

    Attributes:
        status: to write before anything is done.
        actions: in order; the resource is looked at again after they are done.
        again: seconds until it is looked at in any case; None to wait for an event.
    """

    status: CopyingStatus
    actions: tuple[Action, ...] = field(default=())
    again: float | None = None
