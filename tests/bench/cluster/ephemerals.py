"""EphemeralStreams in a cluster: the deletion of 200 with their owner, and the cost of 2,000."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from uuid import uuid4

from bench.cluster import lives
from bench.cluster.lives import DELETED, GONE, READY
from bench.cluster.site import new_tenant
from bench.cluster.watching import follow
from bench.model import BenchError, Goal, Measurement
from localcluster.release import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.cluster.lives import Samples
    from bench.cluster.site import Site
    from support.tenants.tenant import Tenant

    Say = Callable[[str], None]

DELETE_KEY: Final = "ephemeral_delete_p99_s"
JAVA_KEY: Final = "ephemeral_delete_vs_java"
MANY_KEY: Final = "ephemeral_2000_ready_s"
MEMORY_KEY: Final = "ephemeral_2000_memory_MB"
API_KEY: Final = "ephemeral_2000_api_calls"
STORE_KEY: Final = "ephemeral_2000_store_calls"
KEYS: Final = (DELETE_KEY, JAVA_KEY, MANY_KEY, MEMORY_KEY, API_KEY, STORE_KEY)

FEW: Final = 200
MANY: Final = 2000
RUNS: Final = 3

_OPERATOR: Final = "deployment/sluice-operator"
_METRICS: Final = f"/api/v1/namespaces/{NAMESPACE}/services/sluice-metrics:metrics/proxy/metrics"
_PATIENCE: Final = 300.0
_BATCH: Final = 500
"""Resources that one kubectl makes. More would be slow: kubectl limits itself to 50 calls/s."""


class _Deletion(NamedTuple):
    """One run: seconds until 99 of 100 were gone, by Sluice and by Java, and Sluice's phases."""

    ours: float
    theirs: float
    phases: dict[str, float]


def measure_deletions(site: Site, say: Say) -> list[Measurement]:
    """Delete the owner of 200 resources, and let the Java client delete 200 streams of its own.

    Args:
        site: the cluster to measure in.
        say: callback for progress messages.

    Raises:
        BenchError: streams are not made or not deleted in time, or some are left.
    """
    name = f"sluice-bench-{uuid4().hex[:8]}"
    with new_tenant(site, name, say) as tenant, _scope(site, name):
        found = [_delete_few(site, tenant, f"r{run}", say) for run in range(RUNS + 1)][1:]
    phases = {part: median(run.phases[part] for run in found) for part in found[0].phases}
    ours = tuple(run.ours for run in found)
    theirs = tuple(run.theirs for run in found)
    return [
        Measurement(DELETE_KEY, ours, Goal("<", 5), phases),
        Measurement(JAVA_KEY, theirs, unit="", base=ours),
    ]


def _delete_few(site: Site, tenant: Tenant, run: str, say: Say) -> _Deletion:
    scope = tenant.namespace
    with _Watched(site, scope) as watched:
        _make(site, tenant, run, FEW)
        watched.wait(READY, FEW)
        before, since = _metrics(site), time.time()
        tenant.run("delete", "deployment", run, "--cascade=background")
        watched.wait(GONE, FEW)
        seen = watched.known
    grown = lives.growth(before, _metrics(site))
    log = site.cluster.kubectl(
        f"--namespace={NAMESPACE}",
        "logs",
        _OPERATOR,
        f"--since={int(time.time() - since) + 10}s",
        "--tail=-1",
    )
    found = lives.lives(seen, lives.logged(log))
    if left := site.java.streams(scope):
        raise BenchError(f"streams are left: {left[:5]}")
    ours = lives.percentile((one[GONE] - one[DELETED] for one in seen.values()), 0.99)
    site.java.create_many(scope, "theirs-", FEW, threads=FEW)
    theirs = lives.percentile(site.java.delete_many(scope, "theirs-", FEW, threads=FEW), 0.99)
    whole = max(one[GONE] for one in seen.values()) - since
    say(
        f"{FEW} of {FEW} gone: 99 of 100 within {ours:.2f} s, all {whole:.2f} s after the owner; "
        f"the Java client's within {theirs:.2f} s"
    )
    return _Deletion(ours, theirs, lives.release_phases(found, grown))


def measure_many(site: Site, say: Say) -> list[Measurement]:
    """Make 2,000 resources and delete them.

    Raises:
        BenchError: resources are not made or not deleted in time, or streams are left.
    """
    name = f"sluice-bench-{uuid4().hex[:8]}"
    with new_tenant(site, name, say) as tenant, _scope(site, name):
        with _Watched(site, name) as watched:
            before, begun = _metrics(site), time.time()
            _make(site, tenant, "many", MANY)
            made = time.time()
            watched.wait(READY, MANY)
            ready = time.time() - begun
            after = _metrics(site)
            say(f"{MANY} made in {made - begun:.0f} s, Ready after {ready:.0f} s")
            memory = _peak_memory(site)
            api, store = lives.calls(lives.growth(before, after), MANY)
            begun = time.time()
            tenant.run("delete", "deployment", "many", "--cascade=background")
            watched.wait(GONE, MANY)
            gone = time.time() - begun
            say(f"gone {gone:.0f} s after the owner")
        freed_api, freed_store = lives.calls(lives.growth(after, _metrics(site)), MANY)
        if left := site.java.streams(name):
            raise BenchError(f"streams are left: {left[:5]}")
    return [
        Measurement(MANY_KEY, (ready,), counts={"gone, seconds after the owner": gone}),
        Measurement(MEMORY_KEY, (memory / 1e6,), unit="MB"),
        Measurement(API_KEY, (sum(api.values()),), unit="", counts=_both(api, freed_api)),
        Measurement(STORE_KEY, (sum(store.values()),), unit="", counts=_both(store, freed_store)),
    ]


def _both(made: dict[str, float], freed: dict[str, float]) -> dict[str, float]:
    """Return calls per resource, until it is ready and until it is gone."""
    return {f"until Ready: {call}": number for call, number in made.items()} | {
        f"until gone: {call}": number for call, number in freed.items()
    }


@contextmanager
def _scope(site: Site, name: str) -> Iterator[None]:
    """Create a scope for the block."""
    site.java.create_scope(name)
    try:
        yield
    finally:
        site.java.delete_scope(name)


def _make(site: Site, tenant: Tenant, owner: str, count: int) -> None:
    """Make an owner without pods, and EphemeralStreams that it owns."""
    tenant.apply(_workload(owner))
    bodies = [_resource(tenant, owner, number) for number in range(count)]
    errors: list[Exception] = []

    def create(some: list[dict[str, Any]]) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": some})
        try:
            tenant.run("create", "--filename=-", stdin=text, timeout=_PATIENCE)
        except Exception as error:  # noqa: BLE001 - it is raised below
            errors.append(error)

    threads = [
        threading.Thread(target=create, args=(bodies[first : first + _BATCH],))
        for first in range(0, count, _BATCH)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise BenchError(f"they were not made: {errors[0]}")


def _resource(tenant: Tenant, owner: str, number: int) -> dict[str, Any]:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "EphemeralStream",
        "metadata": {"name": f"{owner}-{number:04}"},
        "spec": {
            "storeRef": {"name": "store"},
            "scope": tenant.namespace,
            "stream": f"{owner}-{number:04}",
            "owners": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": owner}],
        },
    }


def _workload(name: str) -> dict[str, Any]:
    labels = {"app": name}
    containers = [{"name": "none", "image": "localhost/none"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


class _Watched:
    """A watch of EphemeralStreams, from the beginning of the block on."""

    def __init__(self, site: Site, namespace: str) -> None:
        path = f"/apis/sluice.dev/v1alpha1/namespaces/{namespace}/ephemeralstreams"
        self._look = partial(site.cluster.kubectl, "get", f"--raw={path}")
        self._following = follow(site.cluster, path, self._take)
        self._news = threading.Condition()
        self.known: dict[str, dict[str, float]] = {}

    def __enter__(self) -> Self:
        """Start the watch."""
        self._following.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the watch."""
        self._following.__exit__(None, None, None)

    def wait(self, moment: str, count: int) -> None:
        """Wait until `count` resources have reached a moment. Raise BenchError on a timeout."""
        begun = time.monotonic()
        with self._news:
            if not self._news.wait_for(lambda: self._count(moment) >= count, _PATIENCE):
                seen = self._count(moment)
                late = time.monotonic() - begun
                there = _reasons(json.loads(self._look())["items"])
                raise BenchError(
                    f"the watch showed {seen} of {count} that are {moment} after {late:.0f} s; "
                    f"the API server has {there}"
                )

    def _count(self, moment: str) -> int:
        return sum(moment in one for one in self.known.values())

    def _take(self, at: float, word: str, body: dict[str, Any]) -> None:
        with self._news:
            before = dict(self.known.get(body["metadata"]["name"], {}))
            lives.note(self.known, at, word, body)
            if self.known[body["metadata"]["name"]] != before:
                self._news.notify_all()


def _reasons(bodies: list[dict[str, Any]]) -> dict[str, int]:
    """Count resources by the reason of their Ready condition."""
    found = [
        {one["type"]: one["reason"] for one in body.get("status", {}).get("conditions", [])}
        for body in bodies
    ]
    return dict(Counter(reasons.get("Ready", "no status") for reasons in found))


def _metrics(site: Site) -> Samples:
    """Return the operator's metrics, as Prometheus gets them."""
    return lives.samples(site.cluster.kubectl("get", f"--raw={_METRICS}"))


def _peak_memory(site: Site) -> float:
    """Return the operator's peak memory in bytes, from the kernel's own high-water mark."""
    words = ("exec", _OPERATOR, "--", "sh", "-c", "grep -h VmHWM: /proc/[0-9]*/status")
    lines = site.cluster.kubectl(f"--namespace={NAMESPACE}", *words).splitlines()
    return max(int(line.split()[1]) for line in lines) * 1024.0  # the other processes are small
