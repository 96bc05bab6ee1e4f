"""A password that changes while the operator, a driver and a follower use it."""

from __future__ import annotations

import base64
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest

from localstore import Cluster, ForeignClient, User
from localstore.accounts import ADMIN
from support.tenants import texts
from support.wire.secured import segments_of
from support.witness.foreign_witness import assert_alike

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from support.cluster.kubelet import DriverPod
    from support.cluster.local_operator import LocalOperator
    from support.tenants.desk import Desk
    from support.tenants.tenant import Tenant

pytestmark = [pytest.mark.cluster, pytest.mark.exhaustive, pytest.mark.timeout(1200)]

EVENTS, SIZE = 12_000, 1000
ALL: Final = "prn::*,READ_UPDATE"
OLD: Final = User("mover", "0ld-marked-pass", ALL)
NEW: Final = User("other", "n3w-marked-pass", ALL)
BOTH: Final = 5.0
"""Seconds for which both accounts are valid."""


@pytest.fixture(scope="module")
def server(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Cluster]:
    """Yield a store with TLS and logins."""
    made = Cluster(users=[ADMIN, OLD, NEW], tls=True, token_seconds=20)
    with announce("a Pravega cluster with TLS and logins"):
        made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def witness(server: Cluster) -> Iterator[ForeignClient]:
    """Yield the store's own client, with an account of its own."""
    with ForeignClient(server.controller_uri, user=ADMIN, bundle=server.bundle) as client:
        yield client


def secured(tenant: Tenant, server: Cluster) -> None:
    """Make the StreamStore `secured`, with its login and its certificates."""
    body = tenant.store_resource("secured", uri=server.controller_uri, secret="login")  # noqa: S106
    body["spec"]["pravega"]["tls"] = {"caBundleRef": {"name": "trust"}}
    trust = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trust"}}
    data = {"ca.crt": server.bundle.read_text()}
    tenant.apply(tenant.login_resource(OLD), trust | {"data": data}, body)


def copy_of(tenant: Tenant, name: str, source: str, target: str, **spec: Any) -> None:
    """Apply a copy within that store."""
    body = tenant.copy_resource(name, source, target, **spec)
    for side in ("source", "target"):
        body["spec"][side]["storeRef"]["name"] = "secured"
    tenant.apply(body)


def of_spark(driver: DriverPod) -> dict[str, str]:
    """Return the texts of a driver and its processes, once Spark's JVM is one of them."""
    found = texts.of_driver(driver)
    words = (text for what, text in found.items() if what.startswith("cmdline"))
    return found if any("org.apache.spark" in text for text in words) else {}


def test_nobody_fails_and_nothing_tells_a_password(
    desk: Desk,
    local_operator: LocalOperator,
    server: Cluster,
    witness: ForeignClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new password causes no further attempt and no new follower, and is in no text.

    One copy uses Spark, so Spark's configuration is among the texts.
    """
    tenant, operator = desk.tenant, local_operator.operator
    secured(tenant, server)
    for stream in ("orders", "live"):
        witness.create("shop", stream, segments=2)
        witness.write("shop", stream, events=EVENTS, size=SIZE, keys=8)
    desk.until_reason("sst", "secured", "Reachable")
    copy_of(tenant, "live", "shop/live", "shop/followed", mode="Continuous")
    seen: dict[str, str] = {}
    with desk.driver() as follower:
        tenant.until_reason("live", "Following")
        copy_of(tenant, "copy", "shop/orders", "shop/copied", limits={"bytesPerSecond": "300Ki"})
        with desk.driver() as driver:
            tenant.until_staged("copy", least=5)
            both = {"username": NEW.name, "password": NEW.password}
            data = {key: base64.b64encode(value.encode()).decode() for key, value in both.items()}
            tenant.patch("secret", "login", {"data": data})
            threading.Event().wait(BOTH)
            server.admit([ADMIN, NEW])
            server.restart("controller")
            assert driver.process.poll() is None, "it was over before the password changed"
            for one in (driver, follower):
                one.refresh()
                seen |= texts.of_driver(one)
            tenant.patch("scopy", "copy", {"spec": {"limits": None}})
            assert driver.finish() == 0
            seen |= texts.of_driver(driver)
        status = tenant.until_ready("copy")
        assert [one["outcome"] for one in status["history"]] == ["Succeeded"]
        monkeypatch.setenv("SLUICE_SPARK_BYTES", "1")  # the limited copy was too slow for Spark
        copy_of(tenant, "quick", "shop/orders", "shop/quick")
        with desk.driver() as driver:
            seen |= tenant.until("Spark runs", lambda: of_spark(driver))
            assert driver.finish() == 0
        tenant.until_ready("quick")
        witness.write("shop", "live", events=EVENTS, size=SIZE, keys=8, first=EVENTS)
        tenant.patch("scopy", "live", {"spec": {"cutover": "SealAndDrain"}})
        assert follower.finish() == 0
        seen |= texts.of_driver(follower)
    status = tenant.until_ready("live")
    assert status["attempts"] == 1
    assert status.get("follow", {}).get("restarts", 0) == 0
    desk.until_reason("sst", "secured", "Reachable")
    for source, target in (("orders", "copied"), ("live", "followed")):
        before, after = (
            segments_of(server, witness, ("shop", stream)) for stream in (source, target)
        )
        assert_alike(before, after)
    seen |= texts.of_cluster(tenant, operator)
    assert texts.leaks(seen, OLD, NEW) == []
    for name in ("copy", "quick", "live"):
        tenant.until_tidied(name)
        tenant.run("delete", "scopy", name)
