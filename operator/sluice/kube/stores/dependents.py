"""Find the resources that use a StreamStore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.api import registry
from sluice.kube.api.kinds import OWN
from sluice.kube.api.objects import FINALIZERS, has_finalizer, is_deleting, is_scheduled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.kube.api.kinds import Object

KINDS: Final = {
    OWN[kind.name]: FINALIZERS[OWN[kind.name]] for kind in registry.KINDS if kind.uses_stores
}
"""Kinds whose resources use StreamStores, with the finalizer of those that have data in one."""


class StorePlace(NamedTuple):
    """A StreamStore's namespace and name."""

    namespace: str
    name: str


def stores_of(body: Object) -> set[StorePlace]:
    """Return the StreamStores that a resource names.

    Among them is that of an archive's scratch stream, until it is deleted. The place of drills may
    be changed meanwhile. Drills use StreamStores of their own namespace only.
    """
    spec = body.get("spec", {})
    sources = [source.get("archive") or source for source in sources_of(body)]
    target = spec.get("target") or {}
    archive = spec.get("destination") or {}
    parts = (spec, *sources, target.get("archive") or target, archive, *_queried(body))
    namespace = str(body["metadata"].get("namespace", ""))
    named = {
        place_of(part, namespace) for part in parts if (part.get("storeRef") or {}).get("name")
    }
    return named | {StorePlace(namespace, name) for name in _drill_stores(body)}


def _queried(body: Object) -> list[Object]:
    """Return the streams that a query reads and appends to. Those of a copy are names.

    No reference of a query has a namespace, so it never holds a StreamStore of another one.
    """
    sinks = (body.get("spec") or {}).get("sinks") or ()
    found = [one.get("stream") for one in (*sources_of(body), *sinks)]
    found += [one.get("live") for one in sinks]
    return [one for one in found if isinstance(one, dict)]


def _drill_stores(body: Object) -> set[str]:
    """Return the names of the StreamStores that an archive's drills use."""
    drills = ((body.get("spec") or {}).get("verify") or {}).get("target") or {}
    named = {str((drills.get("storeRef") or {}).get("name") or "")}
    drill = (body.get("status") or {}).get("drill") or {}
    if drill.get("scratch"):
        named.add(str(drill.get("store") or ""))
    return {name for name in named if name and "/" not in name}


def place_of(part: Object, namespace: str) -> StorePlace:
    """Return the StreamStore that a part of a spec names.

    Args:
        part: the object with the field storeRef.
        namespace: the namespace of its resource.
    """
    ref = part.get("storeRef") or {}
    return StorePlace(str(ref.get("namespace") or namespace), str(ref.get("name", "")))


def title_of(part: Object) -> str:
    """Return the StreamStore that a part of a spec names, with its namespace if that is given."""
    ref = part.get("storeRef") or {}
    return "/".join(str(ref[one]) for one in ("namespace", "name") if ref.get(one))


def shares(store: Object) -> bool:
    """Tell whether a StreamStore admits resources of other namespaces."""
    return bool(((store.get("spec") or {}).get("access") or {}).get("sharedWith"))


def foreign_stores(body: Object) -> frozenset[StorePlace]:
    """Return the StreamStores of other namespaces that a resource names. An index of the mirror."""
    namespace = body["metadata"].get("namespace", "")
    return frozenset(place for place in stores_of(body) if place.namespace != namespace)


def named_stores(body: Object) -> frozenset[StorePlace]:
    """Return the StreamStores that a resource names. An index of the mirror."""
    return frozenset(stores_of(body))


def needed_stores(body: Object) -> frozenset[StorePlace]:
    """Return the StreamStores that a resource needs, see `needs_stores`. An index of the mirror."""
    return named_stores(body) if needs_stores(body) else frozenset()


def awaited_stores(body: Object) -> frozenset[StorePlace]:
    """Return the StreamStores of a resource that is news, see `is_news`. An index of the mirror."""
    return named_stores(body) if is_news(body) else frozenset()


def was_admitted(body: Object) -> bool:
    """Tell whether the operator has begun to use stores for a resource, by its status.

    Tenants write specs and finalizers, but no status. So by these alone no resource can hold a
    StreamStore of another namespace.
    """
    status = body.get("status") or {}
    return status.get("admittedTime") is not None or status.get("planHash") is not None


def sources_of(body: Object) -> list[Object]:
    """Return the sources in a copy's spec: streams, archives, or a scope."""
    spec = body.get("spec", {})
    return [spec["source"]] if spec.get("source") else list(spec.get("sources") or ())


def users(bodies: Iterable[Object], store: StorePlace) -> list[str]:
    """Return the resources that need a store.

    They are given as `Kind name`, or `Kind namespace/name` if they are in another namespace.
    """
    return sorted(
        _name(body, store)
        for body in bodies
        if needs_stores(body)
        and store in stores_of(body)
        and (body["metadata"]["namespace"] == store.namespace or was_admitted(body))
    )


def _name(body: Object, store: StorePlace) -> str:
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    return f"{body['kind']} {name if namespace == store.namespace else f'{namespace}/{name}'}"


def needs_stores(body: Object) -> bool:
    """Tell whether a resource needs the StreamStores that it names.

    It has data in one that it must clean up, or it has a schedule: then its next run needs them,
    even if it is suspended now. A resource that was deleted makes no more runs, so only its data
    count. Otherwise a namespace could not be deleted.
    """
    if is_scheduled(body) and not is_deleting(body):
        return True
    return any(has_finalizer(body, finalizer) for finalizer in KINDS.values())


def is_news(body: Object) -> bool:
    """Tell whether a resource was made or changed and has not been reconciled since."""
    seen = (body.get("status") or {}).get("observedGeneration", -1)
    return bool(seen != body["metadata"].get("generation", 0))
