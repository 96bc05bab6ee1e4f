"""The rule that viewers see the rows of the present result, while they may be seen."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import TYPE_CHECKING, Any, cast

import pytest
import yaml

from sluice.core.events.decoding import encoded
from sluice.core.values.model import StreamName
from sluice.engine.query import tail
from sluice.engine.query.sinks import make_sink
from sluice.errors import ApiUnavailable, SecretNotFound, StoreBusy, StoreUnavailable
from sluice.serving import queries as room
from sluice.serving.hub import Hub, Received
from sluice.serving.queries import Queries, QueryName
from sluice.serving.shares import Shares
from support.engine.queries import QUERY_ID, SINK, sink
from support.model import ModelStore, World, segment_name
from support.store.counts import manifest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sluice.core.values.model import StoreAddress
    from sluice.kube.api.kinds import Kind, Object

NAME = QueryName("shop", "counts")
OTHER_ID = "9" * 32


class Site:
    """An API server with a StreamQuery and its StreamStore, and a store with its result."""

    def __init__(self) -> None:
        self.made = World()
        self.store = ModelStore(self.made)
        self.store.create_scope(SINK.scope)
        self.error: Exception | None = None
        self.refused: Exception | None = None
        clicks = StreamName(scope=SINK.scope, stream="clicks")
        store, query = yaml.safe_load_all(manifest("tcp://store:9090", clicks))
        for body, uid in ((store, "s1"), (query, "q1")):
            body["metadata"] |= {"namespace": "shop", "uid": uid, "generation": 1}
            body["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        query["status"] = {"queryID": QUERY_ID}
        self.objects: dict[str, Object] = {"StreamQuery": query, "StreamStore": store}
        make_sink(sink(1), self.store, QUERY_ID)

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """See Api."""
        assert (namespace, name) in {("shop", "counts"), ("shop", "main")}
        if self.error is not None:
            raise self.error
        return copy.deepcopy(self.objects.get(kind.name))

    async def open(self, namespace: str, address: StoreAddress, *, strict: bool) -> ModelStore:
        """See Connections.get."""
        assert (namespace, address.uri, strict) == ("shop", "tcp://store:9090", True)
        if self.refused is not None:
            raise self.refused
        return self.store

    def append(self, number: int, stream: StreamName = SINK) -> None:
        """Append a row to a result."""
        name = segment_name(stream, self.made.streams[stream].segments[0].id)
        self.made.segments[name].data += encoded(b'{"n":%d}' % number)

    def queries(self) -> Queries:
        """Return the queries of this server."""
        connections = type("Connections", (), {"get": staticmethod(self.open)})
        return Queries(
            cast("Any", self),
            cast("Any", connections),
            Shares("queries", 1, alone=True),
            lambda _: None,
        )


class Viewer:
    """A viewer of a hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._seen = Received()
        self.rows: list[int] = []
        self.told: dict[str, Any] = {}

    def look(self) -> None:
        """Take all new rows."""
        pieces, self._seen = self._hub.since(self._seen)
        for event in b"".join(pieces).decode().split("\n\n")[:-1]:
            name, data = event.split("\n")
            told = json.loads(data.removeprefix("data: "))
            self.told[name.removeprefix("event: ")] = told
            if name == "event: rows":
                new = [row["n"] for row in told["rows"]]
                self.rows = new if told["reset"] else self.rows + new

    async def until(self, check: Callable[[], bool]) -> None:
        """Look until a condition holds."""
        async with asyncio.timeout(20):
            while not check():
                await asyncio.sleep(0.01)
                self.look()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LOOK", 0.02)
    monkeypatch.setattr(room, "REST", 0.02)
    monkeypatch.setattr(room, "LINGER", 0.05)
    monkeypatch.setattr(tail, "_WAIT", 0.01)
    monkeypatch.setattr(tail, "_AGAIN", 0.0)


def play(site: Site, act: Callable[[Queries, Viewer], Awaitable[None]]) -> None:
    """Let a viewer of the query act, who sees the row 1 first."""

    async def run() -> None:
        site.append(1)
        queries = site.queries()
        async with queries.watched(NAME) as hub:
            viewer = Viewer(hub)
            await viewer.until(lambda: viewer.rows == [1])
            await act(queries, viewer)
        queries.close()

    asyncio.run(run())


def test_rows_and_state_come_as_they_change() -> None:
    """Each row comes once."""
    site = Site()

    async def act(_: Queries, viewer: Viewer) -> None:
        site.append(2)
        site.objects["StreamQuery"]["status"]["progress"] = {"rows": 2}
        await viewer.until(lambda: viewer.rows == [1, 2])
        await viewer.until(lambda: viewer.told["state"]["rows"] == 2)

    play(site, act)


def forbid(site: Site) -> None:
    """Forbid to read the sink's scope."""
    site.objects["StreamStore"]["spec"]["access"] = {"scopes": ["elsewhere"]}


def write_only(site: Site) -> None:
    """Allow queries to write, and forbid to read."""
    site.objects["StreamStore"]["spec"]["access"] = {"operations": ["Create", "Append"]}


def no_query(site: Site) -> None:
    """Delete the query."""
    del site.objects["StreamQuery"]


def no_store(site: Site) -> None:
    """Delete the StreamStore."""
    del site.objects["StreamStore"]


def no_secret(site: Site) -> None:
    """Delete the Secret."""
    site.refused = SecretNotFound("there is no Secret")


def another_query(site: Site) -> None:
    """Make the query again with another sink that does not exist yet."""
    query = site.objects["StreamQuery"]
    query["metadata"]["uid"] = "q2"
    query["spec"]["sinks"][0]["stream"]["stream"] = "later"
    query["status"]["queryID"] = OTHER_ID


def foreign_sink(site: Site) -> None:
    """Name a stream of another owner as the sink."""
    site.objects["StreamQuery"]["status"]["queryID"] = OTHER_ID


@pytest.mark.parametrize(
    "change",
    [forbid, write_only, no_query, no_store, no_secret, another_query, foreign_sink],
)
def test_rows_that_may_not_be_seen_any_more_are_gone(change: Callable[[Site], None]) -> None:
    """The page removes the rows that it has, and gets no later row."""
    site = Site()

    async def act(queries: Queries, viewer: Viewer) -> None:
        change(site)
        await viewer.until(lambda: viewer.rows == [])
        site.append(2)
        await asyncio.sleep(0.2)
        viewer.look()
        assert viewer.rows == []
        async with queries.watched(NAME) as hub:
            late = Viewer(hub)
            late.look()
            assert late.rows == []

    play(site, act)


def test_a_result_that_is_made_later_is_shown() -> None:
    """The result belongs to the query that was made again under the same name."""
    site = Site()

    async def act(_: Queries, viewer: Viewer) -> None:
        another_query(site)
        await viewer.until(lambda: viewer.rows == [])
        later = StreamName(scope=SINK.scope, stream="later")
        make_sink(sink(1).model_copy(update={"stream": later}), site.store, OTHER_ID)
        site.append(7, later)
        await viewer.until(lambda: viewer.rows == [7])
        assert viewer.told["state"]["sink"] == str(later)

    play(site, act)


def test_a_store_that_is_away_keeps_the_rows_that_are_seen() -> None:
    """The page reports the failure, and goes on once the store answers."""
    site = Site()

    async def act(_: Queries, viewer: Viewer) -> None:
        site.refused = StoreUnavailable("no store answers")
        await viewer.until(
            lambda: "no store answers" in viewer.told.get("problem", {}).get("error", "")
        )
        assert viewer.rows == [1]
        site.refused = None
        site.append(2)
        await viewer.until(lambda: viewer.rows == [1, 2])
        assert viewer.told["problem"] == {}

    play(site, act)


def test_an_api_server_that_is_away_ends_nothing_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while the page reports the failure rather than showing old rows silently."""
    site = Site()

    async def act(_: Queries, viewer: Viewer) -> None:
        site.error = ApiUnavailable("away")
        await viewer.until(lambda: viewer.told["state"]["reason"] == "ApiUnavailable")
        site.append(2)
        await viewer.until(lambda: viewer.rows == [1, 2])
        monkeypatch.setattr(room, "AWAY", 0.0)
        await viewer.until(lambda: viewer.rows == [])

    play(site, act)


def test_a_fault_of_the_gateway_is_said_and_ends() -> None:
    """The page reports the fault instead of standing still."""
    site = Site()

    async def act(_: Queries, viewer: Viewer) -> None:
        site.refused = RuntimeError("a mistake")
        await viewer.until(lambda: "fault" in viewer.told.get("problem", {}).get("error", ""))
        site.refused = None
        await viewer.until(lambda: viewer.rows == [1])

    play(site, act)


def test_a_query_is_left_once_nobody_looks_at_it() -> None:
    """A viewer may come back for a while. Then another query gets the place."""
    site = Site()

    async def run() -> None:
        queries = site.queries()
        async with queries.watched(NAME) as hub:
            async with queries.watched(NAME) as same:
                assert same is hub
            with pytest.raises(StoreBusy):
                await queries.watched(NAME._replace(name="main")).__aenter__()
        async with queries.watched(NAME) as again:
            assert again is hub
        await asyncio.sleep(0.3)
        async with queries.watched(NAME) as new:
            assert new is not hub
        queries.close()

    asyncio.run(run())
