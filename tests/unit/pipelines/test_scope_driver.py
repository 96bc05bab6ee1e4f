import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from structlog.testing import capture_logs

from sluice.config import Settings
from sluice.core.values import identity
from sluice.core.workloads.plan import Plan, compressed
from sluice.engine.scope.planning import resolve_scope
from sluice.engine.tasks.executor import InlineExecutor
from sluice.errors import InvalidSpec, WaitingForExecutors
from sluice.pipelines.driver import driver
from sluice.pipelines.driver.driver import DriverOptions, drive, read_plan
from sluice.pipelines.driver.stopping import Terminated
from sluice.pipelines.programs import run
from support.engine.plans import ADDRESS
from support.engine.scope_drivers import (
    SCOPE_ID,
    SharedStore,
    put_scope,
    scope_plan,
    source_name,
    target_name,
)
from support.following.followed_scopes import FOLLOW
from support.model import CREATION_TIME, Fate, World, segment_name

STREAMS = 5


@pytest.fixture
def world() -> World:
    """Return a world with small sources."""
    made = World()
    put_scope(made, *([[40], [number]] for number in range(STREAMS)))
    return made


@pytest.fixture
def plan(world: World) -> Plan:
    """Return the plan of all sources."""
    return scope_plan(SharedStore(world), range(STREAMS))


@pytest.fixture
def options(tmp_path: Path, plan: Plan) -> DriverOptions:
    """Return the options of their driver."""
    file = tmp_path / "plan.json.gz"
    file.write_bytes(compressed(plan))
    return DriverOptions(plan=file, termination_log=tmp_path / "termination", patience=0.1)


@pytest.fixture
def gate() -> list[Any]:
    """Return a list; a gate in it decides the fate of calls to the source."""
    return []


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch, world: World, gate: list[Any]) -> list[str]:
    """Let drivers use the model store in this process; return the log of Spark's starts."""
    log: list[str] = []
    store = SharedStore(world, lambda what: gate[0](what) if gate else Fate.DONE)

    class Stores:
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            log.append("stores closed")

        def place(self, _address: object) -> SharedStore:
            return store

    @contextmanager
    def application(_configuration: object) -> Iterator[Any]:
        log.append("jvm")
        yield SimpleNamespace(start=start)
        log.append("stopped")

    def start() -> Any:
        log.append(f"spark in {threading.current_thread().name}")
        return SimpleNamespace(cancelAllJobs=lambda: None)

    class Spark(InlineExecutor):
        """A stand-in for the executor, in the calling thread."""

        def __init__(self, _context: object, *, slots: Any, **_: object) -> None:
            super().__init__([store], store, slots=slots())

    monkeypatch.setattr(driver, "Stores", lambda _settings: Stores())
    monkeypatch.setattr(run, "SparkExecutor", Spark)
    monkeypatch.setattr(driver, "Application", application)
    return log


def said(options: DriverOptions) -> dict[str, Any]:
    """Return the termination message."""
    assert options.termination_log is not None
    return dict(json.loads(options.termination_log.read_bytes()))


def test_a_compressed_plan_is_read(options: DriverOptions, plan: Plan) -> None:
    """A plan with a scope is mounted compressed."""
    assert read_plan(options.plan) == plan


@pytest.mark.parametrize("cut", [2, 30, -1])
def test_a_damaged_compressed_plan_is_named(options: DriverOptions, cut: int) -> None:
    """The error names the file, as for any plan."""
    options.plan.write_bytes(options.plan.read_bytes()[:cut])
    with pytest.raises(InvalidSpec, match=r"plan\.json\.gz is no plan"):
        read_plan(options.plan)


def test_small_streams_need_no_spark(
    options: DriverOptions, world: World, started: list[str]
) -> None:
    """This process copies all of them, and logs each stream once, without its steps."""
    with capture_logs() as logs:
        assert drive(options, Settings()) is None
    assert said(options) == {"outcome": "Succeeded"}
    assert started == ["stores closed"]
    told = [log for log in logs if log["log_level"] == "info"]
    done = [log["target"] for log in told if log["event"] == "stream done"]
    assert sorted(done) == [target_name(number).stream for number in range(STREAMS)]
    assert len(told) == STREAMS + 3
    assert all(
        world.bytes_of(target_name(n)) == world.bytes_of(source_name(n)) for n in range(STREAMS)
    )


def test_a_scope_s_driver_ends_when_spark_does_not_start(
    options: DriverOptions, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reports the cause, and no stream of the scope counts as failed."""

    @contextmanager
    def application(_configuration: object) -> Iterator[Any]:
        yield SimpleNamespace(start=refuse)

    def refuse() -> None:
        started.append("start")
        raise WaitingForExecutors("none was there")

    monkeypatch.setattr("sluice.engine.tasks.executor.INLINE_BYTES", 10)
    monkeypatch.setattr(driver, "Application", application)
    with capture_logs() as logs:
        trouble = drive(options, Settings())
    assert trouble is not None
    assert trouble.reason == said(options)["reason"] == "WaitingForExecutors"
    assert started.count("start") == 1
    assert [log for log in logs if log["event"] == "stream failed"] == []


def test_large_streams_start_spark_once(
    options: DriverOptions, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts in the main thread, and its JVM at once."""
    monkeypatch.setattr("sluice.engine.tasks.executor.INLINE_BYTES", 10)
    assert drive(options, Settings()) is None
    main = threading.current_thread().name
    assert started == ["jvm", f"spark in {main}", "stopped", "stores closed"]


def test_a_scope_with_failures_is_done(options: DriverOptions, world: World) -> None:
    """The driver succeeds; the log has the failures for the operator."""
    world.segments[segment_name(source_name(1), 0)].attributes[CREATION_TIME] = 5
    with capture_logs() as logs:
        assert drive(options, Settings()) is None
    assert said(options) == {"outcome": "Succeeded"}
    (failed,) = [log for log in logs if log["event"] == "stream failed"]
    assert (failed["stream"], failed["reason"]) == ("s001", "SourceReplaced")
    (done,) = [log for log in logs if log["event"] == "scope done"]
    assert (done["copied"], done["failed"]) == (STREAMS - 1, 1)


def test_a_scope_that_is_not_done_fails_with_the_first_reason(
    options: DriverOptions, gate: list[Any]
) -> None:
    """The next attempt goes on."""
    gate.append(lambda what: Fate.REQUEST_LOST if "in/s003" in what else Fate.DONE)
    trouble = drive(options, Settings())
    assert trouble is not None
    assert trouble.retryable
    assert said(options)["reason"] == "StoreUnavailable"
    del gate[:]
    assert drive(options, Settings()) is None


def test_executors_that_do_not_come_are_the_drivers_failure(
    options: DriverOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No waiting stream counts as failed."""
    monkeypatch.setattr("sluice.engine.tasks.executor.INLINE_BYTES", 10)

    def start(_self: object) -> None:
        raise WaitingForExecutors("no executor came")

    monkeypatch.setattr(driver._Application, "start", start)
    trouble = drive(options, Settings())
    assert trouble is not None
    assert trouble.reason == said(options)["reason"] == "WaitingForExecutors"


def test_sigterm_ends_the_driver(options: DriverOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver sees it when it reads limits. A later attempt continues the streams."""

    def check(_self: object) -> None:
        raise Terminated

    with monkeypatch.context() as patched:
        patched.setattr(driver.SigtermHandler, "check", check)
        with pytest.raises(Terminated):
            drive(options, Settings())
    assert said(options)["reason"] == "Interrupted"
    assert drive(options, Settings()) is None


@pytest.mark.parametrize("large", [True, False])
def test_a_driver_of_the_first_leg_ends_once_all_are_live(
    options: DriverOptions,
    world: World,
    started: list[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    large: bool,
) -> None:
    """It follows no stream. With large streams it starts Spark, as for any copy."""
    if large:
        monkeypatch.setattr(run, "is_small", lambda *_, **__: False)
    store = SharedStore(world)
    followed = resolve_scope(FOLLOW, source=(ADDRESS, store), target=(ADDRESS, store)).plan
    options.plan.write_bytes(compressed(followed))
    live = replace(options, until_live=True)
    assert drive(live, Settings(spark_bytes=1 if large else 1 << 20)) is None
    assert ("jvm" in started) == large
    for number in range(STREAMS):
        name = target_name(number)
        assert world.bytes_of(name) == world.bytes_of(source_name(number))
        copy_id = identity.stream_copy_id(SCOPE_ID, name.stream)
        assert identity.completed(world.streams[name].config.tags, copy_id) is None


def test_a_scope_that_is_not_followed_has_no_first_leg(options: DriverOptions) -> None:
    """The error names the option, and nothing is copied."""
    trouble = drive(replace(options, until_live=True), Settings())
    assert trouble is not None
    assert trouble.reason == "InvalidSpec"
    assert "--until-live" in trouble.remedy
