"""Take in the events of kopf's watches: store objects in the mirror, and queue keys.

The handlers are plain event handlers. So kopf itself writes nothing: no finalizers, annotations or
status.
"""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final

import kopf

from sluice.api.fields.common import GROUP, VERSION
from sluice.kube.api.client import PAGE
from sluice.kube.api.kinds import EPHEMERAL_STREAM, JOB, OWN, POD, STREAM_STORE, WITH_JOBS
from sluice.kube.api.names import MANAGED, away_of, copy_of, uid_of
from sluice.kube.api.objects import driver_namespace, is_deleting
from sluice.kube.api.rest import is_at_rest
from sluice.kube.api.slim import LAST_APPLIED
from sluice.kube.loop.queue import Key, Lane
from sluice.kube.stores.dependents import shares, stores_of, was_admitted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.queue import WorkQueue
    from sluice.kube.stores.dependents import StorePlace

WATCH_SECONDS: Final = 300
"""Seconds after which the server ends a watch, and kopf begins a new one."""

STORE_DELAY: Final = 0.5
"""Seconds until a StreamStore is reconciled whose users have changed. Many changes count once."""

COLLECTOR_DELAY: Final = 2.0
"""Seconds until a resource whose owner went is reconciled. Kubernetes' garbage collector nearly
always deletes it in that time. This saves writing a status to hundreds of resources before."""

_OURS: Final = {"app.kubernetes.io/managed-by": "sluice-operator"}


class Watches:
    """The receiver of what the watches see.

    Args:
        queue: the queue for keys.
        mirror: the mirror for objects.
        told: callback for objects of our own kinds that are gone, with their last state.
    """

    def __init__(
        self,
        queue: WorkQueue,
        mirror: Mirror,
        told: Callable[[Kind, Object], None] = lambda _kind, _body: None,
    ) -> None:
        self._told = told
        self._queue = queue
        self._mirror = mirror

    def resource(self, kind: Kind, body: Object, *, gone: bool) -> None:
        """Take in an object of our own kinds. Queue it and its stores, if more than status changed.

        Sluice itself writes the status, so a change of that alone queues nothing.
        """
        meta = body["metadata"]
        before = self._mirror.see(kind, body, gone=gone)
        if gone:
            self._told(kind, body)
        elif before is None and is_at_rest(kind, body):
            return  # after a start these are most of all; the resync looks at them in turns
        if before is not None and not gone and _essence(before) == _essence(body):
            return
        key = Key(kind.name, meta["namespace"], meta["name"])
        self._queue.add(key, lane=Lane.DELETION if is_deleting(body) else Lane.NORMAL)
        for place in stores_of(body):
            if place.namespace == meta["namespace"] or self._may_use(body, place):
                self._queue.add(Key(STREAM_STORE.name, *place), delay=STORE_DELAY)

    def _may_use(self, body: Object, place: StorePlace) -> bool:
        """Tell whether a resource uses, or may use, a StreamStore of another namespace.

        Otherwise it makes no work for that namespace.
        """
        store = self._mirror.get(STREAM_STORE, place.namespace, place.name)
        return store is not None and (shares(store) or was_admitted(body))

    def owner(self, api_version: str, kind: str, namespace: str, name: str) -> None:
        """Queue the EphemeralStreams that name a workload as owner. It came, finished or went."""
        owner = (api_version, kind, namespace, name)
        for body in self._mirror.where(EPHEMERAL_STREAM, _owners, owner):
            meta, left = body["metadata"], _is_collected_with(body, kind, name)
            self._queue.add(
                Key(EPHEMERAL_STREAM.name, meta["namespace"], meta["name"]),
                delay=COLLECTOR_DELAY if left else 0.0,
            )

    def child(self, kind: Kind, body: Object, *, gone: bool) -> None:
        """Take in a Job or a pod of ours, and queue the copy that it works for."""
        self._mirror.see(kind, body, gone=gone)
        self.wake(body)

    def wake(self, body: Object) -> None:
        """Queue the copy that a Job or a pod works for, by its metadata."""
        place, uid = copy_of(body)
        away = away_of(body)
        for own in WITH_JOBS:
            copies = self._mirror.where(own, uid_of, (place, uid))
            if away is not None and away.kind == own:
                there = self._mirror.where(own, uid_of, (away.namespace, uid))
                # The operator has written the status, so no stranger's pods make work for a copy.
                copies += [one for one in there if driver_namespace(one) == place]
            for copy in copies:
                meta = copy["metadata"]
                self._queue.add(Key(own.name, meta["namespace"], meta["name"]))


def _owners(body: Object) -> frozenset[tuple[str, str, str, str]]:
    """Return the owners that an EphemeralStream names. An index of the mirror."""
    own = body["metadata"]["namespace"]
    return frozenset(
        (one["apiVersion"], one["kind"], one.get("namespace", own), one["name"])
        for one in (body.get("spec") or {}).get("owners") or ()
    )


def _is_collected_with(body: Object, kind: str, name: str) -> bool:
    """Tell whether Kubernetes' garbage collector handles a resource when this owner goes."""
    spec, references = body["spec"], body["metadata"].get("ownerReferences") or ()
    return (
        spec.get("tracking", "OwnerReference") == "OwnerReference"
        and spec.get("releaseWhen") != "OwnersFinished"
        and any((one["kind"], one["name"]) == (kind, name) for one in references)
    )


def _essence(body: Object) -> tuple[Any, ...]:
    """Return the parts of an object that can change a decision. Our own status cannot."""
    meta = body["metadata"]
    return (
        meta["uid"],
        meta.get("generation"),
        meta.get("deletionTimestamp"),
        tuple(meta.get("finalizers") or ()),
        tuple(one["uid"] for one in meta.get("ownerReferences") or ()),
        tuple(
            sorted(one for one in (meta.get("annotations") or {}).items() if one[0] != LAST_APPLIED)
        ),
    )


def _taken_in_by(watches: Watches, kind: Kind) -> Callable[..., Awaitable[None]]:
    """Return the event handler of a kind."""

    async def seen(event: Any, **_: Any) -> None:
        watches.resource(kind, event["object"], gone=event["type"] == "DELETED")

    return seen


def registry(watches: Watches) -> kopf.OperatorRegistry:
    """Return kopf's handlers, bound to these watches."""
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
    """Seconds before each retry of a call to the API server. The sequence has no end."""

    def __iter__(self) -> Iterator[float]:
        return chain((1, 2, 4, 8), repeat(10))


class _NoDiffs(kopf.DiffBaseStorage):
    """A storage of no former states: no handler asks for differences.

    To build them, kopf would copy each object at each event, which is almost half of its time.
    """

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Return an essence without a field."""
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> None:
        """Return no former essence."""

    def store(self, **_: Any) -> None:
        """Store nothing."""


def settings() -> kopf.OperatorSettings:
    """Return kopf's settings: every call has a deadline, and kopf writes nothing itself."""
    found = kopf.OperatorSettings()
    found.watching.server_timeout = WATCH_SECONDS
    found.watching.client_timeout = WATCH_SECONDS + 30
    found.watching.connect_timeout = 10
    found.watching.chunk_size = PAGE
    found.networking.error_backoffs = _Backoffs()
    found.networking.request_timeout = 30
    found.networking.connect_timeout = 10
    for kind in (JOB, POD):  # the server sends only the objects of this operator
        found.watching.label_selectors[kind.group, kind.version, kind.plural] = MANAGED
    # kopf keeps an object and a task for so long after its event, and at the start that is all.
    found.queueing.idle_timeout = 0.2
    found.posting.enabled = False
    found.scanning.disabled = True
    found.persistence.finalizer = f"{GROUP}/unused"
    found.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP, v1=False)
    found.persistence.diffbase_storage = _NoDiffs()
    return found
