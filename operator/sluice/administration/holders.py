"""What still holds something in a store: the resources with a finalizer of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.administration.listing import listed
from sluice.api.registry import BY_NAME, Lifecycle
from sluice.api.status.common import ConditionType, CopyingStatus, ResourceStatus
from sluice.kube.api.kinds import (
    EPHEMERAL_STREAM,
    SCOPE_COPY,
    STREAM_ARCHIVE,
    STREAM_COPY,
    STREAM_STORE,
)
from sluice.kube.api.objects import FINALIZERS, has_finalizer, is_deleting, wants_orphan
from sluice.kube.stores.dependents import KINDS

if TYPE_CHECKING:
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.served import Served


@dataclass(frozen=True, slots=True)
class Holder:
    """A resource of ours, as it is in the cluster."""

    kind: Kind
    body: Object

    @property
    def namespace(self) -> str:
        """Where it is."""
        return str(self.body["metadata"]["namespace"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.body["metadata"]["name"])

    @property
    def uid(self) -> str:
        """Tells it from another that takes its name."""
        return str(self.body["metadata"]["uid"])

    @property
    def finalizer(self) -> str:
        """What keeps it from going."""
        return FINALIZERS[self.kind]

    @property
    def holds(self) -> bool:
        """Whether it holds something in a store, or is held."""
        return has_finalizer(self.body, self.finalizer)

    @property
    def deleting(self) -> bool:
        """Whether it was deleted, and is held back."""
        return is_deleting(self.body)

    @property
    def forced(self) -> bool:
        """Whether it was deleted, and may go whatever it leaves in a store."""
        return self.deleting and wants_orphan(self.body)

    @property
    def unfinished(self) -> bool:
        """Whether it has something to do still. One with a schedule or owners always has."""
        scheduled = (self.body.get("spec") or {}).get("schedule") is not None
        lifecycle = BY_NAME[self.kind.name].lifecycle
        if lifecycle is Lifecycle.CONTINUOUS or self.holds or scheduled:
            return True
        return CopyingStatus.read(self.body.get("status")).completion_time is None

    @property
    def title(self) -> str:
        """As people call it."""
        return f"{self.kind.name} {self.namespace}/{self.name}"

    @property
    def where(self) -> str:
        """What it holds, and in which StreamStore."""
        spec = self.body.get("spec") or {}
        match self.kind.name:
            case EPHEMERAL_STREAM.name:
                status = self.body.get("status") or {}
                named = spec.get("stream") or f"{spec.get('streamPrefix')}*"
                streams = ", ".join(status.get("streams") or []) or named
                return f"{_place(spec)}: {streams}"
            case STREAM_COPY.name:
                target = spec.get("target") or {}
                return f"{_place(target)}: what is staged for {target.get('stream')}"
            case STREAM_ARCHIVE.name:
                there = spec.get("destination") or {}
                kept = "all runs" if spec.get("onDelete") == "Delete" else "what is not recorded"
                return f"{_store(there)}, archive {there.get('path')}: {kept}"
            case SCOPE_COPY.name:
                target = spec.get("target") or {}
                if there := target.get("archive"):
                    return f"{_store(there)}, archives in {there.get('path')}: what is not recorded"
                return f"{_place(target)}: what is staged for its streams"
            case _:
                return "no resource needs it any more, and the operator has not let go of it yet"

    @property
    def says(self) -> str:
        """Reason and message of its condition Ready; empty where it has none."""
        found = ResourceStatus.read(self.body.get("status")).condition(ConditionType.READY)
        return "" if found is None else f"{found.reason}: {found.message}".rstrip(": ")


def _place(spec: Object) -> str:
    return f"{_store(spec)}, scope {spec.get('scope')}"


def _store(spec: Object) -> str:
    return f"StreamStore {(spec.get('storeRef') or {}).get('name')}"


async def resources(api: Api, served: Served) -> list[Holder]:
    """The resources of some namespaces that use stores."""
    return [one for kind in sorted(KINDS) for one in await _listed(api, kind, served)]


async def held_stores(api: Api, served: Served) -> list[Holder]:
    """The StreamStores that are held for the sake of others."""
    return [store for store in await _listed(api, STREAM_STORE, served) if store.holds]


async def _listed(api: Api, kind: Kind, served: Served) -> list[Holder]:
    return [Holder(kind, body) for body in await listed(api, kind, served)]
