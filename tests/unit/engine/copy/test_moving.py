"""Moves, step by step: the checks before a source is sealed or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.steps import (
    ConfigureTarget,
    DeleteJournal,
    DeleteSource,
    DrainSource,
    Publish,
    Stitch,
    Transfer,
    Verify,
)
from sluice.core.values import identity
from sluice.core.values.model import KeyRange
from sluice.engine.copy import moving
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.query import abandon
from sluice.engine.copy.report import Outcome
from sluice.errors import InvalidSpec, SourceKept, SourceNotFound, SourceReplaced
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import REQUEST, begun, copy_all, events_of, go, put_source
from support.model import EVENT_COUNT, ModelStore, World, segment_name

if TYPE_CHECKING:
    from sluice.core.copy.steps import Step
    from sluice.engine.copy.stream_copy import StreamCopyWork

MOVE = REQUEST.model_copy(update={"move": True})
STEPS: list[type[Step]] = [
    Transfer,
    DrainSource,
    Stitch,
    Verify,
    Publish,
    ConfigureTarget,
    DeleteSource,
    DeleteJournal,
]


@pytest.fixture
def world() -> World:
    """Return a world with a source of two segments."""
    made = World()
    put_source(made, [40, 40, 3], [9])
    made.numbers[SOURCE] = 2
    return made


def driver(world: World) -> StreamCopyWork:
    """Return a driver that has recorded its plan."""
    return begun(world, MOVE)


def write(world: World, segment: int, sizes: list[int]) -> None:
    """Write to the source as another client."""
    there = world.segments[segment_name(SOURCE, segment)]
    there.data += events_of(sizes, 77)
    there.attributes[EVENT_COUNT] += len(sizes)


def test_all_is_staged_before_the_source_is_sealed(world: World) -> None:
    """Writers are cut off late: after the existing bytes are staged, before any merge."""
    go(driver(world), world, DrainSource)
    assert not world.streams[SOURCE].sealed
    staged = sum(len(world.segments[name].data) for name in world.staging())
    assert staged > sum(map(len, world.bytes_of(SOURCE)))  # and the journal's


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_move_that_dies_at_any_step_is_finished(
    world: World,
    step: type[Step],
    after: bool,  # noqa: FBT001
) -> None:
    """The target has exactly the bytes up to the seal. The source is gone, and nothing is left."""
    one = driver(world)
    write(world, 0, [5, 6])
    found = go(one, world, step)
    before_seal = not world.streams[SOURCE].sealed if SOURCE in world.streams else False
    if before_seal:
        write(world, 1, [30, 2])
    contents = world.bytes_of(SOURCE) if SOURCE in world.streams else None
    kept = contents or world.bytes_of(TARGET)
    if after and not isinstance(found, Transfer | Verify):
        one.perform(found)
    store = ModelStore(world)
    if resolve(MOVE, [store], store).plan is not None:
        go(driver(world), world)
    assert world.bytes_of(TARGET) == kept
    assert SOURCE not in world.streams
    assert world.staging() == []


def test_segments_that_came_meanwhile_are_moved(world: World) -> None:
    """A scale event before the seal is a further generation of the target."""
    one = driver(world)
    go(one, world, DrainSource)
    halves = [KeyRange(low=0, high=0.25), KeyRange(low=0.25, high=0.5)]
    world.replace(SOURCE, {0}, halves)
    made = world.streams[SOURCE].made[-1]
    write(world, made[0].id, [11, 12])
    contents = world.bytes_of(SOURCE)
    go(one, world)
    assert world.bytes_of(TARGET) == contents
    assert SOURCE not in world.streams


def test_another_stream_in_its_place_is_not_sealed(world: World) -> None:
    """The driver checks the source before it seals it."""
    one = driver(world)
    go(one, world, DrainSource)
    del world.streams[SOURCE]
    put_source(world, [3], [4])
    with pytest.raises(SourceReplaced, match="left as it is"):
        one.perform(DrainSource())
    assert not world.streams[SOURCE].sealed


def test_a_source_that_is_gone_is_said(world: World) -> None:
    """The source must exist before it is sealed."""
    one = driver(world)
    go(one, world, DrainSource)
    ModelStore(world).seal_stream(SOURCE)
    ModelStore(world).delete_stream(SOURCE)
    with pytest.raises(SourceNotFound):
        one.perform(DrainSource())


def leave(copy: StreamCopyWork, world: World) -> None:
    """Delete the source, as the step does."""
    store = ModelStore(world)
    journal = copy.journal.load()
    assert journal is not None
    assert journal.target is not None
    moving.leave(journal.current, journal.target, store, store)


@pytest.mark.parametrize("how", ["lacking", "longer", "unsealed", "segment", "untagged"])
def test_a_source_is_kept_where_anything_disagrees(world: World, how: str) -> None:
    """Before the deletion the driver compares lengths, seals, segments and the mark."""
    one = driver(world)
    go(one, world, DeleteSource)
    source, target = world.streams[SOURCE], world.streams[TARGET]
    first = world.segments[segment_name(SOURCE, 0)]
    if how == "lacking":
        name = segment_name(TARGET, target.segments[0].id)
        world.segments[name].attributes[identity.publish_attribute(COPY)] -= 1
    elif how == "longer":
        first.data += b"more"
    elif how == "unsealed":
        source.sealed = False
    elif how == "segment":
        world.replace(SOURCE, {0}, [source.segments[0].keys])
    else:
        target.config = target.config.model_copy(update={"tags": ()})
    with pytest.raises(SourceKept, match="is not deleted"):
        leave(one, world)
    assert SOURCE in world.streams


def test_a_move_needs_verification(world: World) -> None:
    """A source is deleted only after its bytes were compared."""
    store = ModelStore(world)
    with pytest.raises(InvalidSpec) as caught:
        resolve(MOVE.model_copy(update={"verify": False}), [store], store)
    assert caught.value.field == "spec.sourceOnComplete"


@pytest.mark.parametrize("published", [False, True])
def test_an_abandoned_move_keeps_the_source(world: World, published: bool) -> None:  # noqa: FBT001
    """A deletion of the resource midway keeps the data, sealed."""
    one = driver(world)
    contents = world.bytes_of(SOURCE)
    step = go(one, world, Publish)
    if published:
        one.perform(step)
    store = ModelStore(world)
    done = abandon(MOVE, sources=[store], target=store)
    assert ("was finished" if published else "is sealed and stays so") in done
    assert world.bytes_of(SOURCE) == contents
    assert world.streams[SOURCE].sealed
    assert (TARGET in world.streams) is published
    assert world.staging() == []


def test_a_finished_move_run_again_does_nothing(world: World) -> None:
    """The source is gone and the target whole: no plan remains, and nothing fails."""
    go(driver(world), world)
    store = ModelStore(world)
    found = resolve(MOVE, [store], store)
    assert (found.plan, found.recorded) == (None, False)
    assert found.digest is not None


def test_a_runner_moves(world: World) -> None:
    """It moves a stream from beginning to end, as `sluice run` does."""
    contents = world.bytes_of(SOURCE)
    store = ModelStore(world)
    plan = resolve(MOVE, [store], store).plan
    assert plan is not None
    (report,) = copy_all(store, plan)
    assert report.outcome is Outcome.COPIED
    assert world.bytes_of(TARGET) == contents
    assert SOURCE not in world.streams
