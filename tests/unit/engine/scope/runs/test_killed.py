import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from sluice.core.copy.steps import DeleteSource
from sluice.core.scope.scope import StreamResult, StreamState
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.scope.query import abandon_scope
from sluice.engine.tasks.limits import Limits
from support.engine.scope_drivers import (
    MANY,
    InWork,
    SharedStore,
    copy_scope,
    damage,
    log,
    put_scope,
    scope_plan,
    source_name,
    target_name,
)
from support.engine.scope_requests import REQUEST
from support.engine.sources import CHUNK, go
from support.model import Fate, World
from support.search import searches, seeds

COPIED, FAILED = StreamState.COPIED, StreamState.FAILED


class Killed(BaseException):
    """The driver's end."""


def test_a_driver_that_was_killed_before_it_said_stopped_begins_none(
    world: World, store: SharedStore
) -> None:
    """The recorded failure stops the next driver, too."""
    plan = scope_plan(store, range(3))
    damage(world, 0)

    def gate(what: str) -> Fate:
        if what.startswith("append_at out/_sluice-copies") and len(results) == 1:
            raise Killed
        return Fate.DONE

    listener = InWork()
    results = listener.results
    limits = Limits(parallelism=1, stop_at_failure=True)
    with pytest.raises(Killed):
        copy_scope(plan, store, target=SharedStore(world, gate), listener=listener, limits=limits)
    report = copy_scope(plan, store, limits=limits)
    assert report.counts.failed == 1
    assert report.counts.stopped == 2


@pytest.mark.parametrize("at", range(0, 240, 40))
def test_a_driver_that_is_killed_is_gone_on_with(world: World, store: SharedStore, at: int) -> None:
    """This holds at any call. No stream is copied twice, and no thread of the driver lives on."""
    plan = scope_plan(store, range(6))
    contents = {n: world.bytes_of(source_name(n)) for n in range(6)}
    calls = iter(range(at))

    def gate(_what: str) -> Fate:
        if next(calls, None) is None:
            raise Killed
        return Fate.DONE

    with pytest.raises(Killed):
        copy_scope(plan, store, target=SharedStore(world, gate), limits=Limits(parallelism=3))
    before = set(world.streams)
    report = copy_scope(plan, store, limits=Limits(parallelism=3))
    assert report.counts.copied == 6
    assert {n: world.bytes_of(target_name(n)) for n in range(6)} == contents
    assert before <= set(world.streams)
    assert len(world.staging()) == 1


@searches
@pytest.mark.parametrize("seed", seeds(2))
def test_drivers_that_are_killed_over_and_over_copy_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls are lost, and some copies are moves. In the end, all targets have the right bytes.

    No later driver takes back a recorded result.
    """
    monkeypatch.setattr("sluice.engine.tasks.executor.INLINE_BYTES", 100)
    chance = random.Random(seed)  # noqa: S311 - a test's
    world = World()
    shapes = [
        [[chance.randrange(90) for _ in range(chance.randrange(4))] for _ in range(1 + n % 3)]
        for n in range(7)
    ]
    contents = dict(enumerate(put_scope(world, *shapes)))
    store = SharedStore(world)
    plan = scope_plan(store, range(7), move=seed % 2 == 1)
    limits = Limits(slice_bytes=2 * CHUNK, parallelism=1 + seed % 4)
    known: dict[int, StreamResult] = {}
    for _ in range(5):
        left = chance.randrange(20, 250)

        def gate(_what: str) -> Fate:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return chance.choices(list(Fate), [98, 1, 1])[0]

        with suppress(Killed):
            copy_scope(plan, store, target=SharedStore(world, gate), limits=limits)
        state = log(store).load()
        if state is not None:
            assert known.items() <= state.results.items()
            known = dict(state.results)
    report = copy_scope(plan, store, limits=limits)
    assert report.is_over
    assert report.counts.copied == 7
    assert {n: world.bytes_of(target_name(n)) for n in contents} == contents
    assert len(world.staging()) == 1
    assert ("in" in world.scopes) == (seed % 2 == 0)


def test_two_drivers_at_once_copy_each_stream_once(world: World, store: SharedStore) -> None:
    """Both drivers report the same results, and the log has each result once."""
    plan = scope_plan(store, range(MANY))
    contents = {n: world.bytes_of(source_name(n)) for n in range(MANY)}
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(copy_scope, plan, SharedStore(world), patience=None) for _ in range(2)]
    reports = [run.result() for run in runs]
    assert [report.counts.copied for report in reports] == [MANY, MANY]
    assert {n: world.bytes_of(target_name(n)) for n in range(MANY)} == contents
    assert len(world.staging()) == 1
    state = log(store).load()
    assert state is not None
    assert all(report.results == state.streams for report in reports)


def test_a_stop_reaches_the_calling_thread_and_ends_the_workers(store: SharedStore) -> None:
    """The function that gives the limits raises it. The next driver goes on."""
    plan = scope_plan(store, range(MANY))
    listener = InWork(0.02)

    def limits() -> Limits:
        if len(listener.results) > 2:
            raise Killed
        return Limits(parallelism=4)

    with pytest.raises(Killed):
        copy_scope(plan, store, listener=listener, limits=limits)
    assert len(listener.results) < MANY
    assert copy_scope(plan, store).counts.copied == MANY


def test_a_second_run_copies_what_failed(world: World, store: SharedStore) -> None:
    """Its plan replaces the first plan. The report has the streams of both runs."""
    plan = scope_plan(store, range(3))
    damage(world, 1)
    first = copy_scope(plan, store)
    assert first.counts.failed == 1
    copied = tuple(result for result in first.results if result.state is COPIED)
    second = copy_scope(scope_plan(store, [1], run=2, settled=copied), store)
    assert second.counts.copied == second.counts.total == 3
    assert [result.stream for result in second.results] == ["s001", "s000", "s002"]
    late = copy_scope(plan, store)
    assert late.results == second.results


def test_a_driver_that_comes_late_does_nothing(world: World, store: SharedStore) -> None:
    """All results are recorded already, so the driver calls the store for no stream."""
    plan = scope_plan(store, range(4))
    first = copy_scope(plan, store)
    calls: list[str] = []

    def gate(what: str) -> Fate:
        calls.append(what)
        return Fate.DONE

    again = copy_scope(plan, store, target=SharedStore(world, gate))
    assert again.results == first.results
    assert not [call for call in calls if "s00" in call]


def test_results_that_were_not_written_down_are_found_again(
    world: World, store: SharedStore
) -> None:
    """The killed driver left whole targets. They count as copied."""
    plan = scope_plan(store, range(3))

    def gate(what: str) -> Fate:
        if what.startswith("append_at out/_sluice-copies"):
            records.append(what)
            if len(records) > 1:
                raise Killed
        return Fate.DONE

    records: list[str] = []
    with pytest.raises(Killed):
        copy_scope(plan, store, target=SharedStore(world, gate), limits=Limits(parallelism=1))
    assert world.streams.keys() >= {target_name(0)}
    report = copy_scope(plan, store)
    assert report.counts.copied == 3
    assert report.results[0].bytes == plan.streams[0].bytes
    assert report.results[0].digest is not None


def test_a_copy_that_another_driver_ends_comes_to_its_end(store: SharedStore) -> None:
    """The log is gone then, so this driver checks each target and finds it whole."""
    plan = scope_plan(store, range(3))

    class Overtaken(InWork):
        """A listener that lets another driver copy all streams and delete the log."""

        def ended(self, result: StreamResult) -> None:
            """See ScopeListener."""
            super().ended(result)
            assert copy_scope(plan, store).counts.copied == 3
            abandon_scope(REQUEST, source=store, target=store, known=None)

    report = copy_scope(plan, store, listener=Overtaken(), limits=Limits(parallelism=1))
    assert report.is_over
    assert report.counts.copied == 3


def test_a_source_is_deleted_though_its_target_became_whole_while_somebody_looked(
    world: World, store: SharedStore
) -> None:
    """Another driver completes the target between two looks, and dies before the deletion."""
    plan = scope_plan(store, range(1), move=True)
    looks = 0

    def gate(what: str) -> Fate:
        nonlocal looks
        looks += what == f"describe {target_name(0)}"
        if looks == 2:  # this driver has looked for the journal
            looks += 1
            other = StreamCopyWork(plan.streams[0], 0, [store], store)
            other.plan = other.journal.begin(other.plan)
            go(other, world, DeleteSource)
        return Fate.DONE

    report = copy_scope(plan, store, target=SharedStore(world, gate))
    assert report.counts.copied == 1
    assert source_name(0) not in world.streams
