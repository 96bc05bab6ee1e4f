"""Call the verbs of the Kubernetes API."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import aiohttp

from sluice.kube.api.connection import JSON, TIMEOUT, ApiConnection
from sluice.kube.api.kinds import POD, path_of, root
from sluice.kube.api.responses import Page, Refused, events_of, items_of, lines_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluice.kube.api.kinds import Kind, Object

TABLE: Final = f"{JSON};as=Table;v=v1;g=meta.k8s.io"
"""The form of an answer in which the API server itself makes the table of `kubectl get`."""
METADATA: Final = f"{JSON};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
"""The form of a list in which the API server leaves out all but the metadata."""
PAGE: Final = 100
"""The most objects in a page of a list. Each takes up to 100 kB while the page is read."""
METADATA_PAGE: Final = 500
"""The same for metadata, most of which are below 5 kB."""


_NOT_FOUND, _CONFLICT = 404, 409


class Api(ApiConnection):
    """A client of the API server: its verbs."""

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """Read an object. Return None if it does not exist.

        Raises:
            Refused: the API server answered with an error. It has status 404 and no reason if the
                kind does not exist.
        """
        try:
            return await self._call("GET", kind.object(namespace, name))
        except Refused as error:
            if error.status == _NOT_FOUND and error.why == "NotFound":
                return None
            raise

    async def resources(self, api_version: str) -> list[Object]:
        """List the kinds of an API version by discovery. The list is empty if it is not served."""
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
        only_metadata: bool = False,
    ) -> Page:
        """List a part of the objects of a namespace, or of all namespaces for None.

        Args:
            kind: the kind.
            namespace: the namespace.
            more: the token of the part before; empty for the first part.
            labels: a label selector.
            fields: a field selector.
            only_metadata: whether the objects come without spec and status, in longer parts.

        Raises:
            Refused: with status 410, if the token has expired.
        """
        size, accept = (METADATA_PAGE, METADATA) if only_metadata else (PAGE, JSON)
        query = {"limit": str(size), "continue": more, "labelSelector": labels}
        query["fieldSelector"] = fields
        found = await self._call("GET", kind.collection(namespace), query=query, accept=accept)
        meta = found.get("metadata") or {}
        return Page(
            items_of(kind, found),
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
        only_metadata: bool = False,
    ) -> AsyncIterator[list[Object]]:
        """List the objects of a namespace, or of all for None, page by page. Raises as `page`."""
        more: str | None = ""
        while more is not None:
            page = await self.page(
                kind, namespace, more, labels=labels, fields=fields, only_metadata=only_metadata
            )
            yield page.items
            more = page.more or None

    @asynccontextmanager
    async def watch(
        self, kind: Kind, namespace: str, since: str, *, seconds: float, silence: float
    ) -> AsyncIterator[AsyncIterator[Object]]:
        """Open a watch, and give its events as the API sends them, including bookmarks.

        Args:
            kind: the kind.
            namespace: the namespace.
            since: the resource version after which the watch begins.
            seconds: seconds after which the server ends the watch.
            silence: seconds without a byte after which the connection counts as dead.

        Raises:
            ApiUnavailable: the watch cannot be opened, or broke.
            Refused: with status 410, if `since` is too old.
        """
        path = kind.collection(namespace)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": str(max(1, round(seconds))),
        }
        timeout = aiohttp.ClientTimeout(total=seconds + TIMEOUT, connect=TIMEOUT, sock_read=silence)
        async with self._opened(f"watch {path}", path, query, timeout) as response:
            yield events_of(f"watch {path}", response)

    @asynccontextmanager
    async def log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        since: str | None = None,
        follow: bool = False,
        silence: float = TIMEOUT,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open the log of a container, and give its lines, each with the time before it.

        Args:
            namespace: the pod's namespace.
            pod: the pod's name.
            container: the container's name.
            since: a time; lines from its second on are given. None for all lines.
            follow: go on until the container ends.
            silence: seconds without a byte after which the connection counts as dead.

        Raises:
            ApiUnavailable: the log cannot be opened, or the connection broke.
            Refused: the API server, or the kubelet, has no log of this container.
        """
        path = POD.object(namespace, pod, "log")
        query = {"container": container, "timestamps": "true", "sinceTime": since}
        query["follow"] = "true" if follow else None
        timeout = aiohttp.ClientTimeout(total=None, connect=TIMEOUT, sock_read=silence)
        async with self._opened(f"log {path}", path, query, timeout) as response:
            yield lines_of(f"log {path}", response)

    async def table(
        self,
        kind: Kind,
        namespace: str | None,
        more: str = "",
        *,
        labels: str | None = None,
        name: str | None = None,
    ) -> Object:
        """Read a part of the table that `kubectl get` shows of a kind's objects.

        The API server makes the columns and their texts.

        Args:
            kind: the kind.
            namespace: the namespace; None for all.
            more: see `page`.
            labels: a label selector.
            name: the only object of the table; None for all.
        """
        path = kind.collection(namespace) if name is None else kind.object(namespace, name)
        query = {"limit": str(PAGE), "continue": more, "labelSelector": labels}
        return await self._call("GET", path, query=query if name is None else None, accept=TABLE)

    async def list(
        self,
        kind: Kind,
        namespace: str | None,
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> list[Object]:
        """List the objects of a namespace, or of all namespaces for None."""
        query = {"labelSelector": labels, "fieldSelector": fields}
        found = await self._call("GET", kind.collection(namespace), query=query)
        return items_of(kind, found)

    async def create(self, kind: Kind, namespace: str | None, body: Object) -> Object | None:
        """Create an object, in no namespace for None. Return None if one of that name exists."""
        try:
            return await self._call(
                "POST", kind.collection(namespace), body=body, query={"fieldManager": self._manager}
            )
        except Refused as error:
            if error.why == "AlreadyExists":
                return None
            raise

    async def apply(
        self, kind: Kind, namespace: str, body: Object, *, subresource: str = ""
    ) -> Object | None:
        """Apply an object server-side. Return None if it does not exist, or was changed meanwhile.

        With `metadata.resourceVersion` in the body, only that version is changed.
        """
        path = kind.object(namespace, body["metadata"]["name"], subresource)
        try:
            return await self._call(
                "PATCH",
                path,
                body=body,
                query={"fieldManager": self._manager, "force": "true"},
                content="application/apply-patch+yaml",
            )
        except Refused as error:
            if error.status in {_NOT_FOUND, _CONFLICT}:
                return None
            raise

    async def patch(self, kind: Kind, namespace: str, name: str, body: Object) -> Object | None:
        """Send a merge patch. Return None if the object does not exist, or was changed meanwhile.

        With `metadata.resourceVersion` in the body, only that version is changed.
        """
        try:
            return await self._call(
                "PATCH",
                kind.object(namespace, name),
                body=body,
                query={"fieldManager": self._manager},
                content="application/merge-patch+json",
            )
        except Refused as error:
            if error.status in {_NOT_FOUND, _CONFLICT}:
                return None
            raise

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        version: str | None = None,
    ) -> bool:
        """Delete an object. Kubernetes deletes the objects that it owns in the background.

        Args:
            kind: the kind.
            namespace: the namespace.
            name: the name.
            uid: delete the object only if it has this UID.
            version: delete the object only if it has this resource version.

        Returns:
            False if there is no such object.
        """
        body: Object = {"propagationPolicy": "Background"}
        wanted = {"uid": uid, "resourceVersion": version}
        preconditions = {field: value for field, value in wanted.items() if value is not None}
        if preconditions:
            body["preconditions"] = preconditions
        try:
            await self._call("DELETE", kind.object(namespace, name), body=body)
        except Refused as error:
            if error.status in {_NOT_FOUND, _CONFLICT}:
                return False
            raise
        return True
