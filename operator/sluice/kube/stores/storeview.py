"""StreamStores as the resources that name them see them."""

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
"""Seconds for which a store's answer counts for its users; the store is asked more often."""


class FoundStore(NamedTuple):
    """A StreamStore, as it is written and as it is."""

    resource: StreamStore
    seen: StoreSeen


class StoreView:
    """Looks StreamStores up.

    Args:
        api: the API server.
        mirror: what the watches told.
        probes: whether the stores are there.
    """

    def __init__(self, api: Api, mirror: Mirror, probes: Probes) -> None:
        self._api = api
        self._mirror = mirror
        self._probes = probes

    async def look(self, namespace: str, name: str, *, eager: bool = False) -> FoundStore | None:
        """A StreamStore; None when there is none.

        Args:
            namespace: its namespace.
            name: its name.
            eager: somebody has just changed what needs it: that it was away counts for seconds.

        Raises:
            InvalidSpec: it is none that this version understands.
            ApiUnavailable: the API server could not be asked.
        """
        body = self._mirror.get(STREAM_STORE, namespace, name)
        if body is None:  # it may have been made a moment ago
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
