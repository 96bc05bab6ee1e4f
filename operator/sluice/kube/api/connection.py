"""Connect to the Kubernetes API. Each call has a deadline, and fails with an error of Sluice."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, Self

import aiohttp
from kubernetes.aio import client as kubernetes_client

from sluice.kube.api.context import configuration
from sluice.kube.api.fence import Fence
from sluice.kube.api.responses import asked, broken, is_success, parsed, refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from sluice.kube.api.kinds import Object

    Told = Callable[[str, str], None]
    """Callback `(verb, resource)`, called before each call. Verbs are those of RBAC rules."""

FIELD_MANAGER: Final = "sluice-operator"
TIMEOUT: Final = 15.0
"""Deadline of a call, in seconds."""
JSON: Final = "application/json"


class ApiConnection:
    """A connection to the API server: single calls, by their path.

    Args:
        client: the connection of Kubernetes' client; closed at the end of the block.
        told: a callback for each call; see Told.
        manager: the name under which the API server notes changes of fields.
        fence: while it is closed, calls only read.
    """

    def __init__(
        self,
        client: kubernetes_client.ApiClient,
        told: Told | None = None,
        *,
        manager: str = FIELD_MANAGER,
        fence: Fence | None = None,
    ) -> None:
        self._client = client
        self._told = told
        self._manager = manager
        self._fence = fence or Fence()
        self._ahead = 0.0

    @classmethod
    async def connect(
        cls,
        told: Told | None = None,
        *,
        manager: str = FIELD_MANAGER,
        fence: Fence | None = None,
    ) -> Self:
        """Connect by the pod's service account, or else by KUBECONFIG.

        Args:
            told: a callback for each call; see Told.
            manager: see the class.
            fence: see the class.

        Raises:
            ApiUnavailable: neither exists, or it cannot be read.
        """
        found = await configuration()
        if fence is not None:
            found.trace_configs = [_watched(fence)]
        return cls(kubernetes_client.ApiClient(found), told, manager=manager, fence=fence)

    def time(self) -> float:
        """Return the API server's time in seconds since 1970, by the date of its last answer.

        The date has whole seconds, so the result may be up to a second early. It may be late by the
        duration of a call.
        """
        return time.time() - self._ahead

    async def __aenter__(self) -> Self:
        """Enter the block. The first call opens the connection."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self._client.close()  # type: ignore[no-untyped-call]

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | None] | None = None,
        body: Object | None = None,
        content: str = JSON,
        accept: str = JSON,
    ) -> Object:
        """Make a call, and return the parsed answer."""
        with broken(f"{method} {path}"):
            answer = await self._send(
                method, path, query=query, body=body, content=content, accept=accept
            )
            data = await answer.read()
        found = parsed(data)
        if not is_success(answer.status):
            raise refusal(f"{method} {path}", answer.status, found)
        return found

    @asynccontextmanager
    async def _opened(
        self,
        what: str,
        path: str,
        query: Mapping[str, str | None],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - given to aiohttp
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a call whose answer is read bit by bit, and give the response if it is a success."""
        with broken(what):
            answer = await self._send("GET", path, query=query, timeout=timeout)
        response: aiohttp.ClientResponse = answer.response
        try:
            if not is_success(answer.status):
                with broken(what):
                    data = await response.read()
                raise refusal(what, answer.status, parsed(data))
            yield response
        finally:
            response.close()

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | None] | None = None,
        body: Object | None = None,
        content: str = JSON,
        accept: str = JSON,
        timeout: aiohttp.ClientTimeout | float = TIMEOUT,  # noqa: ASYNC109 - given to aiohttp
    ) -> Any:
        """Send a call. Return the answer with its status and headers; the body is not read yet.

        Raises:
            ApiUnavailable: the call changes something, and the fence is closed.
        """
        if self._told is not None:
            self._told(*asked(method, path, watch="watch" in (query or {})))
        request = await self._client.param_serialize(
            method,
            path,
            query_params=[(key, value) for key, value in (query or {}).items() if value],
            header_params={"Accept": accept, "Content-Type": content},
            body=body,
            auth_settings=["BearerToken"],
        )
        if method != "GET":
            self._fence.check()
        answer = await self._client.call_api(*request, _request_timeout=timeout)
        with suppress(KeyError, TypeError, ValueError):  # without a date, the last one still counts
            told = parsedate_to_datetime(answer.response.headers["Date"])
            self._ahead = time.time() - told.timestamp()
        return answer


def _watched(fence: Fence) -> aiohttp.TraceConfig:
    """Return callbacks that look at a fence just before the bytes of a change are written.

    A change waits for its connection and for its turn in the loop after the first look. A process
    that is suspended meanwhile would send it when it wakes up, whatever the time.
    """

    async def look(
        _session: object,
        _context: object,
        request: aiohttp.TraceRequestHeadersSentParams | aiohttp.TraceRequestChunkSentParams,
    ) -> None:
        if request.method != "GET":
            fence.check()

    found = aiohttp.TraceConfig()
    found.on_request_headers_sent.append(look)  # headers are kept back until the body, if any
    found.on_request_chunk_sent.append(look)
    return found
