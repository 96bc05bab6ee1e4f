"""Traces of copies by the command, at a collector that accepts OTLP."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from support.command.sluice_command import Copy
from support.kube.collector import collector

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone

EVENTS = 200
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str, foreign: ForeignClient) -> Copy:
    """Return a copy of a stream of two segments and 200 events."""
    foreign.create(scope, "source", segments=2)
    foreign.write(scope, "source", events=EVENTS, keys=8)
    made = Copy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))
    made.log_level = "warning"
    return made


def test_a_run_is_one_trace_from_its_plan_to_its_last_step(copy: Copy) -> None:
    """A run continues the caller's trace. Its steps are in order and name their stream."""
    with collector() as found:
        copy.environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": found.url,
            "OTEL_EXPORTER_OTLP_HEADERS": "x-token=secret",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
            "TRACEPARENT": PARENT,
        }
        done = copy.run()
    assert done.code == 0, done.err
    run = found.only("run")
    assert (run.trace, run.parent) == tuple(PARENT.split("-")[1:3])
    assert (run.service, run.failed) == ("sluice", None)
    assert run.resource["deployment.environment.name"] == "test"
    assert run.attributes == {"sluice.resource": copy.target[1]}
    below = found.below(run)
    assert [one.name for one in below][:1] == ["plan"]
    steps = [one for one in below if one.name != "plan"]
    names = [one.name for one in steps]
    assert {"Transfer", "Verify", "Publish"} <= set(names)
    assert names.index("Transfer") < names.index("Verify") < names.index("Publish")
    assert {one.attributes["sluice.stream"] for one in steps} == {"/".join(copy.target)}
    assert all(run.began <= one.began <= one.ended <= run.ended for one in below)
    assert len(found.spans) == len(below) + 1
    assert {one["x-token"] for one in found.headers} == {"secret"}
    assert "secret" not in done.out + done.err


def test_a_run_that_fails_says_the_reason_and_no_message(copy: Copy) -> None:
    """A failed span has the catalogue's reason, and no words of the error's message."""
    copy.source = (copy.source[0], "missing")
    with collector() as found:
        copy.environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": found.url}
        done = copy.run()
    assert done.code != 0
    run = found.only("run")
    assert run.failed == run.attributes["error.type"] == "SourceNotFound"
    assert found.only("plan").failed == run.failed
    assert set(run.attributes) == {"sluice.resource", "error.type"}


@pytest.mark.parametrize(
    "how", ["refuses", pytest.param("is silent", marks=pytest.mark.exhaustive)]
)
def test_a_collector_that_takes_nothing_costs_at_most_a_line(copy: Copy, how: str) -> None:
    """Without a working collector, the copy succeeds and the log says so at most once."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = 1 if how == "refuses" else silent.getsockname()[1]
        copy.environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}
        done = copy.run()
    assert done.code == 0, done.err
    said = [line for line in done.err.splitlines() if "traces cannot be sent" in line]
    assert len(said) == (how == "refuses"), done.err
