"""Finalizers: set and taken off by patches that cannot lose another's."""

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
    """Put a finalizer on an object; with a `uid`, on no other that took its name.

    Args:
        api: the API server.
        kind: of what.
        namespace: where.
        name: which.
        finalizer: what is put on it.
        uid: of the object that is meant.
        known: the object as it was read or written last. If it is that still, it is not read again;
            its metadata are brought up to date.

    Returns:
        Whether it stands there: not on an object that is gone or being deleted.

    Raises:
        ApiUnavailable: the API server refuses, or the object changes all the time.
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
    """Take a finalizer off an object, if it is there; with a `uid`, off no other of its name.

    `known` is as for `add`.

    Raises:
        ApiUnavailable: the API server refuses, or the object changes all the time.
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
    """Write all finalizers, unless the object was changed since; whether it was not."""
    meta = body["metadata"]
    change = {"metadata": {"resourceVersion": meta["resourceVersion"], "finalizers": finalizers}}
    written = await api.patch(kind, meta["namespace"], meta["name"], change)
    if written is None:
        return False
    body["metadata"] = written["metadata"]
    return True
