"""A copy that follows its source, on real pods, from `kubectl apply` to its cutover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from support.gitops.kstatus import kstatus
from support.until import PATIENTLY

if TYPE_CHECKING:
    from e2e.operator.conftest import Operator
    from localstore import ForeignClient
    from support.tenants.tenant import Tenant

EVENTS, KEYS, SEGMENTS = 2000, 50, 2
EVICTION = """{{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {{"name": "{}"}}}}"""


def followed(tenant: Tenant, name: str) -> dict[str, Any]:
    """Return the part of a copy's status about following."""
    found: dict[str, Any] = tenant.status(name).get("follow") or {}
    return found


def until_followed(tenant: Tenant, name: str, stream: str) -> None:
    """Wait until the status says that the target has all bytes of the source."""
    size = sum(one["length"] for one in tenant.hashes(stream, segments=SEGMENTS))
    tenant.until(
        f"{name} has {size} bytes",
        lambda: (found := followed(tenant, name)).get("bytes") == size and not found["lagBytes"],
        about=name,
    )


@pytest.mark.exhaustive
@pytest.mark.alone
def test_a_copy_follows_through_an_eviction_and_is_cut_over_without_an_operator(
    tenant: Tenant, java: ForeignClient, sluice: Operator
) -> None:
    """Kubernetes replaces an evicted pod, which is no failure. Each event arrives once."""
    scope = f"live-{uuid4().hex[:8]}"
    source, target = f"{scope}/orders", f"{scope}/copy"
    java.create(scope, "orders", segments=SEGMENTS)
    java.write(scope, "orders", events=EVENTS, keys=KEYS)
    tenant.apply(tenant.copy_resource("live", source, target, mode="Continuous"))
    tenant.run("wait", "scopy/live", "--for=condition=Ready", PATIENTLY)
    assert tenant.reason("live") == "Following"
    body = tenant.get("scopy", "live")
    assert body is not None
    assert kstatus([body]) == {"StreamCopy/live": "Current"}
    (pod,) = tenant.pods()
    java.write(scope, "orders", events=EVENTS, keys=KEYS, first=EVENTS)
    until_followed(tenant, "live", source)
    name = pod["metadata"]["name"]
    path = f"/api/v1/namespaces/{tenant.namespace}/pods/{name}/eviction"
    tenant.cluster.kubectl("create", "--raw", path, "--filename=-", stdin=EVICTION.format(name))
    tenant.until(
        "another pod follows", lambda: followed(tenant, "live").get("restarts") == 1, about="live"
    )
    (job,) = tenant.get_all("jobs")
    assert not job["status"].get("failed"), job["status"]
    java.write(scope, "orders", events=EVENTS, keys=KEYS, first=2 * EVENTS)
    until_followed(tenant, "live", source)
    tenant.patch("scopy", "live", {"spec": {"cutover": "Drain"}})
    tenant.until_reason("live", "Draining", "Proving")
    sluice.scale(0)
    try:
        tenant.until(
            "the follower is done without the operator",
            lambda: any(job["status"].get("succeeded") for job in tenant.get_all("jobs")),
        )
    finally:
        sluice.scale(1)
    status = tenant.until_ready("live")
    assert tenant.reason("live") == "CutOver"
    assert status["cutover"]["state"] == "Done"
    assert status["attempts"] == 1
    assert status["verification"]["events"] == 3 * EVENTS
    assert [
        [one["sha256"] for one in tenant.hashes(stream, segments=SEGMENTS)]
        for stream in (source, target)
    ] == [[one["sha256"] for one in tenant.hashes(source, segments=SEGMENTS)]] * 2
    assert java.read(scope, "copy").events == 3 * EVENTS
    tenant.until_tidied("live")
