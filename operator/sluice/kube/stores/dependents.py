"""Find the resources that use a StreamStore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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


def stores_of(body: Object) -> set[str]:
    """Return the names of the StreamStores that a resource names."""
    spec = body.get("spec", {})
    sources = [source.get("archive") or source for source in sources_of(body)]
    target = spec.get("target") or {}
    parts = (spec, *sources, target.get("archive") or target, spec.get("destination") or {})
    refs = [part.get("storeRef", {}) for part in parts]
    return {ref["name"] for ref in refs if ref.get("name")}


def sources_of(body: Object) -> list[Object]:
    """Return the sources in a copy's spec: streams, archives, or a scope."""
    spec = body.get("spec", {})
    return [spec["source"]] if spec.get("source") else list(spec.get("sources") or ())


def users(bodies: Iterable[Object], store: str) -> list[str]:
    """Return the resources, as `Kind name`, that need a store."""
    return sorted(
        f"{body['kind']} {body['metadata']['name']}"
        for body in bodies
        if needs_stores(body) and store in stores_of(body)
    )


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
