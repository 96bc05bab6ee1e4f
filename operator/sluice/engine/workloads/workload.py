"""A workload: what a resource has the engine do, the same few calls whatever its kind is.

The operator asks, watches, abandons and erases; a driver that plans by itself plans and tells. All
calls block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sluice.archive.runs.shelf import Shelf
from sluice.core.scope.progress import Progress
from sluice.core.values.model import VOLUME
from sluice.engine.access.source_runs import live

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.archive.recorded import Recorded
    from sluice.core.values.model import StoreAddress
    from sluice.core.workloads.answers import Answer
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.archive.erase import Erased
    from sluice.stores.base import Store

    Located = tuple[StoreAddress, Place]
    """A place, and its address."""


class Measures(Protocol):
    """Measures the progress of a plan."""

    def measure(self) -> Progress:
        """Measure the progress now."""
        ...


class Workload(Protocol):
    """What a resource has the engine do."""

    @property
    def moves(self) -> bool:
        """Tell whether the source is deleted at the end."""
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
        """Ask the stores about the copy; nothing is changed. Volumes are not looked into.

        Args:
            sources: the stores to read from, as the plan numbers them.
            target: the store to write to.
            known: the plan that was written down.
            again: whether what ended with failures is to be planned once more.
            told: what the driver has said of an archive, if it has.
        """
        ...

    def plan(self, sources: Sequence[Located], target: Located, *, run: int) -> Plan | None:
        """Plan what the operator has left to a driver, which can look into volumes.

        Args:
            sources: the stores to read from.
            target: the store to write to.
            run: of a scope, which run it is.

        Returns:
            The plan; None where nothing is left to do.
        """
        ...

    def tell(self, target: Place) -> Recorded | None:
        """Tell of an archive what the operator cannot see; None where there is nothing to tell."""
        ...

    def watch(self, plan: Plan, target: Place) -> Measures:
        """Give what measures the progress of a plan."""
        ...

    def abandon(self, sources: Sequence[Place] | None, target: Place, *, known: Plan | None) -> str:
        """Leave nothing unpublished.

        Args:
            sources: the stores to read from, if they can be reached.
            target: the store to write to.
            known: the plan that was written down.

        Returns:
            What was done, for people.
        """
        ...

    def erase(self, target: Place) -> Erased:
        """Delete what stays otherwise: of an archive, all of it. StoreBusy: there is more."""
        ...


class Unseen:
    """Measures what only the driver can see."""

    def measure(self) -> Progress:
        """See Measures."""
        return Progress(bytes=0, total=0, published=False)


def in_volumes(places: Sequence[Located]) -> bool:
    """Tell whether one of them is in a volume, into which only pods can look."""
    return any(address.claim is not None for address, _ in places)


def is_volume(place: Place) -> bool:
    """Tell whether a place is a volume."""
    return isinstance(place, Shelf) and place.uri.startswith(VOLUME)


def located_live(located: Located) -> tuple[StoreAddress, Store]:
    """Give a store of live streams with its address. InvalidSpec where it is none."""
    return located[0], live(located[1])
