"""The rule that the gateway shows nothing to a client without a right to see it."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from aiohttp import ClientPayloadError
from aiohttp.test_utils import TestClient, TestServer

from sluice.api.status.query_status import StreamQueryStatus
from sluice.core.events.decoding import encoded
from sluice.core.query.recent import Rows
from sluice.engine.query.sinks import make_sink
from sluice.errors import ApiUnavailable, SourceTruncated, StoreBusy
from sluice.serving.access import OneToken, Ruling, ViewRight
from sluice.serving.app import Gateway
from sluice.serving.board import Boards
from sluice.serving.hub import Hub
from sluice.serving.queries import FoundQuery, Queries, QueryName
from sluice.serving.reading import RowSource
from sluice.serving.shares import Shares
from support.engine.queries import QUERY_ID, SINK, sink
from support.model import ModelStore, World, segment_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from aiohttp import ClientResponse

    from sluice.kube.api.client import Api

TOKEN = "the-token"  # noqa: S105 - of these tests
GIVEN = {"Authorization": f"Bearer {TOKEN}"}
DDL = "n BIGINT"
NONE = cast("Any", None)
ROWS = ViewRight("get", "streamqueries", "shop", "orders", "results")
GUARDED = (
    "/api/resources",
    "/api/resources/some-uid",
    "/api/queries/shop/orders/events",
    "/api/queries/shop/orders/rows?format=json",
    "/api/queries/shop/orders/rows?format=arrow",
)


class Recorded:
    """A rule that allows only some rights, and records its calls."""

    def __init__(self, *allowed: ViewRight) -> None:
        self.allowed = allowed
        self.asked: list[ViewRight] = []

    async def decide(self, token: str, right: ViewRight) -> Ruling:
        """See AccessRule."""
        assert token == TOKEN
        self.asked.append(right)
        return Ruling.ALLOWED if right in self.allowed else Ruling.FORBIDDEN


class Followed(Queries):
    """Queries whose rows a test provides."""

    def __init__(self) -> None:
        super().__init__(NONE, NONE, Shares("queries", 1, alone=True), link=lambda _: None)
        self.hub = Hub()
        self.viewers = 0
        self.error: Exception | None = None

    @asynccontextmanager
    async def watched(self, name: QueryName) -> AsyncIterator[Hub]:
        """See Queries."""
        assert name == QueryName("shop", "orders")
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
        asked = queries or Followed()
        async with TestClient(TestServer(Gateway(rule, boards, asked).app())) as client:
            await act(client)

    asyncio.run(run())


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer no"}, {"Authorization": TOKEN}])
def test_without_the_token_nothing_is_told(path: str, header: dict[str, str]) -> None:
    """The answer tells the page to ask its user for a token."""

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(path, headers=header) as answer:
            assert answer.status == 401
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")

    play(act, OneToken(TOKEN))


@pytest.mark.parametrize("path", [path for path in GUARDED if "some-uid" not in path])
def test_a_lacking_right_is_named(path: str) -> None:
    """The answer has the command that checks the right."""

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(path, headers=GIVEN) as answer:
            assert answer.status == 403
            told = await answer.json()
        assert told["remedy"].startswith("Ask for it: kubectl auth can-i ")
        assert told["remedy"].endswith("-n shop")

    play(act, Recorded())


def test_rows_need_a_right_of_their_own() -> None:
    """The right to see the query itself is not enough."""
    rule = Recorded(ViewRight("get", "streamqueries", "shop", "orders"))

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(GUARDED[2], headers=GIVEN) as answer:
            assert answer.status == 403
        assert rule.asked[-1] == ROWS

    play(act, rule)


@pytest.mark.parametrize("namespace", ["other", "..", "%2e%2e", "shop%2Fx"])
def test_other_namespaces_are_not_served(namespace: str) -> None:
    """The gateway asks for no decision about them."""
    rule = Recorded()

    async def act(client: TestClient[Any, Any]) -> None:
        path = f"/api/queries/{namespace}/orders/events"
        async with client.get(path, headers=GIVEN) as answer:
            assert answer.status == 404
        assert not rule.asked

    play(act, rule)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_nothing_can_be_changed(method: str) -> None:
    """The only method is GET."""

    async def act(client: TestClient[Any, Any]) -> None:
        for path in (*GUARDED, "/", "/q/shop/orders"):
            async with client.request(method, path, headers=GIVEN) as answer:
                assert answer.status == 405

    play(act, OneToken(TOKEN))


def test_pages_are_the_same_for_all_and_guarded_by_headers() -> None:
    """Pages hold no data, and take no script from other places."""

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
    """The hub forgets the viewer once it has left."""
    monkeypatch.setattr("sluice.serving.app.BEAT", 0.05)
    queries = Followed()

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(GUARDED[2], headers=GIVEN) as answer:
            assert answer.content_type == "text/event-stream"
            assert await _events(answer, 1) == ["beat"]
            queries.hub.set_state({"reason": "Running"})
            while (await _events(answer, 1)) != ["state"]:
                pass
            assert queries.viewers == 1
        await until(lambda: not queries.viewers)

    play(act, OneToken(TOKEN), queries)


def test_a_right_that_is_withdrawn_ends_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for a viewer that stays connected, too."""
    monkeypatch.setattr("sluice.serving.app.BEAT", 0.05)
    monkeypatch.setattr("sluice.serving.app.AGAIN", 0.0)
    rights = (
        ViewRight("get", "streamqueries", "shop", "orders"),
        ROWS,
    )
    rule, queries = Recorded(*rights), Followed()

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(GUARDED[2], headers=GIVEN) as answer:
            assert await _events(answer, 2) == ["beat", "beat"]
            rule.allowed = ()
            await asyncio.wait_for(answer.content.read(), 10)  # the answer ends

    play(act, rule, queries)


def test_errors_are_told_with_their_remedy() -> None:
    """A page shows the error and its remedy."""
    queries = Followed()
    queries.error = StoreBusy("too many", remedy="Close some.")

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(GUARDED[2], headers=GIVEN) as answer:
            assert answer.status == 503
            assert await answer.json() == {"error": "too many", "remedy": "Close some."}
        queries.error = ApiUnavailable("away")
        async with client.get(GUARDED[2], headers=GIVEN) as answer:
            assert answer.status == 503
        async with client.get(f"{GUARDED[3]}x", headers=GIVEN) as answer:
            assert answer.status == 400

    play(act, OneToken(TOKEN), queries)


async def until(check: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(20):
        while not check():  # noqa: ASYNC110 - what happens sets no event
            await asyncio.sleep(0.02)


def test_a_viewer_that_does_not_read_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway breaks the connection, since the viewer would never receive the end."""
    monkeypatch.setattr("sluice.serving.sending.SLOW", 0.2)
    queries = Followed()
    rows = Rows((b'{"x":"%s"}' % (b"x" * 60_000),) * 60)

    async def act(client: TestClient[Any, Any]) -> None:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((client.server.host, client.server.port))
            asked = f"GET {GUARDED[2]} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
            connection.sendall(asked.encode())
            await until(lambda: queries.viewers == 1)

            def left() -> bool:
                queries.hub.add(rows)  # more than the buffers of both sides take
                return not queries.viewers

            await until(left)
            assert not (await asyncio.to_thread(received, connection)).endswith(b"\r\n0\r\n\r\n")

    play(act, OneToken(TOKEN), queries)


def received(connection: socket.socket) -> bytes:
    """Receive and return all bytes until the connection ends."""
    connection.settimeout(10)
    found = bytearray()
    while data := connection.recv(1 << 20):
        found += data
    return bytes(found)


class Downloaded(Followed):
    """Queries whose result is a stream of a store."""

    def __init__(self, store: ModelStore) -> None:
        super().__init__()
        self._store = store

    async def look(self, name: QueryName) -> FoundQuery:
        """See Queries."""
        body = {
            "metadata": {"namespace": name.namespace, "name": name.name, "uid": "1"},
            "status": {"queryID": QUERY_ID, "version": {"number": 1, "hash": "0", "columns": DDL}},
        }
        resource = SimpleNamespace(metadata=SimpleNamespace(name=name.name))
        status = StreamQueryStatus.read(body["status"])
        return FoundQuery(body, cast("Any", resource), status, SINK)

    async def open(self, seen: FoundQuery) -> RowSource:
        """See Queries."""
        return RowSource(cast("Any", self._store), seen.sink, QUERY_ID, "1")


@pytest.fixture
def made() -> World:
    """Return a world with two rows in a result."""
    world = World()
    store = ModelStore(world)
    store.create_scope(SINK.scope)
    make_sink(sink(1), store, QUERY_ID)
    segment = world.segments[segment_name(SINK, world.streams[SINK].segments[0].id)]
    for number in range(2):
        segment.data += encoded(b'{"n":%d}' % number)
    return world


def test_rows_are_downloaded(made: World) -> None:
    """Rows are downloaded as JSON and as Arrow."""

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(GUARDED[3], headers=GIVEN) as answer:
            assert await answer.read() == b'{"n":0}\n{"n":1}\n'
            assert answer.headers["Content-Disposition"] == 'attachment; filename="orders.jsonl"'
        async with client.get(GUARDED[4], headers=GIVEN) as answer:
            with pa.ipc.open_stream(await answer.read()) as reader:
                assert reader.read_all().to_pydict() == {"n": [0, 1]}

    play(act, OneToken(TOKEN), Downloaded(ModelStore(made)))


def test_a_download_that_fails_midway_is_no_whole_file(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks, so that no client takes a part for the whole."""

    def failing(*_: object) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"event": ['{"n":0}']})
        raise SourceTruncated("bytes are gone")

    monkeypatch.setattr("sluice.serving.download.batches", failing)

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(GUARDED[3], headers=GIVEN) as answer:
            assert answer.status == 200
            with pytest.raises(ClientPayloadError):
                await answer.read()

    play(act, OneToken(TOKEN), Downloaded(ModelStore(made)))


def test_a_stream_of_somebody_else_is_not_downloaded(made: World) -> None:
    """This holds though the query names the stream as its sink."""
    config = made.streams[SINK].config
    made.streams[SINK].config = config.model_copy(update={"tags": ()})

    async def act(client: TestClient[Any, Any]) -> None:
        async with client.get(GUARDED[3], headers=GIVEN) as answer:
            assert answer.status == 503
            assert "did not make it" in (await answer.json())["error"]

    play(act, OneToken(TOKEN), Downloaded(ModelStore(made)))
