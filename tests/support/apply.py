"""Resources brought to a real API server, as users bring them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from localcluster import LocalClusterError
from sluice.api.common import API_VERSION, GROUP, VERSION

if TYPE_CHECKING:
    from localcluster import Cluster


@dataclass(frozen=True, slots=True)
class Applier:
    """Applies resources with `kubectl` in one namespace.

    Attributes:
        cluster: the cluster.
        namespace: the namespace, which exists.
        group: the API group that resources are brought to.
    """

    cluster: Cluster
    namespace: str
    group: str = GROUP

    def run(self, *words: str, stdin: str | None = None) -> str:
        """What `kubectl` prints in the namespace."""
        return self.cluster.kubectl(f"--namespace={self.namespace}", *words, stdin=stdin)

    def apply(self, resource: dict[str, Any], *words: str) -> dict[str, Any]:
        """The resource as it is stored.

        Raises:
            LocalClusterError: the API server or `kubectl` refuses it.
        """
        text = yaml.safe_dump(resource).replace(API_VERSION, f"{self.group}/{VERSION}")
        command = ("apply", "--filename=-", "--output=json", *words)
        stored: dict[str, Any] = json.loads(self.run(*command, stdin=text))
        return stored

    def write_status(self, plural: str, name: str, status: dict[str, Any]) -> dict[str, Any]:
        """Write a status as the operator does.

        Returns:
            The status as it is stored.
        """
        patch = json.dumps({"status": status})
        # From a file, since a status of full length is too long for an argument.
        file = "--patch-file=/dev/stdin"
        words = ("--subresource=status", "--type=merge", file, "--output=json")
        stored: dict[str, Any] = json.loads(
            self.run("patch", f"{plural}.{self.group}", name, *words, stdin=patch)
        )["status"]
        return stored

    def get(self, plural: str, name: str, *words: str) -> str:
        """What `kubectl get` shows of a resource."""
        return self.run("get", f"{plural}.{self.group}", name, *words)

    def refusal(self, resource: dict[str, Any], *words: str) -> str:
        """What is said against a resource; empty if it would be accepted."""
        try:
            self.apply(resource, "--dry-run=server", *words)
        except LocalClusterError as error:
            return str(error)
        return ""
