"""kopf's watches. They only remember what was seen and put keys into the queue.

Plain event handlers, so kopf itself writes nothing: no finalizers, no annotations, no status.
"""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final

import kopf

from sluice.api.fields.common import GROUP, VERSION
from sluice.kube.api.client import PAGE
from sluice.kube.api.kinds import COPIES, EPHEMERAL_STREAM, JOB, OWN, POD, STREAM_STORE
from sluice.kube.api.names import MANAGED, copy_of, uid_of
from sluice.kube.api.objects import is_deleting
from sluice.kube.loop.queue import Key, Lane
from sluice.kube.stores.dependents import stores_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.queue import WorkQueue

WATCH_SECONDS: Final = 300
"""After which a watch is begun anew by the server."""

STORE_DELAY: Final = 0.5
"""Seconds until a store is looked at whose users have changed: once for many that come or go."""

COLLECTOR_DELAY: Final = 2.0
"""Seconds for which the garbage collector may delete a resource whose owner went, before that is
looked at: nearly always it does, and then hundreds need not say first that it will."""

_OURS: Final = {"app.kubernetes.io/managed-by": "sluice-operator"}


class Watches:
    """Takes in what the watches see.

    Args:
        queue: where keys go.
        mirror: where objects go.
    """

    def __init__(self, queue: WorkQueue, mirror: Mirror) -> None:
        self._queue = queue
        self._mirror = mirror

    def resource(self, kind: Kind, body: Object, *, gone: bool) -> None:
        """One of our own kinds was seen. Our own writing of its status wakes nobody."""
        meta = body["metadata"]
        before = self._mirror.see(kind, body, gone=gone)
        if before is not None and not gone and _essence(before) == _essence(body):
            return
        key = Key(kind.name, meta["namespace"], meta["name"])
        self._queue.add(key, lane=Lane.DELETION if is_deleting(body) else Lane.NORMAL)
        for store in stores_of(body):
            key = Key(STREAM_STORE.name, meta["namespace"], store)
            self._queue.add(key, delay=STORE_DELAY)

    def owner(self, api_version: str, kind: str, namespace: str, name: str) -> None:
        """A workload came, finished or went; EphemeralStreams may name it as an owner."""
        for body in self._mirror.all(EPHEMERAL_STREAM):
            own = body["metadata"]["namespace"]
            if any(
                one["name"] == name
                and one["kind"] == kind
                and one["apiVersion"] == api_version
                and one.get("namespace", own) == namespace
                for one in body["spec"].get("owners") or ()
            ):
                left = _is_collected_with(body, kind, name)
                self._queue.add(
                    Key(EPHEMERAL_STREAM.name, own, body["metadata"]["name"]),
                    delay=COLLECTOR_DELAY if left else 0.0,
                )

    def child(self, kind: Kind, body: Object, *, gone: bool) -> None:
        """A Job or a pod of ours was seen."""
        self._mirror.see(kind, body, gone=gone)
        for own in COPIES.values():
            for copy in self._mirror.where(own, uid_of, copy_of(body)):
                meta = copy["metadata"]
                self._queue.add(Key(own.name, meta["namespace"], meta["name"]))


def _is_collected_with(body: Object, kind: str, name: str) -> bool:
    """Whether Kubernetes' garbage collector looks after a resource when this owner goes."""
    spec, references = body["spec"], body["metadata"].get("ownerReferences") or ()
    return (
        spec.get("tracking", "OwnerReference") == "OwnerReference"
        and spec.get("releaseWhen") != "OwnersFinished"
        and any((one["kind"], one["name"]) == (kind, name) for one in references)
    )


def _essence(body: Object) -> tuple[Any, ...]:
    """What of an object can change a decision: not its status, which is ours."""
    meta = body["metadata"]
    return (
        meta["uid"],
        meta.get("generation"),
        meta.get("deletionTimestamp"),
        tuple(meta.get("finalizers") or ()),
        tuple(one["uid"] for one in meta.get("ownerReferences") or ()),
        tuple(sorted((meta.get("annotations") or {}).items())),
    )


def _taken_in_by(watches: Watches, kind: Kind) -> Callable[..., Awaitable[None]]:
    """Give the handler of a kind."""

    async def seen(event: Any, **_: Any) -> None:
        watches.resource(kind, event["object"], gone=event["type"] == "DELETED")

    return seen


def registry(watches: Watches) -> kopf.OperatorRegistry:
    """Kopf's handlers, bound to these watches."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    def login(**arguments: Any) -> Any:
        return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(
            **arguments
        )

    for kind in OWN.values():
        kopf.on.event(GROUP, VERSION, kind.plural, id=kind.plural, registry=handlers)(
            _taken_in_by(watches, kind)
        )

    @kopf.on.event("batch", "v1", JOB.plural, labels=_OURS, registry=handlers)
    async def jobs(event: Any, **_: Any) -> None:
        watches.child(JOB, event["object"], gone=event["type"] == "DELETED")

    @kopf.on.event("", "v1", POD.plural, labels=_OURS, registry=handlers)
    async def pods(event: Any, **_: Any) -> None:
        watches.child(POD, event["object"], gone=event["type"] == "DELETED")

    return handlers


class _Backoffs:
    """Seconds before each further try of a call to the API server: there is always another one."""

    def __iter__(self) -> Iterator[float]:
        return chain((1, 2, 4, 8), repeat(15))


def settings() -> kopf.OperatorSettings:
    """Kopf's settings: a deadline on everything, and nothing that it would write of its own."""
    found = kopf.OperatorSettings()
    found.watching.server_timeout = WATCH_SECONDS
    found.watching.client_timeout = WATCH_SECONDS + 30
    found.watching.connect_timeout = 10
    found.watching.chunk_size = PAGE
    found.networking.error_backoffs = _Backoffs()
    found.networking.request_timeout = 30
    found.networking.connect_timeout = 10
    for kind in (JOB, POD):  # the server leaves out what others run in the cluster
        found.watching.label_selectors[kind.group, kind.version, kind.plural] = MANAGED
    found.posting.enabled = False
    found.scanning.disabled = True
    found.persistence.finalizer = f"{GROUP}/unused"
    found.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP, v1=False)
    found.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix=GROUP, key="last-handled", v1=False
    )
    return found
