"""An API server in memory: objects by kind, namespace and name, as the operator's calls see them.

It keeps versions, generations, finalizers, owners and the applier of each field. It refuses the
changes that a real server refuses because of them, but validates no schema.
`tests/integration/kube` runs its behaviour against a real server.
"""

from __future__ import annotations

import itertools
import marshal
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object

    Key = tuple[str, str | None, str]
    _Path = tuple[str, ...]

BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
_DATA: Final = ("data", "binaryData")
_SERVERS: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
"""Metadata that only the server writes."""


class Change(NamedTuple):
    """A change of an object, as a watch reports it."""

    kind: str
    body: Object
    gone: bool


class ApiServer:
    """The objects, and every change that was requested.

    Attributes:
        objects: the objects by kind, namespace and name. A stored body is never changed in place.
        changes: verb, kind and name of each change, in order.
        news: the news of watches, in order.
        clock: function that returns the time.
        changed: callback after each change: the cluster's own controllers.
    """

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.changes: list[tuple[str, str, str]] = []
        self.news: list[Change] = []
        self.clock: Callable[[], datetime] = lambda: BEGAN
        self.changed: Callable[[], None] = lambda: None
        self._versions = itertools.count(1)
        self._applied: dict[tuple[Key, str], dict[_Path, Any]] = {}

    @property
    def api(self) -> Api:
        """The server, typed as the operator's `Api`."""
        return cast("Api", self)

    def time(self) -> float:
        """See Api.time."""
        return self.clock().timestamp()

    def body(self, kind: Kind, name: str, namespace: str = "default") -> Object | None:
        """Return an object as it is; None if it is gone."""
        return self.objects.get((kind.name, namespace, name))

    def all(self, kind: Kind) -> list[Object]:
        """Return the objects of a kind."""
        return [body for (own, _, _), body in self.objects.items() if own == kind.name]

    # -- actions of other clients

    def put(self, kind: Kind, body: Object) -> Object:
        """Make an object or change it, as another client does, regardless of its former state."""
        meta = body["metadata"]
        meta.setdefault("namespace", "default")
        meta.setdefault("uid", f"uid-{next(self._versions)}")
        meta["resourceVersion"] = str(next(self._versions))
        key = (kind.name, meta["namespace"], meta["name"])
        self.objects[key] = body
        self.news.append(Change(kind.name, body, gone=False))
        self.changed()
        return body

    def edit(self, kind: Kind, name: str, namespace: str = "default", **parts: Any) -> None:
        """Change parts of an object, as another client does, and parts of its metadata singly."""
        body = self.objects[kind.name, namespace, name]
        meta = body["metadata"] | parts.pop("metadata", {})
        self._store((kind.name, namespace, name), body | parts | {"metadata": meta})

    def remove(self, kind: Kind, name: str, namespace: str = "default") -> bool:
        """Delete an object, as another client does. Finalizers hold it. False if it is missing."""
        return self._delete((kind.name, namespace, name))

    def destroy(self, kind: Kind, name: str, namespace: str = "default") -> None:
        """Remove an object, even if finalizers hold it."""
        if (kind.name, namespace, name) in self.objects:
            self._drop((kind.name, namespace, name))

    def collect(self) -> bool:
        """Delete the objects whose owners are all gone, as Kubernetes' garbage collector does.

        Returns:
            Whether there were any.
        """
        there = {body["metadata"]["uid"] for body in self.objects.values()}
        found = [
            key
            for key, body in self.objects.items()
            if (owners := body["metadata"].get("ownerReferences"))
            and "deletionTimestamp" not in body["metadata"]
            and there.isdisjoint(owner["uid"] for owner in owners)
        ]
        for key in found:
            self._delete(key)
        return bool(found)

    # -- as Api

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """See Api.get. The name has to be one that can be in a URL."""
        kind.object(namespace, name)
        return _again(self.objects.get((kind.name, namespace, name)))

    async def list(
        self,
        kind: Kind,
        namespace: str | None,
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> list[Object]:
        """See Api.list. It never finds events."""
        kind.collection(namespace)
        if fields and not fields.startswith("metadata.name="):
            return []
        named = (fields or "").removeprefix("metadata.name=")
        wanted = dict(one.split("=") for one in (labels or "").split(",") if one)
        return [
            _again(body)
            for (own, place, name), body in list(self.objects.items())
            if own == kind.name
            and namespace in {None, place}
            and named in {"", name}
            and wanted.items() <= body["metadata"].get("labels", {}).items()
        ]

    async def pages(
        self,
        kind: Kind,
        namespace: str | None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        only_metadata: bool = False,
    ) -> AsyncIterator[list[Object]]:
        """See Api.pages. The pages are short."""
        found = await self.list(kind, namespace, labels=labels, fields=fields)
        if only_metadata:
            found = [{"metadata": body["metadata"]} for body in found]
        for at in range(0, len(found), 2):
            yield found[at : at + 2]

    async def table(
        self,
        kind: Kind,
        namespace: str | None,
        more: str = "",
        *,
        labels: str | None = None,
        name: str | None = None,
    ) -> Object:
        """See Api.table. The only columns are the name, and the UID for wide tables."""
        assert not more
        found = await self.list(kind, namespace, labels=labels)
        found = [body for body in found if name in {None, body["metadata"]["name"]}]
        if name is not None and not found:
            raise Refused(f"{name} not found", status=404, why="NotFound")
        headings = [{"name": "Name", "priority": 0}, {"name": "Uid", "priority": 1}]
        metas = [body["metadata"] for body in found]
        rows = [{"cells": [one["name"], one["uid"]], "object": {"metadata": one}} for one in metas]
        return {"columnDefinitions": headings, "rows": rows, "metadata": {}}

    async def create(self, kind: Kind, namespace: str | None, body: Object) -> Object | None:
        """See Api.create."""
        key = (kind.name, namespace, body["metadata"]["name"])
        self.changes.append(("create", *key[::2]))
        return None if key in self.objects else self._make(key, body)

    async def apply(
        self, kind: Kind, namespace: str, body: Object, *, subresource: str = ""
    ) -> Object | None:
        """See Api.apply. It removes fields applied only before, and keeps other clients' fields."""
        meta = body["metadata"]
        assert meta.get("namespace", namespace) == namespace
        key = (kind.name, namespace, meta["name"])
        self.changes.append(("apply", *key[::2]))
        found = self.objects.get(key)
        if found is None and (subresource or not meta.keys().isdisjoint(_SERVERS)):
            return None
        if found is not None and not _is_meant(found, meta):
            return None
        wanted = {subresource: body[subresource]} if subresource else _without_servers(body)
        mine = dict(_leaves(wanted))
        former = self._applied.get((key, subresource), {})
        self._applied[key, subresource] = mine
        if found is None:
            return self._make(key, body)
        after = _again(found)
        for path in former.keys() - mine.keys():
            _cut(after, path)
        for path, value in mine.items():
            _set(after, path, value)
        return self._write(key, after)

    async def patch(self, kind: Kind, namespace: str, name: str, body: Object) -> Object | None:
        """See Api.patch."""
        key = (kind.name, namespace, name)
        self.changes.append(("patch", kind.name, name))
        found = self.objects.get(key)
        if found is None:
            return None
        meta = body.get("metadata", {})
        if meta.get("uid", found["metadata"]["uid"]) != found["metadata"]["uid"]:
            raise Refused("metadata.uid: field is immutable", status=422, why="Invalid")
        if not _is_meant(found, meta):
            return None
        after: Object = _merged(found, _without_servers(body))
        return self._write(key, after)

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        version: str | None = None,
    ) -> bool:
        """See Api.delete."""
        key = (kind.name, namespace, name)
        found = self.objects.get(key)
        if found is None or uid not in {None, found["metadata"]["uid"]}:
            return False
        if version not in {None, found["metadata"]["resourceVersion"]}:
            return False
        self.changes.append(("delete", kind.name, name))
        return self._delete(key)

    # -- storing

    def _make(self, key: Key, body: Object) -> Object:
        _, namespace, name = key
        meta = {item: it for item, it in body["metadata"].items() if item not in _SERVERS}
        meta |= {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{next(self._versions)}",
            "creationTimestamp": self._time(),
        }
        if "spec" in body:
            meta["generation"] = 1
        self._store(key, _copied(body) | {"metadata": _copied(meta)})
        return _again(self.objects.get(key, body | {"metadata": meta}))

    def _write(self, key: Key, after: Object) -> Object:
        """Store a client's change, if the change is allowed and new."""
        before = self.objects[key]
        meta, was = after["metadata"], before["metadata"]
        if before.get("immutable") and any(before.get(one) != after.get(one) for one in _DATA):
            raise Refused(f"{key[2]}: field is immutable", status=422, why="Invalid")
        more = set(meta.get("finalizers") or ()) - set(was.get("finalizers") or ())
        if "deletionTimestamp" in was and more:
            message = "no new finalizers can be added if the object is being deleted"
            raise Refused(message, status=422, why="Invalid")
        if after == before:
            return _again(before)
        if "generation" in was and after.get("spec") != before.get("spec"):
            meta["generation"] = was["generation"] + 1
        return _again(self._store(key, after))

    def _store(self, key: Key, body: Object) -> Object:
        """Store a state of an object. A deleted object vanishes once no finalizer holds it."""
        meta = body["metadata"] | {"resourceVersion": str(next(self._versions))}
        body = self.objects[key] = body | {"metadata": meta}
        if "deletionTimestamp" in meta and not meta.get("finalizers") and key[0] != "Pod":
            self._drop(key)
        else:
            self.news.append(Change(key[0], body, gone=False))
            self.changed()
        return body

    def _delete(self, key: Key) -> bool:
        """Begin to delete an object. A pod vanishes once its containers have ended."""
        found = self.objects.get(key)
        if found is None:
            return False
        meta = found["metadata"]
        if "deletionTimestamp" in meta:
            return True
        runs = key[0] == "Pod" and found.get("status", {}).get("phase") == "Running"
        if not (meta.get("finalizers") or runs):
            self._drop(key)
            return True
        news = {"deletionTimestamp": self._time()}
        if "generation" in meta:
            news["generation"] = meta["generation"] + 1
        self._store(key, found | {"metadata": meta | news})
        return True

    def _drop(self, key: Key) -> None:
        body = self.objects.pop(key)
        for one in [one for one in self._applied if one[0] == key]:
            del self._applied[one]
        version = {"resourceVersion": str(next(self._versions))}
        gone = body | {"metadata": body["metadata"] | version}
        self.news.append(Change(key[0], gone, gone=True))
        self.changed()

    def _time(self) -> str:
        return self.clock().strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_meant(found: Object, meta: Mapping[str, Any]) -> bool:
    """Tell whether an object has the uid and the version that a change names."""
    own = found["metadata"]
    return all(meta.get(one, own[one]) == own[one] for one in ("uid", "resourceVersion"))


def _without_servers(body: Object) -> Object:
    """Return the part of a body that a client may write."""
    meta = {name: it for name, it in body.get("metadata", {}).items() if name not in _SERVERS}
    return body | {"metadata": meta}


def _copied(value: Any) -> Any:
    """Return a copy of JSON."""
    if isinstance(value, dict):
        return {name: _copied(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(one) for one in value]
    return value


def _again(value: Any) -> Any:
    """Return a copy of a stored object, several times as fast as `_copied` does."""
    return marshal.loads(marshal.dumps(value))  # noqa: S302 - our own bytes


def _leaves(value: Mapping[str, Any], path: _Path = ()) -> Iterator[tuple[_Path, Any]]:
    """Yield the fields of JSON that hold no others. A list counts as one field."""
    for name, one in value.items():
        if isinstance(one, dict) and one:
            yield from _leaves(one, (*path, name))
        else:
            yield (*path, name), _copied(one)


def _cut(body: Object, path: _Path) -> None:
    """Remove a field, and the parents that are empty afterwards."""
    *above, last = path
    places = [body]
    for name in above:
        if not isinstance(places[-1].get(name), dict):
            return
        places.append(places[-1][name])
    places[-1].pop(last, None)
    for name, place, inner in reversed([*zip(above, places, places[1:], strict=False)]):
        if not inner:
            del place[name]


def _set(body: Object, path: _Path, value: Any) -> None:
    *above, last = path
    for name in above:
        if not isinstance(body.get(name), dict):
            body[name] = {}
        body = body[name]
    body[last] = _copied(value)


def _merged(before: Any, change: Any) -> Any:
    """Return JSON after a merge patch."""
    if not isinstance(change, dict):
        return _copied(change)
    after = dict(before) if isinstance(before, dict) else {}
    for name, one in change.items():
        if one is None:
            after.pop(name, None)
        else:
            after[name] = _merged(after.get(name), one)
    return after
