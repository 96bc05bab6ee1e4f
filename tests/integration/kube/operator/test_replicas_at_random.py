"""Two replicas of the operator under random faults, which do nothing twice."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import segment_hash
from support.cluster.job_audit import jobs_audited
from support.cluster.kubelet import PROFILES
from support.cluster.node import Node
from support.cluster.outside import OUTSIDE, nobody_else
from support.cluster.replicas import Replicas, cut_off, frozen, killed, replicas, stopped
from support.tenants.renting import rented
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from localcluster import Cluster
    from localstore import ForeignClient, Standalone
    from support.cluster.replicas import Replica
    from support.tenants.tenant import Object, Tenant

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(5400)]

ROUNDS, COPIES, FOLLOWERS = 50, 20, 5
"""Each round makes two EphemeralStreams, and most of them begin a copy."""
EVENTS, SLOW = 2000, {"bytesPerSecond": "20Ki"}
AWAY_SECONDS = 600.0


@pytest.fixture
def tenant(
    kube: Cluster, definitions: list[str], standalone: Standalone, tmp_path: Path
) -> Iterator[Tenant]:
    """Yield a namespace with a StreamStore, and a node that runs its pods."""
    assert definitions
    name = f"{OUTSIDE}{tmp_path.name.replace('_', '-')[:40].strip('-')}"
    pods = tmp_path / "pods"
    pods.mkdir()
    with nobody_else(kube), rented(kube, None, print, name) as found:
        found.apply(found.store_resource(uri=standalone.controller_uri))
        with Node(found, pods):
            yield found
            # The replicas are gone by then, so no operator removes the finalizers.


@pytest.fixture
def pair(kube: Cluster, tenant: Tenant, tmp_path: Path) -> Iterator[Replicas]:
    """Yield two replicas. In the end, let them delete all resources."""
    with replicas(kube, tmp_path, tenant.namespace, PROFILES) as made:
        yield made
        tenant.run("delete", "eps,scopy,sst", "--all", timeout=600)


def ephemeral(name: str, scope: str) -> Object:
    """Return an EphemeralStream with a stream of its name."""
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "EphemeralStream",
        "metadata": {"name": name},
        "spec": {"storeRef": {"name": "store"}, "scope": scope, "stream": name},
    }


def ready(tenant: Tenant, kind: str, name: str) -> float:
    """Wait until a resource is ready, and return the Unix time of that in seconds."""
    tenant.until(
        f"{name} is ready",
        lambda: tenant.condition(name, resource=kind).get("status") == "True",
    )
    since = tenant.condition(name, resource=kind)["lastTransitionTime"]
    return datetime.fromisoformat(since).astimezone(UTC).timestamp()


def hashes(store: Standalone, stream: str) -> tuple[int, str]:
    """Return length and hash of a stream of one segment, by the stand-alone script."""
    scope, _, short = stream.partition("/")
    found: dict[str, Any] = segment_hash.segment_report(*store.segment_store, scope, short, 0)
    return found["length"], found["sha256"]


def told(what: str, seconds: list[float]) -> str:
    """Return a line with the maximum and the median of some durations."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    return f"  {what}: median {ordered[len(ordered) // 2]:.1f} s, p99 {p99:.1f} s"


def test_nothing_is_twice_whatever_happens_to_the_replica_that_works(
    pair: Replicas,
    tenant: Tenant,
    standalone: Standalone,
    foreign: ForeignClient,
    scope: str,
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """Repeated kills, freezes, cuts and stops of the working replica repeat no work.

    Meanwhile copies and streams come and go. Each copy has one Job and is whole. Followers follow.
    The store has exactly the streams of the remaining resources.
    """
    seed = time.time_ns() % 1000
    random = Random(seed)  # noqa: S311 - no secret
    say(f"  seed {seed}")
    source = f"{scope}/source"
    foreign.create(scope, "source")
    foreign.write(scope, "source", events=EVENTS, keys=10)
    follows = [f"follow-{number}" for number in range(FOLLOWERS)]
    taken: list[float] = []
    worked: dict[str, float] = {}
    with jobs_audited(tenant, tmp_path) as audit:
        tenant.apply(
            *(
                tenant.copy_resource(name, source, f"{scope}/{name}", mode="Continuous")
                for name in follows
            )
        )
        for number in range(ROUNDS):
            new = [ephemeral(f"early-{number}", scope)]
            if number < COPIES:
                name = f"copy-{number}"
                new.append(tenant.copy_resource(name, source, f"{scope}/{name}", limits=SLOW))
            tenant.apply(*new)
            if number:
                tenant.run("delete", "eps", f"early-{number - 1}", "--wait=false")
            how, late = random.choice([killed, frozen, cut_off, stopped]), f"late-{number}"
            began = time.time()

            def disturbed(replica: Replica, how: Any, late: str) -> Callable[[], None]:
                mend: Callable[[], None] = how(replica)
                tenant.apply(ephemeral(late, scope))
                return mend

            seconds = pair.disturb(partial(disturbed, how=how, late=late))
            taken.append(seconds)
            worked[late] = began
            say(f"  {number}: {how.__name__}, taken over after {seconds:.1f} s")
        for number in range(min(COPIES, ROUNDS)):
            tenant.until_ready(f"copy-{number}")
        foreign.write(scope, "source", events=100, keys=10)
        whole = hashes(standalone, source)
        for name in follows:
            tenant.until(
                f"{name} follows", lambda name=name: hashes(standalone, f"{scope}/{name}") == whole
            )
        made = audit.made()
    say(told("taken over", taken))
    say(told("first work", [ready(tenant, "eps", late) - at for late, at in worked.items()]))
    last = f"early-{ROUNDS - 1}"
    ready(tenant, "eps", last)
    copies = [f"copy-{number}" for number in range(min(COPIES, ROUNDS))]
    length = hashes(standalone, f"{scope}/{copies[0]}")
    for name in copies:
        assert hashes(standalone, f"{scope}/{name}") == length
        assert tenant.status(name)["attempts"] == 1
    for name in [*copies, *follows]:
        body = tenant.get("scopy", name)
        assert body is not None
        assert len(made[body["metadata"]["uid"]]) == body["status"]["attempts"]
    expected = {"source", last, *worked, *copies, *follows}
    until(
        "the store has just these streams",
        lambda: {one for one in foreign.streams(scope) or () if one[0] != "_"} == expected,
    )


def test_an_api_server_that_is_away_for_ten_minutes_restarts_no_replica(
    pair: Replicas, tenant: Tenant, scope: str, say: Callable[[str], None]
) -> None:
    """Both replicas live through ten minutes without the API server. The same one goes on."""
    tenant.apply(ephemeral("before", scope))
    ready(tenant, "eps", "before")
    leader, other = pair.roles()
    pids = [leader.operator.pid, other.operator.pid]
    leader.link.go_away()
    other.link.go_away()
    tenant.apply(ephemeral("meanwhile", scope))
    tenant.run("delete", "eps", "before", "--wait=false")
    end = time.monotonic() + AWAY_SECONDS

    def over() -> bool:
        for one in (leader, other):
            assert one.operator.probe("livez") == (200, "ok\n")
        return time.monotonic() > end

    until("ten minutes are over", over, seconds=2 * AWAY_SECONDS, poll=5)
    began = time.time()
    leader.link.come_back()
    other.link.come_back()
    say(f"  goes on after {ready(tenant, 'eps', 'meanwhile') - began:.0f} s")
    tenant.until_gone("eps", "before")
    assert pair.roles() == (leader, other)
    assert [leader.operator.pid, other.operator.pid] == pids
