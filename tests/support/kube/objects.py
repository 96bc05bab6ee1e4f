"""Objects as `kubectl get --output=json` prints them, over one lasting connection.

Tests look several times a second while they wait. A kubectl for each look takes a tenth of a second
of a processor, and the API server as much again. The same goes for hundreds of objects that a test
makes.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from localcluster import LocalClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from localcluster import Cluster

Object = dict[str, Any]

_GROUPS: Final = (
    "/api/v1",
    "/apis/apps/v1",
    "/apis/batch/v1",
    "/apis/rbac.authorization.k8s.io/v1",
    "/apis/sluice.dev/v1alpha1",
)
_SECONDS: Final = 60.0
_NOT_FOUND: Final = 404


class Objects:
    """A view of the objects in a cluster.

    Args:
        kubeconfig: an administrator's kubeconfig.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._client = config.new_client_from_config(  # type: ignore[no-untyped-call]
            str(kubeconfig)
        )
        self._known: dict[str, tuple[str, Object]] = {}

    def get(self, namespace: str, kind: str, name: str) -> Object | None:
        """Return an object; None if it does not exist.

        Args:
            namespace: its namespace; ignored if the kind has none.
            kind: its kind as kubectl takes it: plural, singular or short.
            name: its name.

        Raises:
            LocalClusterError: the API server gives no answer.
        """
        path, described = self._place(namespace, kind)
        found = self._read(f"{path}/{name}")
        return None if found is None else _as_kubectl(found, described)

    def list(self, namespace: str, kinds: str, **selectors: str) -> list[Object]:
        """Return the objects of some kinds in a namespace.

        Args:
            namespace: the namespace.
            kinds: the kinds as kubectl takes them, with commas between.
            selectors: `labelSelector` or `fieldSelector`.

        Raises:
            LocalClusterError: the API server gives no answer.
        """
        items = []
        for kind in kinds.split(","):
            path, described = self._place(namespace, kind)
            found = self._read(path, **selectors)
            if found is None:
                raise LocalClusterError(f"the API server knows no {path}")
            items += [_as_kubectl(item, described) for item in found["items"]]
        return items

    def create(self, namespace: str, body: Object, *, user: str = "", kept: bool = True) -> Object:
        """Make an object without unknown fields, and return it as it is stored.

        Args:
            namespace: its namespace.
            body: the object.
            user: the name of the user who makes it; the administrator by default.
            kept: whether the API server stores it. Otherwise it only judges it.

        Raises:
            LocalClusterError: the API server refuses it; the message ends with its own.
        """
        path, described = self._place(namespace, body["kind"])
        query = {"fieldValidation": "Strict"} | ({} if kept else {"dryRun": "All"})
        made = self._call("POST", path, query, body=body, user=user)
        assert made is not None, f"there is no namespace {namespace}"
        return _as_kubectl(made, described)

    def delete(self, namespace: str, kind: str, name: str, *, user: str = "") -> None:
        """Delete an object, as `kubectl delete --wait=false` does.

        Args:
            namespace: its namespace.
            kind: its kind as kubectl takes it.
            name: its name.
            user: the name of the user who deletes it; the administrator by default.

        Raises:
            LocalClusterError: the API server refuses it.
        """
        path, _ = self._place(namespace, kind)
        self._call("DELETE", f"{path}/{name}", {"propagationPolicy": "Background"}, user=user)

    def _place(self, namespace: str, kind: str) -> tuple[str, Object]:
        """Return the path of a kind's objects, and the API server's description of the kind."""
        word = kind.lower()
        if word not in self._known:
            self._discover()
        if word not in self._known:
            raise LocalClusterError(f"the API server has no kind {kind!r}")
        group, described = self._known[word]
        within = f"/namespaces/{namespace}" if described["namespaced"] else ""
        return f"{group}{within}/{described['name']}", described

    def _discover(self) -> None:
        for group in _GROUPS:
            for one in (self._read(group) or {}).get("resources", []):
                described = one | {"apiVersion": group.split("/", 2)[-1]}
                for word in (one["name"], one["singularName"], *one.get("shortNames", [])):
                    self._known.setdefault(word, (group, described))

    def _read(self, path: str, **query: str) -> Object | None:
        return self._call("GET", path, query)

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: Object | None = None,
        user: str = "",
    ) -> Object | None:
        """Make a call, and return the answer; None if there is no such object."""
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if user:
            headers["Impersonate-User"] = user
        try:
            response = self._client.call_api(
                *self._client.param_serialize(
                    method,
                    path,
                    query_params=[*query.items()],
                    header_params=headers,
                    body=body,
                    auth_settings=["BearerToken"],
                ),
                _request_timeout=_SECONDS,
            )
            response.read()
        except (client.ApiException, HTTPError) as error:
            raise LocalClusterError(f"{method} {path}: {error}") from error
        if response.status == _NOT_FOUND:
            return None
        if response.status >= 300:
            raise LocalClusterError(f"{method} {path}: {response.status} {response.data.decode()}")
        found: Object = json.loads(response.data)
        return found


def objects_in(cluster: Cluster) -> Objects:
    """Return the view of a cluster, with one connection for all callers."""
    return _objects(cluster.kubeconfig, cluster.kubeconfig.stat().st_mtime_ns)


@lru_cache
def _objects(kubeconfig: Path, changed: int) -> Objects:
    assert changed  # a kubeconfig that was written anew belongs to another cluster
    return Objects(kubeconfig)


def _as_kubectl(found: Object, described: Object) -> Object:
    """Return an object as kubectl prints it: with its kind, and without fields for machines."""
    metadata = {key: value for key, value in found["metadata"].items() if key != "managedFields"}
    kind = {"apiVersion": described["apiVersion"], "kind": described["kind"]}
    return kind | found | {"metadata": metadata}
