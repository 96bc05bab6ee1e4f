"""StreamStores of scheduled archives, with an operator at a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.cases.resources import ARCHIVE
from support.cluster.operator_process import OperatorProcess
from support.cluster.outside import nobody_else
from support.tenants.tenant import Tenant
from support.until import PATIENTLY

if TYPE_CHECKING:
    from pathlib import Path

    from localcluster import Cluster

NOWHERE = "tcp://127.0.0.1:9"
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}}
LOGIN = {"username": "somebody", "password": "unused"}


def users(tenant: Tenant, store: str) -> Any:
    """Return the number of users of a store, as its status has it."""
    return (tenant.get("sst", store) or {}).get("status", {}).get("inUseBy")


@pytest.mark.usefixtures("definitions")
@pytest.mark.timeout(300)
def test_a_namespace_with_a_schedule_can_be_deleted(
    kube: Cluster, outside: str, tmp_path: Path
) -> None:
    """A namespace with a scheduled archive can be deleted, though its stores do not answer.

    Stores and Secret are held until then. A suspended archive makes no difference.
    """
    names = {f"{outside}-at-work": False, f"{outside}-suspended": True}
    for name in names:
        kube.kubectl("create", "namespace", name)
    with (
        nobody_else(kube),
        OperatorProcess(tmp_path, kube.kubeconfig, outside, others=[*names]),
    ):
        for name, suspend in names.items():
            _delete_what_is_held(kube, name, suspend=suspend)
        kube.kubectl("delete", "namespace", *names, PATIENTLY)


def _delete_what_is_held(kube: Cluster, name: str, *, suspend: bool) -> None:
    """Make an archive, and delete its store and Secret. Both stay, since they are held."""
    tenant = Tenant(kube, name, None, print)
    spec = ARCHIVE["spec"] | {
        "schedule": {"cron": "0 3 1 1 *"},
        "suspend": suspend,
    }
    tenant.apply(
        SECRET | {"stringData": LOGIN},
        *(
            tenant.store_resource(store, uri=NOWHERE, secret="login")  # noqa: S106 - its name
            for store in ("local", "archives")
        ),
        ARCHIVE | {"spec": spec},
    )
    for store in ("local", "archives"):
        tenant.until(f"{store} is held", lambda store=store: users(tenant, store) == 1)
    tenant.run("delete", "sst/local", "secret/login", "--wait=false")
    tenant.until(
        "the store tells who needs it",
        lambda: "StreamArchive orders" in tenant.condition("local", resource="sst")["message"],
    )
    assert tenant.get("secret", "login") is not None
