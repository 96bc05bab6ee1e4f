"""Calls of the Kubernetes API, each with a deadline and an error of ours."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from urllib.request import getproxies

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config

from sluice.errors import ApiUnavailable
from sluice.kube.api.kinds import path_of, root

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from sluice.kube.api.kinds import Kind, Object

    Told = Callable[[str, str], None]
    """Told of each call: its verb, as the API's own rules have it, and the resource."""

FIELD_MANAGER: Final = "sluice-operator"
TIMEOUT: Final = 15.0
"""Deadline of a call, in seconds."""
PAGE: Final = 100
"""Objects that a page of a list has at most: each takes up to 100 kB while the page is read."""


class Page(NamedTuple):
    """A part of a list.

    Attributes:
        items: objects, without apiVersion and kind.
        version: where a watch goes on that is to miss nothing.
        more: what gives the next part; empty for the last one.
    """

    items: list[Object]
    version: str
    more: str


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
        told: of each call.
    """

    def __init__(self, client: kubernetes_client.ApiClient, told: Told | None = None) -> None:
        self._client = client
        self._told = told
        self._ahead = 0.0

    @classmethod
    async def connect(cls, told: Told | None = None) -> Self:
        """By the pod's service account, or else by KUBECONFIG.

        Args:
            told: of each call.

        Raises:
            ApiUnavailable: there is neither.
        """
        configuration = kubernetes_client.Configuration()
        # No limit: each watch keeps a connection, and calls must not wait for one of those.
        configuration.connection_pool_maxsize = 0
        # Without a proxy, looking for one takes more time in each call than sending it: the
        # library reads ~/.netrc, of which this API knows nothing.
        configuration.client_session_kwargs = {"trust_env": bool(getproxies())}
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
        return cls(kubernetes_client.ApiClient(configuration), told)

    def time(self) -> float:
        """Give the API server's time, in seconds since 1970, as its last answer told it.

        It tells whole seconds, so this may be up to a second early, and late by a call's length.
        """
        return time.time() - self._ahead

    async def __aenter__(self) -> Self:
        """The connection is opened by the first call."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self._client.close()  # type: ignore[no-untyped-call]

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """An object, or None when there is none.

        Raises:
            Refused: also with status 404 and no reason, when there is no such kind.
        """
        try:
            return await self._call("GET", kind.object(namespace, name))
        except Refused as error:
            if error.status == _NOT_FOUND and error.why == "NotFound":
                return None
            raise

    async def resources(self, api_version: str) -> list[Object]:
        """The kinds of an API version, as discovery has them; none when it is not served."""
        group, _, version = api_version.rpartition("/")
        try:
            found = await self._call("GET", path_of(*root(group, version)))
        except Refused as error:
            if error.status == _NOT_FOUND:
                return []
            raise
        resources: list[Object] = found.get("resources") or []
        return resources

    async def page(
        self,
        kind: Kind,
        namespace: str | None,
        more: str = "",
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> Page:
        """A part of the objects of a namespace, or of all: the first, or the one after another.

        Raises:
            Refused: with status 410, if that other part is too long ago.
        """
        query = {"limit": str(PAGE), "continue": more, "labelSelector": labels}
        query["fieldSelector"] = fields
        found = await self._call("GET", kind.collection(namespace), query=query)
        meta = found.get("metadata") or {}
        return Page(
            _items(kind, found),
            str(meta.get("resourceVersion") or ""),
            str(meta.get("continue") or ""),
        )

    async def pages(
        self,
        kind: Kind,
        namespace: str | None,
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> AsyncIterator[list[Object]]:
        """The objects of a namespace, or of all for None, a part at a time. Raises as `page`."""
        page = await self.page(kind, namespace, labels=labels, fields=fields)
        yield page.items
        while page.more:
            page = await self.page(kind, namespace, page.more, labels=labels, fields=fields)
            yield page.items

    @asynccontextmanager
    async def watch(
        self, kind: Kind, namespace: str, since: str, *, seconds: float, silence: float
    ) -> AsyncIterator[AsyncIterator[Object]]:
        """Open a watch: its events, bookmarks included, as the API has them.

        Args:
            kind: of what.
            namespace: where.
            since: the version after which it begins.
            seconds: after which the server ends it.
            silence: seconds without a byte after which the connection is taken for dead.

        Raises:
            ApiUnavailable: it cannot be opened, or broke.
            Refused: with status 410, if `since` is too long ago.
        """
        path = kind.collection(namespace)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": str(max(1, round(seconds))),
        }
        timeout = aiohttp.ClientTimeout(total=seconds + TIMEOUT, connect=TIMEOUT, sock_read=silence)
        with _broken(f"watch {path}"):
            answer = await self._send("GET", path, query=query, timeout=timeout)
        response = answer.response
        try:
            if not _is_success(answer.status):
                with _broken(f"watch {path}"):
                    data = await response.read()
                raise _refusal(f"watch {path}", answer.status, _parsed(data))
            yield _events(f"watch {path}", response)
        finally:
            response.close()

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
        found = await self._call("GET", kind.collection(namespace), query=query)
        return _items(kind, found)

    async def create(self, kind: Kind, namespace: str, body: Object) -> Object | None:
        """Make an object; None when there is one of that name."""
        try:
            return await self._call(
                "POST", kind.collection(namespace), body=body, query={"fieldManager": FIELD_MANAGER}
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
        path = kind.object(namespace, body["metadata"]["name"], subresource)
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
                kind.object(namespace, name),
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
            await self._call("DELETE", kind.object(namespace, name), body=body)
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
        with _broken(f"{method} {path}"):
            answer = await self._send(method, path, query=query, body=body, content=content)
            data = await answer.read()
        found = _parsed(data)
        if not _is_success(answer.status):
            raise _refusal(f"{method} {path}", answer.status, found)
        return found

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | None] | None = None,
        body: Object | None = None,
        content: str = "application/json",
        timeout: aiohttp.ClientTimeout | float = TIMEOUT,  # noqa: ASYNC109 - it becomes the library's
    ) -> Any:
        """Send a call; what its answer begins with."""
        if self._told is not None:
            self._told(*asked(method, path, watch="watch" in (query or {})))
        request = await self._client.param_serialize(
            method,
            path,
            query_params=[(key, value) for key, value in (query or {}).items() if value],
            header_params={"Accept": "application/json", "Content-Type": content},
            body=body,
            auth_settings=["BearerToken"],
        )
        answer = await self._client.call_api(*request, _request_timeout=timeout)
        with suppress(KeyError, TypeError, ValueError):  # without a date the last one holds
            told = parsedate_to_datetime(answer.response.headers["Date"])
            self._ahead = time.time() - told.timestamp()
        return answer


_VERBS: Final = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}


def asked(method: str, path: str, *, watch: bool) -> tuple[str, str]:
    """The verb and the resource of a call, with its subresource; no name, no namespace."""
    parts = path.strip("/").split("/")
    parts = parts[2 if parts[0] == "api" else 3 :]
    if parts[0:1] == ["namespaces"] and len(parts) > 2:  # noqa: PLR2004 - else it is one itself
        parts = parts[2:]
    if not parts:
        return "get", "discovery"
    reading = "watch" if watch else "list" if len(parts) == 1 else "get"
    return _VERBS.get(method, reading), "/".join([parts[0], *parts[2:]])


def _items(kind: Kind, found: Object) -> list[Object]:
    """The objects of a list, which leaves out of each of which kind it is."""
    items: list[Object] = found.get("items") or []
    for item in items:
        item.setdefault("apiVersion", kind.api_version)
        item.setdefault("kind", kind.name)
    return items


def _is_success(status: int) -> bool:
    return 200 <= status <= 299  # noqa: PLR2004 - HTTP's range of success


def _parsed(data: bytes) -> Object:
    """An answer; one that is no JSON is its own message."""
    text = data.decode(errors="replace")
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"message": text[:200]}


def _refusal(what: str, status: int, found: Object) -> Refused:
    return Refused(
        f"{what}: {found.get('message') or status}",
        status=status,
        why=str(found.get("reason", "")),
    )


@contextmanager
def _broken(what: str) -> Iterator[None]:
    """Say a broken connection as an error of ours."""
    try:
        yield
    except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
        raise ApiUnavailable(f"{what}: {str(error) or type(error).__name__}") from error


async def _events(what: str, response: aiohttp.ClientResponse) -> AsyncIterator[Object]:
    """The events of a watch, until the server ends it."""
    while True:
        with _broken(what):
            line = await response.content.readline()
        if not line.endswith(b"\n"):  # an event that was cut off is not one
            return
        event = _parsed(line)
        if event.get("type") == "ERROR":
            found = event.get("object") or {}
            raise _refusal(what, int(found.get("code") or 0), found)
        if "object" not in event:
            raise ApiUnavailable(f"{what}: what came is no event")
        yield event
