"""An API server in memory where finalizers hold objects back, as they do on a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sluice.kube.client import Refused
from support.api_server import ApiServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.kube.kinds import Kind, Object


class FinalizingServer(ApiServer):
    """As ApiServer, but deleting waits for finalizers, and all namespaces can be listed.

    Attributes:
        meanwhile: called before each list: what others do at that time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        """As Api."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """As Api."""

    def body(self, kind: Kind, name: str, namespace: str = "default") -> Object | None:
        """An object as it is, None when it is gone."""
        return self.objects.get((kind.name, namespace, name))

    def finalizers(self, kind: Kind, name: str, namespace: str = "default") -> list[str] | None:
        """What holds an object back; None when it is gone."""
        body = self.body(kind, name, namespace)
        return None if body is None else body["metadata"].get("finalizers", [])

    def free(self, kind: Kind, name: str, finalizer: str, namespace: str = "default") -> None:
        """The operator takes a finalizer off."""
        body = self.objects[kind.name, namespace, name]
        body["metadata"]["finalizers"].remove(finalizer)
        self._settle((kind.name, namespace, name))

    async def list(
        self,
        kind: Kind,
        namespace: str | None,
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> list[Object]:
        """As Api.list."""
        self.meanwhile()
        places = {place for own, place, _ in self.objects if own == kind.name}
        found = []
        for place in sorted(places) if namespace is None else [namespace]:
            found += await super().list(kind, place, labels=labels, fields=fields)
        return found

    async def patch(self, kind: Kind, namespace: str, name: str, body: Object) -> Object | None:
        """As Api.patch, of metadata."""
        key = (kind.name, namespace, name)
        self.changes.append(("patch", kind.name, name))
        if key not in self.objects:
            return None
        meta, change = self.objects[key]["metadata"], dict(body["metadata"])
        if change.get("uid", meta["uid"]) != meta["uid"]:
            raise Refused("metadata.uid: field is immutable", status=422, why="Invalid")
        if change.get("resourceVersion", meta["resourceVersion"]) != meta["resourceVersion"]:
            return None
        notes = meta.get("annotations", {}) | change.pop("annotations", {})
        meta |= change
        meta["annotations"] = {name: value for name, value in notes.items() if value is not None}
        self.put(kind, self.objects[key])
        self._settle(key)
        return self.objects.get(key, body)

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None
    ) -> bool:
        """As Api.delete."""
        key = (kind.name, namespace, name)
        self.changes.append(("delete", kind.name, name))
        found = self.objects.get(key)
        if found is None or uid not in {None, found["metadata"]["uid"]}:
            return False
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self._settle(key)
        return True

    def _settle(self, key: tuple[str, str, str]) -> None:
        """Let an object go that nothing holds back any more."""
        meta: dict[str, Any] = self.objects[key]["metadata"]
        if "deletionTimestamp" in meta and not meta.get("finalizers"):
            del self.objects[key]
