"""Reconcile StreamStores: tell whether they are ready, and protect them while they are in use."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from sluice.api.kinds.streamstore import StreamStore
from sluice.api.status.store_status import StreamStoreStatus
from sluice.core.reconcile.store import AWAY, StoreWorld, reconcile_store
from sluice.core.values.model import StoreHealth
from sluice.core.workloads.request import store_address
from sluice.errors import InvalidSpec
from sluice.kube.api import finalizers
from sluice.kube.api.kinds import SECRET, STREAM_STORE
from sluice.kube.api.objects import (
    IN_USE_FINALIZER,
    has_finalizer,
    is_deleting,
    parse,
)
from sluice.kube.api.rest import is_at_rest
from sluice.kube.loop.queue import Key
from sluice.kube.stores.dependents import (
    KINDS,
    StorePlace,
    awaited_stores,
    named_stores,
    needed_stores,
    shares,
    users,
    was_admitted,
)
from sluice.kube.stores.keys import secret_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.kube.api.cache import Mirror, Place
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.api.status import StatusWriter
    from sluice.kube.loop.queue import WorkQueue
    from sluice.kube.stores.probes import Probes


class StoreKeeper:
    """The reconciler of StreamStores.

    Args:
        api: the API server.
        queue: the queue, to wake resources that wait for a store.
        mirror: the objects that the watches have shown.
        probes: the answers of stores.
        statuses: writes statuses.
        namespaces: the namespaces that this operator watches; empty for all.
        hold_secrets: whether the Secret of a StreamStore in use is held too.
    """

    def __init__(
        self,
        api: Api,
        *,
        queue: WorkQueue,
        mirror: Mirror,
        probes: Probes,
        statuses: StatusWriter,
        namespaces: Sequence[str] = (),
        hold_secrets: bool = True,
    ) -> None:
        self._api = api
        self._queue = queue
        self._mirror = mirror
        self._probes = probes
        self._statuses = statuses
        self._namespaces: list[str | None] = [*namespaces] or [None]
        self._hold_secrets = hold_secrets
        self._told: dict[Key, tuple[bool, int]] = {}
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    async def reconcile(self, key: Key) -> float | None:
        """Reconcile a StreamStore. Return the seconds until the next look; None if it is gone."""
        body = await self._api.get(STREAM_STORE, key.namespace, key.name)
        if body is None:
            self._told.pop(key, None)
            self._probes.forget(key.namespace, key.name)
            self._wake_users(key)
            return None
        meta, place = body["metadata"], StorePlace(key.namespace, key.name)
        before = StreamStoreStatus.read(body.get("status"))
        eager = any(self._may_use(body, user) for _, user in self._found(awaited_stores, key))
        probed = await self._probes.look(body, eager=eager)
        held = has_finalizer(body, IN_USE_FINALIZER)
        needing = [user for _, user in self._found(needed_stores, key)]
        using = users((user for user in needing if self._may_use(body, user)), place)
        if held and not using:  # releasing a store in use is wrong, and the mirror may lag
            changed = before.observed_generation != meta.get("generation", 0)
            far = changed or shares(body) or before.shared_users
            using = [
                user
                for kind in KINDS
                for namespace in (self._namespaces if far else [key.namespace])
                async for page in self._api.pages(kind, namespace)
                for user in users(page, place)
            ]
        decision = reconcile_store(
            before,
            StoreWorld(
                now=datetime.now(UTC),
                probed=probed.time,
                probe=probed.answer,
                due=probed.due,
                users=tuple(using),
                shared=sum("/" in user for user in using),
            ),
            generation=meta.get("generation", 0),
            deleting=is_deleting(body),
        )
        # The status remembers which Secrets are held, since tenants cannot write it. It is written
        # before a Secret gets its finalizer, so that none is forgotten.
        named = _secrets(body) if decision.hold and self._hold_secrets else set()
        if not decision.hold_new:
            named &= set(before.held_secrets)
        status = _holding(decision.status, {*before.held_secrets, *named})
        if not await self._statuses.write(STREAM_STORE, body, before, status):
            return AWAY.first
        # Stores that share a Secret are released one after the other. If two were released at once,
        # each would leave the Secret to the other.
        async with self._locks.setdefault(key.namespace, asyncio.Lock()):
            if decision.hold:
                await self._hold(body, named, status)
            elif held:
                await self._release(body)
        ready = isinstance(probed.answer, StoreHealth)
        now = (ready, meta.get("generation", 0))  # another generation may admit others
        if now != self._told.get(key):
            self._told[key] = now
            self._wake_users(key)
        return decision.again

    def _found(self, place: Place, key: Key) -> Iterator[tuple[Kind, Object]]:
        """Return the resources that an index finds by a store, with their kinds."""
        for kind in KINDS:
            for body in self._mirror.where(kind, place, StorePlace(key.namespace, key.name)):
                yield kind, body

    @staticmethod
    def _may_use(store: Object, user: Object) -> bool:
        """Tell whether a resource that names a store uses it, or may begin to."""
        near = user["metadata"]["namespace"] == store["metadata"]["namespace"]
        return near or shares(store) or was_admitted(user)

    def _wake_users(self, key: Key) -> None:
        """Queue the resources that name a store, and may still need it."""
        for kind, body in self._found(named_stores, key):
            if is_at_rest(kind, body):
                continue
            self._queue.add(Key(kind.name, body["metadata"]["namespace"], body["metadata"]["name"]))

    async def _hold(self, body: Object, named: set[str], status: StreamStoreStatus) -> None:
        """Protect a store and its Secrets. Release Secrets that the store named before."""
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        await finalizers.add(self._api, STREAM_STORE, namespace, name, IN_USE_FINALIZER, known=body)
        for secret in sorted(named):
            await finalizers.add(self._api, SECRET, namespace, secret, IN_USE_FINALIZER)
        before = set(status.held_secrets) - named if self._hold_secrets else set()
        for one in sorted(before):
            await self._free_secret(namespace, name, one)
        if before:  # if the store was changed meanwhile, the next look repeats this
            now = _holding(status, named)
            await self._statuses.write(STREAM_STORE, body, status, now)

    async def _release(self, body: Object) -> None:
        """Release a store, and its Secrets unless another store in use needs them."""
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        for secret in sorted(secrets_of(body) if self._hold_secrets else ()):
            await self._free_secret(namespace, name, secret)
        await finalizers.remove(self._api, STREAM_STORE, namespace, name, IN_USE_FINALIZER)

    async def _free_secret(self, namespace: str, store: str, secret: str) -> None:
        """Release a Secret of a store, unless another store in use needs it.

        The mirror may show another store as held that has just been released.
        """
        others = [
            other
            async for page in self._api.pages(STREAM_STORE, namespace)
            for other in page
            if other["metadata"]["name"] != store
            and has_finalizer(other, IN_USE_FINALIZER)
            and secret in secrets_of(other)
        ]
        if not others:
            await finalizers.remove(self._api, SECRET, namespace, secret, IN_USE_FINALIZER)


def secrets_of(body: Object) -> set[str]:
    """Return the Secrets that are protected with a store: its spec's, and those of its status."""
    held = StreamStoreStatus.read(body.get("status")).held_secrets
    return {*held, *_secrets(body)}


def _holding(status: StreamStoreStatus, names: set[str]) -> StreamStoreStatus:
    """Return a status that lists these Secrets as held."""
    return status.model_copy(update={"held_secrets": tuple(sorted(names))})


def _secrets(body: Object) -> set[str]:
    """Return the Secrets that a store's spec names; none if it cannot be read."""
    try:
        return secret_names(store_address(parse(body, StreamStore)))
    except InvalidSpec:
        return set()
