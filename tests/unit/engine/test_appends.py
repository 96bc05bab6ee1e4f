"""Copies that append to a stream of somebody's, on the model store."""

import pytest

from sluice.core.model import ScaleType, Scaling
from sluice.engine.planning import resolve
from sluice.engine.report import Outcome
from support.appends import APPEND, appended, live_write, put_target
from support.model import ModelStore, World
from support.plans import TARGET
from support.sources import Heard, copy_all, planned, put_scaled_source, split
from unit.engine.test_append_machine import kept

MOVES = {
    "as it is": [],
    "split": [("split", 0)],
    "merged": [("merge", 0)],
    "scaled again and again": [("split", 0), ("merge", 1), ("split", 1)],
    "truncated": [("split", 0), ("truncate", 0), ("merge", 1)],
}


@pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_of_a_source_is_appended_once(moves: list[tuple[str, int]], count: int) -> None:
    """Whatever the layouts of the two; the target gets its layout and its policy back."""
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
    """The receipt says so, when the journal and everything else of the copy is gone."""
    world = World()
    contents = put_scaled_source(world, [[5], [6]], [])
    put_target(world, 1)
    store = ModelStore(world)
    (report,) = copy_all(store, planned(store, APPEND))
    found = resolve(APPEND, store, store)
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
    """Then nothing but the transaction is needed, and no reader has an epoch to cross."""
    world = World()
    put_scaled_source(world, [[5], [6]], [])
    put_target(world, 2)
    epoch = world.streams[TARGET].epoch
    store = ModelStore(world)
    heard = Heard()
    copy_all(store, planned(store, APPEND), listener=heard)
    assert world.streams[TARGET].epoch == epoch
    assert "Loosen" not in heard.steps


def test_a_policy_is_touched_only_if_it_wants_more_segments_than_the_source_had() -> None:
    """A stream that was scaled by hand would be scaled back by any change of its configuration."""
    world = World()
    put_scaled_source(world, [[5], [6]], [])
    put_target(world, 3, scaling=Scaling(min_segments=1))
    store = ModelStore(world)
    heard = Heard()
    copy_all(store, planned(store, APPEND), listener=heard)
    assert "Loosen" not in heard.steps
    assert len(world.streams[TARGET].segments) == 3


def test_a_policy_that_is_touched_is_given_back() -> None:
    """Rate, factor and least number included."""
    world = World()
    put_scaled_source(world, [[5]], [])
    policy = Scaling(type=ScaleType.BY_BYTES, target_rate=77, scale_factor=3, min_segments=2)
    put_target(world, 2, scaling=policy)
    store = ModelStore(world)
    heard = Heard()
    copy_all(store, planned(store, APPEND), listener=heard)
    assert "Loosen" in heard.steps
    assert world.streams[TARGET].config.scaling == policy
    assert world.streams[TARGET].config.tags == ("team=b",)


def test_a_target_that_is_scaled_meanwhile_is_appended_to_all_the_same() -> None:
    """What was staged where it does not fit any more is staged again, under open transactions."""
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


def test_a_live_writer_goes_on() -> None:
    """Its events are there, in its order, whenever it writes."""
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
