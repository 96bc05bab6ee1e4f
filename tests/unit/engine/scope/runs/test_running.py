import threading

import pytest

from sluice.core.scope.scope import StreamState
from sluice.engine.tasks.limits import Limits
from sluice.errors import InfrastructureError
from support.engine.scope_drivers import (
    MANY,
    InWork,
    SharedStore,
    Tasks,
    copy_scope,
    log,
    put_scope,
    scope_plan,
    source_name,
    states,
    target_name,
)
from support.model import World

COPIED, FAILED = StreamState.COPIED, StreamState.FAILED


def test_many_streams_are_copied_at_once(world: World, store: SharedStore) -> None:
    """Each target has its source's bytes.

    Only the log is left beside the targets, and it is over.
    """
    listener = InWork(0.001)
    contents = {n: world.bytes_of(source_name(n)) for n in range(MANY)}
    plan = scope_plan(store, range(MANY))
    report = copy_scope(plan, store, listener=listener, limits=Limits(parallelism=8))
    assert report.is_over
    assert report.trouble is None
    assert states(report.results) == {COPIED: MANY}
    assert [result.stream for result in report.results] == [
        stream.target.stream for stream in plan.streams
    ]
    assert [result.bytes for result in report.results] == [s.bytes for s in plan.streams]
    assert [result.events for result in report.results] == [3] * MANY
    assert all(result.digest for result in report.results)
    for number in range(MANY):
        assert world.bytes_of(target_name(number)) == contents[number]
    assert 1 < listener.most <= 8
    assert len(world.staging()) == 1
    state = log(store).load()
    assert state is not None
    assert state.is_over
    assert state.streams == report.results


@pytest.mark.parametrize("parallelism", [1, 3])
def test_no_more_streams_are_in_work_than_allowed(store: SharedStore, parallelism: int) -> None:
    """This holds for any number of streams. With one at a time, they are in the plan's order."""
    listener = InWork(0.001)
    plan = scope_plan(store, range(9))
    report = copy_scope(plan, store, listener=listener, limits=Limits(parallelism=parallelism))
    assert report.counts.copied == 9
    assert listener.most == parallelism
    if parallelism == 1:
        assert listener.begun == list(range(9))


def test_parallelism_may_change_while_it_runs(store: SharedStore) -> None:
    """The driver applies a new limit to the streams that it begins afterwards."""
    asked = iter([1] * 5)
    listener = InWork(0.01)
    report = copy_scope(
        scope_plan(store, range(MANY)),
        store,
        listener=listener,
        limits=lambda: Limits(parallelism=next(asked, 4)),
    )
    assert report.counts.copied == MANY
    assert listener.most == 4


def test_small_streams_never_reach_the_executor(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks copy the larger streams, and only the calling thread submits them."""
    monkeypatch.setattr("sluice.engine.tasks.executor.INLINE_BYTES", 60)
    world = store._world
    contents = put_scope(world, [[100], [200]], [[300]], *([[9]] for _ in range(5)))
    executor = Tasks(store)
    report = copy_scope(scope_plan(store, range(7)), store, executor=executor)
    assert report.counts.copied == 7
    assert executor.streams == {0, 1}
    assert executor.threads == {threading.current_thread().name}
    for number in range(7):
        assert world.bytes_of(target_name(number)) == contents[number]


def test_large_streams_share_the_slots(store: SharedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of all streams go to the same executor."""
    monkeypatch.setattr("sluice.engine.tasks.executor.INLINE_BYTES", 0)
    put_scope(store._world, *([[100]] for _ in range(4)))
    executor = Tasks(store)
    report = copy_scope(scope_plan(store, range(4)), store, executor=executor)
    assert report.counts.copied == 4
    assert executor.streams == {0, 1, 2, 3}


@pytest.mark.parametrize(("rate", "by_tasks"), [(16 << 20, {0, 1, 2}), (10 << 20, set())])
def test_a_rate_holds_for_small_streams_as_well(
    store: SharedStore, rate: int, by_tasks: set[int]
) -> None:
    """The executor divides the rate among all streams. At a low rate, workers move the bytes."""
    executor = Tasks(store)
    report = copy_scope(
        scope_plan(store, range(3)),
        store,
        executor=executor,
        limits=Limits(bytes_per_second=rate),
    )
    assert report.counts.copied == 3
    assert executor.streams == by_tasks


def test_a_task_that_breaks_is_tried_again(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream waits for a while, and its next task copies it."""
    monkeypatch.setattr("sluice.engine.tasks.executor.INLINE_BYTES", 0)
    executor = Tasks(store, [InfrastructureError("worker lost")])
    report = copy_scope(scope_plan(store, range(2)), store, executor=executor, patience=None)
    assert report.counts.copied == 2


def test_the_scope_is_made_first(world: World, store: SharedStore) -> None:
    """With `make_scope`, the driver makes the target's scope before the first stream."""
    plan = scope_plan(store, range(2), make_scope=True)
    world.scopes.remove("out")
    assert copy_scope(plan, store).counts.copied == 2
    assert "out" in world.scopes


def test_a_scope_is_deleted_when_all_of_it_was_moved(world: World, store: SharedStore) -> None:
    """The sources and their scope are gone, and all targets exist."""
    contents = {n: world.bytes_of(source_name(n)) for n in range(MANY)}
    report = copy_scope(scope_plan(store, range(MANY), move=True), store)
    assert report.counts.copied == MANY
    assert report.kept is None
    assert "in" not in world.scopes
    assert {n: world.bytes_of(target_name(n)) for n in range(MANY)} == contents


def test_a_scope_in_which_something_is_left_is_kept(world: World, store: SharedStore) -> None:
    """The report says why the scope still exists."""
    report = copy_scope(scope_plan(store, range(MANY - 1), move=True), store)
    assert report.counts.copied == MANY - 1
    assert report.kept is not None
    assert "in" in world.scopes
