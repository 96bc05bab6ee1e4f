"""Delivery of notices, to a sink that is a real HTTP server in a process of its own."""

import asyncio
import socket
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from sluice.api.status.common import Condition
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.kube.loop import sink as module
from sluice.kube.loop.settings import NoticeSettings, SinkHeader
from sluice.kube.loop.sink import Sink
from sluice.metrics import Metrics
from support.kube.sink import receiver

BODY = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "StreamCopy",
    "metadata": {
        "name": "orders",
        "namespace": "demo",
        "uid": "6e1f",
        "resourceVersion": "48213",
        "generation": 3,
    },
}
BEFORE = StreamCopyStatus()
AFTER = StreamCopyStatus(
    conditions=(
        Condition(
            type="Ready",
            status="True",
            reason="Copied",
            message="demo/orders is whole",
            last_transition_time="2026-01-02T03:04:05Z",  # type: ignore[arg-type]
        ),
    )
)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the waits between tries."""
    monkeypatch.setattr(module, "PAUSES", (0.0, 0.0))


def counted(metrics: Metrics) -> dict[str, float]:
    """Return the number of notices by result."""
    (family,) = [one for one in metrics.registry.collect() if one.name == "sluice_notices"]
    return {
        sample.labels["result"]: sample.value
        for sample in family.samples
        if sample.name.endswith("_total")
    }


async def deliver(settings: NoticeSettings, number: int = 1) -> dict[str, float]:
    """Send notices of ends to a sink, wait for the delivery, and return their results."""
    metrics = Metrics()
    sink = Sink(settings, cluster="paris", metrics=metrics)
    async with sink.delivering():
        for _ in range(number):
            sink.tell(BODY, BEFORE, AFTER)
    return counted(metrics)


def sent_to(url: str, **more: Any) -> NoticeSettings:
    """Return the settings for a sink."""
    return NoticeSettings(sink=url, **more)


def test_a_sink_gets_a_cloud_event(tmp_path: Path) -> None:
    """A sink gets a structured CloudEvent with all attributes of version 1.0, and the facts."""
    with receiver(tmp_path) as sink:
        assert asyncio.run(deliver(sent_to(sink.url))) == {"Sent": 1}
        (request,) = sink.got()
    event = request["body"]
    assert request["path"] == "/sluice?from=test"
    assert request["headers"]["Content-Type"] == "application/cloudevents+json"
    assert {name: event[name] for name in ("specversion", "id", "source", "type", "subject")} == {
        "specversion": "1.0",
        "id": "6e1f-48213",
        "source": "/sluice.dev/clusters/paris",
        "type": "dev.sluice.streamcopy.succeeded",
        "subject": "namespaces/demo/streamcopies/orders",
    }
    assert (
        event["data"]
        | {
            "kind": "StreamCopy",
            "namespace": "demo",
            "name": "orders",
            "uid": "6e1f",
            "generation": 3,
            "outcome": "Succeeded",
            "reason": "Copied",
        }
        == event["data"]
    )
    assert "demo/orders is whole" not in str(event)


def test_the_header_is_read_anew_and_stays_out_of_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed header counts at once, without its last line break. It is in no log."""
    file = tmp_path / "header"
    header = SinkHeader(name="X-Token", file=str(file))
    with receiver(tmp_path, 202, 401) as sink:
        for value in ("first\n", "second"):
            file.write_text(value)
            asyncio.run(deliver(sent_to(sink.url, header=header)))
        assert [one["headers"]["X-Token"] for one in sink.got()] == ["first", "second"]
    said = "".join(capsys.readouterr())
    assert "HTTP status 401" in said
    assert "second" not in said
    assert "from=test" not in said


def test_a_header_of_two_lines_is_not_sent(tmp_path: Path) -> None:
    """A header with a line break is not sent, since its second line would be another header."""
    file = tmp_path / "header"
    file.write_text("a\r\nX-Other: b")
    with receiver(tmp_path) as sink:
        found = asyncio.run(deliver(sent_to(sink.url, header=SinkHeader(file=str(file)))))
        assert (found, sink.got()) == ({"Failed": 1}, [])


def test_a_busy_sink_is_tried_again(tmp_path: Path) -> None:
    """A busy sink gets the same event again, with the same id."""
    with receiver(tmp_path, 503, 429, 200) as sink:
        assert asyncio.run(deliver(sent_to(sink.url))) == {"Sent": 1}
        assert len({one["body"]["id"] for one in sink.wait(3)}) == 1


@pytest.mark.parametrize("status", [302, 307, 400, 403])
def test_a_refusal_is_final_and_no_redirect_is_followed(tmp_path: Path, status: int) -> None:
    """A refusal is final. A redirect is not followed, since the header would go elsewhere."""
    with receiver(tmp_path, status) as sink:
        assert asyncio.run(deliver(sent_to(sink.url))) == {"Refused": 1}
        assert [one["path"] for one in sink.got()] == ["/sluice?from=test"]


def test_a_sink_that_is_away_costs_a_count(tmp_path: Path) -> None:
    """The notice for an absent sink counts as failed after all tries."""
    with receiver(tmp_path) as sink:
        url = sink.url
    assert asyncio.run(deliver(sent_to(url))) == {"Failed": 1}


def test_too_many_notices_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue is bounded: further notices are dropped and counted, without a wait."""
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    with receiver(tmp_path) as sink:
        found = asyncio.run(deliver(sent_to(sink.url), number=5))
        assert found == {"Sent": 2, "Dropped": 3}


def test_one_namespace_leaves_places_to_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A namespace fills only its own share of the queue, which is freed as notices are sent."""
    monkeypatch.setattr(module, "MOST_OF_ONE", 1)
    with receiver(tmp_path) as sink:
        assert asyncio.run(deliver(sent_to(sink.url), number=3)) == {"Sent": 1, "Dropped": 2}


def test_a_sink_that_does_not_answer_keeps_no_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Notices that wait at the operator's stop are dropped and counted."""
    monkeypatch.setattr(module, "LAST_SECONDS", 0.1)

    with socket.create_server(("127.0.0.1", 0)) as server:  # accepts connections, and never answers
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        assert asyncio.run(deliver(sent_to(url), number=3)) == {"Dropped": 3}


def test_without_a_sink_nothing_is_kept() -> None:
    """Without a sink the operator keeps no notices."""
    assert asyncio.run(deliver(NoticeSettings())) == {}


class SlowSink:
    """A sink in this process that answers only while `together` events wait at once.

    Args:
        together: number of events that it waits for.
    """

    def __init__(self, together: int) -> None:
        self._together = together
        self._all = asyncio.Event()
        self.now, self.most = list[str](), 0
        self.of = defaultdict[str, list[str]](list)

    async def take(self, request: web.Request) -> web.Response:
        """Hold an event until the other events have come."""
        event = await request.json()
        uid = event["data"]["uid"]
        assert uid not in self.now
        self.now.append(uid)
        self.of[uid].append(event["id"])
        self.most = max(self.most, len(self.now))
        if len(self.now) >= self._together:
            self._all.set()
        await self._all.wait()
        self.now.remove(uid)
        return web.Response(status=202)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Yield the sink's URL."""
        app = web.Application()
        app.router.add_post("/", self.take)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
        finally:
            await runner.cleanup()


def body(uid: str, version: int) -> dict[str, Any]:
    """Return a resource with a new end."""
    meta: dict[str, Any] = dict(BODY["metadata"])  # type: ignore[call-overload]
    return BODY | {"metadata": meta | {"uid": uid, "resourceVersion": str(version)}}


async def deliver_slowly(together: int, *ends: tuple[str, int]) -> tuple[SlowSink, Metrics]:
    """Tell a slow sink of the ends of resources, each with a version, and wait for the delivery."""
    slow, metrics = SlowSink(together), Metrics()
    async with slow.served() as url:
        sink = Sink(sent_to(url), cluster="paris", metrics=metrics)
        async with sink.delivering():
            for uid, version in ends:
                sink.tell(body(uid, version), BEFORE, AFTER)
    return slow, metrics


def test_a_slow_answer_delays_no_other_resource() -> None:
    """A slow answer delays no other resource: a fixed number of notices is sent at once."""
    most = module.AT_ONCE
    ends = [(f"copy-{number}", 1) for number in range(3 * most)]
    slow, metrics = asyncio.run(deliver_slowly(most, *ends))
    assert counted(metrics) == {"Sent": len(ends)}
    assert slow.most == most


def test_notices_of_one_resource_keep_their_order() -> None:
    """Notices of a resource are sent one by one, beside those of others."""
    ends = [("one", 1), ("one", 2), ("two", 3), ("one", 4), ("two", 5)]
    slow, metrics = asyncio.run(deliver_slowly(2, *ends))
    assert counted(metrics) == {"Sent": len(ends)}
    assert slow.of == {"one": ["one-1", "one-2", "one-4"], "two": ["two-3", "two-5"]}
    assert slow.most == 2
