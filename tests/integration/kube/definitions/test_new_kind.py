"""A kind that is made of one folder and two lines, in an operator on a real API server."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from sluice.api.schema.schema import definition
from support.cluster.operator_process import OperatorProcess
from support.kinds.heartbeat.resource import HEARTBEAT
from support.kube.definitions import left
from support.tenants.tenant import Tenant
from support.until import PATIENTLY, until

if TYPE_CHECKING:
    from pathlib import Path

    from localcluster import Cluster

_PROGRAM = (sys.executable, "-m", "support.kinds.heartbeat")


@pytest.fixture
def heartbeats(kube: Cluster) -> None:
    """Install the definition of the kind."""
    text = yaml.safe_dump(left(definition(HEARTBEAT)))
    kube.kubectl("apply", "--server-side", "--filename=-", stdin=text)
    name = f"crd/{HEARTBEAT.plural}.sluice.dev"
    kube.kubectl("wait", "--for=condition=Established", PATIENTLY, name)


@pytest.mark.usefixtures("definitions", "heartbeats")
@pytest.mark.timeout(300)
def test_a_registered_kind_needs_no_other_change(
    kube: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resources of a registered kind are watched, checked, reconciled, shown and held."""
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in sys.path if path))
    tenant = Tenant(kube, namespace, None, print)

    def beats() -> int:
        return int((tenant.get("hb", "heart") or {}).get("status", {}).get("beats", 0))

    with OperatorProcess(tmp_path, kube.kubeconfig, namespace, program=_PROGRAM):
        tenant.apply(
            tenant.store_resource(uri="tcp://127.0.0.1:9"),
            _heartbeat("heart", {"storeRef": {"name": "store"}}),
        )
        until("the heart beats", lambda: beats() > 2)
        head, row = tenant.run("get", "heartbeats", "heart").splitlines()
        assert head.split() == ["NAME", "READY", "BEATS"]
        assert row.split()[:2] == ["heart", "True"]
        tenant.until("an event says so", lambda: "Beating" in dict(tenant.events("heart")))
        until("its store is held", lambda: _in_use(tenant) == 1)
        tenant.run("delete", "sst", "store", "--wait=false")
        tenant.run("delete", "hb", "heart")
        tenant.until_gone("sst", "store")


def _in_use(tenant: Tenant) -> int:
    store = json.loads(tenant.run("get", "sst", "store", "--output=json"))
    return int(store.get("status", {}).get("inUseBy") or 0)


def _heartbeat(name: str, spec: dict[str, object]) -> dict[str, object]:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": HEARTBEAT.name,
        "metadata": {"name": name},
        "spec": spec,
    }
