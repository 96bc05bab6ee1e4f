import pytest

from sluice.core.values.model import StreamConfig
from sluice.core.workloads.plan import Plan
from sluice.engine.scope import log as log_module
from sluice.engine.scope.log import ScopeLog
from sluice.errors import CopyAborted, NoSuchSegment, PlanTooLarge, StoreUnavailable
from support.engine.scope_drivers import (
    MANY,
    SCOPE_ID,
    SharedStore,
    copied,
    scope_plan,
    write_at_once,
)
from support.model import Fate


def log(store: SharedStore) -> ScopeLog:
    """Return another driver's log of the same copy."""
    return ScopeLog(store, SCOPE_ID, "out")


def test_nothing_written_is_none(store: SharedStore) -> None:
    """A copy that was never begun has no log, and a look at it makes none."""
    assert log(store).load() is None
    assert not log(store).is_there()
    assert store._world.staging() == []


def test_the_first_plan_holds(store: SharedStore, plan: Plan) -> None:
    """If two drivers have different plans, the second driver gets the plan of the first."""
    other = scope_plan(store, [1, 2])
    assert log(store).begin(plan) == plan
    assert log(store).begin(other) == plan
    state = log(store).load()
    assert state is not None
    assert state.plan == plan
    assert log(store).is_there()


def test_a_later_run_follows_on_one_that_is_over(store: SharedStore, plan: Plan) -> None:
    """Until then the earlier plan holds. Of two later plans, the first one holds."""
    later, other = scope_plan(store, [1], run=2), scope_plan(store, [2], run=2)
    mine = log(store)
    assert mine.begin(plan) == plan
    assert log(store).begin(later) == plan
    mine.stopped()
    assert log(store).begin(later) == later
    assert log(store).begin(other) == later
    mine.ended({1: copied(1)})
    mine.stopped()
    state = log(store).load()
    assert state is not None
    assert (state.results, state.stopped) == ({}, False)


def test_results_of_two_drivers_are_all_there_once(store: SharedStore, plan: Plan) -> None:
    """The first result of a stream counts. A known result is not written again."""
    one, two = log(store), log(store)
    one.begin(plan)
    two.begin(plan)
    one.ended({0: copied(0, 1), 3: copied(3)})
    two.ended({0: copied(0, 2), 4: copied(4)})
    one.ended({4: copied(4, 5)})
    state = log(store).load()
    assert state is not None
    assert state.results == {0: copied(0, 1), 3: copied(3), 4: copied(4)}
    (info,) = store.infos([one.name])
    two.ended({0: copied(0), 4: copied(4)})
    assert store.infos([one.name]) == [info]


def test_threads_write_side_by_side(store: SharedStore, plan: Plan) -> None:
    """Several threads of two drivers write, and no result is lost."""
    write_at_once([log(store), log(store)], plan)
    state = log(store).load()
    assert state is not None
    assert state.results == {n: copied(n) for n in range(MANY)}
    assert state.is_over


def test_an_answer_that_is_lost_writes_nothing_twice(store: SharedStore, plan: Plan) -> None:
    """The driver's next try finds the record of the first try."""
    lost = iter([Fate.DONE, Fate.REPLY_LOST])

    def gate(what: str) -> Fate:
        return next(lost, Fate.DONE) if what.startswith("append_at") else Fate.DONE

    mine = log(SharedStore(store._world, gate))
    mine.begin(plan)
    with pytest.raises(StoreUnavailable):
        mine.ended({0: copied(0)})
    (info,) = store.infos([mine.name])
    mine.ended({0: copied(0)})
    assert store.infos([mine.name]) == [info]


def test_stopping_what_is_over_writes_nothing(store: SharedStore) -> None:
    """All streams have ended, so no stream was stopped."""
    mine = log(store)
    mine.begin(scope_plan(store, [0]))
    mine.ended({0: copied(0)})
    mine.stopped()
    state = log(store).load()
    assert state is not None
    assert not state.stopped


def test_a_log_that_is_gone_takes_nothing(store: SharedStore, plan: Plan) -> None:
    """Another client has ended or aborted the copy, and writes fail with NoSuchSegment."""
    mine, other = log(store), log(store)
    mine.begin(plan)
    other.load()
    assert other.delete()
    with pytest.raises(NoSuchSegment):
        mine.ended({0: copied(0)})
    with pytest.raises(NoSuchSegment):
        log(store).stopped()


def test_a_log_that_was_begun_anew_takes_nothing_from_before(
    store: SharedStore, plan: Plan
) -> None:
    """The new log may have the old one's name. The driver's write fails with CopyAborted."""
    mine, other = log(store), log(store)
    mine.begin(plan)
    mine.ended({0: copied(0)})
    other.load()
    other.delete()
    store._world.kept.clear()
    other.begin(scope_plan(store, [0]))
    with pytest.raises(CopyAborted):
        mine.ended({1: copied(1)})


def test_a_log_that_is_deleted_while_it_is_begun_is_aborted(store: SharedStore, plan: Plan) -> None:
    """The driver does not make the log anew."""
    names = log(store)._names

    def gate(what: str) -> Fate:
        if what.startswith("append_at"):
            store.delete(names[0])
        return Fate.DONE

    with pytest.raises(CopyAborted):
        log(SharedStore(store._world, gate)).begin(plan)


def test_a_plan_too_large_for_one_record_is_refused(
    store: SharedStore, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal comes before the log is made."""
    monkeypatch.setattr(log_module, "MAX_RECORD", 1000)
    with pytest.raises(PlanTooLarge, match=f"{MANY} streams"):
        log(store).begin(plan)
    assert not log(store).is_there()


def test_a_plan_of_many_streams_is_a_small_record(store: SharedStore) -> None:
    """The record is compressed: 1,000 streams take less than 64 KiB, so 10,000 fit in a record."""
    (stream,) = scope_plan(store, [1]).streams
    streams = tuple(
        stream.model_copy(
            update={
                "copy_id": f"{number * 0x9E3779B97F4A7C15 % (1 << 128):032x}",
                "target": stream.target.model_copy(update={"stream": f"stream-{number}"}),
                "config": StreamConfig(tags=(f"n={number}",)),
            }
        )
        for number in range(1_000)
    )
    plan = scope_plan(store, [1]).model_copy(update={"streams": streams})
    mine = log(store)
    mine.begin(plan)
    (info,) = store.infos([mine.name])
    assert info is not None
    assert info.length < 64 << 10
    state = log(SharedStore(store._world, block=1 << 20)).load()
    assert state is not None
    assert state.plan == plan
