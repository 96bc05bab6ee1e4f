"""Calls of the Kubernetes API, each with a deadline and an error of ours.

Objects are the plain mappings that the API speaks in: Sluice reads and writes few fields of few
kinds, and the models of its own kinds are in `sluice.api`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import aiohttp
from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config

from sluice.api.common import GROUP, VERSION
from sluice.errors import ApiUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

Object = dict[str, Any]
"""An object of the API, as JSON has it."""

FIELD_MANAGER: Final = "sluice-operator"
TIMEOUT: Final = 15.0
"""Deadline of a call, in seconds."""


class Kind(NamedTuple):
    """Where a kind's objects are."""

    group: str
    version: str
    plural: str
    name: str

    @property
    def api_version(self) -> str:
        """As `apiVersion` has it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str = "", subresource: str = "") -> str:
        """The path of a collection, an object or a subresource."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if namespace else ""
        rest = "/".join(part for part in (self.plural, name, subresource) if part)
        return f"{root}{inside}/{rest}"


STREAM_COPY: Final = Kind(GROUP, VERSION, "streamcopies", "StreamCopy")
STREAM_STORE: Final = Kind(GROUP, VERSION, "streamstores", "StreamStore")
EPHEMERAL_STREAM: Final = Kind(GROUP, VERSION, "ephemeralstreams", "EphemeralStream")
JOB: Final = Kind("batch", "v1", "jobs", "Job")
POD: Final = Kind("", "v1", "pods", "Pod")
CONFIG_MAP: Final = Kind("", "v1", "configmaps", "ConfigMap")
SECRET: Final = Kind("", "v1", "secrets", "Secret")
EVENT: Final = Kind("", "v1", "events", "Event")
NAMESPACE: Final = Kind("", "v1", "namespaces", "Namespace")


class Refused(ApiUnavailable):
    """The API server answered with an error.

    Attributes:
        status: the HTTP status.
        why: the API's own word, such as AlreadyExists or Forbidden.
    """

    def __init__(self, message: str, *, status: int, why: str) -> None:
        super().__init__(message)
        self.status = status
        self.why = why

    @property
    def reason(self) -> str:
        """As the class above: what the API says is in the message."""
        return "ApiUnavailable"


_NOT_FOUND, _CONFLICT = 404, 409


class Api:
    """The API server.

    Args:
        client: the connection; closed at the end of the block.
    """

    def __init__(self, client: kubernetes_client.ApiClient) -> None:
        self._client = client

    @classmethod
    async def connect(cls) -> Self:
        """By the pod's service account, or else by KUBECONFIG.

        Raises:
            ApiUnavailable: there is neither.
        """
        configuration = kubernetes_client.Configuration()
        try:
            kubernetes_config.load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=configuration
            )
        except kubernetes_config.ConfigException:
            try:
                await kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
                    client_configuration=configuration
                )
            except kubernetes_config.ConfigException as error:
                raise ApiUnavailable(
                    f"no way to a Kubernetes API: {error}",
                    remedy="Run in a pod with a service account, or set KUBECONFIG.",
                ) from error
        return cls(kubernetes_client.ApiClient(configuration))

    async def __aenter__(self) -> Self:
        """The connection is opened by the first call."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self._client.close()  # type: ignore[no-untyped-call]

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """An object, or None when there is none."""
        try:
            return await self._call("GET", kind.path(namespace, name))
        except Refused as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    async def list(
        self,
        kind: Kind,
        namespace: str | None,
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> list[Object]:
        """Objects of a namespace, or of all of them for None."""
        query = {"labelSelector": labels, "fieldSelector": fields}
        found = await self._call("GET", kind.path(namespace), query=query)
        items: list[Object] = found.get("items") or []
        for item in items:  # a list leaves these out of its items
            item.setdefault("apiVersion", kind.api_version)
            item.setdefault("kind", kind.name)
        return items

    async def create(self, kind: Kind, namespace: str, body: Object) -> Object | None:
        """Make an object; None when there is one of that name."""
        try:
            return await self._call(
                "POST", kind.path(namespace), body=body, query={"fieldManager": FIELD_MANAGER}
            )
        except Refused as error:
            if error.why == "AlreadyExists":
                return None
            raise

    async def apply(
        self, kind: Kind, namespace: str, body: Object, *, subresource: str = ""
    ) -> Object | None:
        """Server-side apply; None when there is no such object, or it was changed meanwhile.

        With `metadata.resourceVersion` in the body, only that version is changed.
        """
        path = kind.path(namespace, body["metadata"]["name"], subresource)
        try:
            return await self._call(
                "PATCH",
                path,
                body=body,
                query={"fieldManager": FIELD_MANAGER, "force": "true"},
                content="application/apply-patch+yaml",
            )
        except Refused as error:
            if error.status in {_NOT_FOUND, _CONFLICT}:
                return None
            raise

    async def patch(self, kind: Kind, namespace: str, name: str, body: Object) -> Object | None:
        """A merge patch; None when there is no such object, or it was changed meanwhile."""
        try:
            return await self._call(
                "PATCH",
                kind.path(namespace, name),
                body=body,
                query={"fieldManager": FIELD_MANAGER},
                content="application/merge-patch+json",
            )
        except Refused as error:
            if error.status in {_NOT_FOUND, _CONFLICT}:
                return None
            raise

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None
    ) -> bool:
        """Delete an object and, in the background, what it owns; False when there is none.

        Args:
            kind: of what.
            namespace: where.
            name: which.
            uid: only the object with this uid.
        """
        body: Object = {"propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        try:
            await self._call("DELETE", kind.path(namespace, name), body=body)
        except Refused as error:
            if error.status in {_NOT_FOUND, _CONFLICT}:
                return False
            raise
        return True

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | None] | None = None,
        body: Object | None = None,
        content: str = "application/json",
    ) -> Object:
        """One call, and its answer."""
        request = await self._client.param_serialize(
            method,
            path,
            query_params=[(key, value) for key, value in (query or {}).items() if value],
            header_params={"Accept": "application/json", "Content-Type": content},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            answer = await self._client.call_api(*request, _request_timeout=TIMEOUT)
            data = await answer.read()  # type: ignore[no-untyped-call]
        except (aiohttp.ClientError, OSError) as error:
            raise ApiUnavailable(
                f"{method} {path}: {str(error) or type(error).__name__}"
            ) from error
        text = data.decode() if isinstance(data, bytes) else str(data)
        try:
            found: Object = json.loads(text) if text else {}
        except ValueError:
            found = {"message": text[:200]}
        if not 200 <= answer.status <= 299:  # noqa: PLR2004 - HTTP's range of success
            raise Refused(
                f"{method} {path}: {found.get('message') or answer.status}",
                status=answer.status,
                why=str(found.get("reason", "")),
            )
        return found
