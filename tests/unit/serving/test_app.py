"""Nothing is shown without a right to see it, whatever is asked for."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiohttp.test_utils import TestClient, TestServer

from sluice.errors import ApiUnavailable, StoreBusy
from sluice.serving.access import OneToken, Verdict, ViewRight
from sluice.serving.app import Gateway
from sluice.serving.board import Boards
from sluice.serving.hub import Hub
from sluice.serving.queries import Name, Queries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from aiohttp import ClientResponse

    from sluice.kube.api.client import Api
    from sluice.kube.stores.connections import Connections

TOKEN = "the-token"  # noqa: S105 - of these tests
GIVEN = {"Authorization": f"Bearer {TOKEN}"}
NONE = cast("Any", None)
GUARDED = (
    "/api/resources",
    "/api/queries/shop/orders/events",
    "/api/queries/shop/orders/rows?format=json",
    "/api/queries/shop/orders/rows?format=arrow",
)


class Recorded:
    """A rule that allows nothing but some rights, and records what it was asked."""

    def __init__(self, *allowed: ViewRight) -> None:
        self.allowed = allowed
        self.asked: list[ViewRight] = []

    async def decide(self, token: str, right: ViewRight) -> Verdict:
        """See Access."""
        assert token == TOKEN
        self.asked.append(right)
        return Verdict.ALLOWED if right in self.allowed else Verdict.FORBIDDEN


class Followed(Queries):
    """Queries whose rows a test gives."""

    def __init__(self) -> None:
        super().__init__(NONE, NONE, link=lambda _: None)
        self.hub = Hub()
        self.viewers = 0
        self.error: Exception | None = None

    @asynccontextmanager
    async def watched(self, name: Name) -> AsyncIterator[Hub]:
        """See Queries."""
        assert name == Name("shop", "orders")
        if self.error is not None:
            raise self.error
        self.viewers += 1
        try:
            yield self.hub
        finally:
            self.viewers -= 1


def play(
    act: Callable[[TestClient[Any, Any]], Awaitable[None]],
    rule: OneToken | Recorded,
    queries: Queries | None = None,
) -> None:
    """Let a client of a gateway act."""

    async def run() -> None:
        boards = Boards(cast("Api", None), ["shop"])
        asked = queries or Queries(cast("Api", None), cast("Connections", None), lambda _: None)
        async with TestClient(TestServer(Gateway(rule, boards, asked).app())) as client:
            await act(client)

    asyncio.run(run())


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer no"}, {"Authorization": TOKEN}])
def test_without_the_token_nothing_is_told(path: str, header: dict[str, str]) -> None:
    """And the page learns that it has to ask a person for one."""

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(path, headers=header) as answer:
            assert answer.status == 401
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")

    play(act, OneToken(TOKEN))


@pytest.mark.parametrize("path", GUARDED)
def test_a_lacking_right_is_named(path: str) -> None:
    """With the command that checks it."""

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(path, headers=GIVEN) as answer:
            assert answer.status == 403
            told = await answer.json()
        assert told["remedy"].startswith("Ask for it: kubectl auth can-i ")
        assert told["remedy"].endswith("-n shop")

    play(act, Recorded())


def test_rows_need_a_right_of_their_own() -> None:
    """To see the query itself is not enough."""
    rule = Recorded(ViewRight("get", "streamqueries", "shop"))

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(GUARDED[1], headers=GIVEN) as answer:
            assert answer.status == 403
        assert rule.asked[-1] == ViewRight("get", "streamqueries", "shop", "results")

    play(act, rule)


@pytest.mark.parametrize("namespace", ["other", "..", "%2e%2e", "shop%2Fx"])
def test_other_namespaces_are_not_served(namespace: str) -> None:
    """Nobody is asked about them."""
    rule = Recorded()

    async def act(client: TestClient[Any, Any]) -> None:
        path = f"/api/queries/{namespace}/orders/events"
        async with client.get(path, headers=GIVEN) as answer:
            assert answer.status == 404
        assert not rule.asked

    play(act, rule)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_nothing_can_be_changed(method: str) -> None:
    """There is only GET."""

    async def act(client: TestClient[Any, Any]) -> None:
        for path in (*GUARDED, "/", "/q/shop/orders"):
            async with client.request(method, path, headers=GIVEN) as answer:
                assert answer.status == 405

    play(act, OneToken(TOKEN))


def test_pages_are_the_same_for_all_and_guarded_by_headers() -> None:
    """They have no data, and take no script from elsewhere."""

    async def act(client: TestClient[Any, Any]) -> None:
        for path in ("/", "/page.js", "/q/shop/orders", "/q/no/such", "/query.js", "/healthz"):
            async with client.get(path) as answer:
                assert answer.status == 200
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Cache-Control"] == "no-store"

    play(act, OneToken(TOKEN))


async def _events(answer: ClientResponse, count: int) -> list[str]:
    lines: list[str] = []
    while len(lines) < count:
        line = await asyncio.wait_for(answer.content.readline(), 10)
        assert line, "the stream has ended"
        if line.startswith(b"event: "):
            lines.append(line.decode().removeprefix("event: ").strip())
    return lines


def test_a_viewer_gets_news_and_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is forgotten once it has left."""
    monkeypatch.setattr("sluice.serving.app.BEAT", 0.05)
    queries = Followed()

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(GUARDED[1], headers=GIVEN) as answer:
            assert answer.content_type == "text/event-stream"
            assert await _events(answer, 1) == ["beat"]
            queries.hub.set_state({"reason": "Running"})
            while (await _events(answer, 1)) != ["state"]:
                pass
            assert queries.viewers == 1
        for _ in range(200):
            if not queries.viewers:
                break
            await asyncio.sleep(0.05)
        assert not queries.viewers

    play(act, OneToken(TOKEN), queries)


def test_a_right_that_is_withdrawn_ends_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to a viewer that stays connected."""
    monkeypatch.setattr("sluice.serving.app.BEAT", 0.05)
    monkeypatch.setattr("sluice.serving.app.AGAIN", 0.0)
    rights = (
        ViewRight("get", "streamqueries", "shop"),
        ViewRight("get", "streamqueries", "shop", "results"),
    )
    rule, queries = Recorded(*rights), Followed()

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(GUARDED[1], headers=GIVEN) as answer:
            assert await _events(answer, 2) == ["beat", "beat"]
            rule.allowed = ()
            await asyncio.wait_for(answer.content.read(), 10)  # ends

    play(act, rule, queries)


def test_errors_are_told_with_their_remedy() -> None:
    """A page shows both."""
    queries = Followed()
    queries.error = StoreBusy("too many", remedy="Close some.")

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(GUARDED[1], headers=GIVEN) as answer:
            assert answer.status == 503
            assert await answer.json() == {"error": "too many", "remedy": "Close some."}
        queries.error = ApiUnavailable("away")
        async with client.get(GUARDED[1], headers=GIVEN) as answer:
            assert answer.status == 503
        async with client.get(f"{GUARDED[2]}x", headers=GIVEN) as answer:
            assert answer.status == 400

    play(act, OneToken(TOKEN), queries)
