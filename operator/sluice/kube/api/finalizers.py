"""Add and remove finalizers by patches that cannot lose the finalizers of other writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.errors import ApiUnavailable
from sluice.kube.api.objects import has_finalizer, is_deleting

if TYPE_CHECKING:
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object

_TRIES = 5


async def add(
    api: Api,
    kind: Kind,
    namespace: str,
    name: str,
    finalizer: str,
    *,
    uid: str | None = None,
    known: Object | None = None,
) -> bool:
    """Put a finalizer on an object.

    Args:
        api: the API server.
        kind: the object's kind.
        namespace: its namespace.
        name: its name.
        finalizer: the finalizer.
        uid: if given, skip an object with another UID, which has taken over the name.
        known: the object as it was last read or written. While it is up to date, it is not read
            again. Its metadata are updated.

    Returns:
        Whether the object has the finalizer. False if the object is gone, or is being deleted
        without it.

    Raises:
        ApiUnavailable: the API server refuses, or the object changes too often.
    """
    for attempt in range(_TRIES):
        body = known if known and not attempt else await api.get(kind, namespace, name)
        if body is None or uid not in {None, body["metadata"]["uid"]}:
            return False
        if has_finalizer(body, finalizer):
            return True
        if is_deleting(body):
            return False
        wanted = [*(body["metadata"].get("finalizers") or []), finalizer]
        if await _write(api, kind, body, wanted):
            return True
    raise ApiUnavailable(f"{kind.name} {name!r} changes too often to be given a finalizer")


async def remove(
    api: Api,
    kind: Kind,
    namespace: str,
    name: str,
    finalizer: str,
    *,
    uid: str | None = None,
    known: Object | None = None,
) -> None:
    """Remove a finalizer from an object, if it has it. Arguments are those of `add`.

    Raises:
        ApiUnavailable: the API server refuses, or the object changes too often.
    """
    for attempt in range(_TRIES):
        body = known if known and not attempt else await api.get(kind, namespace, name)
        if body is None or uid not in {None, body["metadata"]["uid"]}:
            return
        if not has_finalizer(body, finalizer):
            return
        wanted = [other for other in body["metadata"]["finalizers"] if other != finalizer]
        if await _write(api, kind, body, wanted):
            return
    raise ApiUnavailable(f"{kind.name} {name!r} changes too often to be freed of a finalizer")


async def _write(api: Api, kind: Kind, body: Object, finalizers: list[str]) -> bool:
    """Write all finalizers. Return False if the object was changed since it was read."""
    meta = body["metadata"]
    change = {"metadata": {"resourceVersion": meta["resourceVersion"], "finalizers": finalizers}}
    written = await api.patch(kind, meta["namespace"], meta["name"], change)
    if written is None:
        return False
    body["metadata"] = written["metadata"]
    return True
