"""Streams whose resource is gone, found through the StreamStores of a cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.administration.cleanup.stale import Search, Stale, StaleStreams
from sluice.core.claims.claim import Claim, Claimant
from sluice.engine.claims import claims, scope_lifecycle
from sluice.errors import StoreNotFound, StoreUnavailable
from sluice.kube.api.kinds import EPHEMERAL_STREAM, STREAM_STORE
from support.cases import resources
from support.kube.finalizing import FinalizingServer
from support.model import ModelStore, World

if TYPE_CHECKING:
    from sluice.core.values.model import StoreAddress
    from sluice.kube.stores.connections import Connections

UIDS = [f"0b1d9c8e-0000-4000-8000-00000000000{n}" for n in range(4)]
HERE, THERE = "tcp://127.0.0.1:9090", "tcp://127.0.0.1:9999"
NOW = 103_000


class Network:
    """The stores, by address; any other address does not answer."""

    def __init__(self, **worlds: World) -> None:
        self.worlds = worlds

    async def get(self, namespace: str, address: StoreAddress) -> ModelStore:
        """See Connections.get."""
        assert namespace
        if address.uri not in self.worlds:
            raise StoreUnavailable(f"no answer from {address.uri}")
        return ModelStore(self.worlds[address.uri])


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_lifecycle, "_gates", {})


@pytest.fixture
def world() -> World:
    """Yield a store with streams of two resources and of another cluster."""
    made = World()
    made.time = NOW
    store = ModelStore(made)
    for stream, cluster, uid in (
        ("a", "here", UIDS[0]),
        ("b", "here", UIDS[1]),
        ("c", "there", UIDS[2]),
    ):
        claims.make(claim(stream, cluster, uid), store, NOW)
    return made


@pytest.fixture
def server() -> FinalizingServer:
    """Yield a cluster with a StreamStore, and the EphemeralStream of stream b."""
    made = FinalizingServer()
    add_store(made, "local")
    live(made, "b", UIDS[1], namespace="far")
    return made


def claim(stream: str, cluster: str, uid: str) -> Claim:
    """Make a claim to one stream."""
    who = Claimant(cluster=cluster, namespace="team", name=stream, uid=uid, created=1000)
    return Claim(claimant=who, scope="in", stream=stream)


def add_store(server: FinalizingServer, name: str, *, uri: str = HERE, **meta: str) -> None:
    """Add a StreamStore to the cluster."""
    body = resources.changed(resources.STORE, "spec.pravega.controllerURI", uri)
    body["metadata"] = {"name": name, **meta}
    server.put(STREAM_STORE, body)


def live(server: FinalizingServer, name: str, uid: str, **meta: str) -> None:
    """Add an EphemeralStream to the cluster."""
    body = resources.changed(resources.EPHEMERAL, "metadata.uid", uid)
    body["metadata"] |= {"name": name, **meta}
    server.put(EPHEMERAL_STREAM, body)


def streams(server: FinalizingServer, **worlds: World) -> StaleStreams:
    """Make the search for stale streams of cluster `here`."""
    return StaleStreams(server.api, cast("Connections", Network(**worlds)), "here")


def find(server: FinalizingServer, worlds: dict[str, World], *where: Any) -> Search:
    """Search once."""
    return asyncio.run(streams(server, **worlds).find(*where))


def delete(server: FinalizingServer, worlds: dict[str, World], one: Stale) -> int | None:
    """Delete a stale stream."""
    return asyncio.run(streams(server, **worlds).delete(one))


def names(search: Search) -> list[tuple[str, str]]:
    """Return the streams that were found, each with the StreamStore that led to it."""
    return [(one.store, one.tagged.stream) for one in search.found]


def test_only_this_clusters_without_a_resource_are_found(
    server: FinalizingServer, world: World
) -> None:
    """A resource in any namespace keeps its stream. Streams of another cluster are left out."""
    search = find(server, {HERE: world})
    assert (names(search), search.unasked) == ([("local", "a")], [])
    assert search.found[0].tagged.resource == "team/a"


def test_a_store_of_two_names_is_one(server: FinalizingServer, world: World) -> None:
    """A stream is listed once, though several StreamStores lead to it."""
    add_store(server, "same", namespace="other")
    assert names(find(server, {HERE: world})) == [("local", "a")]
    assert names(find(server, {HERE: world}, "other")) == [("same", "a")]
    assert names(find(server, {HERE: world}, "other", "same")) == [("same", "a")]


def test_a_store_that_does_not_answer_hides_no_other(
    server: FinalizingServer, world: World
) -> None:
    """The unreachable store is listed with its error."""
    add_store(server, "away", uri=THERE)
    search = find(server, {HERE: world})
    assert names(search) == [("local", "a")]
    ((name, error),) = search.unasked
    assert (name, error.reason) == ("default/away", "StoreUnavailable")


def test_a_store_that_is_named_exists(server: FinalizingServer, world: World) -> None:
    """A wrong store name is an error, not an empty result."""
    with pytest.raises(StoreNotFound, match="in namespace 'team'"):
        find(server, {HERE: world}, "team", "local")
    with pytest.raises(StoreNotFound, match="in any namespace"):
        find(server, {HERE: world}, None, "lokal")


def test_what_comes_while_stores_are_asked_is_seen(server: FinalizingServer, world: World) -> None:
    """The search lists the resources after the streams."""
    calls = []

    def meanwhile() -> None:
        calls.append(1)
        if len(calls) == 2:
            live(server, "a", UIDS[0])

    server.meanwhile = meanwhile
    assert find(server, {HERE: world}).found == []


def test_deleting_is_sealing_and_deleting(server: FinalizingServer, world: World) -> None:
    """Only this stream is deleted, and a second deletion is no error."""
    (found,) = find(server, {HERE: world}).found
    assert delete(server, {HERE: world}, found) == 1
    assert {name.stream for name in world.streams} == {"b", "c"}
    assert delete(server, {HERE: world}, found) is None


def test_what_has_a_resource_by_now_is_left_alone(server: FinalizingServer, world: World) -> None:
    """The resources and the stream's own tags are read again before the deletion."""
    (found,) = find(server, {HERE: world}).found
    live(server, "a", UIDS[0])
    assert delete(server, {HERE: world}, found) is None
    server.objects.pop((EPHEMERAL_STREAM.name, "default", "a"))
    claims.adopt(claim("a", "here", UIDS[3]), ModelStore(world), UIDS[0])
    assert delete(server, {HERE: world}, found) is None
    assert {name.stream for name in world.streams} == {"a", "b", "c"}


def test_a_prefix_without_streams_goes_as_well(server: FinalizingServer, world: World) -> None:
    """The prefix's marker is deleted, and counts as no stream."""
    who = Claimant(cluster="here", namespace="team", name="p", uid=UIDS[3], created=1000)
    claims.make(Claim(claimant=who, scope="out", prefix="app-"), ModelStore(world), NOW)
    found = next(one for one in find(server, {HERE: world}).found if one.tagged.prefix)
    assert found.tagged.streams == ()
    assert delete(server, {HERE: world}, found) == 0
    assert not [name for name in world.streams if name.scope == "out"]
