"""Drivers in a namespace with a quota on the pods' processors.

The operator is a process of this machine. Kubernetes' own Job controller makes the drivers' pods,
or the quota refuses them. No node takes the pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.cluster.local_operator import opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localcluster import Cluster
    from localstore import ForeignClient, Standalone
    from support.tenants.tenant import Tenant

pytestmark = pytest.mark.timeout(300)

QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "compute"},
    "spec": {"hard": {"limits.cpu": "8"}},
}
DEFAULTS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "defaults"},
    "spec": {"limits": [{"type": "Container", "default": {"cpu": "2"}}]},
}


@pytest.fixture
def tenant(
    kube: Cluster,
    definitions: list[str],
    standalone: Standalone,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Tenant]:
    """Yield a namespace with the quota, and an operator for it."""
    folder = tmp_path_factory.mktemp("sluice-test-quotas")
    with opened(kube, folder, standalone.controller_uri) as made:
        tenant = made.tenant
        tenant.apply(QUOTA)
        tenant.until(
            "the quota counts",
            lambda: (tenant.get("quota", "compute") or {}).get("status", {}).get("hard"),
        )
        yield tenant


def limits(tenant: Tenant) -> list[Any]:
    """Return the most processors that each driver's pod may use."""
    pods = tenant.get_all("pods", labelSelector="app.kubernetes.io/component=driver")
    return [pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] for pod in pods]


@pytest.mark.parametrize(
    "way", [pytest.param("the resource", marks=pytest.mark.exhaustive), "the namespace"]
)
def test_a_quota_on_processors_is_met_by_users_of_the_namespace(
    tenant: Tenant, foreign: ForeignClient, scope: str, way: str
) -> None:
    """A copy names the quota and a remedy. After the remedy it goes on by itself."""
    foreign.create(scope, "orders")
    tenant.apply(tenant.copy_resource("orders", f"{scope}/orders", f"{scope}/copy"))
    said = tenant.until_reason("orders", "PodRefused")["message"]
    assert "the ResourceQuota 'compute' asks each pod to state limits.cpu" in said
    assert "Set cpu and cpuLimit" in said
    assert "apply a LimitRange" in said
    if way == "the resource":
        sizes = {"resources": {"cpu": "250m", "cpuLimit": "1500m"}}
        tenant.patch("scopy", "orders", {"spec": {"runtime": {"driver": sizes}}})
    else:
        tenant.apply(DEFAULTS)
    tenant.until("the driver has a pod", lambda: limits(tenant))
    assert limits(tenant) == ["1500m" if way == "the resource" else "2"]
    tenant.until("it is said no more", lambda: tenant.reason("orders") != "PodRefused")
