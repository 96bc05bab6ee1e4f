"""Spans of a process, at a collector in this process that takes OTLP."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from sluice import tracing
from sluice.errors import SourceNotFound
from sluice.tracing import otlp

if TYPE_CHECKING:
    from support.kube.collector import Collector

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_without_settings_nothing_is_traced_and_nothing_imported() -> None:
    """A span then only checks a variable, and the context for other processes is empty."""
    code = """
import sys
from sluice import tracing
with tracing.started("test"), tracing.span("a") as span, tracing.span("b", stream="c"):
    span.note(steps=1); span.fail("X")
    assert (tracing.is_on(), tracing.current(), span.context) == (False, "", "")
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    environment = {name: value for name, value in os.environ.items() if "OTEL" not in name}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_spans_have_their_parents_in_threads_and_processes(traces: Collector) -> None:
    """A span's parent is the enclosing span, or the span that a context names."""
    with tracing.started("test"):
        with tracing.span("outer", parent=PARENT) as outer, tracing.span("inner"):
            context = tracing.current()
        thread = threading.Thread(target=lambda: tracing.begin("other", parent=context).end())
        thread.start()
        thread.join()
        assert outer.context.split("-")[1] == PARENT.split("-")[1]
    by_name = {one.name: one for one in traces.spans}
    assert by_name["outer"].parent == PARENT.split("-")[2]
    assert by_name["inner"].parent == by_name["outer"].id
    assert by_name["other"].parent == by_name["inner"].id
    assert {one.trace for one in traces.spans} == {PARENT.split("-")[1]}


@pytest.mark.parametrize("given", ["", "x", "00-0-0-01", PARENT.replace("0af7", "ZZZZ"), "\n"])
def test_a_damaged_context_begins_a_trace(traces: Collector, given: str) -> None:
    """It causes no error, and the span has no parent."""
    with tracing.started("test"), tracing.span("one", parent=given):
        pass
    assert traces.only("one").parent == ""


def test_a_caller_that_does_not_sample_is_followed(traces: Collector) -> None:
    """By default the sampler follows the decision of the parent."""
    with tracing.started("test"), tracing.span("one", parent=f"{PARENT[:-2]}00"):
        assert tracing.current().endswith("-00")
    assert traces.spans == []


def test_an_error_is_its_reason(traces: Collector) -> None:
    """Sluice's errors give their reason, and others their type. No message is sent."""
    with tracing.started("test"):
        with pytest.raises(SourceNotFound), tracing.span("own"):
            raise SourceNotFound("a stream of a tenant")
        with pytest.raises(KeyError), tracing.span("other"):
            raise KeyError("a tenant's word")
    assert traces.only("own").failed == "SourceNotFound"
    assert traces.only("other").failed == "KeyError"
    assert "tenant" not in str(traces.spans)


def test_names_are_cut(traces: Collector) -> None:
    """Neither a long name nor many attributes make a span larger than the limits."""
    with tracing.started("test"):
        many = {f"a{number}": number for number in range(100)}
        tracing.begin("one", stream="s" * 10_000, none=None, **many).end()
    attributes = traces.only("one").attributes
    assert len(attributes) == otlp.LIMITS.max_span_attributes
    assert max(len(str(value)) for value in attributes.values()) <= 256


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, "test"),
        ({"OTEL_SERVICE_NAME": "mine"}, "mine"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=ours,team=a"}, "ours"),
    ],
    ids=str,
)
def test_the_environment_names_the_process(
    traces: Collector, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], name: str
) -> None:
    """By default, the process has the name that it gives itself."""
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    with tracing.started("test"), tracing.span("one"):
        pass
    assert traces.only("one").service == name


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL"),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER"),
        ({"OTEL_TRACES_EXPORTER": "none"}, ""),
        ({"OTEL_SDK_DISABLED": "True"}, ""),
    ],
    ids=str,
)
def test_settings_that_cannot_be_used_turn_tracing_off(
    traces: Collector, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], words: str
) -> None:
    """The work goes on. The log names the wrong setting, unless tracing was turned off."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with capture_logs() as logged, tracing.started("test"), tracing.span("one"):
        assert not tracing.is_on()
    assert traces.headers == []
    assert [words in one["why"] for one in logged] == [True] * bool(words)


def test_headers_are_no_other_process(traces: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """The headers are sent, and taken out of the environment, which a JVM would inherit."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-token=secret")
    with tracing.started("test"), tracing.span("one"):
        assert "OTEL_EXPORTER_OTLP_HEADERS" not in os.environ
    assert [one["x-token"] for one in traces.headers] == ["secret"]


@pytest.mark.parametrize("status", [307, 400, 503])
def test_a_collector_that_refuses_costs_a_line_an_outage(
    traces: Collector, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """All lost batches of an outage cost one line. No redirect is followed."""
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    traces.status = status
    with capture_logs() as logged, tracing.started("test"):
        for _ in range(5):
            tracing.begin("lost").end()
    assert [one["event"] for one in logged] == ["traces cannot be sent"]
    assert len(logged[0]["why"]) <= 200
    assert logging.getLogger("opentelemetry").propagate is False


def test_the_end_of_an_outage_is_told(traces: Collector) -> None:
    """The log has the number of lost spans."""
    exporter = otlp.Reporting(otlp.OTLPSpanExporter(timeout=0.1))
    with capture_logs() as logged:
        traces.status = 400
        tracer = otlp.Tracer("test", exporter)
        for status in (400, 200, 200):
            traces.status = status
            tracer.begin("one", "", None, {}).end()
            tracer.flush()
        tracer.stop()
    assert [one["event"] for one in logged] == ["traces cannot be sent", "traces are sent again"]
    assert logged[1]["lost"] == 1


def test_a_silent_collector_keeps_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sending the last spans has a time limit, and its threads do not keep the process."""
    monkeypatch.setattr(otlp, "LAST_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        with tracing.started("test"):
            tracing.begin("one").end()
        left = [one for one in threading.enumerate() if "Otel" in one.name]
        assert left
        assert all(one.daemon for one in left)


def test_a_queue_that_is_full_drops(traces: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of spans takes bounded memory, and does not wait."""
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
    with traces.held(), tracing.started("test"):
        for _ in range(1000):
            tracing.begin("one").end()
        traces.release()
    assert 0 < len(traces.spans) <= 30


def test_time_is_that_of_the_epoch() -> None:
    """Times are nanoseconds since the epoch, since a span may begin before it is made."""
    assert abs(tracing.now() - time.time() * 1e9) < 60e9
