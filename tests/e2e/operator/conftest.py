"""Sluice in a cluster, installed by Helm; a Pravega beside it; a namespace for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import pytest

from localcluster.release import NAMESPACE, install, restrict, sluice_image
from localcluster.store import ClusterStore
from support.tenant import Tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster
    from localstore import ForeignClient

SEGMENTS = 4
EVENTS = 3_000_000
EXECUTOR_NAMESPACE = "sluice-test-executors"
SMALL: dict[str, Any] = {
    "requests": {"cpu": "100m", "memory": "512Mi"},
    "limits": {"memory": "2Gi"},
}
VALUES: dict[str, Any] = {
    "operator": {"resyncSeconds": 5},
    "driver": {"namespaces": [EXECUTOR_NAMESPACE]},
    "profiles": {
        "default": {
            "driver": {"resources": SMALL, "scratchSize": "200Mi"},
            "executor": {"resources": SMALL, "scratchSize": "200Mi"},
        },
        "no-image": {"image": "localhost/there-is-no-such-image:1"},
    },
}


class Source(NamedTuple):
    """A stream that a foreign client has written.

    Attributes:
        name: `scope/stream`.
        events: how many are in it.
        digest: of the events, by the foreign reader.
        hashes: of its segments, by the stand-alone script.
    """

    name: str
    events: int
    digest: str
    hashes: list[str]


@pytest.fixture(scope="session")
def store(kube: Cluster, announce: Callable[[str], Any]) -> ClusterStore:
    """Gives the Pravega of the cluster."""
    found = ClusterStore(kube)
    with announce("Pravega in the cluster"):
        found.up(lambda _: None)
    return found


@pytest.fixture(scope="session")
def java(store: ClusterStore) -> Iterator[ForeignClient]:
    """Gives the official Java client, inside the store's pod."""
    with store.foreign() as client:
        yield client


@pytest.fixture(scope="session")
def release(kube: Cluster, announce: Callable[[str], Any]) -> Callable[..., None]:
    """Gives the function that installs Sluice with the tests' values, and others on top."""
    with announce("the image of Sluice"):
        image = kube.provide(sluice_image(), say=lambda _: None)

    def upgrade(**values: Any) -> None:
        install(kube, image, values=VALUES | values, say=lambda _: None)

    return upgrade


@pytest.fixture(scope="session")
def sluice(kube: Cluster, release: Callable[..., None], announce: Callable[[str], Any]) -> Operator:
    """Gives Sluice, installed by Helm."""
    restrict(kube, EXECUTOR_NAMESPACE)
    with announce("Sluice by Helm"):
        release()
    return Operator(kube)


class Operator:
    """The operator's pod."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def run(self, *words: str, timeout: float = 60) -> str:
        """What kubectl prints in its namespace."""
        return self.cluster.kubectl(f"--namespace={NAMESPACE}", *words, timeout=timeout)

    def kill(self) -> None:
        """Kill its pod at once; the Deployment makes another."""
        selector = "--selector=app.kubernetes.io/component=operator"
        self.run("delete", "pods", selector, "--force", "--grace-period=0")

    def scale(self, replicas: int) -> None:
        """Stop it, or start it again, and wait until that is so."""
        self.run("scale", "deployment/sluice-operator", f"--replicas={replicas}")
        if replicas:
            self.ready()
        else:
            selector = "--selector=app.kubernetes.io/component=operator"
            self.run("wait", "pods", selector, "--for=delete", "--timeout=60s", timeout=70)

    def ready(self) -> None:
        """Wait until it is."""
        self.run("rollout", "status", "deployment/sluice-operator", "--timeout=90s", timeout=100)


@pytest.fixture
def tenant(
    kube: Cluster, sluice: Operator, store: ClusterStore, say: Callable[[str], None]
) -> Iterator[Tenant]:
    """Gives a namespace that admits restricted pods only, with a StreamStore `store`."""
    assert sluice
    yield from _tenant(kube, store, say, f"sluice-test-{uuid4().hex[:8]}")


@pytest.fixture
def executor_tenant(
    kube: Cluster, sluice: Operator, store: ClusterStore, say: Callable[[str], None]
) -> Iterator[Tenant]:
    """Gives the namespace whose drivers may make executors."""
    assert sluice
    found = Tenant(kube, EXECUTOR_NAMESPACE, store, say)
    found.apply(found.store_resource())
    yield found
    found.run("delete", "scopy,sst", "--all", "--timeout=100s", timeout=110)


def _tenant(
    kube: Cluster, store: ClusterStore, say: Callable[[str], None], name: str
) -> Iterator[Tenant]:
    restrict(kube, name)
    found = Tenant(kube, name, store, say)
    found.apply(found.store_resource())
    yield found
    kube.kubectl("delete", "namespace", name, "--ignore-not-found", "--timeout=100s", timeout=110)


@pytest.fixture
def scope(java: ForeignClient, tenant: Tenant) -> str:
    """Gives a new scope of the store for a test's targets."""
    java.create_scope(tenant.namespace)
    return tenant.namespace


@pytest.fixture(scope="session")
def source(store: ClusterStore, java: ForeignClient, kube: Cluster) -> Source:
    """Gives a stream of 324 MB that all tests copy from."""
    scope, stream = "source", "big"
    java.create_scope(scope)
    if java.create(scope, stream, segments=SEGMENTS):
        java.write(scope, stream, events=EVENTS, keys=1000)
    read = java.read(scope, stream)
    assert read.events == EVENTS
    tenant = Tenant(kube, "default", store, print)
    hashes = [report["sha256"] for report in tenant.hashes(f"{scope}/{stream}", segments=SEGMENTS)]
    return Source(f"{scope}/{stream}", EVENTS, read.digest, hashes)


@pytest.fixture
def whole(java: ForeignClient, tenant: Tenant, source: Source) -> Callable[..., None]:
    """Gives the function that asserts that a target is the source, told by programs of others."""

    def check(target: str, *, by: Tenant = tenant) -> None:
        reports = by.hashes(target, segments=SEGMENTS)
        assert source.hashes == [report["sha256"] for report in reports]
        read = java.read(*target.split("/"))
        assert read.clean, read
        assert (source.events, source.digest) == (read.events, read.digest)

    return check
