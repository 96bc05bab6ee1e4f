"""A copy as its object tells it, with which each look begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.core.reconcile.copies.scheduled.seen import ScheduledSeen
from sluice.core.workloads.access import ending
from sluice.core.workloads.request import identity_of, request_of
from sluice.engine.workloads.choice import workload_of
from sluice.kube.api.objects import copy_seen, goal_of, origins_of, parse_copy
from sluice.kube.copies.situation import child_of
from sluice.kube.copies.store_access import READS, look_at_store, writes_of
from sluice.kube.jobs.pods import tasks_for

if TYPE_CHECKING:
    from sluice.api.registry import Copy
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.shared.store_seen import StoreSeen
    from sluice.core.values.trouble import Trouble
    from sluice.engine.workloads.workload import Workload
    from sluice.kube.api.kinds import Object
    from sluice.kube.api.names import Child
    from sluice.kube.loop.settings import OperatorSettings, Profile
    from sluice.kube.stores.storeview import StoreView


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyObject:
    """A copy as its object tells it, before its surroundings are looked at.

    Attributes:
        body: the object at the API server.
        resource: the copy as a model.
        seen: the copy as `reconcile` takes it.
        workload: the work that the engine does for it.
        profile: its runtime profile; None if the settings have none of that name.
    """

    body: Object
    resource: Copy
    seen: CopySeen
    workload: Workload
    profile: Profile | None

    @classmethod
    def read(cls, body: Object, settings: OperatorSettings, *, cluster: str) -> CopyObject:
        """Read an object.

        Args:
            body: the object.
            settings: the operator's settings.
            cluster: the cluster's identity.

        Raises:
            InvalidSpec: this version cannot read the object.
        """
        resource = parse_copy(body)
        profile = settings.profiles.get(resource.spec.runtime.profile)
        tasks = 1 if profile is None else tasks_for(resource.spec, profile)
        seen = copy_seen(body, resource, identity_of(resource, cluster=cluster))
        run_key = seen.run_key if isinstance(seen, ScheduledSeen) else None
        request = request_of(resource, cluster=cluster, tasks=tasks, run_key=run_key)
        return cls(
            body=body,
            resource=resource,
            seen=seen,
            workload=workload_of(request),
            profile=profile,
        )

    @property
    def namespace(self) -> str:
        """The copy's namespace."""
        return self.resource.metadata.namespace

    @property
    def child(self) -> Child:
        """The copy, as the objects that are made for it name it."""
        return child_of(self.resource, self.seen)

    @property
    def eager(self) -> bool:
        """Whether the user has just changed the copy or requested a run."""
        return self.seen.changed or self.seen.asked

    @property
    def hosts(self) -> list[str]:
        """The other namespaces in which its StreamStores are, if it may have Jobs there.

        Users write finalizers and references: these alone must not make work in other namespaces
        at each look. So they count if stores were used, while the copy is deleted, and where the
        watches show Jobs or pods of it: the users of that other namespace, or drivers, have made
        these.
        """
        refs = [one.ref for _, one in (*origins_of(self.resource), goal_of(self.resource))]
        found = (ref.other(self.namespace) for ref in refs if self.seen.finalizer)
        return [one for one in found if one is not None]

    async def look_at_stores(self, stores: StoreView) -> tuple[StoreSeen | Trouble | None, ...]:
        """Look at the StreamStores of the sources and, last, of the target; see `look_at_store`."""
        body, seen, eager = self.body, self.seen, self.eager
        reads = (*READS, *ending(moves=self.workload.moves, seals=False))
        field, goal = goal_of(self.resource)
        writes = writes_of(self.resource, goal, keeps=seen.keeps, deleted=seen.deleted is not None)
        sources = [
            await look_at_store(stores, body, path, what, reads, eager=eager)
            for path, what in origins_of(self.resource)
        ]
        target = await look_at_store(stores, body, field, goal, writes, eager=eager)
        return (*sources, target)
