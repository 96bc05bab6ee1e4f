"""A hostile tenant, a neighbour with a Secret, and an operator that serves both."""

from __future__ import annotations

import base64
import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import yaml

from sluice.kube.api.objects import IN_USE_FINALIZER
from support.cluster.kubelet import PROFILES
from support.cluster.operator_process import OperatorProcess
from support.cluster.outside import OUTSIDE, nobody_else
from support.kube.objects import objects_in
from support.tenants.stranger import Stranger
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localcluster import Cluster

Object = dict[str, Any]

LOGIN: Final = "pravega-login"
"""The name of the neighbour's Secret."""

PRECIOUS: Final = "precious"
"""The name of a Secret in the tenant's own namespace that no StreamStore names."""

HELD: Final = "sluice.dev/held-secret"
"""An annotation of earlier versions."""

OURS: Final = ("streamstores", "streamcopies", "scopecopies", "streamarchives", "ephemeralstreams")
_MALLORY: Final = "mallory"
_RESYNC_SECONDS: Final = 5
_CHART: Final = Path(__file__).parents[3] / "helm/sluice/templates/aggregate.yaml"


@dataclass(frozen=True)
class Evil:
    """The scene.

    Attributes:
        cluster: the cluster.
        namespace: the tenant's namespace.
        victim: the neighbour's namespace.
        canary: the neighbour's password, which exists nowhere else.
        stranger: a server that the tenant's StreamStores may name.
        hidden: a server that only forged objects name, so that no client has any business there.
        operator: the operator, which serves both namespaces with all rights.
    """

    cluster: Cluster
    namespace: str
    victim: str
    canary: str
    stranger: Stranger
    hidden: Stranger
    operator: OperatorProcess

    @property
    def way(self) -> str:
        """The way from the tenant's Secrets to the neighbour's in a URL that is not checked."""
        return f"../../{self.victim}/secrets/{LOGIN}"

    def act(self, *words: str, stdin: str | None = None) -> str:
        """Run kubectl as the tenant, and return its output."""
        there = f"--namespace={self.namespace}"
        return self.cluster.kubectl(there, *words, f"--as={_MALLORY}", stdin=stdin)

    def make(self, body: Object) -> Object:
        """Make an object as the tenant, and return it as it is stored.

        Raises:
            LocalClusterError: the API server refuses it.
        """
        return objects_in(self.cluster).create(self.namespace, body, user=_MALLORY)

    def delete(self, kind: str, name: str) -> None:
        """Delete an object as the tenant, if it exists, and do not wait."""
        objects_in(self.cluster).delete(self.namespace, kind, name, user=_MALLORY)

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """Return an object; None if it does not exist."""
        return objects_in(self.cluster).get(namespace or self.namespace, kind, name)

    def look(self, kind: str, name: str) -> None:
        """Wait until the operator has looked at a resource as it is now, or has let it go."""

        def seen() -> bool:
            found = self.get(kind, name)
            if found is None:
                return True
            now = found["metadata"]["generation"]
            conditions = found.get("status", {}).get("conditions", [])
            return any(one.get("observedGeneration") == now for one in conditions)

        until(f"{kind}/{name} was looked at", seen)

    def login(self) -> Object:
        """Return the neighbour's Secret."""
        found = self.get("secret", LOGIN, self.victim)
        assert found is not None, "the neighbour's Secret is gone"
        return found

    def told(self) -> str:
        """Return the operator's texts that the tenant may see: servers, log, objects, events."""
        kinds = ",".join((*OURS, "configmaps", "events", "jobs", "pods", "secrets"))
        objects = objects_in(self.cluster).list(self.namespace, kinds)
        return f"{self.stranger.heard} {self.hidden.heard} {self.operator.log()} {objects}"

    def tells(self) -> list[str]:
        """Return the forms in which the neighbour's password would show, plain and encoded."""
        whole = [self.canary, f"victim:{self.canary}"]
        return [*whole, *(base64.b64encode(one.encode()).decode().rstrip("=") for one in whole)]


@contextmanager
def plotted(kube: Cluster, folder: Path) -> Iterator[Evil]:
    """Yield the scene, and remove all of it after the block."""
    mark = uuid4().hex[:8]
    evil, victim = f"{OUTSIDE}evil-{mark}", f"{OUTSIDE}victim-{mark}"
    canary = f"canary-{uuid4().hex}"
    with ExitStack() as stack:
        stack.enter_context(nobody_else(kube))
        for name in (evil, victim):
            kube.kubectl("create", "namespace", name)
            stack.callback(_clear, kube, name)
        kube.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(_rights(evil)))
        secrets = [
            _secret(victim, LOGIN, "victim", canary),
            _secret(evil, PRECIOUS, _MALLORY, "of-no-use"),
            _secret(evil, "mine", _MALLORY, "open-sesame"),
        ]
        kube.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(secrets))
        stranger, hidden = (stack.enter_context(Stranger()) for _ in range(2))
        # Forged finalizers keep dozens of resources: a look at all of them each second takes half a
        # processor.
        operator = OperatorProcess(
            folder,
            kube.kubeconfig,
            evil,
            PROFILES,
            others=[victim],
            more={"resyncSeconds": _RESYNC_SECONDS},
        )
        stack.enter_context(operator)
        yield Evil(kube, evil, victim, canary, stranger, hidden, operator)


def _clear(kube: Cluster, namespace: str) -> None:
    """Release a namespace, even if finalizers were forged there."""
    there = f"--namespace={namespace}"
    kinds = ",".join((*OURS, "secrets"))
    names = kube.kubectl(there, "get", kinds, "--output=name").split()
    free = ("--type=merge", '--patch={"metadata": {"finalizers": null}}')
    kube.kubectl(there, "patch", *names, *free)
    kube.kubectl("delete", "namespace", namespace, "--wait=false")


def _rights(namespace: str) -> list[Object]:
    """Return Kubernetes' own `edit` in a namespace, with the additions of our chart."""
    text = re.sub(r"(?m)^.*\{\{.*$", "", _CHART.read_text())
    rules = [rule for one in yaml.safe_load_all(text) for rule in one["rules"]]
    group = "rbac.authorization.k8s.io"
    made: list[Object] = [
        {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": {"name": "sluice", "namespace": namespace},
            "rules": rules,
        }
    ]
    for kind, name in (("ClusterRole", "edit"), ("Role", "sluice")):
        made.append(
            {
                "apiVersion": f"{group}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": f"mallory-{name}", "namespace": namespace},
                "roleRef": {"apiGroup": group, "kind": kind, "name": name},
                "subjects": [{"apiGroup": group, "kind": "User", "name": _MALLORY}],
            }
        )
    return made


def _secret(namespace: str, name: str, user: str, password: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "finalizers": [IN_USE_FINALIZER]},
        "stringData": {"username": user, "password": password},
    }
