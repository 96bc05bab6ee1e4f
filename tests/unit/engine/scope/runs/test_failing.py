import pytest

from sluice.core.scope.scope import StreamState
from sluice.engine.tasks.limits import Limits
from sluice.errors import (
    AuthenticationFailed,
    CertificateRejected,
    JournalDamaged,
    SluiceError,
    StoreRejected,
)
from support.engine.scope_drivers import (
    MANY,
    InWork,
    SharedStore,
    copy_scope,
    damage,
    log,
    scope_plan,
    source_name,
    states,
    target_name,
)
from support.model import Fate, World

COPIED, FAILED = StreamState.COPIED, StreamState.FAILED


def test_one_that_fails_stops_nothing(world: World, store: SharedStore) -> None:
    """Its result names the reason and is recorded once. Its target is deleted."""
    plan = scope_plan(store, range(6))
    damage(world, 2)
    listener = InWork()
    report = copy_scope(plan, store, listener=listener)
    assert report.is_over
    assert states(report.results) == {COPIED: 5, FAILED: 1}
    failed = report.results[2]
    assert failed.trouble is not None
    assert (failed.stream, failed.trouble.reason) == ("s002", "SourceReplaced")
    assert (failed.bytes, failed.digest) == (plan.streams[2].bytes, None)
    assert target_name(2) not in world.streams
    assert sorted(listener.results, key=lambda one: one.stream) == list(report.results)
    state = log(store).load()
    assert state is not None
    assert state.streams == report.results


def test_a_stream_deleted_meanwhile_is_a_named_failure(world: World, store: SharedStore) -> None:
    """The other streams are copied."""
    plan = scope_plan(store, range(4))
    del world.streams[source_name(1)]
    for name in [name for name in world.segments if name.startswith("in/s001")]:
        del world.segments[name]
    report = copy_scope(plan, store)
    assert [str(result.state) for result in report.results] == [COPIED, FAILED, COPIED, COPIED]
    assert report.results[1].trouble is not None
    assert report.results[1].trouble.reason == "SourceNotFound"


def test_after_a_failure_none_is_begun_if_that_is_asked_for(
    world: World, store: SharedStore
) -> None:
    """Streams that were not begun count as stopped. Another driver does not begin them either."""
    plan = scope_plan(store, range(6))
    damage(world, 2)
    limits = Limits(parallelism=1, stop_at_failure=True)
    report = copy_scope(plan, store, limits=limits)
    wanted = [COPIED, COPIED, FAILED] + [StreamState.STOPPED] * 3
    assert [result.state for result in report.results] == wanted
    assert report.is_over
    state = log(store).load()
    assert state is not None
    assert state.stopped
    again = copy_scope(plan, store, limits=limits)
    assert again.results == report.results
    assert target_name(3) not in world.streams


def test_those_in_work_go_on_when_others_are_stopped(world: World, store: SharedStore) -> None:
    """Each stream that was begun is copied to its end."""
    plan = scope_plan(store, range(MANY))
    damage(world, 0)
    listener = InWork(0.002)
    report = copy_scope(
        plan, store, listener=listener, limits=Limits(parallelism=4, stop_at_failure=True)
    )
    assert report.counts.failed == 1
    assert report.counts.stopped >= MANY - 8
    assert report.counts.copied == len(listener.begun) - 1
    assert len(world.staging()) == 1


def test_a_stream_that_may_pass_is_left_to_the_next_driver(
    world: World, store: SharedStore
) -> None:
    """The others are copied, and the report says why the copy is not over.

    Another driver ends it.
    """
    plan = scope_plan(store, range(5))

    def gate(what: str) -> Fate:
        return Fate.REQUEST_LOST if "in/s003" in what else Fate.DONE

    listener = InWork()
    report = copy_scope(plan, SharedStore(world, gate), target=store, listener=listener)
    assert not report.is_over
    assert report.trouble is not None
    assert (report.trouble.reason, report.trouble.retryable) == ("StoreUnavailable", True)
    assert states(report.results) == {COPIED: 4, StreamState.PLANNED: 1}
    assert report.results[3].trouble == report.trouble
    assert {result.stream for result in listener.results if result.trouble} == {"s003"}
    state = log(store).load()
    assert state is not None
    assert len(state.results) == 4
    again = copy_scope(plan, store)
    assert again.is_over
    assert again.counts.copied == 5


@pytest.mark.parametrize("error", [StoreRejected, AuthenticationFailed, CertificateRejected])
def test_what_nobody_knows_the_meaning_of_is_no_result(
    world: World, store: SharedStore, error: type[SluiceError]
) -> None:
    """An odd answer of the store fails no stream for good. The next driver copies the stream."""
    plan = scope_plan(store, range(4))
    refused: list[str] = []

    def gate(what: str) -> Fate:
        if "in/s002" in what:
            refused.append(what)
            raise error("the controller said UNKNOWN")
        return Fate.DONE

    report = copy_scope(plan, SharedStore(world, gate), target=store)
    assert refused
    assert not report.is_over
    assert report.trouble is not None
    assert report.trouble.reason == error.__name__
    assert states(report.results) == {COPIED: 3, StreamState.PLANNED: 1}
    state = log(store).load()
    assert state is not None
    assert len(state.results) == 3
    again = copy_scope(plan, store)
    assert again.is_over
    assert again.counts.copied == 4


def test_a_store_that_is_away_does_not_try_the_patience_of_all(
    world: World, store: SharedStore
) -> None:
    """Once as many streams in a row were given up as may be in work, the driver begins no other."""
    plan = scope_plan(store, range(MANY))

    def gate(what: str) -> Fate:
        return Fate.REQUEST_LOST if "in/s" in what or what == "probe" else Fate.DONE

    listener = InWork()
    report = copy_scope(
        plan,
        SharedStore(world, gate),
        target=store,
        listener=listener,
        limits=Limits(parallelism=3),
        patience=0.05,
    )
    assert report.trouble is not None
    assert report.counts.left == MANY
    assert 3 <= len(listener.results) <= 6


def test_the_first_ones_do_not_keep_the_others_from_their_turn(
    world: World, store: SharedStore
) -> None:
    """The store answers, so the driver copies all streams that can be read now."""
    stuck, count = 9, 14
    plan = scope_plan(store, range(count))

    def gate(what: str) -> Fate:
        return Fate.REQUEST_LOST if any(f"in/s{i:03}" in what for i in range(stuck)) else Fate.DONE

    report = copy_scope(
        plan,
        SharedStore(world, gate),
        target=store,
        limits=Limits(parallelism=3),
        patience=0.05,
    )
    assert not report.is_over
    assert states(report.results) == {StreamState.PLANNED: stuck, COPIED: count - stuck}


def test_a_target_that_is_away_is_the_trouble_of_all(world: World, store: SharedStore) -> None:
    """The driver begins no stream, and reports the plan that it was given."""
    plan = scope_plan(store, range(3))

    def gate(_what: str) -> Fate:
        return Fate.REQUEST_LOST

    report = copy_scope(plan, store, target=SharedStore(world, gate))
    assert report.trouble is not None
    assert report.trouble.retryable
    assert report.plan == plan
    assert report.counts.left == 3


def test_a_bug_in_a_worker_is_raised(world: World, store: SharedStore) -> None:
    """The calling thread raises the worker's own exception."""

    def gate(what: str) -> Fate:
        if what.startswith("create_stream"):
            raise ZeroDivisionError
        return Fate.DONE

    with pytest.raises(ZeroDivisionError):
        copy_scope(scope_plan(store, range(3)), store, target=SharedStore(world, gate))


def test_the_log_is_waited_for(world: World, store: SharedStore) -> None:
    """The driver repeats the writes of results until the store takes them."""
    plan = scope_plan(store, range(3))
    lost = iter([Fate.DONE, *[Fate.REQUEST_LOST] * 2, Fate.REPLY_LOST])

    def gate(what: str) -> Fate:
        is_log = what.startswith("append_at out/_sluice-copies")
        return next(lost, Fate.DONE) if is_log else Fate.DONE

    report = copy_scope(plan, store, target=SharedStore(world, gate), patience=None)
    assert report.is_over
    state = log(store).load()
    assert state is not None
    assert len(state.results) == 3


def test_a_log_that_cannot_be_read_is_the_trouble_of_all(store: SharedStore) -> None:
    """The driver begins no stream, since it does not know what was done before."""
    plan = scope_plan(store, range(2))
    there = log(store)
    store.create(there.name)
    store.append_at(there.name, 0, b"garbage!" * 4)
    report = copy_scope(plan, store)
    assert report.trouble is not None
    assert report.trouble.reason == JournalDamaged.__name__
