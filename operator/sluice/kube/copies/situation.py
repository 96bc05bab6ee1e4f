"""A copy and its surroundings, as one look at them found them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.core.reconcile.copies.seen import running_job
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.kube.api.kinds import COPIES
from sluice.kube.api.names import Child
from sluice.kube.api.objects import goal_of, origins_of

if TYPE_CHECKING:
    from sluice.api.registry import Copy
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import World
    from sluice.engine.workloads.workload import Workload
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.copies.memory import CopyMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A copy and its surroundings.

    Attributes:
        body: the copy's object at the API server.
        resource: the copy as a model.
        seen: the copy as `reconcile` takes it.
        world: its surroundings.
        workload: the work that the engine does for it.
        memory: see CopyMemory.
        places: the namespaces in which the copy may have Jobs, its own first.
    """

    body: Object
    resource: Copy
    seen: CopySeen
    world: World
    workload: Workload
    memory: CopyMemory
    places: tuple[str, ...]

    @property
    def namespace(self) -> str:
        """The copy's namespace."""
        return self.resource.metadata.namespace

    @property
    def kind(self) -> Kind:
        """The copy's kind."""
        return COPIES[self.resource.kind]

    @property
    def child(self) -> Child:
        """The copy, as the objects that are made for it name it."""
        return child_of(self.resource, self.seen)

    @property
    def unheld(self) -> list[tuple[str, StoreSeen]]:
        """The StreamStores without the in-use finalizer, by the fields that name them."""
        places = (*origins_of(self.resource), goal_of(self.resource))
        stores = (*self.world.sources, self.world.target)
        return [
            (f"{field}.{what.store_field}", store)
            for (field, what), store in zip(places, stores, strict=True)
            if isinstance(store, StoreSeen) and not store.held
        ]

    @property
    def host(self) -> str | None:
        """The namespace of the driver that runs, or begins next, if that is not the copy's."""
        running = running_job(self.seen, self.world)
        return self.world.host if running is None else running.away


def child_of(resource: Copy, seen: CopySeen) -> Child:
    """Return a copy as the objects that are made for it name it."""
    kind, namespace = COPIES[resource.kind], resource.metadata.namespace
    return Child(kind=kind, namespace=namespace, name=seen.name, uid=seen.uid)
