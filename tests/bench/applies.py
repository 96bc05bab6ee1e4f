"""The operator in a cluster: from `kubectl apply` to the driver's pod, and to Ready."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from bench.model import Goal, Measurement, Source
from bench.timeline import APPLY, CREATED, READY, is_ready, medians, moments, phases
from bench.watching import Watching
from localcluster import ClusterStore, LocalClusterError, choose, store_image
from localcluster.release import NAME, NAMESPACE, install, restrict, sluice_image, uninstall
from localcluster.store_manifests import NAMESPACE as STORE_NAMESPACE
from support.tenant import Tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.timeline import Object
    from localcluster import Cluster
    from localstore import ForeignClient

DRIVER_KEY: Final = "apply_to_driver_p50_s"
READY_KEY: Final = "apply_to_ready_1MB_s"
KEYS: Final = (DRIVER_KEY, READY_KEY)
RUNS: Final = 10

_MEGABYTE: Final = Source.of_bytes(1e6, segments=4, size=992)
_DEFINITIONS: Final = ("streamcopies.sluice.dev", "streamstores.sluice.dev")
_PATIENCE: Final = 120.0


def measure_operator(say: Callable[[str], None]) -> list[Measurement]:
    """Apply copies one after the other, each to its end, on an operator that has done one before.

    Args:
        say: told what happens.

    Raises:
        LocalStoreError: the cluster, the store or the operator do not come up.
        BenchError: a copy does not become ready.
    """
    with ExitStack() as stack:
        cluster = stack.enter_context(_cluster(say))
        store = stack.enter_context(_store(cluster, say))
        stack.enter_context(_release(cluster, say))
        java = stack.enter_context(store.foreign())
        name = f"sluice-bench-{uuid4().hex[:8]}"
        tenant = stack.enter_context(_tenant(cluster, name, store, java, say))
        watching = stack.enter_context(Watching(cluster, name))
        found = [_apply(tenant, watching, number, say) for number in range(RUNS + 1)]
    return _measured(found[1:])  # the first one was to get warm


def _measured(runs: Sequence[dict[str, float]]) -> list[Measurement]:
    """The results, from the moments of each run."""
    split = [phases(run) for run in runs]
    begun = [run[CREATED] - run[APPLY] for run in runs]
    whole = [run[READY] - run[APPLY] for run in runs]
    return [
        Measurement(DRIVER_KEY, tuple(begun), Goal("<", 0.5)),
        Measurement(READY_KEY, tuple(whole), Goal("<", 15), medians(split)),
    ]


def _apply(
    tenant: Tenant, watching: Watching, number: int, say: Callable[[str], None]
) -> dict[str, float]:
    """Apply a copy, wait until it is ready, and look where its driver's seconds went."""
    name = f"copy-{number}"
    body = tenant.copy_resource(name, f"{tenant.namespace}/source", f"{tenant.namespace}/{name}")
    begin = time.time()
    tenant.apply(body)

    def ready(seen: Object) -> bool:
        mine = (seen["kind"], seen["metadata"]["name"]) == ("StreamCopy", name)
        return mine and is_ready(seen)

    watching.until(f"{name} is ready", ready, seconds=_PATIENCE)
    uid = tenant.run("get", "scopy", name, "--output=jsonpath={.metadata.uid}")
    selector = f"sluice.dev/copy-uid={uid},app.kubernetes.io/component=driver"
    log = tenant.run("logs", f"--selector={selector}", "--tail=-1")
    found = {APPLY: begin} | moments(name, watching.seen, log)
    what = f"{number} of {RUNS}" if number else "warm-up"
    say(
        f"{what}: driver's pod after {found[CREATED] - begin:.2f} s, "
        f"Ready after {found[READY] - begin:.2f} s"
    )
    return found


@contextmanager
def _cluster(say: Callable[[str], None]) -> Iterator[Cluster]:
    """A cluster that runs, and is stopped afterwards if it did not."""
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
def _store(cluster: Cluster, say: Callable[[str], None]) -> Iterator[ClusterStore]:
    """A Pravega in the cluster, removed afterwards unless it was there."""
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
def _release(cluster: Cluster, say: Callable[[str], None]) -> Iterator[None]:
    """Sluice with the chart's own values; then the release as it was before, or none."""
    image = cluster.provide(sluice_image(), say=say)
    words = ("--namespace", NAMESPACE, "--output=json")
    before = json.loads(cluster.helm("list", *words, f"--filter=^{NAME}$"))
    missing = [name for name in _DEFINITIONS if not _there(cluster, "crd", name)]
    with _namespace(cluster, NAMESPACE):
        install(cluster, image, say=say)
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
def _tenant(
    cluster: Cluster,
    name: str,
    store: ClusterStore,
    java: ForeignClient,
    say: Callable[[str], None],
) -> Iterator[Tenant]:
    """A namespace and a scope of that name with a source in it; both go, with all in them."""
    with _namespace(cluster, name):
        restrict(cluster, name)
        tenant = Tenant(cluster, name, store, say)
        tenant.apply(tenant.store_resource())
        tenant.run("wait", "sst/store", "--for=condition=Ready", "--timeout=60s", timeout=70)
        java.create_scope(name)
        java.create(name, "source", segments=_MEGABYTE.segments)
        java.write(name, "source", events=_MEGABYTE.events, size=_MEGABYTE.size, keys=100)
        say(f"wrote {_MEGABYTE}")
        try:
            yield tenant
        finally:
            say("removing copies and streams")
            tenant.run("delete", "scopy", "--all", "--timeout=100s", timeout=110)
            for stream in ("source", *(f"copy-{number}" for number in range(RUNS + 1))):
                java.create(name, stream)  # if a copy never came to make it
                java.seal(name, stream)
                java.delete(name, stream)
            java.delete_scope(name)


@contextmanager
def _namespace(cluster: Cluster, name: str) -> Iterator[None]:
    """A block after which a namespace is gone that was not there before."""
    was_there = _there(cluster, "namespace", name)
    try:
        yield
    finally:
        if not was_there:
            words = ("delete", "namespace", name, "--ignore-not-found", "--timeout=100s")
            cluster.kubectl(*words, timeout=110)


def _there(cluster: Cluster, kind: str, name: str) -> bool:
    return bool(cluster.kubectl("get", kind, name, "--ignore-not-found"))
