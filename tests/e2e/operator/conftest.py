"""Sluice in a cluster, installed by Helm, with a Pravega and a namespace for each test."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import pytest
import yaml

from localcluster import LocalClusterError
from localcluster.release import NAMESPACE, install, query_image, restrict, sluice_image
from localcluster.store import ClusterStore
from localstore.accounts import ADMIN
from support.cluster.gate import Gate
from support.cluster.outside import EXCLUDED
from support.cluster.turns import one_at_a_time
from support.gitops.kstatus import program
from support.tenants.renting import given_back, rented
from support.tenants.tenant import SMALL_EVENTS, SOURCE_EVENTS, Tenant
from support.until import PATIENTLY, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster
    from localstore import ForeignClient

SEGMENTS = 4
EXECUTOR_NAMESPACE = "sluice-test-executors"
SMALL: dict[str, Any] = {
    "requests": {"cpu": "100m", "memory": "512Mi"},
    "limits": {"memory": "2Gi"},
}
VALUES: dict[str, Any] = {
    "watch": {"excludedNamespaces": [EXCLUDED]},
    "operator": {"resyncSeconds": 5, "replicas": 1},  # tests read from the only pod, or kill it
    "driver": {"namespaces": [EXECUTOR_NAMESPACE]},
    "profiles": {
        "default": {
            "driver": {"resources": SMALL, "scratchSize": "200Mi"},
            "executor": {"resources": SMALL, "scratchSize": "200Mi"},
            "query": {"resources": SMALL, "scratchSize": "200Mi"},
        },
        "no-image": {"image": "localhost/there-is-no-such-image:1"},
    },
}


class Source(NamedTuple):
    """A stream that a foreign client has written.

    Attributes:
        name: `scope/stream`.
        events: number of events.
        digest: digest of the events, by the foreign reader.
        hashes: hashes of its segments, by the stand-alone script.
    """

    name: str
    events: int
    digest: str
    hashes: list[str]


@pytest.fixture(scope="session")
def store(kube: Cluster, announce: Callable[[str], Any]) -> ClusterStore:
    """Return the Pravega of the cluster."""
    found = ClusterStore(kube)
    with announce("Pravega in the cluster"):
        found.up(lambda _: None)
    return found


@pytest.fixture(scope="session")
def java(store: ClusterStore) -> Iterator[ForeignClient]:
    """Yield the official Java client, inside the store's pod."""
    with store.foreign() as client:
        yield client


@pytest.fixture(scope="session")
def guarded(kube: Cluster, announce: Callable[[str], Any]) -> Iterator[ClusterStore]:
    """Yield another Pravega, with logins."""
    found = ClusterStore(kube, auth=True, heap="1g")
    with announce("Pravega with logins"):
        found.up(lambda _: None)
    yield found
    found.down()


@pytest.fixture(scope="session")
def guarded_java(guarded: ClusterStore) -> Iterator[ForeignClient]:
    """Yield the official Java client of the Pravega with logins."""
    with guarded.foreign(heap="512m") as client:
        yield client


@pytest.fixture(scope="session")
def release(kube: Cluster, announce: Callable[[str], Any]) -> Callable[..., None]:
    """Return a function that installs Sluice with the tests' values and further ones."""
    with announce("the images of Sluice"):
        image = kube.provide(sluice_image(), say=lambda _: None)
        queries = {"image": kube.provide(query_image(), say=lambda _: None)}

    def upgrade(**values: Any) -> None:
        install(kube, image, values={**VALUES, "queries": queries, **values}, say=lambda _: None)

    return upgrade


@pytest.fixture(scope="session", autouse=True)
def _kstatus(announce: Callable[[str], Any]) -> None:
    """Compile kstatus before any test's copy runs. Otherwise the copy would end meanwhile."""
    with announce("kstatus"):
        program()


@pytest.fixture(scope="session")
def sluice(kube: Cluster, release: Callable[..., None], announce: Callable[[str], Any]) -> Operator:
    """Return the operator of Sluice, installed by Helm."""
    restrict(kube, EXECUTOR_NAMESPACE)
    with announce("Sluice by Helm"), one_at_a_time("helm"):
        release()
    return Operator(kube)


class Operator:
    """The operator's Deployment and pods."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @property
    def image(self) -> str:
        """The image that the operator runs."""
        path = "jsonpath={.spec.template.spec.containers[0].image}"
        return self.run("get", "deployment/sluice-operator", "--output", path)

    @property
    def query_image(self) -> str:
        """The image of queries that the operator offers."""
        path = "jsonpath={.data.config\\.yaml}"
        text = self.run("get", "configmap/sluice-operator", "--output", path)
        image: str = yaml.safe_load(text)["queries"]["image"]
        return image

    def run(self, *words: str, timeout: float = 150) -> str:
        """Run kubectl in the operator's namespace, and return its output."""
        return self.cluster.kubectl(f"--namespace={NAMESPACE}", *words, timeout=timeout)

    def kill(self) -> None:
        """Kill the operator's pod at once. The Deployment makes another one."""
        selector = "--selector=app.kubernetes.io/component=operator"
        self.run("delete", "pods", selector, "--force", "--grace-period=0")

    def crash(self) -> None:
        """Kill the process in the operator's pod with SIGKILL. Wait until another one runs."""
        before = self._starts()
        with suppress(LocalClusterError):  # the kill ends the shell too
            self.run("exec", "deployment/sluice-operator", "--", "sh", "-c", "kill -9 -1")
        until("the operator is started again", lambda: self._starts() != before)
        self.ready()

    def _starts(self) -> list[str]:
        """Return the IDs of the containers of the operator's pods, which change with each start."""
        path = "jsonpath={.items[*].status.containerStatuses[*].containerID}"
        selector = "--selector=app.kubernetes.io/component=operator"
        return self.run("get", "pods", selector, f"--output={path}").split()

    @property
    def leader(self) -> str:
        """The name of the pod whose operator works; empty if none does."""
        path = "jsonpath={.spec.holderIdentity}"
        found = self.run("get", "lease", "sluice-operator", "--output", path)
        return found.partition("_")[0]

    def scale(self, replicas: int) -> None:
        """Stop the operator, or start it again, and wait until that is done."""
        self.run("scale", "deployment/sluice-operator", f"--replicas={replicas}")
        if replicas:
            self.ready()
        else:
            selector = "--selector=app.kubernetes.io/component=operator"
            self.run("wait", "pods", selector, "--for=delete", PATIENTLY)

    def ready(self) -> None:
        """Wait until the operator is ready."""
        self.run("rollout", "status", "deployment/sluice-operator", PATIENTLY)


@pytest.fixture(scope="session")
def landlord(kube: Cluster, sluice: Operator, store: ClusterStore) -> Iterator[None]:
    """At the end, wait until all namespaces of the tests are gone."""
    assert sluice
    assert store
    yield
    given_back(kube)


@pytest.fixture
def tenant(
    kube: Cluster, landlord: None, store: ClusterStore, say: Callable[[str], None]
) -> Iterator[Tenant]:
    """Yield a namespace that admits only restricted pods, with a StreamStore `store`."""
    with rented(kube, store, say, f"sluice-test-{uuid4().hex[:8]}") as found:
        found.apply(found.store_resource())
        yield found


@pytest.fixture(scope="session")
def gate(kube: Cluster, sluice: Operator, guarded: ClusterStore) -> Iterator[Gate]:
    """Yield a gate before the store with logins. `locked` opens it after each test."""
    with Gate(kube, guarded, sluice.image) as found:
        yield found


@pytest.fixture
def locked(
    kube: Cluster, landlord: None, guarded: ClusterStore, gate: Gate, say: Callable[[str], None]
) -> Iterator[Tenant]:
    """Yield a namespace with a StreamStore `store` behind the gate, and its Secret `login`."""
    with rented(kube, guarded, say, f"sluice-test-{uuid4().hex[:8]}") as found:
        found.apply(
            found.login_resource(ADMIN),
            found.store_resource(uri=gate.uri, secret="login"),  # noqa: S106 - its name
        )
        try:
            yield found
        finally:
            gate.open()


@pytest.fixture
def locked_scope(guarded_java: ForeignClient, locked: Tenant) -> str:
    """Return a new scope of the store with logins."""
    guarded_java.create_scope(locked.namespace)
    return locked.namespace


@pytest.fixture
def executor_tenant(
    kube: Cluster, sluice: Operator, store: ClusterStore, say: Callable[[str], None]
) -> Iterator[Tenant]:
    """Yield the namespace whose drivers may make executors."""
    assert sluice
    found = Tenant(kube, EXECUTOR_NAMESPACE, store, say)
    found.apply(found.store_resource())
    yield found
    found.run("delete", "scopy,sst", "--all", PATIENTLY)


@pytest.fixture
def scope(java: ForeignClient, tenant: Tenant) -> str:
    """Return a new scope of the store for a test's targets."""
    java.create_scope(tenant.namespace)
    return tenant.namespace


@pytest.fixture(scope="session")
def source(store: ClusterStore, java: ForeignClient, kube: Cluster) -> Source:
    """Return a stream of 25 MB, for tests that disturb a copy midway."""
    return _written(store, java, kube, "big", SOURCE_EVENTS)


@pytest.fixture(scope="session")
def small(store: ClusterStore, java: ForeignClient, kube: Cluster) -> Source:
    """Return a stream of 4 MB, for all other tests: their drivers start no Spark."""
    return _written(store, java, kube, "small", SMALL_EVENTS)


def _written(
    store: ClusterStore, java: ForeignClient, kube: Cluster, name: str, events: int
) -> Source:
    """Write a stream unless it exists. A store may stay from one run to the next."""
    scope, stream = "source", f"{name}-{events}"
    with one_at_a_time("source"):
        java.create_scope(scope)
        if java.create(scope, stream, segments=SEGMENTS):
            java.write(scope, stream, events=events, keys=1000)
    read = java.read(scope, stream)
    assert read.events == events
    tenant = Tenant(kube, "default", store, print)
    hashes = [report["sha256"] for report in tenant.hashes(f"{scope}/{stream}", segments=SEGMENTS)]
    return Source(f"{scope}/{stream}", events, read.digest, hashes)


@pytest.fixture
def whole(java: ForeignClient, tenant: Tenant) -> Callable[..., None]:
    """Return a function that compares a target with its source, by foreign programs.

    Any reader reads equal segments equally. So the official reader reads only on request, once for
    each way of publishing.
    """

    def check(target: str, source: Source, *, read: bool = False) -> None:
        reports = tenant.hashes(target, segments=SEGMENTS)
        assert source.hashes == [report["sha256"] for report in reports]
        if read:
            found = java.read(*target.split("/"))
            assert found.clean, found
            assert (source.events, source.digest) == (found.events, found.digest)

    return check
