"""An API server in memory: objects by kind, namespace and name, as the operator's calls see them.

It checks nothing and runs no controller; what a real one refuses is tried in `tests/integration`.
"""

from __future__ import annotations

import copy
import itertools
import time
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluice.kube.client import Api
    from sluice.kube.kinds import Kind, Object


class ApiServer:
    """The objects, and every change that was asked for.

    Attributes:
        objects: by kind, namespace and name.
        changes: the verb, the kind and the name of each, in order.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.changes: list[tuple[str, str, str]] = []
        self._versions = itertools.count(1)

    @property
    def api(self) -> Api:
        """It, as what the operator takes it for."""
        return cast("Api", self)

    def time(self) -> float:
        """As Api.time."""
        return time.time()

    def put(self, kind: Kind, body: Object) -> Object:
        """Somebody else makes an object, or changes it."""
        meta = body["metadata"]
        meta.setdefault("namespace", "default")
        meta.setdefault("uid", f"uid-{next(self._versions)}")
        meta["resourceVersion"] = str(next(self._versions))
        self.objects[kind.name, meta["namespace"], meta["name"]] = body
        return body

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """As Api.get."""
        return copy.deepcopy(self.objects.get((kind.name, namespace, name)))

    async def list(
        self, kind: Kind, namespace: str, *, labels: str | None = None, fields: str | None = None
    ) -> list[Object]:
        """As Api.list; no events are ever found."""
        if fields and not fields.startswith("metadata.name="):
            return []
        named = (fields or "").removeprefix("metadata.name=")
        wanted = dict(one.split("=") for one in (labels or "").split(",") if one)
        return [
            copy.deepcopy(body)
            for (own, place, name), body in self.objects.items()
            if (own, place) == (kind.name, namespace)
            and named in {"", name}
            and wanted.items() <= body["metadata"].get("labels", {}).items()
        ]

    async def pages(
        self, kind: Kind, namespace: str, *, labels: str | None = None, fields: str | None = None
    ) -> AsyncIterator[list[Object]]:
        """As Api.pages; they are short."""
        found = await self.list(kind, namespace, labels=labels, fields=fields)
        for at in range(0, len(found), 2):
            yield found[at : at + 2]

    async def create(self, kind: Kind, namespace: str, body: Object) -> Object | None:
        """As Api.create."""
        key = (kind.name, namespace, body["metadata"]["name"])
        self.changes.append(("create", *key[::2]))
        return None if key in self.objects else self.put(kind, copy.deepcopy(body))

    async def apply(self, kind: Kind, namespace: str, body: Object, **_: Any) -> Object | None:
        """As Api.apply; what it does not name goes."""
        assert body["metadata"]["namespace"] == namespace
        self.changes.append(("apply", kind.name, body["metadata"]["name"]))
        return self.put(kind, copy.deepcopy(body))

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None
    ) -> bool:
        """As Api.delete."""
        found = self.objects.get((kind.name, namespace, name))
        if found is None or uid not in {None, found["metadata"]["uid"]}:
            return False
        self.changes.append(("delete", kind.name, name))
        del self.objects[kind.name, namespace, name]
        return True
