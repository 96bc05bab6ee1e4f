"""The gateway: an HTTP server that shows resources and the rows of queries, and changes nothing.

It holds no state but what it has read, so it may be killed at any time, and several may run.
"""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiohttp import web

from sluice.console.page import printable
from sluice.console.web import server as pages
from sluice.errors import InvalidSpec, SluiceError
from sluice.kube.api.kinds import STREAM_QUERY
from sluice.serving.access import RESULTS, Ruling, ViewRight
from sluice.serving.download import FORMATS, send
from sluice.serving.hub import Received, encoded
from sluice.serving.queries import QueryName
from sluice.serving.sending import sending, write
from sluice.serving.shares import Shares

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable

    from sluice.serving.access import AccessRule
    from sluice.serving.board import Boards
    from sluice.serving.hub import Hub
    from sluice.serving.queries import Queries

    _Json = dict[str, Any]
    _Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

BEAT: Final = 5.0
"""Seconds without anything new after which a viewer is told that the gateway is there."""

AWAY: Final = 300.0
"""Seconds for which a viewer sees on though Kubernetes does not say that it may."""

AGAIN: Final = 60.0
"""Seconds after which it is checked again that a viewer may see what it sees."""

MOST_VIEWERS: Final = 2000
"""The most viewers at a time."""

MOST_DOWNLOADS: Final = 8
"""The most downloads at a time. Each reads in a thread now and then."""

_PAGE: Final = Path(__file__).with_name("page")
_FILES: Final = {
    "/query.js": "query.js",
    "/chart.js": "chart.js",
    "/stream.js": "stream.js",
    "/query.css": "query.css",
    "/vendor/uPlot.iife.min.js": "vendor/uPlot.iife.min.js",
    "/vendor/uPlot.min.css": "vendor/uPlot.min.css",
}


class Address(NamedTuple):
    """Where the gateway listens.

    Attributes:
        host: the interface's address.
        port: the port; 0 for any that is free.
        tls: the certificate; None for plain HTTP.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None


class Gateway:
    """The answers.

    Args:
        access: who may see what.
        boards: the looks at all resources of a namespace.
        queries: the queries.
    """

    def __init__(self, access: AccessRule, boards: Boards, queries: Queries) -> None:
        self._access = access
        self._boards = boards
        self._queries = queries
        self._viewers = Shares("viewers", MOST_VIEWERS, alone=boards.alone)
        self._downloads = Shares("downloads", MOST_DOWNLOADS, alone=boards.alone)

    def app(self) -> web.Application:
        """Return the application. It knows no method but GET."""
        app = web.Application(middlewares=[_errors])
        routes: dict[str, _Handler] = {
            "/healthz": _healthy,
            "/q/{namespace}/{name}": _query_page,
            "/api/resources": self._resources,
            "/api/resources/{id}": self._details,
            "/api/queries/{namespace}/{name}/events": self._events,
            "/api/queries/{namespace}/{name}/rows": self._rows,
        }
        routes |= dict.fromkeys(pages.FILES, pages.send_file)
        routes |= dict.fromkeys(_FILES, _file)
        for path, handler in routes.items():
            app.router.add_get(path, handler, allow_head=False)
        app.on_response_prepare.append(pages.protect)
        return app

    async def _decide(self, request: web.Request, right: ViewRight) -> bool:
        """Tell whether the caller has a right. Refuse a caller without a token."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        given = token if scheme.lower() == "bearer" else ""
        verdict = await self._access.decide(given, right)
        if verdict is Ruling.UNKNOWN:
            raise web.HTTPUnauthorized(
                text="The token is missing or wrong.\n",
                headers={"WWW-Authenticate": 'Bearer realm="sluice"'},
            )
        return verdict is Ruling.ALLOWED

    async def _require(self, request: web.Request, *rights: ViewRight) -> None:
        """Refuse a caller who lacks one of these rights."""
        for right in rights:
            if not await self._decide(request, right):
                raise _forbidden(right)

    async def _resources(self, request: web.Request) -> web.Response:
        found = await self._boards.look(partial(self._decide, request))
        if found is None:
            raise _forbidden(self._boards.least)
        return web.json_response(found)

    async def _details(self, request: web.Request) -> web.Response:
        await self._decide(request, self._boards.least)  # no lookup for a stranger
        resource = await self._boards.find(request.match_info["id"])
        meta = resource.namespace, resource.name
        await self._require(request, ViewRight("get", resource.spec.plural, *meta))
        found = await self._boards.details(
            resource, request.match_info["id"], partial(self._decide, request)
        )
        return web.json_response(found)

    async def _may_see(self, request: web.Request) -> QueryName:
        """Return the query of a request, whose rows the caller may see."""
        name = QueryName(request.match_info["namespace"], request.match_info["name"])
        self._boards.check_served(name.namespace)
        plural = STREAM_QUERY.plural
        await self._require(
            request,
            ViewRight("get", plural, *name),
            ViewRight("get", plural, *name, RESULTS),
        )
        return name

    async def _events(self, request: web.Request) -> web.StreamResponse:
        name = await self._may_see(request)
        with self._viewers.taken(name.namespace):
            async with self._queries.watched(name) as hub:
                return await self._show(request, hub)

    async def _show(self, request: web.Request, hub: Hub) -> web.StreamResponse:
        """Send all that is new, until the viewer leaves or may not see it any more."""
        response = web.StreamResponse(headers={"X-Accel-Buffering": "no"})
        response.content_type = "text/event-stream"
        await response.prepare(request)
        seen, allowed, checked = Received(), time.monotonic(), time.monotonic()
        async with sending(request):
            while True:
                now = time.monotonic()
                if now - checked > AGAIN:
                    checked = now
                    verdict = await self._still_may_see(request)
                    allowed = now if verdict else allowed
                    if verdict is False or now - allowed > AWAY:
                        break  # the page asks again, and learns why
                told, seen = hub.since(seen)
                if not told:
                    await hub.wait(BEAT)
                    told, seen = hub.since(seen)
                beat = encoded("beat", {"now": datetime.now(UTC).isoformat()})
                await write(response, told or [beat])
        return response

    async def _still_may_see(self, request: web.Request) -> bool | None:
        """Tell whether a viewer may go on; None if Kubernetes does not say."""
        try:
            await self._may_see(request)
        except web.HTTPException:
            return False
        except SluiceError:
            return None
        return True

    async def _rows(self, request: web.Request) -> web.StreamResponse:
        form = FORMATS.get(request.query.get("format", "json"))
        if form is None:
            raise _refused(
                web.HTTPBadRequest, "there is no such format", f"Take {' or '.join(FORMATS)}."
            )
        name = await self._may_see(request)
        with self._downloads.taken(name.namespace):
            seen = await self._queries.look(name)
            return await send(request, seen, await self._queries.open(seen), form)


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _query_page(_: web.Request) -> web.Response:
    return pages.sent(_PAGE / "query.html")


async def _file(request: web.Request) -> web.Response:
    path = _PAGE / _FILES[request.path]
    if not path.exists():  # a wheel that was built without it
        raise _refused(
            web.HTTPNotFound,
            f"this installation lacks {path.name}",
            "Run the gateway in the image of queries, which has it.",
        )
    return pages.sent(path)


@web.middleware
async def _errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Answer an error of Sluice with its remedy."""
    try:
        return await handler(request)
    except SluiceError as error:
        kind = web.HTTPNotFound if isinstance(error, InvalidSpec) else web.HTTPServiceUnavailable
        raise _refused(kind, printable(str(error)), printable(error.remedy)) from error


def _forbidden(right: ViewRight) -> web.HTTPError:
    return _refused(
        web.HTTPForbidden, "you lack a right", f"Ask for it: kubectl auth can-i {right}"
    )


def _refused(kind: type[web.HTTPError], error: str, remedy: str) -> web.HTTPError:
    told = json.dumps({"error": error, "remedy": remedy})
    return kind(text=told, content_type="application/json")


@asynccontextmanager
async def serving(gateway: Gateway, address: Address) -> AsyncIterator[str]:
    """Serve the gateway during the block, and give its address.

    Raises:
        InvalidSpec: the address cannot be used.
    """
    runner = web.AppRunner(gateway.app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host, address.port, ssl_context=address.tls)
        try:
            await site.start()
        except OSError as error:
            raise InvalidSpec(
                f"cannot listen on {address.host}:{address.port}: {error.strerror}",
                field="--port",
                remedy="Name another port.",
            ) from error
        scheme = "http" if address.tls is None else "https"
        host = f"[{address.host}]" if ":" in address.host else address.host
        yield f"{scheme}://{host}:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()
