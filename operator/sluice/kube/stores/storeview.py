"""Look up StreamStores for the resources that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.api.kinds.streamstore import StreamStore
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.values.model import StoreHealth
from sluice.core.workloads.request import store_address
from sluice.kube.api.kinds import STREAM_STORE
from sluice.kube.api.objects import IN_USE_FINALIZER, has_finalizer, is_deleting, parse

if TYPE_CHECKING:
    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.stores.probes import Probes

MAX_AGE: Final = 60.0
"""Seconds for which a store's answer is good enough for its users. Usually it is newer."""


class FoundStore(NamedTuple):
    """A StreamStore's resource, and the state of its store."""

    resource: StreamStore
    seen: StoreSeen


class StoreView:
    """The look-up of StreamStores.

    Args:
        api: the API server.
        mirror: the objects that the watches have shown.
        probes: the answers of stores.
    """

    def __init__(self, api: Api, mirror: Mirror, probes: Probes) -> None:
        self._api = api
        self._mirror = mirror
        self._probes = probes

    async def look(self, namespace: str, name: str, *, eager: bool = False) -> FoundStore | None:
        """Look up a StreamStore. Return None if it does not exist.

        Args:
            namespace: its namespace.
            name: its name.
            eager: whether a user has just changed the resource that needs the store. Then a failed
                probe counts only for seconds.

        Raises:
            InvalidSpec: this version cannot read the StreamStore.
            ApiUnavailable: the API server could not be asked.
        """
        body = self._mirror.get(STREAM_STORE, namespace, name)
        if body is None:  # the mirror may lag behind a new StreamStore
            body = await self._api.get(STREAM_STORE, namespace, name)
        if body is None:
            return None
        resource = parse(body, StreamStore)
        answer = (await self._probes.look(body, max_age=MAX_AGE, eager=eager)).answer
        ready = isinstance(answer, StoreHealth)
        seen = StoreSeen(
            name=name,
            address=store_address(resource),
            ready=ready,
            why="" if ready else str(answer),
            held=has_finalizer(body, IN_USE_FINALIZER),
            deleting=is_deleting(body),
        )
        return FoundStore(resource, seen)
