"""An operator as a process of this machine, and a namespace of a cluster that it works in alone."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localcluster.release import NAMESPACE
from support.cluster.kubelet import PROFILES
from support.cluster.operator_process import OperatorProcess
from support.cluster.tenant import Tenant, rented

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localcluster import Cluster

_THERE = f"--namespace={NAMESPACE}"
_INSTALLED = ("deployment", "sluice-operator", _THERE)
_PODS = ("pods", "--selector=app.kubernetes.io/component=operator", _THERE)


@dataclass(frozen=True)
class LocalOperator:
    """The operator and its namespace."""

    tenant: Tenant
    operator: OperatorProcess


@contextmanager
def opened(kube: Cluster, folder: Path, store_uri: str) -> Iterator[LocalOperator]:
    """An operator and its namespace, with a StreamStore `store`.

    Args:
        kube: the cluster.
        folder: for the operator's files.
        store_uri: the store's controller, as programs of this machine find it.
    """
    name = folder.name
    with (
        nobody_else(kube),
        OperatorProcess(folder, kube.kubeconfig, name, PROFILES) as operator,
        rented(kube, None, print, name) as tenant,
    ):
        tenant.apply(tenant.store_resource(uri=store_uri))
        yield LocalOperator(tenant, operator)


@contextmanager
def nobody_else(kube: Cluster) -> Iterator[None]:
    """No operator that is installed in the cluster works meanwhile."""
    there = kube.kubectl("get", *_INSTALLED, "--output=name", "--ignore-not-found").strip()
    if not there:
        yield
        return
    before = kube.kubectl("get", *_INSTALLED, "--output=jsonpath={.spec.replicas}")
    kube.kubectl("scale", *_INSTALLED, "--replicas=0")
    kube.kubectl("wait", *_PODS, "--for=delete", "--timeout=60s", timeout=70)
    try:
        yield
    finally:
        kube.kubectl("scale", *_INSTALLED, f"--replicas={before}")
