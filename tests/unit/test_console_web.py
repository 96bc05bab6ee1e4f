"""The page's server: its access rules and its answers."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import pytest

from sluice.administration.board import Board
from sluice.administration.description import Description
from sluice.administration.following import followed
from sluice.administration.naming import Named
from sluice.api.registry import KINDS
from sluice.commands.cluster.shared import ClusterPlace
from sluice.commands.cluster.ui import PageLooks
from sluice.console.web import server, views
from sluice.errors import ApiUnavailable, InvalidSpec
from sluice.kube.api.kinds import STREAM_COPY
from support.cases import resources
from support.kube.finalizing import FinalizingServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sluice.kube.api.kinds import Object

NOW: Final = datetime(2026, 5, 4, 12, tzinfo=UTC)
SPECS: Final = {kind.name: kind for kind in KINDS}


class Peer:
    """A client of the page's server.

    Args:
        session: the connections.
        links: the addresses that the server has printed.
    """

    def __init__(self, session: aiohttp.ClientSession, links: server.PageLinks) -> None:
        self._session = session
        self.address, _, self.token = links.page.partition("#token=")
        self.once = links.once.partition("#once=")[2]

    async def call(
        self, path: str = "", method: str = "GET", *, token: str | None = None, host: str = ""
    ) -> tuple[int, str]:
        """Call the server, check its headers, and return status and body."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        headers |= {"Host": host} if host else {}
        async with self._session.request(method, self.address + path, headers=headers) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'; script-src 'self';" in policy
            assert "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            return answer.status, await answer.text()


def peering(
    act: Callable[[Peer], Awaitable[None]],
    *,
    look: Callable[[], Any] = lambda: {"rows": []},
    describe: Callable[[str], Any] = lambda uid: {"id": uid},
) -> None:
    """Act as a client of a server that gives these answers."""

    async def looks() -> Any:
        return look()

    async def describes(uid: str) -> Any:
        return describe(uid)

    async def run() -> None:
        async with (
            server.serve(looks, describes) as links,
            aiohttp.ClientSession() as session,
        ):
            await act(Peer(session, links))

    asyncio.run(run())


def test_only_the_printed_address_leads_to_resources() -> None:
    """The page itself contains no data, so any user of this machine may load it."""

    async def act(peer: Peer) -> None:
        for path in ("", "page.js", "page.css"):
            assert (await peer.call(path))[0] == 200
        for path in ("api/resources", "api/resources/x", "api/session"):
            for wrong in (None, "", "x", peer.token[:-1], "\u00fc"):
                assert (await peer.call(path, token=wrong))[0] == 401
        assert await peer.call("api/resources", token=peer.token) == (200, '{"rows": []}')
        assert await peer.call("api/resources/x", token=peer.token) == (200, '{"id": "x"}')
        assert (await peer.call("api/resources", token=peer.once))[0] == 401

    peering(act)


def test_the_address_that_a_browser_is_started_with_works_once() -> None:
    """Other users of the machine can see a browser's arguments, but too late to use them."""

    async def act(peer: Peer) -> None:
        status, text = await peer.call("api/session", token=peer.once)
        assert (status, json.loads(text)) == (200, {"token": peer.token})
        for token in (peer.once, peer.token, ""):
            assert (await peer.call("api/session", token=token))[0] == 401

    peering(act)


def test_other_names_than_this_machines_are_refused() -> None:
    """A foreign name can lead to this server by DNS, but the browser still sends that name."""

    async def act(peer: Peer) -> None:
        port = peer.address.rpartition(":")[2].strip("/")
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "[::1]"):
            for path in ("", "page.js", "api/resources"):
                assert (await peer.call(path, token=peer.token, host=host))[0] == 421
        for host in (f"localhost:{port}", "localhost:8000", "127.0.0.1"):
            assert (await peer.call("api/resources", token=peer.token, host=host))[0] == 200

    peering(act)


def test_there_is_nothing_to_change() -> None:
    """Each method but GET is refused, and so is each path that leaves the page's files."""

    async def act(peer: Peer) -> None:
        for path in ("", "page.js", "api/resources", "api/resources/x", "api/session"):
            for method in ("POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
                assert (await peer.call(path, method, token=peer.token))[0] == 405
        for path in ("server.py", "..%2fserver.py", "page.js/..%2f..%2fpage.py", "api/"):
            assert (await peer.call(path, token=peer.token))[0] == 404

    peering(act)


def test_it_listens_on_the_loopback_interface_alone() -> None:
    """No other machine reaches the server. An occupied port is an error of the option."""

    async def run() -> None:
        async def nothing(*_: str) -> Any:
            return {}

        async with server.serve(nothing, nothing) as links:
            assert links.page.startswith("http://127.0.0.1:")
            port = int(links.page.partition("#")[0].rpartition(":")[2].strip("/"))
            with socket.socket() as other:  # would fail if the server had all addresses
                other.bind(("127.0.0.2", port))
            with pytest.raises(InvalidSpec, match=f"--port: the port {port} cannot be used"):
                async with server.serve(nothing, nothing, port=port):
                    pass

    asyncio.run(run())


def test_many_pages_cost_the_api_server_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server reuses a look until its time is over."""
    monkeypatch.setattr(server, "LOOK", float("inf"))
    looks = []

    async def act(peer: Peer) -> None:
        calls = (peer.call("api/resources", token=peer.token) for _ in range(20))
        assert {status for status, _ in await asyncio.gather(*calls)} == {200}

    def look() -> Any:
        looks.append(1)
        return {}

    peering(act, look=look)
    assert len(looks) == 1


def test_an_error_comes_with_its_remedy() -> None:
    """The API server and a missing resource give such errors. Control characters are blanks."""

    def away() -> Any:
        raise ApiUnavailable("no answer\x1b[2J", remedy="Try again.")

    def gone(_: str) -> Any:
        raise InvalidSpec("it was deleted", remedy="Close it.")

    async def act(peer: Peer) -> None:
        status, text = await peer.call("api/resources", token=peer.token)
        assert (status, json.loads(text)["error"]) == (503, "no answer [2J")
        status, text = await peer.call("api/resources/x", token=peer.token)
        assert (status, json.loads(text)["remedy"]) == (404, "Close it.")

    peering(act, look=away, describe=gone)


# -- what the page shows


def resource(like: Object, name: str, status: Object, **meta: Any) -> tuple[Named, Object]:
    """Return a resource with a status, made a day ago."""
    meta = {"name": name, "namespace": "team", "uid": f"uid-{name}", "generation": 1, **meta}
    meta["creationTimestamp"] = "2026-05-03T12:00:00Z"
    body = resources.changed(like, "metadata", meta) | {"status": status}
    return Named(SPECS[like["kind"]], "team", name), body


def ready(status: str, reason: str, *others: str, message: str = "It is so.") -> list[Object]:
    """Return conditions."""
    common = {"reason": reason, "message": message, "observedGeneration": 1}
    common |= {"lastTransitionTime": "2026-05-04T11:00:00Z"}
    found = [{"type": "Ready", "status": status, **common}]
    return found + [{"type": one, "status": "True", **common} for one in others]


PROGRESS: Final = {"bytes": 42, "totalBytes": 100, "percent": 42, "bytesPerSecond": 7}


def rows(*found: tuple[Named, Object], namespaces: bool = False) -> Any:
    """Return the board's rows of resources."""
    pairs = [(followed(*one), one[1]) for one in found]
    return views.board(Board(pairs, [], []), now=NOW, namespaces=namespaces)


def test_a_row_says_what_a_watch_says() -> None:
    """It has state and progress, and rate and time left while bytes come. Counts are above."""
    moving = {"conditions": ready("Unknown", "Copying", "Reconciling")}
    moving["progress"] = PROGRESS | {"etaSeconds": 8}
    lost = {"conditions": ready("False", "SourceNotFound", "Stalled"), "progress": PROGRESS}
    found = rows(
        resource(resources.COPY, "moving", moving),
        resource(resources.COPY, "lost", lost),
        resource(resources.COPY, "new", {}, deletionTimestamp="2026-05-04T12:00:00Z"),
        namespaces=True,
    )
    assert found["summary"] == "3 resources: 2 pending, 1 stalled"
    assert found["rows"][0] == {
        "id": "uid-moving",
        "name": "team/streamcopy/moving",
        "state": "pending",
        "ready": "Unknown",
        "reason": "Copying",
        "copies": True,
        "percent": 42,
        "done": "42 B/100 B",
        "rate": "7 B/s  ETA 8s",
        "backup": "",
        "age": "24h00m",
    }
    lost_row, new = found["rows"][1:]
    assert [lost_row[key] for key in ("state", "ready", "rate")] == ["stalled", "False", ""]
    assert [new[key] for key in ("ready", "reason", "percent")] == [
        "-",
        "New (being deleted)",
        None,
    ]


def test_an_archive_has_the_age_of_its_last_good_run_and_drill() -> None:
    """A schedule without a run shows that. A copy without a schedule shows nothing."""
    drill = {"result": "Passed", "completionTime": "2026-05-04T09:00:00Z"}
    good = {"conditions": ready("True", "Archived"), "lastSuccessTime": "2026-05-04T10:00:00Z"}
    scheduled = resources.changed(resources.ARCHIVE, "spec.schedule", {"cron": "0 0 * * *"})
    found = rows(
        resource(resources.ARCHIVE, "good", good | {"drill": drill}),
        resource(scheduled, "never", {}),
        resource(resources.ARCHIVE, "drilled", {"drill": {"startTime": "2026-05-04T10:00:00Z"}}),
        resource(resources.SCOPE, "scope", {}),
    )
    assert [row["backup"] for row in found["rows"]] == [
        "2h00m ago, drill Passed 3h00m ago",
        "none yet",
        "drill goes on",
        "",
    ]


def test_details_are_those_of_describe() -> None:
    """They have sentence, next step, conditions, attempts and events, bounded and printable."""
    told = "no stream \u202eshop/<b>\x1b[2J" + "x" * 9000
    status = {"conditions": ready("False", "SourceNotFound", "Stalled", message=told)}
    history = {"attempt": 1, "job": "job-1", "outcome": "Failed", "reason": "SourceNotFound"}
    named, body = resource(resources.COPY, "orders", status | {"history": [history]})
    found = Description(named, body, named.spec.status.read(body["status"]))
    event = {"type": "Warning", "reason": "<i>", "message": "y" * 9000, "count": 3}
    found.events = [event | {"lastTimestamp": "2026-05-04T11:59:00Z"}]
    found.forbidden = ["Jobs and pods"]
    shown = views.details(found, now=NOW)
    assert shown["title"] == "StreamCopy team/orders"
    assert shown["message"].startswith("no stream  shop/<b> [2Jxxx")
    assert shown["next"].endswith("Then: sluice retry streamcopy/orders.")
    assert shown["notes"] == ["You have no right to read Jobs and pods."]
    assert "created 24h00m ago" in shown["facts"]
    first, attempts, events = shown["tables"]
    assert [row[:3] for row in first["rows"]] == [
        ["Ready", "False", "SourceNotFound"],
        ["Stalled", "True", "SourceNotFound"],
    ]
    assert [len(row[4]) > 100 for row in first["rows"]] == [True, False]  # shown once
    assert attempts["rows"] == [["1", "Failed", "SourceNotFound", "-", "-", "job-1"]]
    assert events["rows"][0][:4] == ["1m00s", "Warning", "<i>", "3"]
    assert len(json.dumps(shown)) < 20_000


def test_a_query_has_its_version_and_how_far_it_is() -> None:
    """The details also have the advice of the last failure."""
    status = {
        "conditions": ready("False", "QueryChanged", "Stalled"),
        "result": "main: shop/counts",
        "version": {"number": 3, "hash": "abc"},
        "progress": {"rows": 1, "lag": "0 B", "watermark": "2026-05-04T11:00:00Z"},
        "attempts": 2,
        "failures": 1,
        "retryTime": "2026-05-04T12:00:00Z",
        "lastFailure": {
            "reason": "QueryChanged",
            "category": "Spec",
            "message": "spec.query.sql was changed",
            "remedy": "Take the change back.",
        },
    }
    named, body = resource(resources.QUERY, "counts", status)
    found = Description(named, body, named.spec.status.read(body["status"]))
    shown = views.details(found, now=NOW)
    assert shown["facts"] == [
        "to main: shop/counts",
        "version 3",
        "1 row",
        "lag 0 B",
        "watermark 2026-05-04T11:00:00Z",
        "2 attempts",
        "1 failed in a row",
        "next at 2026-05-04T12:00:00Z",
        "created 24h00m ago",
    ]
    assert shown["next"] == "Take the change back. Then: sluice retry streamquery/counts."


def test_details_are_of_a_resource_that_the_page_has_shown() -> None:
    """The page knows it by its UID, and never shows a later resource of the same name."""
    cluster = FinalizingServer()
    meta = {"name": "orders", "namespace": "team", "creationTimestamp": "2026-05-03T12:00:00Z"}

    def put(uid: str) -> None:
        cluster.put(STREAM_COPY, resources.changed(resources.COPY, "metadata", meta | {"uid": uid}))

    async def act() -> None:
        looks = PageLooks(ClusterPlace(cluster.api, "team"))
        put("one")
        with pytest.raises(InvalidSpec, match="was deleted"):
            await looks.details("one")
        assert [row["id"] for row in (await looks.all())["rows"]] == ["one"]
        assert (await looks.details("one"))["title"] == "StreamCopy team/orders"
        put("two")
        with pytest.raises(InvalidSpec, match="was deleted"):
            await looks.details("one")

    asyncio.run(act())
