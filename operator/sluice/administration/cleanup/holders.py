"""Find the resources that still hold data in a store, or StreamStores for a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.administration.listing import listed
from sluice.api import registry
from sluice.api.registry import Lifecycle
from sluice.api.status.common import ConditionType, CopyingStatus, ResourceStatus
from sluice.kube.api.kinds import (
    EPHEMERAL_STREAM,
    SCOPE_COPY,
    STREAM_ARCHIVE,
    STREAM_COPY,
    STREAM_QUERY,
    STREAM_STORE,
)
from sluice.kube.api.objects import (
    FINALIZERS,
    has_finalizer,
    is_deleting,
    is_scheduled,
    wants_orphan,
)
from sluice.kube.stores.dependents import KINDS, stores_of, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.served import Served

_KINDS: Final = {kind.name: kind for kind in registry.KINDS}


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
        """Whether it has the finalizer, or holds StreamStores by its schedule.

        With the finalizer it holds data in a store; a StreamStore is held itself.
        """
        return self.leaves or (is_scheduled(self.body) and not self.deleting)

    @property
    def leaves(self) -> bool:
        """Whether it has the finalizer: without the operator, something would stay in a store."""
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
        kind = _KINDS[self.kind.name]
        lifecycle = kind.lifecycle_of(self.body)
        ends = lifecycle is Lifecycle.FINITE or (kind.driven and lifecycle is Lifecycle.CONTINUOUS)
        if not ends or self.holds:
            return True
        return CopyingStatus.read(self.body.get("status")).completion_time is None

    @property
    def title(self) -> str:
        """Kind, namespace and name, for messages."""
        return f"{self.kind.name} {self.namespace}/{self.name}"

    @property
    def where(self) -> str:
        """The data that it holds, and the StreamStore, for messages."""
        if is_scheduled(self.body) and not self.leaves:
            stores = sorted(
                store.name if store.namespace == self.namespace else "/".join(store)
                for store in stores_of(self.body)
            )
            return f"its schedule needs StreamStore {', '.join(stores)}"
        return _HELD[self.kind.name](self.body)

    @property
    def says(self) -> str:
        """The reason and message of its condition Ready; empty without one."""
        found = ResourceStatus.read(self.body.get("status")).condition(ConditionType.READY)
        return "" if found is None else f"{found.reason}: {found.message}".rstrip(": ")


def _of_store(_body: Object) -> str:
    return "no resource needs it any more, and the operator has not let go of it yet"


def _of_ephemeral(body: Object) -> str:
    spec, status = body.get("spec") or {}, body.get("status") or {}
    named = spec.get("stream") or f"{spec.get('streamPrefix')}*"
    streams = ", ".join(status.get("streams") or []) or named
    return f"{_place(spec)}: {streams}"


def _of_stream_copy(body: Object) -> str:
    target = (body.get("spec") or {}).get("target") or {}
    return f"{_place(target)}: what is staged for {target.get('stream')}"


def _of_scope_copy(body: Object) -> str:
    target = (body.get("spec") or {}).get("target") or {}
    if there := target.get("archive"):
        return f"{_store(there)}, archives in {there.get('path')}: what is not recorded"
    return f"{_place(target)}: what is staged for its streams"


def _of_archive(body: Object) -> str:
    spec = body.get("spec") or {}
    there = spec.get("destination") or {}
    kept = "all runs" if spec.get("onDelete") == "Delete" else "what is not recorded"
    return f"{_store(there)}, archive {there.get('path')}: {kept}"


def _of_query(body: Object) -> str:
    sinks = (body.get("spec") or {}).get("sinks") or []
    live = [one for sink in sinks if (one := sink.get("live"))]
    return "; ".join(["its driver", *(f"{_place(one)}: {one.get('stream')}" for one in live)])


_HELD: Final[Mapping[str, Callable[[Object], str]]] = {
    STREAM_STORE.name: _of_store,
    EPHEMERAL_STREAM.name: _of_ephemeral,
    STREAM_COPY.name: _of_stream_copy,
    SCOPE_COPY.name: _of_scope_copy,
    STREAM_ARCHIVE.name: _of_archive,
    STREAM_QUERY.name: _of_query,
}
"""Tells for a resource of each kind where it holds something, and what."""


def _place(spec: Object) -> str:
    return f"{_store(spec)}, scope {spec.get('scope')}"


def _store(spec: Object) -> str:
    return f"StreamStore {title_of(spec)}"


async def resources(api: Api, served: Served) -> list[Holder]:
    """List the resources of some namespaces that use stores."""
    return [one for kind in sorted(KINDS) for one in await _listed(api, kind, served)]


async def held_stores(api: Api, served: Served) -> list[Holder]:
    """List the StreamStores that are held because other resources need them."""
    return [store for store in await _listed(api, STREAM_STORE, served) if store.holds]


async def _listed(api: Api, kind: Kind, served: Served) -> list[Holder]:
    return [Holder(kind, body) for body in await listed(api, kind, served)]
