"""`sluice driver` as a process, in the view of its pod."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from sluice.config import Settings
from sluice.core.copy.planner import CopyRequest, SourceRequest
from sluice.core.values import identity
from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.engine.copy.planning import resolve
from sluice.stores.connect import connect
from support.command.sluice_command import SECONDS, is_alive, workers_of
from support.command.warm import SLUICE
from support.search import few
from support.until import TIGHT, until
from support.witness import foreign_witness as witness

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone

EVENTS, FOR_SPARK = 20_000, 200_000
"""Events of a source, which threads copy, and of a source for which Spark is started."""
SIZE = 400
LEAST_RATE = 1 << 10
TASKS_RATE = 16 << 20
"""Bytes per second: the least that is allowed, and the least for which Spark is started."""
RATES = [LEAST_RATE, 100 << 10, TASKS_RATE]


@dataclass
class Driver:
    """A driver of one copy, to be started in its folder.

    Attributes:
        folder: directory of its files.
        source: scope and stream.
        target: scope and stream.
    """

    folder: Path
    source: tuple[str, str]
    target: tuple[str, str]

    def limit(self, bytes_per_second: int | None) -> None:
        """Write the controls."""
        text = json.dumps({"bytesPerSecond": bytes_per_second, "inFlightBytes": None})
        (self.folder / "controls.json").write_text(text)

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Start the driver."""
        return subprocess.Popen(
            [
                *(SLUICE, "--log-json", "--log-level", "info", "driver"),
                *("--plan", self.folder / "plan.json"),
                *("--controls", self.folder / "controls.json"),
                *options,
            ],
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "SLUICE_RESOURCE": "StreamCopy/team-a/orders",
                "SLUICE_ATTEMPT": "3",
                "SLUICE_TERMINATION_LOG": str(self.folder / "termination"),
            },
        )

    def run(self, *options: str) -> tuple[int, list[dict[str, Any]]]:
        """Run the driver to its end, and return its exit code and its log."""
        process = self.start(*options)
        _, err = process.communicate(timeout=SECONDS)
        return process.returncode, [json.loads(line) for line in err.splitlines()]

    @property
    def message(self) -> dict[str, Any]:
        """The termination message."""
        return dict(json.loads((self.folder / "termination").read_bytes()))


@pytest.fixture
def driver(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    standalone: Standalone,
    foreign: ForeignClient,
    scope: str,
) -> Driver:
    """Return a driver for a copy of two segments: of 8 MB, or of 80 MB for the longer suites."""
    long = request.node.get_closest_marker("exhaustive") is not None
    made = Driver(tmp_path, (scope, "events"), (scope, "copy"))
    foreign.create(*made.source, segments=2)
    foreign.write(*made.source, events=FOR_SPARK if long else EVENTS, size=SIZE, keys=100)
    address = StoreAddress(uri=standalone.controller_uri)
    copy = CopyRequest(
        copy_id=identity.copy_id(cluster="test", namespace="team-a", name=scope, identity={}),
        sources=(SourceRequest(stream=StreamName(scope=scope, stream="events")),),
        target=StreamName(scope=scope, stream="copy"),
    )
    store = connect(address, Settings())
    found = resolve(copy, [store], store)
    store.close()
    assert found.plan is not None
    plan = StreamCopyPlan(sources=(address,), target=address, streams=(found.plan,))
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    made.limit(None)
    return made


def until_logged(process: subprocess.Popen[str], event: str) -> None:
    """Read a driver's log up to an event."""
    assert process.stderr is not None
    for line in process.stderr:
        if event in line:
            return
    raise AssertionError(f"the driver ended without {event}")


def until_ended(pids: list[int]) -> None:
    """Wait until processes have ended that get a signal at their parent's end."""
    until("they have ended", lambda: not any(map(is_alive, pids)))


@pytest.mark.exhaustive
def test_a_driver_copies_and_says_whose_copy_it_is(
    driver: Driver, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A driver copies with exit code 0, and its JSON log names the resource and the attempt."""
    code, log = driver.run()
    assert (code, driver.message) == (0, {"outcome": "Succeeded"})
    assert {(line["resource"], line["attempt"]) for line in log} == {
        ("StreamCopy/team-a/orders", "3")
    }
    witness.assert_equal(standalone.segment_store, foreign, driver.source, driver.target)
    code, log = driver.run()
    assert code == 0
    events = [line["event"] for line in log]
    assert events == ["driver started", "already complete", "driver ended"]


@pytest.mark.exhaustive
def test_sigterm_stops_a_driver_in_its_tracks(
    driver: Driver, standalone: Standalone, foreign: ForeignClient
) -> None:
    """SIGTERM ends a driver with 143 and no process left. The next driver goes on."""
    driver.limit(TASKS_RATE)
    process = driver.start()
    until_logged(process, '"Transfer"')
    workers = until("tasks are at work", lambda: workers_of(process.pid), poll=TIGHT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 143
    assert driver.message["reason"] == "Interrupted"
    until_ended(workers)
    driver.limit(None)
    code, log = driver.run()
    assert code == 0
    assert "MakeTarget" not in [line.get("step") for line in log]
    witness.assert_equal(standalone.segment_store, foreign, driver.source, driver.target)


@pytest.mark.parametrize("rate", few(RATES, 1))
def test_sigterm_is_heard_at_any_rate(driver: Driver, rate: int) -> None:
    """SIGTERM is obeyed at any rate, even if the limit delays the next chunk by hours."""
    driver.limit(rate)
    process = driver.start()
    until_logged(process, '"Transfer"')
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 143
    assert driver.message["reason"] == "Interrupted"


@pytest.mark.exhaustive
@pytest.mark.parametrize("rate", RATES)
def test_a_new_limit_holds_at_once(
    driver: Driver, standalone: Standalone, foreign: ForeignClient, rate: int
) -> None:
    """A new limit applies at once: a copy of a day ends soon without its limit."""
    driver.limit(rate)
    process = driver.start()
    until_logged(process, '"Transfer"')
    driver.limit(None)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    witness.assert_equal(standalone.segment_store, foreign, driver.source, driver.target)


@pytest.mark.exhaustive
def test_a_store_that_is_away_is_exit_code_3(driver: Driver) -> None:
    """An absent store gives exit code 3 and a message that a retry can help."""
    path = driver.folder / "plan.json"
    address = StoreAddress(uri="tcp://127.0.0.1:1")
    plan = StreamCopyPlan.model_validate_json(path.read_bytes())
    path.write_text(
        plan.model_copy(update={"sources": (address,), "target": address}).model_dump_json()
    )
    code, _ = driver.run("--patience", "0")
    assert code == 3
    assert (driver.message["category"], driver.message["retryable"]) == ("Backend", True)


def test_a_damaged_plan_is_exit_code_2(driver: Driver) -> None:
    """A damaged plan gives exit code 2 and a message with the file's name."""
    (driver.folder / "plan.json").write_text("{")
    code, _ = driver.run()
    assert code == 2
    assert "plan.json" in driver.message["message"]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "option",
    [
        "--executor-memory=lots",
        "--spark-conf=spark.x",
        "--slots=0",
        "--executors=-1",
    ],
)
def test_a_wrong_option_is_exit_code_2(driver: Driver, option: str) -> None:
    """The driver checks its command line before it does anything."""
    process = driver.start(option)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert option.split("=", 1)[0].lstrip("-") in err
