"""Streams of this cluster whose EphemeralStream is gone, in each store that StreamStores name."""

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
    """A stream, or the streams under a prefix, that nobody has any more.

    Attributes:
        namespace: of the StreamStore by which it was found.
        store: that StreamStore.
        address: where the store is.
        tagged: the stream, and what its tags say.
    """

    namespace: str
    store: str
    address: StoreAddress
    tagged: Tagged


class Search(NamedTuple):
    """What was found, and the StreamStores that could not be asked, each with its error."""

    found: list[Stale]
    unasked: list[tuple[str, SluiceError]]


class StaleStreams:
    """Finds them, and deletes them.

    Args:
        api: the API server.
        connections: to the stores.
        cluster: the cluster's identity; streams of others are never touched.
    """

    def __init__(self, api: Api, connections: Connections, cluster: str) -> None:
        self._api = api
        self._connections = connections
        self._cluster = cluster

    async def find(self, namespace: str | None = None, name: str | None = None) -> Search:
        """Look through StreamStores: those of a namespace, or of that name, or all.

        Raises:
            StoreNotFound: one was named, and there is none.
            ApiUnavailable: resources cannot be listed, so nobody knows whose streams are needed.
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
        # Only now: a resource that came while the stores were asked is seen.
        live = await self._live()
        return Search(
            _once(one for one in search.found if one.tagged.uid not in live), search.unasked
        )

    async def delete(self, one: Stale) -> int | None:
        """Seal and delete it; how many streams were deleted, None if somebody has it by now.

        The resources are listed once more: an EphemeralStream that is there by now keeps its
        streams. So does any other that the tags name by now; they are looked at anew as well.
        """
        if one.tagged.uid in await self._live():
            return None
        store = await self._connections.get(one.namespace, one.address)
        count = await asyncio.to_thread(engine.drop, one.tagged, store, self._cluster)
        return count if count or one.tagged.prefix is not None else None

    async def _tagged(self, body: Object) -> list[Stale]:
        """What has this cluster's tags in the store that a StreamStore names."""
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        address = store_address(parse(body, StreamStore))
        if address.holds_archives:
            return []
        store = await self._connections.get(namespace, address)
        found = await asyncio.to_thread(engine.tagged, store, self._cluster)
        return [Stale(namespace, name, address, tagged) for tagged in found]

    async def _live(self) -> frozenset[str]:
        """The uids of all EphemeralStreams of the cluster, whatever namespace they are in."""
        bodies = await self._api.list(EPHEMERAL_STREAM, None)
        return frozenset(body["metadata"]["uid"] for body in bodies)


def _once(found: Iterable[Stale]) -> list[Stale]:
    """Each stream once, though several StreamStores name its store."""
    seen: dict[tuple[str, str, str], Stale] = {}
    for one in found:
        seen.setdefault((one.address.uri, one.tagged.scope, one.tagged.stream), one)
    return list(seen.values())
