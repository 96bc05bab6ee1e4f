"""Kills midway, on real pods: no event is lost or repeated, and nothing is left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from support.tenants.tenant import SLOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator.conftest import Operator, Source
    from localstore import ForeignClient
    from support.tenants.tenant import Tenant

pytestmark = pytest.mark.crash

SEGMENTS = 4
WITH_EXECUTORS = {"bytesPerSecond": "16Mi"}
MANY_EVENTS = 2_000_000
"""216 MB, which take 13 s at this rate. At a lower rate, the driver moves all bytes itself."""


def test_driver_killed(
    tenant: Tenant, source: Source, scope: str, whole: Callable[..., None]
) -> None:
    """The next attempt goes on where the killed driver stopped."""
    tenant.apply(tenant.copy_resource("killed", source.name, f"{scope}/killed", limits=SLOW))
    staged = tenant.until_staged("killed")
    (pod,) = tenant.pods()
    tenant.run("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
    tenant.until("a second attempt", lambda: tenant.status("killed").get("attempts") == 2)
    assert tenant.percent("killed") >= staged
    status = tenant.until_ready("killed")
    whole(f"{scope}/killed", source, read=True)
    assert [entry["outcome"] for entry in status["history"]] == ["Failed", "Succeeded"]
    assert status["history"][0]["reason"] in {"DriverLost", "Interrupted"}
    tenant.until_tidied("killed")
    assert tenant.left_over(f"{scope}/killed", status["copyID"]) == []


def test_operator_killed(
    tenant: Tenant, source: Source, scope: str, sluice: Operator, whole: Callable[..., None]
) -> None:
    """The next operator adopts the running driver, and starts no other."""
    tenant.apply(tenant.copy_resource("adopted", source.name, f"{scope}/adopted", limits=SLOW))
    tenant.until_staged("adopted")
    sluice.kill()
    sluice.ready()
    status = tenant.until_ready("adopted")
    whole(f"{scope}/adopted", source)
    assert status["attempts"] == 1
    assert len(tenant.get_all("jobs")) == 1


@pytest.mark.alone
@pytest.mark.exhaustive
def test_operator_away_while_the_copy_is_completed(
    tenant: Tenant, source: Source, scope: str, sluice: Operator, whole: Callable[..., None]
) -> None:
    """An operator that was away finds the copy done, and reports it."""
    tenant.apply(tenant.copy_resource("alone", source.name, f"{scope}/alone", limits=SLOW))
    tenant.until_staged("alone")
    sluice.scale(0)
    try:
        tenant.until(
            "the driver is done without the operator",
            lambda: any(job["status"].get("succeeded") for job in tenant.get_all("jobs")),
        )
    finally:
        sluice.scale(1)
    status = tenant.until_ready("alone")
    whole(f"{scope}/alone", source)
    assert status["attempts"] == 1
    tenant.until_tidied("alone")


@pytest.mark.exhaustive
def test_driver_evicted(
    tenant: Tenant, source: Source, scope: str, whole: Callable[..., None]
) -> None:
    """A driver that the node evicts for its scratch space is replaced by another."""
    tenant.apply(
        tenant.copy_resource(
            "evicted", source.name, f"{scope}/evicted", limits={"bytesPerSecond": "700Ki"}
        )
    )
    tenant.until_staged("evicted", least=5)
    (pod,) = tenant.pods()
    fill = "import shutil; open('/tmp/full', 'wb').write(bytes(260 << 20))"
    tenant.run("exec", pod["metadata"]["name"], "--", "python", "-c", fill)
    tenant.until(
        "the eviction is written down",
        lambda: any(e.get("reason") for e in tenant.status("evicted").get("history", ())),
        about="evicted",
    )
    tenant.patch("scopy", "evicted", {"spec": {"limits": None}})
    status = tenant.until_ready("evicted")
    whole(f"{scope}/evicted", source)
    assert status["history"][0]["reason"] == "DriverEvicted"


@pytest.mark.exhaustive
def test_executor_killed(executor_tenant: Tenant, java: ForeignClient) -> None:
    """Spark makes another executor, and the copy goes on in the same attempt."""
    tenant = executor_tenant
    scope = f"executors-{uuid4().hex[:8]}"
    source, target = f"{scope}/source", f"{scope}/target"
    java.create(scope, "source", segments=SEGMENTS)
    java.write(scope, "source", events=MANY_EVENTS, keys=1000)
    tenant.apply(
        tenant.copy_resource(
            "executors", source, target, limits=WITH_EXECUTORS, runtime={"executors": 2}
        )
    )
    tenant.until_staged("executors", least=5)
    victim = tenant.pods("executor")[0]["metadata"]["name"]
    tenant.run("delete", "pod", victim, "--force", "--grace-period=0")
    status = tenant.until_ready("executors")
    assert status["attempts"] == 1
    assert status["verification"]["events"] == MANY_EVENTS
    ours, theirs = (
        [report["sha256"] for report in tenant.hashes(stream, segments=SEGMENTS)]
        for stream in (target, source)
    )
    assert ours == theirs
