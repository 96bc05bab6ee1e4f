"""Resources brought to a real API server, as users bring them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from localcluster import LocalClusterError

if TYPE_CHECKING:
    from localcluster import Cluster


@dataclass(frozen=True, slots=True)
class Applier:
    """Applies resources with `kubectl` in one namespace.

    Attributes:
        cluster: the cluster.
        namespace: the namespace, which exists.
    """

    cluster: Cluster
    namespace: str

    def run(self, *words: str, stdin: str | None = None) -> str:
        """What `kubectl` prints in the namespace."""
        return self.cluster.kubectl(f"--namespace={self.namespace}", *words, stdin=stdin)

    def apply(self, resource: dict[str, Any], *words: str) -> dict[str, Any]:
        """The resource as it is stored.

        Raises:
            LocalClusterError: the API server or `kubectl` refuses it.
        """
        command = ("apply", "--filename=-", "--output=json", *words)
        stored: dict[str, Any] = json.loads(self.run(*command, stdin=yaml.safe_dump(resource)))
        return stored

    def refusal(self, resource: dict[str, Any], *words: str) -> str:
        """What is said against a resource; empty if it would be accepted."""
        try:
            self.apply(resource, "--dry-run=server", *words)
        except LocalClusterError as error:
            return str(error)
        return ""
