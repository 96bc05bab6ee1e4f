"""An operator as a process of this machine, and a namespace of a cluster for it alone."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from support.cluster.kubelet import PROFILES
from support.cluster.operator_process import OperatorProcess
from support.cluster.outside import OUTSIDE, nobody_else
from support.tenants.renting import rented

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from localcluster import Cluster
    from support.tenants.tenant import Tenant


@dataclass(frozen=True)
class LocalOperator:
    """The operator and its namespace."""

    tenant: Tenant
    operator: OperatorProcess


@contextmanager
def opened(
    kube: Cluster,
    folder: Path,
    store_uri: str,
    more: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[LocalOperator]:
    """Yield an operator and its namespace, with a StreamStore `store`.

    Args:
        kube: the cluster.
        folder: directory for the operator's files.
        store_uri: the address of the store's controller for programs of this machine.
        more: other settings of the operator.
        environment: further variables of the operator.
    """
    name = f"{OUTSIDE}{folder.name}"
    with (
        nobody_else(kube),
        OperatorProcess(
            folder, kube.kubeconfig, name, PROFILES, more=more, environment=environment
        ) as operator,
        rented(kube, None, print, name) as tenant,
    ):
        tenant.apply(tenant.store_resource(uri=store_uri))
        yield LocalOperator(tenant, operator)
