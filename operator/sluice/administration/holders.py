"""Find the resources that still hold data in a store: those with a finalizer of ours."""

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
        """The resource's namespace."""
        return str(self.body["metadata"]["namespace"])

    @property
    def name(self) -> str:
        """The resource's name."""
        return str(self.body["metadata"]["name"])

    @property
    def uid(self) -> str:
        """The resource's UID, which tells it from a later one of the same name."""
        return str(self.body["metadata"]["uid"])

    @property
    def finalizer(self) -> str:
        """The finalizer of its kind."""
        return FINALIZERS[self.kind]

    @property
    def holds(self) -> bool:
        """Whether it has the finalizer: it holds data in a store; a StreamStore is held itself."""
        return has_finalizer(self.body, self.finalizer)

    @property
    def deleting(self) -> bool:
        """Whether it was deleted, and only finalizers keep it."""
        return is_deleting(self.body)

    @property
    def forced(self) -> bool:
        """Whether it was deleted, and may leave data in a store."""
        return self.deleting and wants_orphan(self.body)

    @property
    def unfinished(self) -> bool:
        """Whether it may still put data into a store. One with a schedule or owners always may."""
        scheduled = (self.body.get("spec") or {}).get("schedule") is not None
        lifecycle = BY_NAME[self.kind.name].lifecycle
        if lifecycle is Lifecycle.CONTINUOUS or self.holds or scheduled:
            return True
        return CopyingStatus.read(self.body.get("status")).completion_time is None

    @property
    def title(self) -> str:
        """Kind, namespace and name, for messages."""
        return f"{self.kind.name} {self.namespace}/{self.name}"

    @property
    def where(self) -> str:
        """The data that it holds, and the StreamStore, for messages."""
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
        """The reason and message of its condition Ready; empty without one."""
        found = ResourceStatus.read(self.body.get("status")).condition(ConditionType.READY)
        return "" if found is None else f"{found.reason}: {found.message}".rstrip(": ")


def _place(spec: Object) -> str:
    return f"{_store(spec)}, scope {spec.get('scope')}"


def _store(spec: Object) -> str:
    return f"StreamStore {(spec.get('storeRef') or {}).get('name')}"


async def resources(api: Api, served: Served) -> list[Holder]:
    """List the resources of some namespaces that use stores."""
    return [one for kind in sorted(KINDS) for one in await _listed(api, kind, served)]


async def held_stores(api: Api, served: Served) -> list[Holder]:
    """List the StreamStores that are held because other resources need them."""
    return [store for store in await _listed(api, STREAM_STORE, served) if store.holds]


async def _listed(api: Api, kind: Kind, served: Served) -> list[Holder]:
    return [Holder(kind, body) for body in await listed(api, kind, served)]
