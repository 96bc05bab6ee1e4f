"""Resources applied to a real API server, as users apply them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import yaml
from kubernetes import client, config

from localcluster import LocalClusterError
from sluice.api.fields.common import API_VERSION, GROUP, VERSION
from sluice.api.registry import KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from localcluster import Cluster

_PLURALS: Final = {kind.name: kind.plural for kind in KINDS}
_NOTHING_THERE: Final = "default"
_SECONDS: Final = 30.0
_MANAGER: Final = "tests"


@dataclass(frozen=True, slots=True)
class Applier:
    """A client that applies resources in one namespace.

    A test of fields and rules makes hundreds of calls, which need no `kubectl`: each start of it
    takes a third of a second of processor time. Options of `kubectl` do.

    Attributes:
        cluster: the cluster.
        namespace: the namespace, which exists.
        group: the API group of the resources.
    """

    cluster: Cluster
    namespace: str
    group: str = GROUP

    def run(self, *words: str, stdin: str | None = None) -> str:
        """Run `kubectl` in the namespace, and return its output."""
        return self.cluster.kubectl(f"--namespace={self.namespace}", *words, stdin=stdin)

    def apply(self, resource: dict[str, Any], *words: str) -> dict[str, Any]:
        """Apply a resource, and return it as it is stored.

        Args:
            resource: the resource.
            words: options of `kubectl apply`; without any, the API server is asked directly.

        Raises:
            LocalClusterError: the API server or `kubectl` refuses it.
        """
        if not words and resource["kind"] in _PLURALS:
            return self._apply(resource)
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
        """Return the output of `kubectl get` for a resource."""
        return self.run("get", f"{plural}.{self.group}", name, *words)

    def refusal_of_new(self, resource: dict[str, Any]) -> str:
        """Return the API server's refusal of a new resource; empty if it accepts the resource.

        This needs no `kubectl`, since there are hundreds of such resources.
        """
        resource = resource | {"apiVersion": f"{self.group}/{VERSION}"}
        api, plural = _api(self.cluster.kubeconfig), _PLURALS[resource["kind"]]
        where = (self.group, VERSION, _NOTHING_THERE, plural)
        options = {"dry_run": "All", "field_validation": "Strict", "_request_timeout": _SECONDS}
        try:
            api.create_namespaced_custom_object(*where, resource, **options)
        except client.ApiException as error:
            said: str = json.loads(error.body)["message"]
            return said
        return ""

    def refusal(self, resource: dict[str, Any], *words: str) -> str:
        """Return the refusal of a resource; empty if it would be accepted.

        Args:
            resource: the resource.
            words: options of `kubectl apply`, as for `apply`.
        """
        try:
            if words:
                self.apply(resource, "--dry-run=server", *words)
            else:
                self._apply(resource, dry_run="All")
        except LocalClusterError as error:
            return str(error)
        return ""

    def _apply(self, resource: dict[str, Any], **options: str) -> dict[str, Any]:
        body = resource | {"apiVersion": f"{self.group}/{VERSION}"}
        plural, name = _PLURALS[resource["kind"]], resource["metadata"]["name"]
        try:
            answer = _api(self.cluster.kubeconfig).patch_namespaced_custom_object(
                *(self.group, VERSION, self.namespace, plural, name, body),
                field_manager=_MANAGER,
                force=True,
                field_validation="Strict",
                _content_type="application/apply-patch+yaml",
                _request_timeout=_SECONDS,
                _preload_content=False,  # else a new resource (201) is returned as None
                **options,
            )
        except client.ApiException as error:
            raise LocalClusterError(json.loads(error.body)["message"]) from error
        stored: dict[str, Any] = json.loads(answer.data)
        return stored


@cache
def _api(kubeconfig: Path) -> client.CustomObjectsApi:
    return client.CustomObjectsApi(config.new_client_from_config(str(kubeconfig)))
