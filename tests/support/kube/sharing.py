"""A platform team's StreamStore and a tenant's resources, at an API server in memory."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from sluice.core.values.model import StoreHealth
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import NAMESPACE, OWN, SECRET, STREAM_STORE, Kind, Object
from sluice.kube.api.status import StatusWriter
from sluice.kube.loop.queue import Key, Lane, WorkQueue
from sluice.kube.stores.probes import Probed
from sluice.kube.stores.storekeeper import StoreKeeper
from sluice.kube.stores.storeview import StoreView
from support.cases.resources import STORE, changed
from support.kube.api_server import ApiServer

if TYPE_CHECKING:
    from sluice.kube.api.events import Recorder
    from sluice.kube.loop.served import Served
    from sluice.kube.stores.probes import Probes

PLATFORM: Final = "platform"
TENANT: Final = "tenant"
LOGIN: Final = {"basic": {"secretRef": {"name": "login"}}}
REF: Final = {"name": "main", "namespace": PLATFORM}


def to(namespace: str, **limits: Any) -> Object:
    """Return an entry of `access.sharedWith`."""
    return {"selector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}, **limits}


class Sharing:
    """The StreamStore `platform/main`, and the namespaces of platform and tenant.

    Attributes:
        server: the API server.
        mirror: the objects that the watches have shown.
        queue: the queue of woken keys.
        asked: names of the probed StreamStores.
    """

    def __init__(self, *grants: Object, login: bool = True) -> None:
        self.server, self.mirror, self.queue = ApiServer(), Mirror(), WorkQueue()
        self.asked: list[str] = []
        for name in (PLATFORM, TENANT, "other"):
            labels = {"kubernetes.io/metadata.name": name}
            self.server.objects[NAMESPACE.name, None, name] = {
                "metadata": {"name": name, "labels": labels}
            }
        self.server.put(SECRET, {"metadata": {"name": "login", "namespace": PLATFORM}})
        self.share(*grants, login=login)
        self._probes = cast("Probes", SimpleNamespace(look=self._look, forget=lambda *_: None))

    def share(self, *grants: Object, login: bool = True) -> None:
        """Write the StreamStore with these grants, as its administrator does."""
        before = self.server.body(STREAM_STORE, "main", PLATFORM)
        body = changed(STORE, "metadata", {"name": "main", "namespace": PLATFORM, "uid": "s"})
        if login:
            body = changed(body, "spec.pravega.auth", LOGIN)
        body = changed(body, "spec.access", {"sharedWith": list(grants)})
        if before is None:
            body["metadata"]["generation"] = 1
        else:
            body["status"] = before.get("status", {})
            body["metadata"] = before["metadata"] | {
                "generation": before["metadata"]["generation"] + 1
            }
        self.server.put(STREAM_STORE, body)

    def put(self, kind: Kind, body: Object, **meta: Any) -> Object:
        """Write a resource of the tenant."""
        meta = {"name": body["metadata"]["name"], "namespace": TENANT, "generation": 1} | meta
        return self.server.put(kind, body | {"metadata": meta})

    def view(self, served: Served | None = None) -> StoreView:
        """Return the look-up of StreamStores."""
        more = () if served is None else (served,)
        return StoreView(self.server.api, self.mirror, self._probes, *more)

    def keeper(self) -> StoreKeeper:
        """Return a new reconciler of StreamStores."""
        recorder = cast("Recorder", SimpleNamespace(mention=lambda *_: None, say=_nothing))
        return StoreKeeper(
            self.server.api,
            queue=self.queue,
            mirror=self.mirror,
            probes=self._probes,
            statuses=StatusWriter(self.server.api, recorder),
        )

    def sync(self) -> None:
        """Show the watches all objects of Sluice's kinds."""
        for kind in OWN.values():
            for body in self.server.all(kind):
                self.mirror.see(kind, body, gone=False)

    def store(self) -> Object:
        """Return the StreamStore."""
        found = self.server.body(STREAM_STORE, "main", PLATFORM)
        assert found is not None
        return found

    def woken(self) -> set[Key]:
        """Return the keys that were woken since the last call."""
        found = {key for lane in Lane for key in self.queue._lanes[lane].at}
        for lane in Lane:
            self.queue._lanes[lane].at.clear()
        return found

    async def _look(self, body: Object, **_: Any) -> Probed:
        """See Probes.look."""
        self.asked.append(body["metadata"]["name"])
        return Probed(StoreHealth(latency=0.0, protocol=1), datetime.now(UTC), 0.0, "s", 1)


async def _nothing(*_: object, **__: object) -> None:
    """See Recorder.say."""
