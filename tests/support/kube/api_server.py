"""An API server in memory: objects by kind, namespace and name, as the operator's calls see them.

It keeps versions, generations, finalizers, owners and who applied which field, and refuses what a
real one refuses for their sake; it validates no schema. What it does is tried on a real one in
`tests/integration/kube`.
"""

from __future__ import annotations

import itertools
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
    """What a watch tells of an object."""

    kind: str
    body: Object
    gone: bool


class ApiServer:
    """The objects, and every change that was asked for.

    Attributes:
        objects: by kind, namespace and name. A body that was stored is never changed in place.
        changes: the verb, the kind and the name of each, in order.
        news: what watches tell, in order.
        clock: the time.
        changed: called after each change: the cluster's own controllers.
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
        """It, as what the operator takes it for."""
        return cast("Api", self)

    def time(self) -> float:
        """As Api.time."""
        return self.clock().timestamp()

    def body(self, kind: Kind, name: str, namespace: str = "default") -> Object | None:
        """An object as it is, None when it is gone."""
        return self.objects.get((kind.name, namespace, name))

    def all(self, kind: Kind) -> list[Object]:
        """The objects of a kind."""
        return [body for (own, _, _), body in self.objects.items() if own == kind.name]

    # -- what others do

    def put(self, kind: Kind, body: Object) -> Object:
        """Somebody else makes an object, or changes it, whatever was there."""
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
        """Somebody else changes parts of an object; parts of its metadata one by one."""
        body = self.objects[kind.name, namespace, name]
        meta = body["metadata"] | parts.pop("metadata", {})
        self._store((kind.name, namespace, name), body | parts | {"metadata": meta})

    def remove(self, kind: Kind, name: str, namespace: str = "default") -> bool:
        """Somebody else deletes an object; finalizers hold it. False when there is none."""
        return self._delete((kind.name, namespace, name))

    def destroy(self, kind: Kind, name: str, namespace: str = "default") -> None:
        """An object is gone, whatever held it."""
        if (kind.name, namespace, name) in self.objects:
            self._drop((kind.name, namespace, name))

    def collect(self) -> bool:
        """Kubernetes' garbage collector deletes what only owners have that are gone.

        Returns:
            Whether there was any.
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
        """As Api.get."""
        return _copied(self.objects.get((kind.name, namespace, name)))

    async def list(
        self,
        kind: Kind,
        namespace: str | None,
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> list[Object]:
        """As Api.list; no events are ever found."""
        if fields and not fields.startswith("metadata.name="):
            return []
        named = (fields or "").removeprefix("metadata.name=")
        wanted = dict(one.split("=") for one in (labels or "").split(",") if one)
        return [
            _copied(body)
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
    ) -> AsyncIterator[list[Object]]:
        """As Api.pages; they are short."""
        found = await self.list(kind, namespace, labels=labels, fields=fields)
        for at in range(0, len(found), 2):
            yield found[at : at + 2]

    async def create(self, kind: Kind, namespace: str, body: Object) -> Object | None:
        """As Api.create."""
        key = (kind.name, namespace, body["metadata"]["name"])
        self.changes.append(("create", *key[::2]))
        return None if key in self.objects else self._make(key, body)

    async def apply(
        self, kind: Kind, namespace: str, body: Object, *, subresource: str = ""
    ) -> Object | None:
        """As Api.apply: what was applied before and is not now goes, what others wrote stays."""
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
        after = _copied(found)
        for path in former.keys() - mine.keys():
            _cut(after, path)
        for path, value in mine.items():
            _set(after, path, value)
        return self._write(key, after)

    async def patch(self, kind: Kind, namespace: str, name: str, body: Object) -> Object | None:
        """As Api.patch."""
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
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None
    ) -> bool:
        """As Api.delete."""
        key = (kind.name, namespace, name)
        found = self.objects.get(key)
        if found is None or uid not in {None, found["metadata"]["uid"]}:
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
        return _copied(self.objects.get(key, body | {"metadata": meta}))

    def _write(self, key: Key, after: Object) -> Object:
        """Store what somebody wrote, if he may, and if it is anything new."""
        before = self.objects[key]
        meta, was = after["metadata"], before["metadata"]
        if before.get("immutable") and any(before.get(one) != after.get(one) for one in _DATA):
            raise Refused(f"{key[2]}: field is immutable", status=422, why="Invalid")
        more = set(meta.get("finalizers") or ()) - set(was.get("finalizers") or ())
        if "deletionTimestamp" in was and more:
            message = "no new finalizers can be added if the object is being deleted"
            raise Refused(message, status=422, why="Invalid")
        if after == before:
            return _copied(before)
        if "generation" in was and after.get("spec") != before.get("spec"):
            meta["generation"] = was["generation"] + 1
        return _copied(self._store(key, after))

    def _store(self, key: Key, body: Object) -> Object:
        """Keep a state of an object; it goes if it is deleted and nothing holds it back."""
        meta = body["metadata"] | {"resourceVersion": str(next(self._versions))}
        body = self.objects[key] = body | {"metadata": meta}
        if "deletionTimestamp" in meta and not meta.get("finalizers") and key[0] != "Pod":
            self._drop(key)
        else:
            self.news.append(Change(key[0], body, gone=False))
            self.changed()
        return body

    def _delete(self, key: Key) -> bool:
        """Begin to delete an object; a pod goes once its containers have ended."""
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
    """Whether an object is the one, and in the version, that a change names."""
    own = found["metadata"]
    return all(meta.get(one, own[one]) == own[one] for one in ("uid", "resourceVersion"))


def _without_servers(body: Object) -> Object:
    """What somebody may write."""
    meta = {name: it for name, it in body.get("metadata", {}).items() if name not in _SERVERS}
    return body | {"metadata": meta}


def _copied(value: Any) -> Any:
    """A copy of JSON."""
    if isinstance(value, dict):
        return {name: _copied(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(one) for one in value]
    return value


def _leaves(value: Mapping[str, Any], path: _Path = ()) -> Iterator[tuple[_Path, Any]]:
    """The fields of JSON that hold no others; a list counts as one."""
    for name, one in value.items():
        if isinstance(one, dict) and one:
            yield from _leaves(one, (*path, name))
        else:
            yield (*path, name), _copied(one)


def _cut(body: Object, path: _Path) -> None:
    """Take a field away, and what holds nothing any more."""
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
    """JSON after a merge patch."""
    if not isinstance(change, dict):
        return _copied(change)
    after = dict(before) if isinstance(before, dict) else {}
    for name, one in change.items():
        if one is None:
            after.pop(name, None)
        else:
            after[name] = _merged(after.get(name), one)
    return after
