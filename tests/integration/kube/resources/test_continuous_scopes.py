"""A scope that is followed, by an operator at a real API server and a real store.

Kubernetes' own Job controller replaces the follower's pods. These find no node, so the test runs
them (`support.cluster.kubelet`), and kills and stops their processes.
"""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from sluice.kube.api.names import UID_LABEL
from support.gitops.kstatus import kstatus
from support.store import scopes
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from localstore import ForeignClient, Standalone
    from support.cluster.kubelet import DriverPod
    from support.cluster.local_operator import LocalOperator
    from support.tenants.desk import Desk
    from support.tenants.tenant import Object, Tenant

pytestmark = pytest.mark.timeout(900)

EVENTS, KEYS = 300, 8
NAMES = ("carts", "clicks", "orders")


@pytest.fixture
def shop(foreign: ForeignClient, scope: str) -> str:
    """Return the name of a scope of three streams with events."""
    for name in NAMES:
        make(foreign, scope, name)
    return scope


def make(foreign: ForeignClient, scope: str, name: str) -> None:
    """Make a stream with events."""
    foreign.create(scope, name, segments=2)
    foreign.write(scope, name, events=EVENTS, keys=KEYS)


def write(foreign: ForeignClient, scope: str, *names: str, turn: int) -> None:
    """Write more events, the `turn`th time, to streams."""
    for name in names:
        foreign.write(scope, name, events=EVENTS, keys=KEYS, first=turn * EVENTS)


def follow(tenant: Tenant, name: str) -> Object:
    """Return the part of a copy's status about following."""
    found: Object = tenant.status(name).get("follow") or {}
    return found


def jobs(tenant: Tenant) -> list[Object]:
    """Return the Jobs of drivers."""
    return tenant.get_all("jobs", labelSelector="app.kubernetes.io/component=driver")


def size(store: Standalone, foreign: ForeignClient, scope: str, names: Sequence[str]) -> int:
    """Return the bytes of streams, by the stand-alone script."""
    found = scopes.seen(store.segment_store, foreign, scope, names)
    return sum(stream.bytes for stream in found.values())


def until_followed(tenant: Tenant, name: str, bytes_: int, streams: int) -> None:
    """Wait until the status says that this number of targets equal their sources."""
    tenant.until(
        f"{streams} streams of {name} have {bytes_} bytes",
        lambda: (
            (found := follow(tenant, name)).get("bytes") == bytes_
            and (found["lagBytes"], found["streams"]) == (0, streams)
        ),
        about=name,
    )


def published(tenant: Tenant, name: str) -> dict[str, str]:
    """Return the state of each stream, from the ConfigMaps that the status names."""
    found: list[Object] = []
    for ref in tenant.status(name).get("resultRefs") or []:
        body = tenant.get("configmap", ref["name"])
        assert body is not None
        found += json.loads(body["data"]["streams.json"])
    return {one["stream"]: one["state"] for one in found}


@pytest.mark.exhaustive
def test_a_scope_is_followed_through_a_killed_pod_and_a_cutover_without_an_operator(
    desk: Desk,
    local_operator: LocalOperator,
    foreign: ForeignClient,
    shop: str,
    standalone: Standalone,
) -> None:
    """One pod follows all streams, also a later one. The cutover needs no operator."""
    tenant, operator, target = desk.tenant.of_scopes, local_operator.operator, f"{shop}-live"
    spec: dict[str, Any] = {"mode": "Continuous", "lagObjectiveSeconds": 120}
    tenant.apply(tenant.scope_resource("live", shop, target, scope_policy="CreateIfAbsent", **spec))
    with desk.driver() as first:
        tenant.until_reason("live", "Following")
        (job,) = jobs(tenant)
        assert job["spec"]["backoffLimit"] == 6
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert container["resources"]["requests"] == {"cpu": "50m", "memory": "128Mi"}
        conditions = {c["type"]: c["status"] for c in tenant.status("live")["conditions"]}
        assert conditions == {"Ready": "True", "Verified": "True"}
        body = tenant.get("sccp", "live")
        assert body is not None
        assert kstatus([body]) == {"ScopeCopy/live": "Current"}
        row = tenant.run("get", "sccp", "live").splitlines()[-1]
        assert "3/3" in row
        assert "lag 0 B" in row
        make(foreign, shop, "late")
        write(foreign, shop, *NAMES, turn=1)
        first.process.kill()
        first.finish(60)
    every = (*NAMES, "late")
    with desk.driver() as second:
        until_followed(tenant, "live", size(standalone, foreign, shop, every), 4)
        assert (follow(tenant, "live")["restarts"], follow(tenant, "live")["joined"]) == (1, 1)
        tenant.until(
            "the stream that has joined is published",
            lambda: published(tenant, "live") == dict.fromkeys(every, "Followed"),
        )
        assert (len(jobs(tenant)), tenant.status("live")["attempts"]) == (1, 1)
        os.kill(second.process.pid, signal.SIGSTOP)
        write(foreign, shop, *NAMES, turn=2)
        tenant.patch("sccp", "live", {"spec": {"cutover": "SealAndDrain"}})
        tenant.until_reason("live", "Draining")
        tenant.until("the wish is written", lambda: "cutover=SealAndDrain" in operator.log())
        operator.kill()
        os.kill(second.process.pid, signal.SIGCONT)
        assert second.finish(240) == 0
    sources, targets = (
        scopes.seen(standalone.segment_store, foreign, where) for where in (shop, target)
    )
    assert all(stream.sealed for stream in sources.values())
    scopes.assert_equal(sources, targets)
    assert tenant.reason("live") == "Draining"
    operator.start()
    status = tenant.until_ready("live")
    assert tenant.reason("live") == "CutOver"
    assert status["cutover"]["state"] == "Done"
    assert status["streams"]["summary"] == "4/4"
    assert status["progress"]["events"] == 10 * EVENTS
    assert published(tenant, "live") == dict.fromkeys(every, "Copied")
    assert foreign.read(target, "orders").events == 3 * EVENTS
    tenant.until_tidied("live")


@pytest.mark.exhaustive
def test_streams_that_fail_or_go_are_named_and_the_others_are_followed_on(
    desk: Desk, foreign: ForeignClient, shop: str, standalone: Standalone
) -> None:
    """Failed or gone streams are named, and the copy stays ready. Its deletion keeps targets."""
    tenant, target = desk.tenant.of_scopes, f"{shop}-named"
    resource = tenant.scope_resource(
        "named", shop, target, scope_policy="CreateIfAbsent", mode="Continuous"
    )
    tenant.apply(resource)
    with desk.driver() as driver:
        tenant.until_reason("named", "Following")
        foreign.write(target, "carts", events=1)  # a forbidden write of another client
        write(foreign, shop, "carts", turn=1)
        tenant.until("carts has failed", lambda: failures(tenant).get("carts"))
        lose(driver, foreign, shop, "clicks")
        tenant.until("clicks is gone", lambda: failures(tenant).get("clicks"))
        assert failures(tenant) == {"carts": "TargetReplaced", "clicks": "SourceNotFound"}
        write(foreign, shop, "orders", turn=1)
        until_followed(tenant, "named", size(standalone, foreign, shop, ["orders"]), 1)
        told = follow(tenant, "named")
        assert (told["failed"], told["gone"]) == (1, 1)
        assert tenant.reason("named") == "Following"
        message = tenant.condition("named")["message"]
        assert "carts (TargetReplaced), clicks (SourceNotFound)" in message
        described = tenant.run("describe", "sccp", "named")
        assert "carts" in described
        tenant.run("delete", "sccp", "named", PATIENTLY)
    left = scopes.seen(standalone.segment_store, foreign, target)
    assert sorted(left) == list(NAMES)
    assert [stream.tags for stream in left.values()] == [()] * 3
    assert foreign.read(target, "orders").events == 2 * EVENTS
    assert foreign.read(target, "clicks").events == EVENTS


def failures(tenant: Tenant) -> dict[str, str]:
    """Return the streams that the copy names as failed, each with its reason."""
    found = tenant.status("named").get("failedStreams") or []
    return {one["stream"]: one["reason"] for one in found}


def lose(driver: DriverPod, foreign: ForeignClient, scope: str, name: str) -> None:
    """Delete a source while its follower cannot see the seal.

    A client must seal a stream before it can delete it. A follower that sees the seal would end the
    stream well.
    """
    os.kill(driver.process.pid, signal.SIGSTOP)
    try:
        assert foreign.delete(scope, name)
    finally:
        os.kill(driver.process.pid, signal.SIGCONT)


@pytest.mark.exhaustive
def test_a_scope_pauses_and_goes_on_with_streams_that_have_come_meanwhile(
    desk: Desk, foreign: ForeignClient, shop: str, standalone: Standalone
) -> None:
    """A suspended copy has no pod. It goes on at the exact byte, with streams made meanwhile."""
    tenant, target = desk.tenant.of_scopes, f"{shop}-paused"
    spec: dict[str, Any] = {"mode": "Continuous", "limits": {"bytesPerSecond": "2Mi"}}
    resource = tenant.scope_resource("paused", shop, target, scope_policy="CreateIfAbsent", **spec)
    tenant.apply(resource)
    with desk.driver():
        tenant.until_reason("paused", "Following")
        tenant.patch("sccp", "paused", {"spec": {"suspend": True}})
        tenant.until_reason("paused", "Suspended")
    uid = (tenant.get("sccp", "paused") or {})["metadata"]["uid"]
    assert tenant.get_all("pods", labelSelector=f"{UID_LABEL}={uid}") == []
    make(foreign, shop, "late")
    write(foreign, shop, *NAMES, turn=1)
    change = {"spec": {"suspend": False, "limits": None, "cutover": "Drain"}}
    tenant.patch("sccp", "paused", change)
    with desk.driver() as driver:
        assert driver.finish(300) == 0
    tenant.until_reason("paused", "CutOver")
    sources, targets = (
        scopes.seen(standalone.segment_store, foreign, where) for where in (shop, target)
    )
    scopes.assert_equal(sources, targets)
    assert not any(stream.sealed for stream in sources.values())
