"""The site of measurements of the operator: a cluster with Pravega and Sluice, left as it was."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from localcluster import ClusterStore, LocalClusterError, choose, store_image
from localcluster.release import NAME, NAMESPACE, install, restrict, sluice_image, uninstall
from localcluster.store_manifests import NAMESPACE as STORE_NAMESPACE
from support.tenants.tenant import Tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster
    from localstore import ForeignClient

    Say = Callable[[str], None]

_DEFINITIONS: Final = (
    "ephemeralstreams.sluice.dev",
    "scopecopies.sluice.dev",
    "streamcopies.sluice.dev",
    "streamstores.sluice.dev",
)


class Site(NamedTuple):
    """A cluster, the store in it, and the store's official client."""

    cluster: Cluster
    store: ClusterStore
    java: ForeignClient


@contextmanager
def operator_site(say: Say) -> Iterator[Site]:
    """Provide Sluice with one replica, and a store. Remove what was missing before.

    Raises:
        LocalStoreError: the cluster, the store or the operator does not start.
    """
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(say))
        store = stack.enter_context(_store(cluster, say))
        stack.enter_context(_release(cluster, say))
        yield Site(cluster, store, stack.enter_context(store.foreign()))


@contextmanager
def new_tenant(site: Site, name: str, say: Say) -> Iterator[Tenant]:
    """Provide a namespace with a ready StreamStore."""
    with _namespace(site.cluster, name):
        restrict(site.cluster, name)
        tenant = Tenant(site.cluster, name, site.store, say)
        tenant.apply(tenant.store_resource())
        tenant.run("wait", "sst/store", "--for=condition=Ready", "--timeout=60s", timeout=70)
        yield tenant


@contextmanager
def running_cluster(say: Say) -> Iterator[Cluster]:
    """Provide a running cluster. Stop it afterwards if it did not run before."""
    cluster = choose()
    try:
        cluster.status()
    except LocalClusterError:
        cluster.up(say)
        try:
            yield cluster
        finally:
            cluster.down(say)
    else:
        say(f"{cluster.what} runs already")
        yield cluster


@contextmanager
def _store(cluster: Cluster, say: Say) -> Iterator[ClusterStore]:
    """Provide a Pravega in the cluster. Remove it afterwards unless it was there before."""
    image = cluster.provide(store_image(), say=say)
    say(f"the store's image: {image}")
    store = ClusterStore(cluster)
    words = (f"--namespace={STORE_NAMESPACE}", "get", "deployment", store.name)
    with _namespace(cluster, STORE_NAMESPACE):
        was_there = bool(cluster.kubectl(*words, "--ignore-not-found"))
        store.up(say)
        try:
            yield store
        finally:
            if not was_there:
                store.down()


@contextmanager
def _release(cluster: Cluster, say: Say) -> Iterator[None]:
    """Install Sluice with the chart's values, but one replica, whose log and memory are read.

    Restore the previous release afterwards.
    """
    image = cluster.provide(sluice_image(), say=say)
    words = ("--namespace", NAMESPACE, "--output=json")
    before = json.loads(cluster.helm("list", *words, f"--filter=^{NAME}$"))
    missing = [name for name in _DEFINITIONS if not _there(cluster, "crd", name)]
    with _namespace(cluster, NAMESPACE):
        install(cluster, image, values={"operator": {"replicas": 1}}, say=say)
        try:
            yield
        finally:
            if before:
                revision = str(before[0]["revision"])
                say(f"rolling Sluice back to revision {revision}")
                cluster.helm("rollback", NAME, revision, f"--namespace={NAMESPACE}", "--wait")
            else:
                say("uninstalling Sluice")
                uninstall(cluster)
            for name in missing:
                cluster.kubectl("delete", "crd", name, "--ignore-not-found")


@contextmanager
def _namespace(cluster: Cluster, name: str) -> Iterator[None]:
    """Delete a namespace after the block if it did not exist before."""
    was_there = _there(cluster, "namespace", name)
    try:
        yield
    finally:
        if not was_there:
            words = ("delete", "namespace", name, "--ignore-not-found", "--timeout=100s")
            cluster.kubectl(*words, timeout=110)


def _there(cluster: Cluster, kind: str, name: str) -> bool:
    return bool(cluster.kubectl("get", kind, name, "--ignore-not-found"))
