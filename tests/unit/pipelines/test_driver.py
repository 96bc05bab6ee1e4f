import hashlib
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from structlog.testing import capture_logs

from sluice.config import Settings
from sluice.core.copy.plan import StreamPlan
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.engine.copy import stream_copy
from sluice.engine.copy.report import StreamReport
from sluice.engine.copy.resume import Resumed, resume
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.tasks.executor import InlineExecutor
from sluice.errors import (
    DigestMismatch,
    InvalidSpec,
    StoreBusy,
    WaitingForExecutors,
)
from sluice.pipelines.driver import driver, stopping
from sluice.pipelines.driver.driver import DriverOptions, drive, read_plan
from sluice.pipelines.driver.stopping import Terminated
from sluice.pipelines.programs import run
from sluice.stores.base import Store
from support.engine.plans import COPY, SOURCE, TARGET, whole_plan
from support.engine.sources import planned, put_source
from support.model import ModelStore, World

LARGE = Settings(spark_bytes=95)
"""Settings by which the source of 96 bytes counts as large."""


@pytest.fixture
def world() -> World:
    """Return a world with a small source."""
    made = World()
    put_source(made, [40, 40])
    return made


@pytest.fixture
def options(tmp_path: Path, world: World) -> DriverOptions:
    """Return the options of the driver for that source's copy."""
    plan = tmp_path / "plan.json"
    plan.write_text(whole_plan(planned(ModelStore(world))).model_dump_json())
    return DriverOptions(plan=plan, termination_log=tmp_path / "termination")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, world: World) -> list[str]:
    """Let drivers use the model store in this process; return the log of Spark's starts."""
    log: list[str] = []
    store = ModelStore(world)

    class Stores(dict[Any, ModelStore]):
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            log.append("stores closed")

        def __missing__(self, _address: object) -> ModelStore:
            return store

        def source(self, address: object) -> ModelStore:
            return self[address]

        place = source

    @contextmanager
    def application(_configuration: object) -> Iterator[Any]:
        log.append("jvm")
        yield SimpleNamespace(start=lambda: log.append("spark"))
        log.append("stopped")

    monkeypatch.setattr(driver, "Stores", lambda _settings: Stores())
    monkeypatch.setattr(driver, "Application", application)
    monkeypatch.setattr(run, "SparkExecutor", lambda *_, **__: InlineExecutor([store], store))
    return log


def said(options: DriverOptions) -> dict[str, Any]:
    """Return the termination message."""
    assert options.termination_log is not None
    return dict(json.loads(options.termination_log.read_bytes()))


def test_a_plan_is_read_as_the_operator_writes_it(options: DriverOptions, world: World) -> None:
    """Written and read, a plan is the same."""
    assert read_plan(options.plan) == whole_plan(planned(ModelStore(world)))


@pytest.mark.parametrize("text", [None, "", "{", "{}", '{"version": 2}', '"a"'])
def test_a_damaged_plan_is_named(options: DriverOptions, text: str | None) -> None:
    """Error and termination message name the file, and nothing is started."""
    if text is None:
        options.plan.unlink()
    else:
        options.plan.write_text(text)
    with pytest.raises(InvalidSpec, match=r"plan\.json is no plan"):
        read_plan(options.plan)
    trouble = drive(options, LARGE)
    assert trouble is not None
    assert trouble.reason == said(options)["reason"] == "InvalidSpec"


@pytest.mark.parametrize("streams", [0, 2])
def test_a_plan_of_a_stream_copy_has_one_stream(
    options: DriverOptions, world: World, started: list[str], streams: int
) -> None:
    """A plan with another number is refused before anything is made."""
    options.plan.write_text(whole_plan(*[planned(ModelStore(world))] * streams).model_dump_json())
    trouble = drive(options, LARGE)
    assert trouble is not None
    assert said(options)["reason"] == "InvalidSpec"
    assert TARGET not in world.streams


@pytest.mark.parametrize("changed", ["plan", "template"])
def test_a_driver_runs_from_nothing_but_what_its_job_names(
    options: DriverOptions, started: list[str], tmp_path: Path, changed: str
) -> None:
    """A user who changes its ConfigMap causes no work; a later attempt may succeed."""
    template = tmp_path / "executor.yaml"
    template.write_text("kind: Pod")
    given = replace(
        options,
        plan_sha256=hashlib.sha256(options.plan.read_bytes()).hexdigest(),
        executors=1,
        executor_template=template,
        executor_template_sha256=hashlib.sha256(b"kind: Pod").hexdigest(),
    )
    file = options.plan if changed == "plan" else template
    file.write_bytes(file.read_bytes() + b"\n")
    trouble = drive(given, LARGE)
    assert trouble is not None
    assert trouble.retryable
    assert f"{file.name} is not what the operator wrote" in trouble.message
    assert "spark" not in " ".join(started)


def test_a_driver_runs_from_what_its_job_names(
    options: DriverOptions, world: World, started: list[str]
) -> None:
    """With the plan that the operator wrote, the copy is made."""
    assert started == []
    plan = hashlib.sha256(options.plan.read_bytes()).hexdigest()
    assert drive(replace(options, plan_sha256=plan), LARGE) is None
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)


def test_a_driver_ends_when_spark_does_not_start(
    options: DriverOptions, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reports the cause and leaves retries to the operator: this process could not succeed."""

    @contextmanager
    def application(_configuration: object) -> Iterator[Any]:
        yield SimpleNamespace(start=refuse)

    def refuse() -> None:
        started.append("start")
        raise WaitingForExecutors("none was there")

    monkeypatch.setattr(driver, "Application", application)
    trouble = drive(options, LARGE)
    assert trouble is not None
    assert trouble.reason == said(options)["reason"] == "WaitingForExecutors"
    assert started.count("start") == 1


def test_a_copy_is_run_to_its_end(options: DriverOptions, world: World, started: list[str]) -> None:
    """The target exists, the message says so, and Spark was stopped."""
    assert drive(options, LARGE) is None
    assert said(options) == {"outcome": "Succeeded"}
    assert TARGET in world.streams
    assert started == ["jvm", "spark", "stopped", "stores closed"]


def test_a_small_copy_is_run_without_spark(
    options: DriverOptions, world: World, started: list[str]
) -> None:
    """One process has copied it before Spark could start."""
    assert drive(options, Settings(spark_bytes=96)) is None
    assert said(options) == {"outcome": "Succeeded"}
    assert TARGET in world.streams
    assert started == ["stores closed"]


def test_a_copy_that_is_complete_needs_no_spark(
    options: DriverOptions, world: World, started: list[str]
) -> None:
    """A late driver succeeds at once."""
    drive(options, LARGE)
    del started[:]
    assert drive(options, LARGE) is None
    assert said(options) == {"outcome": "Succeeded"}
    assert "spark" not in started


def test_a_late_driver_deletes_what_even_later_ones_left(
    options: DriverOptions, world: World, started: list[str]
) -> None:
    """The next driver deletes bytes that a late driver staged for a complete copy."""
    drive(options, LARGE)
    store = ModelStore(world)
    segment = world.streams[TARGET].segments[0].id
    store.create(store.staging_name(TARGET, segment, identity.staging_key(COPY, 0, 1)))
    assert world.staging()
    drive(options, LARGE)
    assert world.staging() == []


def test_an_abort_that_was_cut_off_is_finished_first(
    options: DriverOptions, world: World, started: list[str]
) -> None:
    """The copy begins anew and ends, with no trace of the abort."""
    store = ModelStore(world)
    copy = StreamCopyWork(planned(store), 0, [store], store)
    copy.plan = copy.journal.begin(copy.plan)
    for _ in range(3):  # MakeTarget, Bind, Stage
        copy.perform(copy.look())
    (target,) = world.streams[TARGET].segments
    name = store.segment_name(TARGET, target.id)
    world.segments[name].attributes[identity.publish_attribute(COPY)] = identity.ABORTED
    assert drive(options, LARGE) is None
    assert world.staging() == []


def test_a_store_that_is_busy_is_asked_again(
    options: DriverOptions, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look at a copy is as patient as all later ones."""
    asked: list[str] = []

    def busy(plan: StreamPlan, copy_journal: CopyJournal, target: Store) -> Resumed:
        asked.append(plan.copy_id)
        if len(asked) == 1:
            raise StoreBusy("later")
        return resume(plan, copy_journal, target)

    monkeypatch.setattr(stream_copy, "resume", busy)
    assert drive(options, LARGE) is None
    assert len(asked) == 2


def test_a_target_of_somebody_else_is_refused_before_spark_starts(
    options: DriverOptions, world: World, started: list[str]
) -> None:
    """The category decides the exit code, and the message names the field."""
    put_source(world, [1], name=TARGET)
    trouble = drive(options, LARGE)
    assert trouble is not None
    assert (trouble.reason, trouble.field) == ("TargetExists", "spec.target.stream")
    assert said(options)["category"] == "Spec"
    assert "spark" not in started


def test_the_failure_of_a_copy_is_the_driver_s(
    options: DriverOptions, started: list[str], monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    """The driver fails with the reason in the report."""
    report = StreamReport.failed(planned(ModelStore(world)), DigestMismatch("other bytes"))
    monkeypatch.setattr(driver, "run_plan", lambda *_, **__: report)
    trouble = drive(options, LARGE)
    assert trouble is not None
    assert trouble.reason == said(options)["reason"] == "DigestMismatch"


def test_a_bug_leaves_a_message_and_is_raised(
    options: DriverOptions, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator gets the message, and the log has the details."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(driver, "run_plan", broken)
    with pytest.raises(ZeroDivisionError):
        drive(options, LARGE)
    assert said(options)["reason"] == "InternalError"
    assert "ZeroDivisionError: oops" in said(options)["message"]


def test_sigterm_ends_the_driver_between_rounds(
    options: DriverOptions, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends when it reads its limits before the next round, and Spark is stopped."""
    before = signal.getsignal(signal.SIGTERM)

    def run_plan(*_: object, **given: Any) -> None:
        given["limits"]()
        os.kill(os.getpid(), signal.SIGTERM)
        given["limits"]()

    monkeypatch.setattr(driver, "run_plan", run_plan)
    with pytest.raises(Terminated):
        drive(options, LARGE)
    assert said(options)["reason"] == "Interrupted"
    assert said(options)["retryable"] is True
    assert "stores closed" in started
    assert signal.getsignal(signal.SIGTERM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_sigterm_cuts_off_what_lasts_too_long(
    options: DriverOptions, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver does not wait for a call that does not end in time."""
    monkeypatch.setattr(stopping, "GRACE", 0.05)

    def run_plan(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
        raise AssertionError("the wait went on")

    monkeypatch.setattr(driver, "run_plan", run_plan)
    with pytest.raises(Terminated):
        drive(options, LARGE)


def test_steps_are_told_once_each(options: DriverOptions, started: list[str], world: World) -> None:
    """At level info the log has the steps of a copy, and not every round."""
    with capture_logs() as logs:
        drive(options, LARGE)
    steps = [log["step"] for log in logs if log["event"] == "step" and log["log_level"] == "info"]
    assert steps[:2] == ["MakeTarget", "Bind"]
    assert steps[-1] == "Done"
    assert len(steps) == len(set(steps))


def test_executors_without_a_template_are_refused(options: DriverOptions) -> None:
    """The remedy names the option."""
    asked = DriverOptions(plan=options.plan, executors=2, termination_log=options.termination_log)
    trouble = drive(asked, LARGE)
    assert trouble is not None
    assert "--executor-template" in trouble.remedy


def test_a_copy_of_another_stream_is_none_of_its_business(world: World) -> None:
    """The check whether a copy is settled changes nothing for a copy that was not begun."""
    store = ModelStore(world)
    put_source(world, [3], name=StreamName(scope="in", stream="other"))
    before = dict(world.segments)
    plan = planned(store)
    journal = CopyJournal(store, plan.copy_id, plan.target)
    assert resume(plan, journal, store).digest is None
    assert world.segments == before
