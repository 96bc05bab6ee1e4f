"""Find and delete streams of this cluster whose EphemeralStream is gone, in all StreamStores."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from sluice.api.kinds.streamstore import StreamStore
from sluice.core.workloads.request import store_address
from sluice.engine.claims import stale as engine
from sluice.errors import SluiceError, StoreNotFound
from sluice.kube.api.kinds import EPHEMERAL_STREAM, STREAM_STORE
from sluice.kube.api.objects import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.core.values.model import StoreAddress
    from sluice.engine.claims.stale import Tagged
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.connections import Connections


class Stale(NamedTuple):
    """A stream, or the streams under a prefix, whose EphemeralStream is gone.

    Attributes:
        namespace: the namespace of the StreamStore by which it was found.
        store: the name of that StreamStore.
        address: the store's address.
        tagged: the stream and its tags.
    """

    namespace: str
    store: str
    address: StoreAddress
    tagged: Tagged


class Search(NamedTuple):
    """The result of a search: stale streams, and each StreamStore that failed, with its error."""

    found: list[Stale]
    unasked: list[tuple[str, SluiceError]]


class StaleStreams:
    """The search for stale streams, and their deletion.

    Args:
        api: the API server.
        connections: the connections to stores.
        cluster: the cluster's identity. Streams of other clusters are never touched.
    """

    def __init__(self, api: Api, connections: Connections, cluster: str) -> None:
        self._api = api
        self._connections = connections
        self._cluster = cluster

    async def find(self, namespace: str | None = None, name: str | None = None) -> Search:
        """Search StreamStores: those of a namespace, those of a name, or all.

        Raises:
            StoreNotFound: there is no StreamStore of this name.
            ApiUnavailable: the EphemeralStreams cannot be listed, so it is unknown which streams
                are needed.
        """
        bodies = await self._api.list(STREAM_STORE, namespace)
        bodies = [body for body in bodies if name in {None, body["metadata"]["name"]}]
        if name is not None and not bodies:
            where = f"namespace {namespace!r}" if namespace else "any namespace"
            raise StoreNotFound(
                f"there is no StreamStore {name!r} in {where}",
                field="--store",
                remedy="Name one that kubectl get sst --all-namespaces shows.",
            )
        search = Search([], [])
        for body in bodies:
            meta = body["metadata"]
            try:
                search.found.extend(await self._tagged(body))
            except SluiceError as error:
                search.unasked.append((f"{meta['namespace']}/{meta['name']}", error))
        # The EphemeralStreams are listed after the stores, so that new ones are not missed.
        live = await self._live()
        return Search(
            _once(one for one in search.found if one.tagged.uid not in live), search.unasked
        )

    async def delete(self, one: Stale) -> int | None:
        """Seal and delete a stale stream, or the streams under a prefix.

        The EphemeralStreams are listed once more, and the tags are read once more. A stream that
        has an EphemeralStream by now is kept.

        Returns:
            How many streams were deleted; None if the stream has an owner by now, or is gone.
        """
        if one.tagged.uid in await self._live():
            return None
        store = await self._connections.get(one.namespace, one.address)
        count = await asyncio.to_thread(engine.drop, one.tagged, store, self._cluster)
        return count if count or one.tagged.prefix is not None else None

    async def _tagged(self, body: Object) -> list[Stale]:
        """Return the streams with this cluster's tags in the store of a StreamStore."""
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        address = store_address(parse(body, StreamStore))
        if address.holds_archives:
            return []
        store = await self._connections.get(namespace, address)
        found = await asyncio.to_thread(engine.tagged, store, self._cluster)
        return [Stale(namespace, name, address, tagged) for tagged in found]

    async def _live(self) -> frozenset[str]:
        """Return the UIDs of all EphemeralStreams of the cluster, in all namespaces."""
        bodies = await self._api.list(EPHEMERAL_STREAM, None)
        return frozenset(body["metadata"]["uid"] for body in bodies)


def _once(found: Iterable[Stale]) -> list[Stale]:
    """Return each stream once, even if several StreamStores name its store."""
    seen: dict[tuple[str, str, str], Stale] = {}
    for one in found:
        seen.setdefault((one.address.uri, one.tagged.scope, one.tagged.stream), one)
    return list(seen.values())
