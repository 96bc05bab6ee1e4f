"""A platform team's namespace and those of tenants, at a real API server, with one operator."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from sluice.kube.api.objects import IN_USE_FINALIZER
from support.cluster.kubelet import PROFILES
from support.cluster.operator_process import OperatorProcess
from support.cluster.outside import OUTSIDE, nobody_else
from support.tenants.renting import rented

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localcluster import Cluster
    from support.tenants.tenant import Object, Tenant


@dataclass(frozen=True)
class Scene:
    """The namespaces.

    Attributes:
        platform: the namespace of the StreamStores.
        tenant: a namespace that they are shared with.
        others: further namespaces.
        operator: the operator, which serves all of them.
    """

    platform: Tenant
    tenant: Tenant
    others: tuple[Tenant, ...]
    operator: OperatorProcess

    @property
    def grant(self) -> Object:
        """The entry that admits the tenant."""
        return self.grant_to(self.tenant)

    def grant_to(self, tenant: Tenant, **more: object) -> Object:
        """Return the entry that admits a namespace."""
        labels = {"kubernetes.io/metadata.name": tenant.namespace}
        return {"selector": {"matchLabels": labels}, **more}

    def share(self, name: str, uri: str, *grants: Object, secret: str = "") -> None:
        """Apply a StreamStore of the platform's with these grants."""
        body = self.platform.store_resource(name, uri=uri, secret=secret)
        body["spec"]["access"] = {"sharedWith": list(grants)}
        self.platform.apply(body)

    def ref(self, name: str) -> Object:
        """Return the reference to a StreamStore of the platform's."""
        return {"name": name, "namespace": self.platform.namespace}

    def store(self, name: str) -> Object:
        """Return a StreamStore of the platform's."""
        found = self.platform.get("sst", name)
        assert found is not None
        return found

    def is_held(self, name: str) -> bool:
        """Tell whether a StreamStore of the platform's is kept for its users."""
        return IN_USE_FINALIZER in self.store(name)["metadata"].get("finalizers", [])


@contextmanager
def staged(kube: Cluster, folder: Path, *others: str) -> Iterator[Scene]:
    """Yield the namespaces, and an operator that serves all of them.

    Args:
        kube: the cluster.
        folder: directory for the operator's files.
        others: words for the names of further namespaces.
    """
    mark = uuid4().hex[:8]
    names = [f"{OUTSIDE}{one}-{mark}" for one in ("platform", "tenant", *others)]
    with ExitStack() as stack:
        stack.enter_context(nobody_else(kube))
        operator = stack.enter_context(
            OperatorProcess(folder, kube.kubeconfig, names[0], PROFILES, others=names[1:])
        )
        spaces = [stack.enter_context(rented(kube, None, print, name)) for name in names]
        yield Scene(spaces[0], spaces[1], tuple(spaces[2:]), operator)


def waiting(tenant: Tenant) -> list[Object]:
    """Return the drivers' pods that no node takes."""
    pods = tenant.get_all("pods", fieldSelector="status.phase=Pending")
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
