from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.steps import ConfigureTarget, Verify
from sluice.core.scope.progress import Progress
from sluice.core.scope.scope import Counts, StreamState
from sluice.core.workloads.scope_log import planned_results
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.scope import progress
from sluice.engine.scope.progress import ScopeWatch
from support.engine.scope_drivers import SharedStore, copy_scope
from support.engine.scope_requests import drop, in_source, log_of, plan_of, put
from support.engine.sources import go
from support.model import Fate, ModelStore, World

if TYPE_CHECKING:
    from sluice.core.workloads.plan import Plan

EACH = 13
"""Bytes of a stream."""


@pytest.fixture
def world() -> World:
    """Return a world with four streams in scope `in`."""
    made = World()
    put(made, "a", "b", "c", "d")
    return made


@pytest.fixture
def plan(world: World) -> Plan:
    """Return the plan of these streams."""
    return plan_of(world)


def begin(world: World, plan: Plan, place: int) -> StreamCopyWork:
    """Make a driver that has begun a stream of the plan."""
    store = ModelStore(world)
    driver = StreamCopyWork(plan.streams[place], place, [store], store)
    driver.plan = driver.journal.begin(driver.plan)
    return driver


def write_ended(world: World, plan: Plan, place: int, state: StreamState) -> None:
    """Record the result of a stream."""
    log = log_of(world)
    log.load()
    log.ended({place: planned_results(plan)[place].model_copy(update={"state": state})})


def test_nothing_is_done_at_first(world: World, plan: Plan) -> None:
    """This holds before and after a driver has recorded the plan."""
    watch = ScopeWatch(plan, SharedStore(world))
    expected = Progress(bytes=0, total=4 * EACH, published=False, streams=Counts(total=4))
    assert watch.measure() == expected
    log_of(world).begin(plan)
    assert watch.measure() == expected


def test_what_is_staged_and_what_has_ended_counts(world: World, plan: Plan) -> None:
    """One stream has ended, one is staged, one has failed, and one waits."""
    log_of(world).begin(plan)
    watch = ScopeWatch(plan, SharedStore(world))
    go(begin(world, plan, 0), world)
    write_ended(world, plan, 0, StreamState.COPIED)
    go(begin(world, plan, 1), world, Verify)
    write_ended(world, plan, 2, StreamState.FAILED)
    assert watch.measure() == Progress(
        bytes=2 * EACH,
        total=4 * EACH,
        published=False,
        streams=Counts(total=4, copied=1, failed=1),
    )


def test_what_is_done_and_not_written_down_yet_still_counts(world: World, plan: Plan) -> None:
    """A stream without its journal has ended, so the progress does not go back."""
    log_of(world).begin(plan)
    watch = ScopeWatch(plan, SharedStore(world))
    driver = begin(world, plan, 0)
    go(driver, world, ConfigureTarget)
    assert watch.measure().bytes == EACH
    go(driver, world)
    found = watch.measure()
    assert (found.bytes, found.streams) == (EACH, Counts(total=4))


def test_all_is_published_at_the_end(world: World, plan: Plan) -> None:
    """The progress counts every byte and every stream of the plan."""
    copy_scope(plan, SharedStore(world))
    assert ScopeWatch(plan, SharedStore(world)).measure() == Progress(
        bytes=4 * EACH, total=4 * EACH, published=True, streams=Counts(total=4, copied=4)
    )


def test_the_recorded_plan_is_measured(world: World, plan: Plan) -> None:
    """It is the plan of the present run, with the streams that were settled before."""
    drop(world, in_source("b"))
    copy_scope(plan, SharedStore(world))
    put(world, "b", sizes=(7,))
    again = plan_of(world, again=True)
    log_of(world).begin(again)
    assert ScopeWatch(plan, SharedStore(world)).measure() == Progress(
        bytes=0, total=15, published=False, streams=Counts(total=4, copied=3)
    )


def test_a_run_that_no_driver_has_begun_is_not_measured_by_the_one_before(world: World) -> None:
    """Streams that failed before are tried again, and do not count as failed."""
    plan = plan_of(world)
    drop(world, in_source("b"))
    copy_scope(plan, SharedStore(world))
    put(world, "b")
    again = plan_of(world, again=True)
    watch = ScopeWatch(again, SharedStore(world))
    expected = Progress(bytes=0, total=EACH, published=False, streams=Counts(total=4, copied=3))
    assert watch.measure() == expected
    log_of(world).begin(again)
    assert watch.measure() == expected


def test_only_the_first_streams_are_looked_at(
    world: World, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their number is bounded, and ended streams make room for others."""
    monkeypatch.setattr(progress, "LOOKED_AT", 2)
    log_of(world).begin(plan)
    calls = Counter[str]()

    def gate(what: str) -> Fate:
        calls[what.split(maxsplit=1)[0]] += 1
        return Fate.DONE

    for place in range(4):
        go(begin(world, plan, place), world, Verify)
    watch = ScopeWatch(plan, SharedStore(world, gate))
    assert watch.measure().bytes == 2 * EACH
    assert calls["describe"] == 0
    assert calls["attributes"] == 2
    write_ended(world, plan, 0, StreamState.COPIED)
    assert watch.measure().bytes == 3 * EACH
