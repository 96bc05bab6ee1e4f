from contextlib import suppress

import pytest

from sluice.core.copy.steps import ConfigureTarget, Publish
from sluice.core.values import identity
from sluice.core.values.model import Scaling, StreamConfig
from sluice.engine.copy.abort import abort, finish_abort, sweep
from sluice.engine.copy.report import Outcome
from sluice.errors import AbortRefused, StoreUnavailable
from support.engine.plans import COPY, TARGET
from support.engine.sources import BEFORE_PUBLISHING, copy_all, drive, planned, put_source
from support.model import Fate, ModelStore, World, segment_name


@pytest.fixture
def world() -> World:
    """Return a world with a source of two segments."""
    made = World()
    put_source(made, [40, 40], [9])
    return made


@pytest.mark.parametrize("steps", range(BEFORE_PUBLISHING + 1))
def test_an_abort_leaves_nothing(world: World, steps: int) -> None:
    """After any step before publishing, an abort deletes staging, target and journal."""
    copy = drive(world, steps)
    assert abort(COPY, TARGET, ModelStore(world)) is True
    assert TARGET not in world.streams
    assert world.staging() == []
    assert abort(COPY, TARGET, ModelStore(world)) is False
    assert copy.journal.load() is None


@pytest.mark.parametrize("steps", range(BEFORE_PUBLISHING + 1))
def test_after_an_abort_the_copy_can_begin_anew(world: World, steps: int) -> None:
    """A run after an abort copies as if no earlier copy had existed."""
    drive(world, steps)
    abort(COPY, TARGET, ModelStore(world))
    store = ModelStore(world)
    (report,) = copy_all(store, planned(store))
    assert report.outcome is Outcome.COPIED
    assert world.staging() == []


def test_the_driver_comes_to_the_step_of_publishing(world: World) -> None:
    """The steps that these tests count end right before publishing."""
    assert drive(world, BEFORE_PUBLISHING).look() == Publish((0, 1))
    assert drive(world, 1).look() == ConfigureTarget()


def test_an_abort_is_refused_once_the_first_segment_is_published(world: World) -> None:
    """From the first published segment on, the copy can only be finished, and no byte is lost."""
    copy = drive(world, BEFORE_PUBLISHING)
    copy.perform(Publish((0,)))
    with pytest.raises(AbortRefused):
        abort(COPY, TARGET, ModelStore(world))
    (report,) = copy_all(ModelStore(world), copy.plan)
    assert report.outcome is Outcome.COPIED


def test_a_finished_copy_is_not_aborted(world: World) -> None:
    """An abort of a complete copy does nothing."""
    store = ModelStore(world)
    copy_all(store, planned(store))
    before = world.bytes_of(TARGET)
    assert abort(COPY, TARGET, store) is False
    assert world.bytes_of(TARGET) == before


def test_nothing_begun_is_nothing_to_abort(world: World) -> None:
    """An abort without a copy changes nothing and reports that."""
    before = set(world.segments)
    assert abort(COPY, TARGET, ModelStore(world)) is False
    assert set(world.segments) == before


@pytest.mark.parametrize("tags", [(), identity.owner_tags("cd" * 16)], ids=["foreign", "another's"])
def test_a_foreign_target_is_never_touched(world: World, tags: tuple[str, ...]) -> None:
    """A stream in the target's place that another client made does not change."""
    drive(world, 3)
    store = ModelStore(world)
    store.seal_stream(TARGET)
    store.delete_stream(TARGET)
    config = StreamConfig(scaling=Scaling(min_segments=2), tags=tags)
    store.create_stream(TARGET, config)
    number = world.streams[TARGET].segments[0].id
    world.segments[segment_name(TARGET, number)].data += b"theirs"
    abort(COPY, TARGET, store)
    assert world.streams[TARGET].config == config
    assert world.bytes_of(TARGET) == [b"theirs", b""]
    assert world.staging() == []


def test_an_abort_that_was_cut_off_is_finished(world: World) -> None:
    """If an abort died with its first mark set, the next run finishes it."""
    drive(world, 4)
    store = ModelStore(world)
    name = segment_name(TARGET, world.streams[TARGET].segments[0].id)
    world.segments[name].attributes[identity.publish_attribute(COPY)] = identity.ABORTED
    assert finish_abort(COPY, TARGET, store) is True
    assert TARGET not in world.streams
    assert world.staging() == []
    assert finish_abort(COPY, TARGET, store) is False


@pytest.mark.parametrize("call", range(1, 16))
def test_an_abort_cut_off_anywhere_can_be_repeated(world: World, call: int) -> None:
    """An abort whose connection breaks at any call leaves nothing once it is repeated."""
    drive(world, 4)
    calls: list[str] = []

    def gate(what: str) -> Fate:
        calls.append(what)
        return Fate.REPLY_LOST if len(calls) == call else Fate.DONE

    with suppress(StoreUnavailable):
        abort(COPY, TARGET, ModelStore(world, gate))
    abort(COPY, TARGET, ModelStore(world))
    assert TARGET not in world.streams
    assert world.staging() == []


def test_a_copy_in_progress_is_no_abort_to_finish(world: World) -> None:
    """The search for unfinished aborts leaves a current copy alone."""
    drive(world, 4)
    before = dict(world.segments)
    assert finish_abort(COPY, TARGET, ModelStore(world)) is False
    assert world.segments == before


def test_leftovers_of_late_drivers_are_swept(world: World) -> None:
    """Staging and journals made beside a complete target are deleted, and the target is not."""
    store = ModelStore(world)
    copy_all(store, planned(store))
    before = world.bytes_of(TARGET)
    number = world.streams[TARGET].segments[1].id
    store.create(store.staging_name(TARGET, number, identity.staging_key(COPY, 1, 3)))
    store.create(store.staging_name(TARGET, 0, identity.journal_key(COPY, 1)))
    assert sweep(COPY, TARGET, store) == 2
    assert sweep(COPY, TARGET, store) == 0
    assert world.staging() == []
    assert world.bytes_of(TARGET) == before
