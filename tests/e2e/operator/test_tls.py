"""A copy in pods, within a Pravega in the cluster that speaks TLS and requires a login."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from localcluster.release import restrict
from localcluster.store import ClusterStore
from localstore.accounts import ADMIN
from support.tenants.tenant import Tenant
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator.conftest import Operator
    from localcluster import Cluster

pytestmark = pytest.mark.exhaustive

EVENTS = 40_000
NAMESPACE = "sluice-test-tls"


def test_a_copy_over_tls_in_pods(
    kube: Cluster,
    sluice: Operator,
    tmp_path_factory: pytest.TempPathFactory,
    say: Callable[[str], None],
) -> None:
    """Operator and driver trust a store by a ConfigMap's bundle, and the copy is exact."""
    assert sluice
    store = ClusterStore(
        kube, auth=True, heap="1g", certificates=tmp_path_factory.mktemp("certificates")
    )
    try:
        store.up(lambda _: None)
        assert store.bundle is not None
        restrict(kube, NAMESPACE)
        tenant = Tenant(kube, NAMESPACE, store, say)
        body = tenant.store_resource(secret="login")  # noqa: S106 - its name
        body["spec"]["pravega"]["tls"] = {"caBundleRef": {"name": "trust"}}
        trust = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trust"}}
        data = {"ca.crt": store.bundle.read_text()}
        with store.foreign(heap="512m") as java:
            java.create("tls", "source", segments=2)
            java.write("tls", "source", events=EVENTS, keys=10)
            tenant.apply(tenant.login_resource(ADMIN), trust | {"data": data}, body)
            tenant.apply(tenant.copy_resource("orders", "tls/source", "tls/target"))
            status = tenant.until_ready("orders")
            assert status["attempts"] == 1
            source, target = java.read("tls", "source"), java.read("tls", "target")
            assert (target.events, target.digest) == (EVENTS, source.digest)
        tenant.until_tidied("orders")
        kube.kubectl("delete", "namespace", NAMESPACE, PATIENTLY)
    finally:
        store.down()
