"""Copies that append to a stream of another owner, on the model store."""

import pytest

from sluice.core.copy.journal import Journal
from sluice.core.copy.next_append_step import next_step
from sluice.core.copy.planner import SourceRequest
from sluice.core.copy.steps import (
    MergeIntoTransaction,
    RecordCommitted,
    RecordDecision,
    Seal,
    Verify,
    WriteReceipt,
)
from sluice.core.scope.progress import Progress
from sluice.core.values.model import ScaleType, Scaling, StreamName, TransactionState
from sluice.core.workloads.answers import Complete, Planned
from sluice.engine.append import observing
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.progress import ProgressWatch
from sluice.engine.copy.query import abandon, ask
from sluice.engine.copy.report import Outcome
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.positions.position_map import position_map
from sluice.engine.verify.compare import Subject, match_copy
from sluice.errors import InvalidSpec, StoreBusy
from support.engine.appends import APPEND, appended, driven, kept, live_write, put_target
from support.engine.plans import ADDRESS, SOURCE, TARGET
from support.engine.sources import (
    Heard,
    ManualClock,
    copy_all,
    drive,
    planned,
    put_scaled_source,
    split,
)
from support.model import CREATION_TIME, Fate, ModelStore, World

MOVES = {
    "as it is": [],
    "split": [("split", 0)],
    "merged": [("merge", 0)],
    "scaled again and again": [("split", 0), ("merge", 1), ("split", 1)],
    "truncated": [("split", 0), ("truncate", 0), ("merge", 1)],
}


def test_no_stream_is_appended_to_itself() -> None:
    """This holds even if the store has two addresses. A namesake in another store is allowed."""
    world, other = World(), World()
    put_scaled_source(world, [[5, 90], [40]], MOVES["split"])
    itself = APPEND.model_copy(update={"target": SOURCE})
    with pytest.raises(InvalidSpec, match="would be appended to itself") as caught:
        planned(ModelStore(world), itself)
    assert caught.value.field == "spec.target"
    put_scaled_source(other, [[5, 90], [40]], MOVES["split"])
    for segment in other.segments.values():
        segment.attributes[CREATION_TIME] += 1
    found = resolve(itself, [ModelStore(world)], ModelStore(other))
    assert found.plan is not None
    assert found.plan.append


@pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_of_a_source_is_appended_once(moves: list[tuple[str, int]], count: int) -> None:
    """This holds for any two layouts; the target gets its layout and its policy back."""
    world = World()
    contents = put_scaled_source(world, [[5, 90, 3], [40], [17]], moves)
    put_target(world, count)
    before = world.streams[TARGET].config
    store = ModelStore(world)
    (report,) = copy_all(store, split(planned(store, APPEND)))
    assert report.error is None
    assert report.outcome is Outcome.COPIED
    assert appended(world, contents) == [1 for content in contents if content]
    stream = world.streams[TARGET]
    assert len(stream.segments) == count
    assert stream.config == before
    assert sum(map(len, world.bytes_of(TARGET))) == sum(map(len, contents)) + 28 * count


def test_one_that_is_done_is_not_done_again() -> None:
    """The receipt says so, even after the copy's journal and staged bytes are gone."""
    world = World()
    contents = put_scaled_source(world, [[5], [6]], [])
    put_target(world, 1)
    store = ModelStore(world)
    (report,) = copy_all(store, planned(store, APPEND))
    found = resolve(APPEND, [store], store)
    assert found.plan is None
    assert found.digest == report.digest
    assert appended(world, contents) == [1, 1]
    assert set(world.staging()) == kept()


def test_another_resource_appends_again() -> None:
    """Each copy has receipts of its own."""
    world = World()
    contents = put_scaled_source(world, [[5], [6]], [])
    put_target(world, 1)
    store = ModelStore(world)
    copy_all(store, planned(store, APPEND))
    copy_all(store, planned(store, APPEND.model_copy(update={"copy_id": "cd" * 16})))
    assert appended(world, contents) == [2, 2]


def test_a_target_of_the_same_layout_is_not_scaled() -> None:
    """Only the transaction is needed then, and no reader has to cross an epoch."""
    world = World()
    put_scaled_source(world, [[5], [6]], [])
    put_target(world, 2)
    epoch = world.streams[TARGET].epoch
    store = ModelStore(world)
    heard = Heard()
    copy_all(store, planned(store, APPEND), listener=heard)
    assert world.streams[TARGET].epoch == epoch
    assert "RelaxPolicy" not in heard.steps


def test_a_policy_is_touched_only_if_it_wants_more_segments_than_the_source_had() -> None:
    """Any change of its configuration would undo a scale event that a user made by hand."""
    world = World()
    put_scaled_source(world, [[5], [6]], [])
    put_target(world, 3, scaling=Scaling(min_segments=1))
    store = ModelStore(world)
    heard = Heard()
    copy_all(store, planned(store, APPEND), listener=heard)
    assert "RelaxPolicy" not in heard.steps
    assert len(world.streams[TARGET].segments) == 3


def test_a_policy_that_is_touched_is_given_back() -> None:
    """The rate, the factor and the least number are restored."""
    world = World()
    put_scaled_source(world, [[5]], [])
    policy = Scaling(type=ScaleType.BY_BYTES, target_rate=77, scale_factor=3, min_segments=2)
    put_target(world, 2, scaling=policy)
    store = ModelStore(world)
    heard = Heard()
    copy_all(store, planned(store, APPEND), listener=heard)
    assert "RelaxPolicy" in heard.steps
    assert world.streams[TARGET].config.scaling == policy
    assert world.streams[TARGET].config.tags == ("team=b",)


def test_a_target_that_is_scaled_meanwhile_is_appended_to_all_the_same() -> None:
    """Bytes that no longer fit are staged again, under open transactions."""
    world = World()
    contents = put_scaled_source(world, [[5, 90], [6]], [])
    put_target(world, 1)
    store = ModelStore(world)

    class Scaler(Heard):
        def step(self, copy, step) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
            super().step(copy, step)
            if self.steps[-1] == "Verify":
                world.scale(TARGET, 3)

    heard = Scaler()
    (report,) = copy_all(store, planned(store, APPEND), listener=heard)
    assert report.error is None
    assert heard.steps.count("Restart") == 1
    assert appended(world, contents) == [1, 1]
    assert len(world.streams[TARGET].segments) == 3
    assert set(world.staging()) == kept()


@pytest.mark.parametrize("backwards", [False, True])
def test_nothing_is_staged_twice_however_a_store_numbers_segments(
    backwards: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Staged bytes lie where the transactions will be, if no client scales the target."""
    world = World()
    contents = put_scaled_source(world, [[5, 90], [6]], [("split", 0), ("split", 2)])
    put_target(world, 1)
    world.backwards = backwards
    store = ModelStore(world)
    heard = Heard()
    copy_all(store, planned(store, APPEND), listener=heard)
    assert "Restart" not in heard.steps
    assert appended(world, contents) == [1 for content in contents if content]


def test_a_live_writer_goes_on() -> None:
    """The writer's events are there in order, whenever it writes."""
    world = World()
    put_scaled_source(world, [[5, 90], [6]], [("split", 0)])
    put_target(world, 1)
    store = ModelStore(world)
    written: list[bytes] = []

    class Writer(Heard):
        def step(self, copy, step) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
            super().step(copy, step)
            written.append(live_write(world, 0, len(written) + 1))

    copy_all(store, planned(store, APPEND), listener=Writer())
    all_bytes = b"".join(world.bytes_of(TARGET))
    places = [all_bytes.find(one) for one in written]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("stopped", [False, True], ids=["given up", "stopped"])
def test_a_driver_that_stops_midway_leaves_the_target_as_it_was(
    stopped: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Any next driver restores key ranges and policy, and keeps the staged bytes."""
    world = World()
    contents = put_scaled_source(world, [[9, 30], [20]], [("split", 0)])
    put_target(world, 4)
    target = world.streams[TARGET]
    before, layout = target.config, [segment.keys for segment in target.segments]
    failing = ModelStore(
        world, lambda call: Fate.REQUEST_LOST if call.startswith("open_tr") else Fate.DONE
    )
    heard = Heard()

    class Clock(ManualClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if stopped:
                raise KeyboardInterrupt

    plan = planned(failing, APPEND)
    try:
        (report,) = copy_all(failing, plan, listener=heard, clock=Clock(), patience=5)
        assert not stopped
        assert report.error is not None
        assert not report.cleaned
    except KeyboardInterrupt:
        assert stopped
    assert {"RelaxPolicy", "Reshape"} <= set(heard.steps)
    assert target.config == before
    assert [segment.keys for segment in target.segments] == layout
    assert set(world.staging()) - kept()
    store = ModelStore(world)
    (report,) = copy_all(store, planned(store, APPEND), listener=heard)
    assert report.outcome is Outcome.COPIED
    assert appended(world, contents) == [1 for content in contents if content]
    assert target.config == before


def test_transactions_that_are_not_needed_any_more_are_ended() -> None:
    """If the store drops a transaction, its siblings do not stay open until their lease ends."""
    world = World()
    contents = put_scaled_source(world, [[9, 30], [20]], [("split", 0)])
    put_target(world, 4)
    driven(world, RecordDecision)
    known = world.streams[TARGET].transactions
    first, last = known.values()
    world.drop(TARGET, last)
    store = ModelStore(world)
    (report,) = copy_all(store, planned(store, APPEND))
    assert report.outcome is Outcome.COPIED
    assert first.state is TransactionState.ABORTED
    assert _states(world) == {TransactionState.ABORTED, TransactionState.COMMITTED}
    assert appended(world, contents) == [1 for content in contents if content]


def test_a_driver_that_is_overtaken_while_it_looks_does_not_take_what_is_done_for_missing() -> None:
    """Its journal is older than the transactions it sees, and the source may be gone by then."""
    world = World()
    contents = put_scaled_source(world, [[9, 30], [20]], [])
    put_target(world, 1)
    slow = driven(world, MergeIntoTransaction)
    store = ModelStore(world)

    class Overtaken(CopyJournal):
        def load(self) -> Journal | None:
            before = super().load()
            if TransactionState.COMMITTED not in _states(world):
                driven(world, RecordCommitted)
                store.seal_stream(SOURCE)
                store.delete_stream(SOURCE)
            return before

    copy_journal = Overtaken(store, APPEND.copy_id, TARGET)
    seen = observing.observe(slow.plan, copy_journal, [store], store)
    assert isinstance(next_step(slow.plan, seen), RecordCommitted)
    assert appended(world, contents) == [1 for content in contents if content]


def _states(world: World) -> set[TransactionState]:
    """Return the states of the target's transactions."""
    return {one.state for one in world.streams[TARGET].transactions.values()}


def test_what_the_operator_is_told_of_an_append() -> None:
    """The operator gets the plan, the progress, and in the end the content of the receipt."""
    world = World()
    contents = put_scaled_source(world, [[9, 30], [20]], [])
    put_target(world, 1)
    store = ModelStore(world)
    stores = {"sources": [(ADDRESS, store)], "target": (ADDRESS, store)}
    answer = ask(APPEND, known=None, **stores)
    assert isinstance(answer, Planned)
    assert answer.plan.streams[0].append
    size = sum(map(len, contents))
    watch = ProgressWatch(answer.plan, store)
    assert watch.measure() == Progress(0, size, published=False)
    driven(world, Verify)
    assert watch.measure() == Progress(size, size, published=False)
    answer = ask(APPEND, known=None, **stores)
    assert isinstance(answer, Planned)
    assert answer.recorded
    driven(world, WriteReceipt)
    assert watch.measure() == Progress(size, size, published=True)
    (report,) = copy_all(store, planned(store, APPEND))
    assert ask(APPEND, known=None, **stores) == Complete(
        digest=report.digest or "",
        bytes=size,
        events=3,
        appended=True,
        held=sum(map(len, world.bytes_of(TARGET))),
    )
    assert watch.measure() == Progress(size, size, published=True)


def test_no_positions_are_made_up() -> None:
    """The positions of appended bytes among those of other writers are not recorded."""
    world = World()
    put_scaled_source(world, [[9]], [])
    put_target(world, 1)
    store = ModelStore(world)
    copy_all(store, planned(store, APPEND))
    with pytest.raises(InvalidSpec, match="appended to") as refused:
        position_map(APPEND.copy_id, TARGET, store)
    assert refused.value.field == "spec.target.onExists"
    source, target = (Subject(store, "tcp://model:1", name) for name in (SOURCE, TARGET))
    with pytest.raises(InvalidSpec, match="appended to"):
        match_copy(APPEND.copy_id, "copy", source, target, whole=True)


@pytest.mark.parametrize("cut_off", [False, True], ids=["run", "deleted before the seal"])
def test_target_is_sealed_once_all_is_appended(cut_off: bool) -> None:  # noqa: FBT001 - a parameter
    """The driver seals the target. After its death, the deletion of the resource seals it."""
    world = World()
    contents = put_scaled_source(world, [[5], [6]], [])
    put_target(world, 1)
    store = ModelStore(world)
    request = APPEND.model_copy(update={"seal": True})
    if cut_off:
        driven(world, Seal, request)
        assert not world.streams[TARGET].sealed
        abandon(request, sources=[store], target=store)
    else:
        copy_all(store, planned(store, request))
    assert world.streams[TARGET].sealed
    assert appended(world, contents) == [1, 1]
    assert set(world.staging()) == kept()


def test_sources_follow_one_another() -> None:
    """Sources are appended in turn, with any layouts. The target gets its layout back."""
    world = World()
    contents = put_scaled_source(world, [[5, 90], [6]], [("split", 0)])
    second = StreamName(scope="in", stream="second")
    contents += put_scaled_source(world, [[7, 8, 9]], [], name=second, seed=500)
    put_target(world, 3)
    layout = [segment.keys for segment in world.streams[TARGET].segments]
    store = ModelStore(world)
    sources = tuple(SourceRequest(stream=name) for name in (SOURCE, second))
    (report,) = copy_all(store, planned(store, APPEND.model_copy(update={"sources": sources})))
    assert report.outcome is Outcome.COPIED
    assert appended(world, contents) == [1 for content in contents if content]
    everything = b"".join(world.bytes_of(TARGET))
    assert everything.find(contents[0]) < everything.find(contents[-1])
    assert [segment.keys for segment in world.streams[TARGET].segments] == layout


def test_a_plan_that_appends_is_refused_by_a_sealed_target() -> None:
    """This holds if the target was sealed after the plan was made, too."""
    world = World()
    put_scaled_source(world, [[9]], [])
    put_target(world, 1)
    store = ModelStore(world)
    driven(world, MergeIntoTransaction)
    store.seal_stream(TARGET)
    (report,) = copy_all(store, planned(store, APPEND))
    assert report.error is not None
    assert report.error.reason == "TargetSealed"
    assert not set(world.staging()) - kept()


def test_a_target_that_another_copy_is_making_is_waited_for() -> None:
    """Appended bytes would look like damage to that copy. Once it is done, the append goes on."""
    world = World()
    contents = put_scaled_source(world, [[9], [20]], [("split", 0)])
    drive(world, 4)
    store = ModelStore(world)
    other = APPEND.model_copy(update={"copy_id": "cd" * 16})
    with pytest.raises(StoreBusy, match="another copy"):
        resolve(other, [store], store)
    copy_all(store, planned(store))
    copy_all(store, planned(store, other))
    assert appended(world, contents) == [2 for content in contents if content]
