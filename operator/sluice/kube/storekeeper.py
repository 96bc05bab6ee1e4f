"""Looking after StreamStores: are they ready, and may they go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sluice.api.status import StreamStoreStatus
from sluice.core.model import Health
from sluice.core.reconcile.store import AWAY, StoreWorld, reconcile_store
from sluice.errors import InvalidSpec
from sluice.kube import finalizers
from sluice.kube.client import SECRET, STREAM_COPY, STREAM_STORE
from sluice.kube.objects import (
    HELD_SECRET,
    IN_USE_FINALIZER,
    STAGING_FINALIZER,
    has_finalizer,
    is_deleting,
    parse_store,
)
from sluice.kube.queue import Key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.kube.client import Api, Object
    from sluice.kube.mirror import Mirror
    from sluice.kube.probes import Probes
    from sluice.kube.queue import WorkQueue
    from sluice.kube.status import StatusWriter


class StoreKeeper:
    """Reconciles StreamStores.

    Args:
        api: the API server.
        queue: to wake up the copies that wait for a store.
        mirror: what the watches told.
        probes: whether stores are there.
        statuses: writes them.
    """

    def __init__(
        self,
        api: Api,
        *,
        queue: WorkQueue,
        mirror: Mirror,
        probes: Probes,
        statuses: StatusWriter,
    ) -> None:
        self._api = api
        self._queue = queue
        self._mirror = mirror
        self._probes = probes
        self._statuses = statuses
        self._ready: dict[Key, bool] = {}

    async def keep(self, key: Key, body: Object | None) -> float | None:
        """Look after one store; seconds until it is looked at again."""
        if body is None:
            self._ready.pop(key, None)
            self._probes.forget(key.namespace, key.name)
            self._wake_copies(key)
            return None
        meta = body["metadata"]
        was_ready = self._ready.get(key)
        copies = self._mirror.all(STREAM_COPY, key.namespace)
        eager = any(key.name in stores_of(copy) and _is_news(copy) for copy in copies)
        probed = await self._probes.look(body, eager=eager)
        held = has_finalizer(body, IN_USE_FINALIZER)
        users = _users(self._mirror.all(STREAM_COPY, key.namespace), key.name)
        if held and not users:  # the mirror may lag, and this must not be wrong
            users = _users(await self._api.list(STREAM_COPY, key.namespace), key.name)
        before = StreamStoreStatus.read(body.get("status"))
        decision = reconcile_store(
            before,
            StoreWorld(
                now=datetime.now(UTC),
                probed=probed.time,
                probe=probed.answer,
                failures=probed.failures,
                users=tuple(users),
            ),
            generation=meta.get("generation", 0),
            deleting=is_deleting(body),
        )
        if not await self._statuses.write(STREAM_STORE, body, before, decision.status):
            return AWAY.first
        if decision.hold:
            await self._hold(body)
        elif held:
            await self._release(body)
        ready = isinstance(probed.answer, Health)
        self._ready[key] = ready
        if ready is not was_ready:
            self._wake_copies(key)
        return decision.again

    def _wake_copies(self, key: Key) -> None:
        """Have the copies that name a store looked at."""
        for copy in self._mirror.all(STREAM_COPY, key.namespace):
            if key.name in stores_of(copy):
                self._queue.add(Key(STREAM_COPY.name, key.namespace, copy["metadata"]["name"]))

    async def _hold(self, body: Object) -> None:
        """Let neither the store nor its Secret go; a Secret that it named before may go."""
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        secret, before = _secret(body), _held_secret(body)
        await finalizers.add(self._api, STREAM_STORE, namespace, name, IN_USE_FINALIZER)
        if secret is not None:
            await finalizers.add(self._api, SECRET, namespace, secret, IN_USE_FINALIZER)
        if before != secret:
            await self._free_secret(namespace, name, before)
            note = {"metadata": {"annotations": {HELD_SECRET: secret}}}
            await self._api.patch(STREAM_STORE, namespace, name, note)

    async def _release(self, body: Object) -> None:
        """Let the store go, and its Secret if no other store in use needs it."""
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        for secret in {_secret(body), _held_secret(body)}:
            await self._free_secret(namespace, name, secret)
        if _held_secret(body) is not None:
            note = {"metadata": {"annotations": {HELD_SECRET: None}}}
            await self._api.patch(STREAM_STORE, namespace, name, note)
        await finalizers.remove(self._api, STREAM_STORE, namespace, name, IN_USE_FINALIZER)

    async def _free_secret(self, namespace: str, store: str, secret: str | None) -> None:
        """Let a Secret go that a store needs no more, unless another store in use needs it."""
        others = [
            other
            for other in self._mirror.all(STREAM_STORE, namespace)
            if other["metadata"]["name"] != store
            and has_finalizer(other, IN_USE_FINALIZER)
            and secret in {_secret(other), _held_secret(other)}
        ]
        if secret is not None and not others:
            await finalizers.remove(self._api, SECRET, namespace, secret, IN_USE_FINALIZER)


def stores_of(copy: Object) -> set[str]:
    """The names of the StreamStores that a copy names."""
    spec = copy.get("spec", {})
    refs = [spec.get(side, {}).get("storeRef", {}).get("name") for side in ("source", "target")]
    return {name for name in refs if name}


def _is_news(copy: Object) -> bool:
    """Whether a copy was made or changed, and not looked at since."""
    seen = (copy.get("status") or {}).get("observedGeneration", -1)
    return bool(seen != copy["metadata"].get("generation", 0))


def _users(copies: Iterable[Object], store: str) -> list[str]:
    """The copies that have something in a store that is not whole."""
    return sorted(
        f"StreamCopy {copy['metadata']['name']}"
        for copy in copies
        if has_finalizer(copy, STAGING_FINALIZER) and store in stores_of(copy)
    )


def _held_secret(body: Object) -> str | None:
    """The Secret that was held with a store."""
    found: str | None = (body["metadata"].get("annotations") or {}).get(HELD_SECRET)
    return found


def _secret(body: Object) -> str | None:
    """The Secret that a store names."""
    try:
        pravega = parse_store(body).spec.pravega
    except InvalidSpec:
        return None
    return pravega.auth.basic.secret_ref.name if pravega.auth else None
