"""A scope of streams, no two alike, copied, moved and disturbed on real pods."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

import pytest

from sluice.core.scope.scope import StreamState
from sluice.kube.jobs.manifests import plan_of
from support.gitops.kstatus import kstatus
from support.store.scopes import NAMES, STREAMS, Seen, assert_equal, fill, seen
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from e2e.operator.conftest import Operator
    from localcluster.store import ClusterStore
    from localstore import ForeignClient
    from sluice.core.workloads.plan import Plan
    from support.tenants.tenant import Tenant

Object = dict[str, Any]

SLOW: Final = {"bytesPerSecond": "256Ki"}
"""Limits with which a copy takes over a minute, so that a new operator can start meanwhile."""
LITTLE: Final = "event-0"
"""A stream with one event. Large streams come first, so this one is among the last."""


class Shop(NamedTuple):
    """A scope, and the witnesses' view of it."""

    scope: str
    streams: Mapping[str, Seen]


@pytest.fixture(scope="module")
def shop(store: ClusterStore, java: ForeignClient) -> Shop:
    """Return a scope that no test changes."""
    scope = f"shop-{uuid4().hex[:8]}"
    fill(java, scope)
    return Shop(scope, seen(store.segment_store, java, scope, NAMES))


@pytest.fixture
def scopes(tenant: Tenant) -> Tenant:
    """Return a namespace whose copies are ScopeCopies."""
    return tenant.of_scopes


def copy_of(tenant: Tenant, name: str, shop: str, **spec: Any) -> Object:
    """Return a copy of a scope into a new scope that has the namespace's name."""
    return tenant.scope_resource(
        name, shop, tenant.namespace, scope_policy="CreateIfAbsent", **spec
    )


def results(tenant: Tenant, name: str) -> dict[str, Object]:
    """Return the result of each stream, from the ConfigMaps that the status names."""
    found: list[Object] = []
    for ref in tenant.status(name)["resultRefs"]:
        body = tenant.get("configmap", ref["name"])
        assert body is not None
        found += json.loads(body["data"]["streams.json"])
    return {one["stream"]: one for one in found}


def plan_for(tenant: Tenant, name: str) -> Plan:
    """Return the recorded plan of a copy."""
    plan = plan_of(tenant.get("configmap", tenant.status(name)["planRef"]["name"]) or {})
    assert plan is not None
    return plan


def until_copied(tenant: Tenant, name: str, *, least: int = 1) -> int:
    """Wait until some streams of a scope are copied, but not all. Return their number."""
    copied = tenant.until(
        f"{least} streams of {name} are copied",
        lambda: n if (n := tenant.status(name).get("streams", {}).get("copied", 0)) >= least else 0,
        about=name,
    )
    tenant.say(f"  {name}: {copied} streams copied")
    assert copied < len(NAMES) - 1, "too late to disturb"
    return copied


@pytest.mark.exhaustive
def test_scope_is_copied_and_exact(
    scopes: Tenant, store: ClusterStore, java: ForeignClient, shop: Shop
) -> None:
    """Copied streams are exact, and `kubectl get` shows their number.

    A copy that is applied again finds all targets whole, and starts no driver.
    """
    before = scopes.objects()
    copy = copy_of(scopes, "shop", shop.scope)
    scopes.apply(copy)
    status = scopes.until_ready("shop")
    plan = plan_for(scopes, "shop")
    assert_equal(shop.streams, seen(store.segment_store, java, scopes.namespace))
    row = scopes.run("get", "sccp", "shop").splitlines()[-1].split()
    assert row[:5] == ["shop", "True", "Succeeded", f"{len(NAMES)}/{len(NAMES)}", "100%"]
    assert (status["attempts"], status["run"]) == (1, 1)
    assert status["bounds"]["spreadMilliseconds"] < 60_000
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert conditions == {"Ready": "True", "Succeeded": "True", "Verified": "True"}
    found = results(scopes, "shop")
    assert sorted(found) == list(NAMES)
    assert {one["state"] for one in found.values()} == {StreamState.COPIED}
    assert all(re.fullmatch("[0-9a-f]{64}", one["digest"]) for one in found.values())
    resource = scopes.get("sccp", "shop") or {}
    assert kstatus([resource]) == {"ScopeCopy/shop": "Current"}
    scopes.until_tidied("shop")
    assert scopes.left_of(plan) == []

    scopes.run("delete", "sccp", "shop")
    scopes.until("the children are gone", lambda: scopes.objects() == before)
    scopes.apply(copy)
    assert scopes.until_ready("shop")["attempts"] == 0
    assert_equal(shop.streams, seen(store.segment_store, java, scopes.namespace))


@pytest.mark.exhaustive
def test_scope_is_planned_while_it_is_suspended(
    scopes: Tenant, store: ClusterStore, java: ForeignClient, shop: Shop
) -> None:
    """A suspended copy shows the plan of each stream before any byte moves. Then it copies."""
    scopes.apply(copy_of(scopes, "planned", shop.scope, suspend=True))
    scopes.until_reason("planned", "Suspended")
    found = scopes.until("the plan is published", lambda: results(scopes, "planned"))
    assert {name: one["bytes"] for name, one in found.items()} == {
        name: stream.bytes for name, stream in shop.streams.items()
    }
    assert {one["state"] for one in found.values()} == {StreamState.PLANNED}
    assert scopes.status("planned")["streams"]["summary"] == f"0/{len(NAMES)}"
    assert java.streams(scopes.namespace) is None
    assert scopes.get_all("jobs") == []
    scopes.patch("sccp", "planned", {"spec": {"suspend": False}})
    scopes.until_ready("planned")
    assert_equal(shop.streams, seen(store.segment_store, java, scopes.namespace))


@pytest.mark.exhaustive
def test_scope_is_moved(scopes: Tenant, store: ClusterStore, java: ForeignClient) -> None:
    """A moved scope is gone at the source, and the target equals it."""
    source = f"{scopes.namespace}-leaving"
    fill(java, source)
    before = seen(store.segment_store, java, source, NAMES)
    scopes.apply(copy_of(scopes, "moved", source, sourceOnComplete="Delete"))
    scopes.until_ready("moved")
    assert java.streams(source) is None
    assert_equal(before, seen(store.segment_store, java, scopes.namespace))
    scopes.until_tidied("moved")
    assert scopes.left_of(plan_for(scopes, "moved")) == []


@pytest.mark.exhaustive
def test_scope_copy_that_is_deleted_midway_leaves_nothing(
    scopes: Tenant, store: ClusterStore, java: ForeignClient, shop: Shop
) -> None:
    """A copy deleted midway leaves only whole targets, and no staging."""
    # Small streams are whole at once, and large ones not for a minute.
    scopes.apply(copy_of(scopes, "gone", shop.scope, limits=SLOW, parallelism=len(NAMES)))
    until_copied(scopes, "gone")
    plan = plan_for(scopes, "gone")
    assert scopes.left_of(plan) != []
    scopes.run("delete", "sccp", "gone", PATIENTLY)
    assert scopes.left_of(plan) == []
    left = seen(store.segment_store, java, scopes.namespace)
    assert 0 < len(left) < len(NAMES)
    assert_equal({name: shop.streams[name] for name in left}, left)


@pytest.mark.crash
def test_scope_copy_is_disturbed_and_loses_a_stream(
    scopes: Tenant, store: ClusterStore, java: ForeignClient, sluice: Operator
) -> None:
    """Despite killed operator and driver, only a deleted stream fails, and is named.

    Once it exists again, a request copies it, and changes no other stream.
    """
    source = f"{scopes.namespace}-losing"
    fill(java, source)
    scopes.apply(copy_of(scopes, "lost", source, limits=SLOW, parallelism=4))
    scopes.until("the copy runs", lambda: scopes.reason("lost") == "Copying", about="lost")
    java.delete(source, LITTLE)
    sluice.kill()
    until_copied(scopes, "lost")
    (pod,) = scopes.pods()
    scopes.run("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
    scopes.until("a second attempt", lambda: scopes.status("lost").get("attempts") == 2)
    scopes.patch("sccp", "lost", {"spec": {"limits": None}})
    said = scopes.until_reason("lost", "PartiallySucceeded")
    assert LITTLE in said["message"]
    status = scopes.status("lost")
    assert status["streams"] | {"leftOut": 0} == {
        "total": len(NAMES),
        "copied": len(NAMES) - 1,
        "failed": 1,
        "stopped": 0,
        "leftOut": 0,
        "summary": f"{len(NAMES) - 1}/{len(NAMES)}",
    }
    (failed,) = status["failedStreams"]
    assert (failed["stream"], failed["reason"]) == (LITTLE, "SourceNotFound")
    found = results(scopes, "lost")
    assert [name for name, one in found.items() if one["state"] != "Copied"] == [LITTLE]
    assert kstatus([scopes.get("sccp", "lost") or {}]) == {"ScopeCopy/lost": "Failed"}
    whole = seen(store.segment_store, java, scopes.namespace)
    others = [name for name in NAMES if name != LITTLE]
    assert_equal(seen(store.segment_store, java, source, others), whole)

    (sketch,) = (one for one in STREAMS if one.name == LITTLE)
    fill(java, source, [sketch])
    scopes.annotate("lost", "sluice.dev/requestedAt=again")
    again = scopes.until_ready("lost")
    assert (again["run"], again["attempts"]) == (2, status["attempts"] + 1)
    assert again["streams"]["summary"] == f"{len(NAMES)}/{len(NAMES)}"
    assert "failedStreams" not in again or again["failedStreams"] == []
    targets = seen(store.segment_store, java, scopes.namespace)
    assert_equal(seen(store.segment_store, java, source, NAMES), targets)
    assert {name: targets[name] for name in others} == whole
    scopes.until_tidied("lost")
    assert scopes.left_of(plan_for(scopes, "lost")) == []
