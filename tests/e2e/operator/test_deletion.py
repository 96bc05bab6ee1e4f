"""Deletions midway, which leave nothing of a copy in the cluster or in the store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from support.tenants.tenant import SLOW
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator.conftest import Operator, Source
    from localcluster import Cluster
    from localstore import ForeignClient
    from support.tenants.tenant import Tenant

pytestmark = pytest.mark.crash


def test_copy_deleted_midway(
    tenant: Tenant, source: Source, scope: str, java: ForeignClient
) -> None:
    """The driver of a deleted copy stops. Staging and unpublished target go, then the resource."""
    before = tenant.objects()
    tenant.apply(tenant.copy_resource("gone", source.name, f"{scope}/gone", limits=SLOW))
    tenant.until_staged("gone")
    copy_id = tenant.status("gone")["copyID"]
    assert tenant.left_over(f"{scope}/gone", copy_id)
    tenant.run("delete", "scopy", "gone")
    assert tenant.left_over(f"{scope}/gone", copy_id) == []
    assert not _has(java, f"{scope}/gone")
    tenant.until("the children are gone", lambda: tenant.objects() == before)


def test_namespace_deleted_midway_with_the_operator_restarted(
    tenant: Tenant,
    source: Source,
    scope: str,
    java: ForeignClient,
    sluice: Operator,
    kube: Cluster,
) -> None:
    """A deleted namespace goes with the staging of its copies, despite a restarted operator."""
    for name in ("one", "two"):
        tenant.apply(tenant.copy_resource(name, source.name, f"{scope}/{name}", limits=SLOW))
    tenant.until_staged("one", least=5)
    ids = {name: tenant.status(name)["copyID"] for name in ("one", "two")}
    began = time.monotonic()
    kube.kubectl("delete", "namespace", tenant.namespace, "--wait=false")
    sluice.kill()
    kube.kubectl("wait", f"namespace/{tenant.namespace}", "--for=delete", PATIENTLY)
    tenant.say(f"  namespace gone after {time.monotonic() - began:.0f} s")
    for name, copy_id in ids.items():
        assert tenant.left_over(f"{scope}/{name}", copy_id) == []
        assert not _has(java, f"{scope}/{name}")


@pytest.mark.exhaustive
def test_store_deleted_midway_waits_for_the_copy(
    tenant: Tenant, source: Source, scope: str, whole: Callable[..., None]
) -> None:
    """A deleted StreamStore stays while a copy needs it, and says so."""
    tenant.apply(tenant.copy_resource("needy", source.name, f"{scope}/needy", limits=SLOW))
    tenant.until_staged("needy")
    tenant.run("delete", "sst", "store", "--wait=false")
    tenant.until(
        "the store says why it stays",
        lambda: tenant.condition("store", resource="sst").get("reason") == "InUse",
    )
    assert "StreamCopy needy" in tenant.condition("store", resource="sst")["message"]
    tenant.until_ready("needy")
    tenant.until_gone("sst", "store")
    whole(f"{scope}/needy", source)


@pytest.mark.exhaustive
def test_copy_deleted_while_suspended(
    tenant: Tenant, source: Source, scope: str, java: ForeignClient
) -> None:
    """A suspended copy can be deleted."""
    tenant.apply(tenant.copy_resource("idle", source.name, f"{scope}/idle", limits=SLOW))
    tenant.until_staged("idle")
    tenant.patch("scopy", "idle", {"spec": {"suspend": True}})
    tenant.until_reason("idle", "Suspended")
    copy_id = tenant.status("idle")["copyID"]
    assert tenant.left_over(f"{scope}/idle", copy_id)
    tenant.run("delete", "scopy", "idle")
    assert tenant.left_over(f"{scope}/idle", copy_id) == []
    assert not _has(java, f"{scope}/idle")


def _has(java: ForeignClient, stream: str) -> bool:
    """Return whether the store has a stream, by the foreign client, which can make it if not."""
    made = java.create(*stream.split("/"))
    return not made
