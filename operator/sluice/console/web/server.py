"""Serve the page to one person: on the loopback interface, and only with the address it printed.

Other users of the machine can connect to its loopback interface, and so can each web page that the
person opens. So answers about resources need a random token, which no browser sends by itself,
and the name that the browser believes to talk to must be one of this machine's. There
is nothing here that changes anything.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiohttp import web

from sluice.console.page import printable
from sluice.errors import Category, InvalidSpec, SluiceError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Json = dict[str, Any]
    Look = Callable[[], Awaitable[Json]]
    Describe = Callable[[str], Awaitable[Json]]

LOOPBACK: Final = "127.0.0.1"

LOOK: Final = 2.0
"""Seconds between two looks. Pages that ask more often get the last one again."""

_LAST: Final = 1.0
"""Seconds that a call may go on after the server was told to stop."""

_HOST: Final = re.compile(r"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?")
"""Names of this machine, with any port: an SSH tunnel may have another one."""

FILES: Final = {
    "/": "index.html",
    **{f"/{name}": name for name in ("page.js", "page.css", "common.js", "common.css")},
}
_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


async def protect(_: web.Request, response: web.StreamResponse) -> None:
    """Give a response the headers that keep a browser from doing more than the page needs."""
    response.headers.update(HEADERS)


async def send_file(request: web.Request) -> web.Response:
    """Send the file of the page that a request asks for."""
    return sent(Path(__file__).with_name(FILES[request.path]))


def sent(path: Path) -> web.Response:
    """Return a file of a page as a response."""
    return web.Response(text=path.read_text(encoding="utf-8"), content_type=_TYPES[path.suffix])


class PageLinks(NamedTuple):
    """Addresses of the page. Behind `#`, so no server and no log ever gets the token.

    Attributes:
        page: for the person, as long as the server runs.
        once: for a program that opens a browser, whose arguments other users may see. Its token is
            replaced when it is used, and is of no use afterwards.
    """

    page: str
    once: str


class _Server:
    """The answers.

    Args:
        look: returns all resources.
        describe: returns one of them by its id.
    """

    def __init__(self, look: Look, describe: Describe) -> None:
        self.token = secrets.token_urlsafe()
        self.once: str | None = secrets.token_urlsafe()
        self._look = look
        self._describe = describe
        self._seen: tuple[Json, int] = {}, HTTPStatus.OK
        self._time = float("-inf")
        self._turn = asyncio.Lock()  # one call at a time, however many pages are open

    def app(self) -> web.Application:
        """Return the application. It knows no method but GET."""
        app = web.Application(middlewares=[self._guard])
        for path in FILES:
            app.router.add_get(path, send_file, allow_head=False)
        app.router.add_get("/api/session", self._session, allow_head=False)
        app.router.add_get("/api/resources", self._resources, allow_head=False)
        app.router.add_get("/api/resources/{id}", self._details, allow_head=False)
        app.on_response_prepare.append(protect)
        return app

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Refuse a request that comes under another machine's name."""
        if _HOST.fullmatch(request.host) is None:  # DNS that leads a stranger's page here
            raise web.HTTPMisdirectedRequest(text="This page is for 127.0.0.1 only.\n")
        return await handler(request)

    async def _session(self, request: web.Request) -> web.Response:
        _require(request, self.once)
        self.once = None
        return web.json_response({"token": self.token})

    async def _resources(self, request: web.Request) -> web.Response:
        _require(request, self.token)
        async with self._turn:
            if time.monotonic() - self._time >= LOOK:
                self._seen = await _answer(self._look())
                self._time = time.monotonic()
            return _written(*self._seen)

    async def _details(self, request: web.Request) -> web.Response:
        _require(request, self.token)
        async with self._turn:
            return _written(*await _answer(self._describe(request.match_info["id"])))


def _require(request: web.Request, token: str | None) -> None:
    """Refuse a call that does not bring this token; each one if it was used."""
    given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
    if token is None or not secrets.compare_digest(given, f"Bearer {token}".encode()):
        raise web.HTTPUnauthorized(text="The token is missing or wrong.\n")


async def _answer(call: Awaitable[Json]) -> tuple[Json, int]:
    """Return the result of a call and a status of HTTP, or its error with the remedy."""
    try:
        return await call, HTTPStatus.OK
    except SluiceError as error:
        told = {"error": printable(str(error)), "remedy": printable(error.remedy)}
        missing = error.category is Category.SPEC
        return told, HTTPStatus.NOT_FOUND if missing else HTTPStatus.SERVICE_UNAVAILABLE


def _written(answer: Json, status: int) -> web.Response:
    return web.json_response(answer, status=status)


@asynccontextmanager
async def serve(look: Look, describe: Describe, *, port: int = 0) -> AsyncIterator[PageLinks]:
    """Serve the page during the block.

    Args:
        look: returns all resources, as `views.board` writes them.
        describe: returns one of them by its id, as `views.details` writes it.
        port: the port; 0 for any that is free.

    Raises:
        InvalidSpec: the port is taken.
    """
    server = _Server(look, describe)
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=_LAST)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, LOOPBACK, port).start()
        except OSError as error:
            raise InvalidSpec(
                f"the port {port} cannot be used: {error.strerror}",
                field="--port",
                remedy="Name another port, or none for any that is free.",
            ) from error
        address = f"http://{LOOPBACK}:{runner.addresses[0][1]}/"
        yield PageLinks(f"{address}#token={server.token}", f"{address}#once={server.once}")
    finally:
        await runner.cleanup()
