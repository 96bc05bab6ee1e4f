"""Resources that a hostile tenant makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluice.api.fields.common import API_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.tenants.evil import Object


def resource(kind: str, name: str, spec: Object, **meta: Any) -> Object:
    """Return a resource of Sluice."""
    found = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, **meta}}
    return found | {"spec": spec}


def store(
    name: str, uri: str = "tcp://127.0.0.1:9", *, secret: str | None = None, **meta: Any
) -> Object:
    """Return a StreamStore. With a Secret, it logs in."""
    login = {"auth": {"basic": {"secretRef": {"name": secret}}}} if secret is not None else {}
    return resource("StreamStore", name, {"pravega": {"controllerURI": uri} | login}, **meta)


def copy(name: str, store: str = "none", **meta: Any) -> Object:
    """Return a StreamCopy within a StreamStore."""
    source, target = (
        {"storeRef": {"name": store}, "scope": "a", "stream": stream} for stream in ("b", "c")
    )
    return resource("StreamCopy", name, {"source": source, "target": target}, **meta)


def scope(name: str, store: str = "none", **meta: Any) -> Object:
    """Return a ScopeCopy within a StreamStore."""
    source, target = ({"storeRef": {"name": store}, "scope": scope} for scope in ("a", "b"))
    return resource("ScopeCopy", name, {"source": source, "target": target}, **meta)


def archive(name: str, store: str = "none", path: str = "a", **meta: Any) -> Object:
    """Return a StreamArchive in the StreamStore of its source."""
    spec = {
        "source": {"storeRef": {"name": store}, "scope": "a", "stream": "b"},
        "destination": {"storeRef": {"name": store}, "path": path},
    }
    return resource("StreamArchive", name, spec, **meta)


def helper(name: str, store: str = "none", **meta: Any) -> Object:
    """Return an EphemeralStream."""
    spec = {"storeRef": {"name": store}, "scope": "a", "stream": "b"}
    return resource("EphemeralStream", name, spec, **meta)


MAKES: Final[dict[str, Callable[..., Object]]] = {
    "streamcopy": copy,
    "scopecopy": scope,
    "streamarchive": archive,
}
"""The kinds that have plans, as kubectl takes them, by the function that makes one."""


def owner_of(body: Object) -> Object:
    """Return a reference to a resource as the owner of its children."""
    return {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "name": body["metadata"]["name"],
        "uid": body["metadata"]["uid"],
        "controller": True,
    }
