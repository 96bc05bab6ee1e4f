"""Streams that go to a bucket and to a mounted claim and back, on real pods with executors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from s3gateway import ClusterGateway, gateway_image
from support.cluster.mounted import MountedClaim
from support.command.restores import MERGED, SPLIT
from support.until import PATIENTLY
from support.witness import foreign_witness as witness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster
    from localcluster.store import ClusterStore
    from localstore import ForeignClient
    from support.tenants.tenant import Object, Tenant

PARTS = (200_000, 150_000, 50_000)
"""Events before the split, before the merge, and afterwards: enough for Spark."""

FEW = 100
"""Events of a small stream, which a driver copies without Spark."""

SLOW = {"bytesPerSecond": "1Mi"}  # 40 s for the whole stream
EXECUTORS = {"runtime": {"executors": 1}}


@dataclass(frozen=True)
class Orders:
    """A stream that a foreign client has written.

    Attributes:
        scope: its scope, which also has the small stream `refunds`. The stream is `orders`.
        java: the client.
        store: the store.
        digest: digest of the events, by the foreign reader.
    """

    scope: str
    java: ForeignClient
    store: ClusterStore
    digest: str

    @property
    def source(self) -> Object:
        """The stream as a resource names it."""
        return {"storeRef": {"name": "store"}, "scope": self.scope, "stream": "orders"}

    def assert_whole(self, scope: str) -> None:
        """Check that a scope has the small stream, with the same bytes."""
        source, target = (self.scope, "refunds"), (scope, "refunds")
        witness.assert_equal(self.store.segment_store, self.java, source, target)

    def assert_like(self, stream: str) -> None:
        """Check that a stream has the same bytes in each segment, and the same events."""
        target = (self.scope, stream)
        address = self.store.segment_store
        witness.assert_equal(address, self.java, (self.scope, "orders"), target)
        witness.assert_readable(self.java, target, events=sum(PARTS), digest=self.digest)


@pytest.fixture(scope="module")
def orders(java: ForeignClient, store: ClusterStore) -> Orders:
    """Return a stream that was split and merged."""
    scope = f"archives-{uuid4().hex[:6]}"
    java.create_scope(scope)
    java.create(scope, "orders", segments=2)
    first = 0
    for events, move in zip(PARTS, (SPLIT, MERGED, None), strict=True):
        java.write(scope, "orders", events=events, keys=64, first=first)
        first += events
        if move is not None:
            assert java.scale(scope, "orders", segments=move[0], ranges=move[1])
    java.create(scope, "refunds", segments=2)
    java.write(scope, "refunds", events=FEW, keys=8)
    return Orders(scope, java, store, java.read(scope, "orders").digest)


@pytest.fixture(scope="module")
def gateway(kube: Cluster, announce: Callable[[str], Any]) -> Iterator[ClusterGateway]:
    """Yield an S3 gateway in the cluster, with a bucket."""
    made = ClusterGateway(kube, "archives")
    with announce("an S3 gateway in the cluster"):
        made.up(lambda _: None)
    yield made
    made.down()


@pytest.fixture
def shop(executor_tenant: Tenant) -> Iterator[Tenant]:
    """Yield the namespace whose drivers may make executors. Its copies are StreamArchives."""
    yield replace(executor_tenant, copies="sarc")
    kinds = "sarc,scopy,sccp,sst"
    executor_tenant.run("delete", kinds, "--all", PATIENTLY)


@pytest.fixture
def bucket(shop: Tenant, gateway: ClusterGateway) -> Object:
    """Return the backend of a StreamStore in the bucket. Its Secret exists."""
    keys = {"accessKeyId": gateway.access, "secretAccessKey": gateway.secret}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    shop.apply(secret | {"stringData": keys})
    return {
        "s3": {
            "bucket": gateway.bucket,
            "prefix": uuid4().hex,
            "endpoint": gateway.endpoint,
            "credentialsSecretRef": {"name": "keys"},
        }
    }


@pytest.fixture
def claim(kube: Cluster, shop: Tenant) -> Iterator[Object]:
    """Yield the backend of a StreamStore in a claim that pods mount."""
    image = kube.provide(gateway_image(lambda _: None), say=lambda _: None)
    with MountedClaim(kube, shop.namespace, image) as made:
        yield {"volume": {"claimName": made.name, "path": "streams"}}
        shop.run("delete", "sarc,scopy,sccp", "--all", PATIENTLY)


def resource(kind: str, name: str, spec: Object) -> Object:
    """Return a resource."""
    body = {"apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}
    return body | {"spec": spec}


def archive(orders: Orders, **spec: Any) -> Object:
    """Return the stream's StreamArchive."""
    destination = {"storeRef": {"name": "backup"}, "path": "shop/orders"}
    made = {"source": orders.source, "destination": destination}
    return resource("StreamArchive", "orders", made | EXECUTORS | spec)


def restore(orders: Orders, name: str, **spec: Any) -> Object:
    """Return the StreamCopy that restores the stream."""
    source = {"archive": {"storeRef": {"name": "backup"}, "path": "shop/orders"}}
    target = {"storeRef": {"name": "store"}, "scope": orders.scope, "stream": name}
    return resource("StreamCopy", name, {"source": source, "target": target} | EXECUTORS | spec)


def folder(orders: Orders) -> tuple[Object, Object]:
    """Return a StreamArchive in its own folder, and the ScopeCopy that restores a scope from it."""
    place = {"storeRef": {"name": "backup"}, "path": "market/refunds"}
    source = orders.source | {"stream": "refunds"}
    made = resource("StreamArchive", "refunds", {"source": source, "destination": place})
    target = {"storeRef": {"name": "store"}, "scope": f"{orders.scope}-back"}
    sides = {
        "source": {"archive": place | {"path": "market"}},
        "target": target | {"scopePolicy": "CreateIfAbsent"},
    }
    return made, resource("ScopeCopy", "market", sides)


@pytest.mark.exhaustive
@pytest.mark.parametrize("place", ["bucket", "claim"])
def test_a_stream_is_archived_and_restored_by_executors(
    place: str, shop: Tenant, orders: Orders, request: pytest.FixtureRequest
) -> None:
    """Executors archive and restore the source's bytes, key ranges and events.

    The archives in the claim are also restored as a scope. The driver records it in the target.
    """
    name, mounted = f"restored-{place}", place == "claim"
    small, whole = folder(orders)
    shop.apply(resource("StreamStore", "backup", request.getfixturevalue(place)))
    shop.apply(archive(orders), *([small] * mounted))
    shop.until("an executor archives", lambda: shop.pods("executor"))
    status = shop.until_ready("orders")
    assert (status["archive"]["runs"], status["attempts"]) == (1, 1)
    assert status["archive"]["lastRuns"][0]["events"] == sum(PARTS)
    if mounted:
        shop.until_ready("refunds")
    shop.apply(restore(orders, name), *([whole] * mounted))
    shop.until("an executor restores", lambda: shop.pods("executor"))
    status = replace(shop, copies="scopy").until_ready(name)
    assert status["attempts"] == 1
    orders.assert_like(name)
    if mounted:
        status = shop.of_scopes.until_ready("market")
        assert (status["streams"]["summary"], status["attempts"]) == ("1/1", 1)
        assert status["progress"]["events"] == FEW
        orders.assert_whole(f"{orders.scope}-back")


def kill(tenant: Tenant, component: str, *, after: str = "") -> str:
    """Kill the next running pod of this kind after `after`, and return its name."""

    def names() -> list[str]:
        return [one["metadata"]["name"] for one in tenant.pods(component)]

    (victim,) = tenant.until(
        f"a {component} runs", lambda: [one for one in names() if one != after]
    )
    tenant.run("delete", "pod", victim, "--force", "--grace-period=0")
    return victim


@pytest.mark.exhaustive
def test_pods_that_are_killed_midway_cost_nothing(
    shop: Tenant, orders: Orders, bucket: Object, gateway: ClusterGateway
) -> None:
    """Archive and restore are whole, though executors, gateway and driver are killed midway.

    Executors exist only at full speed, so the test kills them as soon as they appear.
    """
    shop.apply(resource("StreamStore", "backup", bucket), archive(orders))
    first = kill(shop, "executor")
    gateway.kill()
    kill(shop, "executor", after=first)
    kill(shop, "driver")
    status = shop.until_ready("orders")
    assert (status["archive"]["runs"], status["attempts"]) == (1, 2)
    shop.apply(restore(orders, "restored-killed", limits=SLOW))
    copies = replace(shop, copies="scopy")
    copies.until_staged("restored-killed")
    gateway.kill()
    shop.patch("scopy", "restored-killed", {"spec": {"limits": None}})
    copies.until_ready("restored-killed")
    orders.assert_like("restored-killed")
