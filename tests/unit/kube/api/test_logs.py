"""Logs of pods over HTTP: lines of any length, refusals, connections that break or fall silent."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from kubernetes.aio import client as kubernetes_client

from sluice.errors import ApiUnavailable
from sluice.kube.api.client import Api
from sluice.kube.api.responses import MOST_LINE, Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(handler: Handler) -> AsyncIterator[Api]:
    """Serve each request by a handler, and yield a client of this server."""
    application = web.Application()
    application.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    configuration = kubernetes_client.Configuration(host=f"http://{host}:{port}")
    try:
        async with Api(kubernetes_client.ApiClient(configuration)) as api:
            yield api
    finally:
        await runner.cleanup()


def read(handler: Handler, **how: Any) -> list[bytes]:
    """Read the log of a pod from a server."""

    async def lines() -> list[bytes]:
        async with served(handler) as api, api.log("team", "pod", "driver", **how) as found:
            return [line async for line in found]

    return asyncio.run(lines())


def sending(*parts: bytes, cut: bool = False, silent: bool = False) -> Handler:
    """Return a handler that sends parts of a log."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in parts:
            await response.write(part)
        if silent:
            await asyncio.sleep(3600)
        if cut and request.transport is not None:
            request.transport.abort()
        return response

    return handle


def test_lines_come_as_they_were_written() -> None:
    """This holds for any division into parts, and for a last line without an end."""
    assert read(sending(b"one\ntw", b"o\n\nthr", b"ee")) == [b"one", b"two", b"", b"three"]
    assert read(sending()) == []


def test_a_line_without_end_takes_bounded_memory() -> None:
    """The line comes in parts."""
    found = read(sending(b"x" * (2 * MOST_LINE + 5), b"y\nz\n"))
    assert max(map(len, found)) <= MOST_LINE
    assert b"".join(found) == b"x" * (2 * MOST_LINE + 5) + b"yz"


def test_the_call_names_container_and_time() -> None:
    """Lines have times before them, and the call follows only on request."""
    asked: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append({"path": request.path, **request.query})
        return web.Response(text="")

    read(handle)
    read(handle, since="2026-01-01T00:00:00Z", follow=True)
    common = {
        "path": "/api/v1/namespaces/team/pods/pod/log",
        "container": "driver",
        "timestamps": "true",
    }
    more = {"sinceTime": "2026-01-01T00:00:00Z", "follow": "true"}
    assert asked == [common, common | more]


def test_a_refusal_has_the_reason_of_the_server() -> None:
    """The error is as for any other call."""

    async def handle(_: web.Request) -> web.StreamResponse:
        said = {"message": "the container waits", "reason": "BadRequest"}
        return web.json_response(said, status=400)

    with pytest.raises(Refused, match="the container waits") as caught:
        read(handle)
    assert (caught.value.status, caught.value.why) == (400, "BadRequest")


@pytest.mark.parametrize("how", [{"cut": True}, {"silent": True}], ids=str)
def test_a_connection_that_breaks_or_is_silent_is_an_error(how: dict[str, bool]) -> None:
    """The client does not wait for ever, and does not take a part for the whole log."""
    with pytest.raises(ApiUnavailable, match="pods/pod/log"):
        read(sending(b"one\n", **how), silence=0.2)
