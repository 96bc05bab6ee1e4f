"""Workloads: the engine's work for a resource, as the same few calls for each kind.

The command line calls `plan`, `watch` and `abort`. The operator calls `ask`, `watch`, `abandon` and
`erase`. A driver that plans by itself calls `plan` and `tell`. All calls block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.scope.progress import Progress
from sluice.core.values.model import VOLUME
from sluice.engine.access.source_runs import live

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.archive.recorded import Recorded
    from sluice.core.values.model import StoreAddress
    from sluice.core.workloads.answers import Answer
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.archive.erase import Erased
    from sluice.stores.base import Store

    Located = tuple[StoreAddress, Place]
    """A store, and its address."""

P = TypeVar("P")
"""A plan of a resource."""
R = TypeVar("R")
"""The report of a resource's work."""


@dataclass(frozen=True, slots=True)
class Found(Generic[P, R]):
    """The state of a workload in the stores: its plan, or its report if nothing is left to do.

    Attributes:
        plan: the plan.
        recorded: whether a process has begun with this plan.
        report: the report.
    """

    plan: P | None = None
    recorded: bool = False
    report: R | None = None


class Measures(Protocol):
    """A measure of a plan's progress."""

    def measure(self) -> Progress:
        """Measure the progress now."""
        ...


class Workload(Protocol):
    """The engine's work for a resource."""

    @property
    def moves(self) -> bool:
        """Whether the source is deleted at the end."""
        ...

    def ask(
        self,
        sources: Sequence[Located],
        target: Located,
        *,
        known: Plan | None,
        again: bool,
        told: Recorded | None = None,
    ) -> Answer:
        """Ask the stores about the copy. Nothing is changed, and volumes are not read.

        Args:
            sources: the stores to read from, as the plan numbers them.
            target: the store to write to.
            known: the plan that was recorded, if there is one.
            again: whether to plan streams again that ended with failures.
            told: what the driver has reported of an archive, if it has.
        """
        ...

    def plan(
        self, sources: Sequence[Located], target: Located, *, run: int | None = None
    ) -> Found[Any, Any]:
        """Plan the work where volumes can be read. Nothing is changed.

        Args:
            sources: the stores to read from.
            target: the store to write to.
            run: for a scope, the number of the run that a driver has to plan; None to plan what
                earlier runs have left, also after failures.
        """
        ...

    def tell(self, target: Place) -> Recorded | None:
        """Return what the operator cannot see itself, of an archive in a volume; else None."""
        ...

    def watch(self, plan: Plan, target: Place, sources: Sequence[Place] = ()) -> Measures:
        """Return what measures the progress of a plan.

        Args:
            plan: the plan.
            target: the store to write to.
            sources: the stores to read from, as the plan numbers them. Without them it is not
                measured how far a copy is behind a source that it follows.
        """
        ...

    def abort(self, sources: Callable[[], Sequence[Place]], target: Place) -> str:
        """Delete what unfinished work has left, for a user at the command line.

        Args:
            sources: opens the stores to read from.
            target: the store to write to.

        Returns:
            What was done, in words for a user.

        Raises:
            AbortRefused: publishing has begun.
        """
        ...

    def abandon(self, sources: Sequence[Place] | None, target: Place, *, known: Plan | None) -> str:
        """End the work for the operator, so that nothing unpublished stays.

        Args:
            sources: the stores to read from, if they can be reached.
            target: the store to write to.
            known: the plan that was recorded, if there is one.

        Returns:
            What was done, in words for a user.
        """
        ...

    def erase(self, target: Place) -> Erased:
        """Delete published data that belongs to the resource: an archive, nothing of other kinds.

        Raises:
            StoreBusy: there is more to delete.
        """
        ...


class Unseen:
    """The progress of work that only the driver can see: always zero."""

    def measure(self) -> Progress:
        """Return no progress."""
        return Progress(bytes=0, total=0, published=False)


def in_volumes(places: Sequence[Located]) -> bool:
    """Tell whether one of the places is in a volume, which only pods can read."""
    return any(address.claim is not None for address, _ in places)


def is_volume(place: Place) -> bool:
    """Tell whether a place is a volume."""
    return isinstance(place, ArchiveRoot) and place.uri.startswith(VOLUME)


def located_live(located: Located) -> tuple[StoreAddress, Store]:
    """Give a store of live streams with its address. InvalidSpec if it is a store of archives."""
    return located[0], live(located[1])
