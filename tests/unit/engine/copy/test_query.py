from __future__ import annotations

import copy
import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.planner import SourceRequest
from sluice.core.copy.steps import ConfigureTarget, Done, Publish, Seal
from sluice.core.values import identity
from sluice.core.values.model import KeyRange, Segment, StreamConfig, StreamName
from sluice.core.workloads.answers import Complete, Planned
from sluice.engine.copy import query
from sluice.engine.copy.query import abandon, ask
from sluice.errors import (
    InfrastructureError,
    SourceNotFound,
    StoreRejected,
    StoreUnavailable,
    TargetExists,
    TargetReplaced,
    TargetScopeNotFound,
)
from support.engine.plans import ADDRESS, COPY, SOURCE, TARGET, whole_plan
from support.engine.sources import (
    BEFORE_PUBLISHING,
    REQUEST,
    copy_all,
    drive,
    planned,
    put_source,
)
from support.model import EVENT_COUNT, Fate, ModelSegment, ModelStore, World, segment_name

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.workloads.answers import Answer

SHAPES = ([40, 40], [9])
BYTES, EVENTS = 8 * 3 + 89, 3


@pytest.fixture
def world() -> World:
    """Return a world with a source of two segments."""
    made = World()
    put_source(made, *SHAPES)
    return made


def asked(world: World, known: StreamPlan | None = None) -> Answer:
    """Ask the stores for the state of the copy, and check that this changes nothing."""
    before = copy.deepcopy((world.streams, world.segments))
    store = ModelStore(world)
    try:
        return ask(REQUEST, sources=[(ADDRESS, store)], target=(ADDRESS, store), known=known)
    finally:
        assert (world.streams, world.segments) == before


def dropped(world: World, *, source: bool = True) -> str:
    """Abandon the copy, and return the result."""
    store = ModelStore(world)
    return abandon(REQUEST, sources=[store] if source else None, target=store)


def copied(world: World) -> StreamPlan:
    """Run the copy, and return its plan."""
    store = ModelStore(world)
    plan = planned(store)
    copy_all(store, plan)
    return plan


def target_segment(world: World, index: int) -> str:
    """Return the name of a segment of the target."""
    return segment_name(TARGET, world.streams[TARGET].segments[index].id)


# -- asking


def test_a_copy_that_was_not_begun_has_a_plan() -> None:
    """Its bounds are the source's present end."""
    world = World()
    put_source(world, *SHAPES)
    first = asked(world)
    assert first == Planned(plan=whole_plan(planned(ModelStore(world))), recorded=False)
    assert first.plan.bytes == BYTES
    put_source(world, [40, 40, 7], [9])
    second = asked(world)
    assert isinstance(second, Planned)
    assert second.plan.bytes == BYTES + 8 + 7


@pytest.mark.parametrize("steps", range(BEFORE_PUBLISHING + 1))
def test_a_copy_that_was_begun_has_the_plan_of_its_driver(world: World, steps: int) -> None:
    """This holds at any progress, and though the source has grown since."""
    plan = drive(world, steps).plan
    put_source(world, [40, 40, 7], [9])
    assert asked(world) == Planned(plan=whole_plan(plan), recorded=True)


def test_a_copy_that_is_being_published_is_not_complete(world: World) -> None:
    """Some segments are published and some are not, so work is left."""
    driver = drive(world, BEFORE_PUBLISHING)
    driver.perform(Publish((0,)))
    answer = asked(world, driver.plan)
    assert isinstance(answer, Planned)
    assert answer.recorded


def test_a_copy_whose_target_is_not_sealed_yet_is_not_complete(world: World) -> None:
    """A driver that died before the seal leaves it to the next driver."""
    request = REQUEST.model_copy(update={"seal": True})
    store = ModelStore(world)
    driver = drive(world, BEFORE_PUBLISHING, request)
    while not isinstance(step := driver.look(), Seal):
        driver.perform(step)
    answer = ask(request, sources=[(ADDRESS, store)], target=(ADDRESS, store), known=driver.plan)
    assert isinstance(answer, Planned)
    assert answer.recorded
    done = abandon(request, sources=None, target=store)
    assert done == "publishing had begun and was finished"
    assert world.streams[TARGET].sealed
    answer = ask(request, sources=[(ADDRESS, store)], target=(ADDRESS, store), known=driver.plan)
    assert isinstance(answer, Complete)
    assert answer.positions is not None
    assert abandon(request, sources=None, target=store) == "nothing was left"


def test_a_driver_that_comes_late_to_a_sealed_target_finds_it_done(world: World) -> None:
    """The store refuses its step, and another driver has done it."""
    request = REQUEST.model_copy(update={"seal": True})
    late = drive(world, BEFORE_PUBLISHING, request)
    while not isinstance(step := late.look(), ConfigureTarget):
        late.perform(step)
    copy_all(ModelStore(world), late.plan)
    assert world.streams[TARGET].sealed
    late.perform(step)
    assert isinstance(late.look(), Done)


def test_a_target_that_somebody_else_sealed_is_no_success(world: World) -> None:
    """The target has no mark of completeness, and accepts none."""
    driver = drive(world, BEFORE_PUBLISHING)
    while not isinstance(step := driver.look(), ConfigureTarget):
        driver.perform(step)
    world.streams[TARGET].sealed = True
    with pytest.raises(StoreRejected):
        driver.perform(step)


def test_a_whole_target_is_complete(world: World) -> None:
    """The marks of publishing show that its segments hold all planned bytes."""
    plan = copied(world)
    answer = asked(world, plan)
    assert isinstance(answer, Complete)
    assert (answer.bytes, answer.events, answer.segments) == (BYTES, EVENTS, 2)
    assert len(answer.digest) == 64


def test_a_whole_target_is_complete_though_nobody_knows_the_plan(world: World) -> None:
    """The target itself holds all facts of the answer."""
    digest = asked(world, copied(world))
    assert asked(world) == digest


def test_a_whole_target_tells_its_positions(world: World) -> None:
    """They are equal in source and target here, since no byte was truncated."""
    answer = asked(world, copied(world))
    assert isinstance(answer, Complete)
    assert answer.positions is not None
    assert json.loads(answer.positions.model_dump_json()) == {
        "target": str(TARGET),
        "samePositions": True,
        "sources": [
            {
                "stream": str(SOURCE),
                "segments": [
                    {"segment": 0, "from": 0, "to": 96, "targetSegment": 0, "shift": 0},
                    {"segment": 1, "from": 0, "to": 17, "targetSegment": 1, "shift": 0},
                ],
            }
        ],
    }


def test_positions_that_differ_are_told_by_source() -> None:
    """Each of several sources has its own part of the map."""
    world, other = World(), StreamName(scope="in", stream="other")
    put_source(world, *SHAPES)
    put_source(world, [7], name=other)
    request = REQUEST.model_copy(
        update={"sources": (SourceRequest(stream=SOURCE), SourceRequest(stream=other))}
    )
    store = ModelStore(world)
    copy_all(store, planned(store, request))
    answer = ask(request, sources=[(ADDRESS, store)], target=(ADDRESS, store), known=None)
    assert isinstance(answer, Complete)
    assert answer.positions is not None
    assert not answer.positions.same_positions
    first, second = answer.positions.sources
    assert [one.target_segment for one in first.segments] == [0, 1]
    assert [(one.segment, one.target_segment, one.end) for one in second.segments] == [
        (0, (1 << 32) + 2, 15)
    ]


def test_a_target_that_has_nothing_of_the_copy_left_has_no_map(world: World) -> None:
    """A later look without a trace of the copy returns no map, not an empty one."""
    copied(world)
    for index in range(2):
        world.segments[target_segment(world, index)].attributes.clear()
    answer = asked(world)
    assert isinstance(answer, Complete)
    assert answer.positions is None


def test_events_are_those_that_were_counted_and_not_those_of_the_plan(world: World) -> None:
    """Publishing counted the events, while a plan only has the store's count."""
    plan = copied(world)
    wrong = [segment.model_copy(update={"events": 1}) for segment in plan.segments]
    answer = asked(world, plan.model_copy(update={"segments": tuple(wrong)}))
    assert isinstance(answer, Complete)
    assert answer.events == EVENTS


def test_a_segment_that_nothing_came_to_has_no_events() -> None:
    """A store counts no events for an unwritten segment. The others are counted."""
    world = World()
    put_source(world, [40, 40], [])
    plan = copied(world)
    world.segments[target_segment(world, 1)].attributes.pop(EVENT_COUNT)
    answer = asked(world, plan)
    assert isinstance(answer, Complete)
    assert answer.events == 2


def test_a_mark_that_somebody_forged_is_not_believed(world: World) -> None:
    """A target that is marked whole without bytes of the copy raises an alarm."""
    plan = planned(ModelStore(world))
    mark = f"{identity.TAG_COMPLETE}{'d' * 64}"
    config = StreamConfig(
        scaling=plan.config.scaling.model_copy(update={"min_segments": 2}),
        tags=(*identity.owner_tags(COPY), mark),
    )
    ModelStore(world).create_stream(TARGET, config)
    with pytest.raises(TargetReplaced, match=r"hold \[None, None\]") as caught:
        asked(world, plan)
    assert caught.value.field == "spec.target.stream"


def test_a_target_of_other_bounds_is_not_believed(world: World) -> None:
    """A whole copy of other bounds is no copy of this plan."""
    plan = copied(world)
    longer = plan.segments[0].model_copy(update={"end": plan.segments[0].end + 1})
    with pytest.raises(TargetReplaced):
        asked(world, plan.model_copy(update={"segments": (longer, *plan.segments[1:])}))


def test_a_target_that_lives_on_stays_complete(world: World) -> None:
    """Its readers and writers may write, truncate and scale it."""
    plan = copied(world)
    complete = asked(world, plan)
    world.segments[target_segment(world, 0)].data += b"more"
    assert asked(world, plan) == complete
    world.segments[target_segment(world, 1)].start = 5
    assert asked(world, plan) == complete
    world.segments[segment_name(TARGET, 99)] = ModelSegment()
    world.streams[TARGET].segments = (Segment(id=99, keys=KeyRange(low=0, high=1)),)
    assert asked(world, plan) == complete
    world.scale(TARGET, 1, truncate=True)
    assert asked(world, plan) == replace(complete, events=None, positions=None)


def test_events_of_later_writers_are_not_the_copys(world: World) -> None:
    """Each segment of the target records the copy's part, whatever was written since."""
    copied(world)
    world.segments[target_segment(world, 0)].data += b"more"
    world.segments[target_segment(world, 0)].attributes[EVENT_COUNT] += 1
    answer = asked(world)
    assert isinstance(answer, Complete)
    assert (answer.bytes, answer.events) == (BYTES, EVENTS)


def test_what_stands_in_the_way_is_said(world: World) -> None:
    """A missing source, an existing target and a missing scope are named."""
    ModelStore(world).create_stream(TARGET, StreamConfig())
    with pytest.raises(TargetExists):
        asked(world)
    del world.streams[TARGET]
    world.scopes.discard("out")
    with pytest.raises(TargetScopeNotFound):
        asked(world)
    world.scopes.add("out")
    del world.streams[SOURCE]
    with pytest.raises(SourceNotFound):
        asked(world)


# -- abandoning


def test_nothing_begun_is_nothing_to_abandon(world: World) -> None:
    """A copy without a trace in the store is released."""
    before = copy.deepcopy((world.streams, world.segments))
    assert dropped(world) == "nothing was left"
    assert (world.streams, world.segments) == before


@pytest.mark.parametrize("source", [True, False])
@pytest.mark.parametrize("steps", range(BEFORE_PUBLISHING + 1))
def test_what_is_unpublished_goes(world: World, steps: int, *, source: bool) -> None:
    """Staging, journal and target are deleted after any step, even without the source."""
    drive(world, steps)
    assert dropped(world, source=source) == "what was staged was dropped"
    assert TARGET not in world.streams
    assert world.staging() == []
    assert dropped(world) == "nothing was left"


@pytest.mark.parametrize("published", [1, 2])
@pytest.mark.parametrize("source", [True, False])
def test_what_is_being_published_is_finished(world: World, published: int, *, source: bool) -> None:
    """A half target is useless, and publishing the rest moves no bytes."""
    driver = drive(world, BEFORE_PUBLISHING)
    for index in range(published):
        driver.perform(Publish((index,)))
    if not source:
        for segment in world.streams.pop(SOURCE).segments:
            del world.segments[segment_name(SOURCE, segment.id)]
    assert dropped(world, source=source) == "publishing had begun and was finished"
    answer = asked(world, driver.plan)
    assert isinstance(answer, Complete)
    assert world.staging() == []
    assert dropped(world) == "nothing was left"


def test_a_whole_target_stays(world: World) -> None:
    """Remains of late drivers beside it are deleted."""
    copied(world)
    before = world.bytes_of(TARGET)
    store = ModelStore(world)
    number = world.streams[TARGET].segments[0].id
    store.create(store.staging_name(TARGET, number, identity.staging_key(COPY, 0, 1)))
    assert dropped(world) == "1 left-over segments were dropped"
    assert dropped(world) == "nothing was left"
    assert world.bytes_of(TARGET) == before
    assert world.staging() == []


def test_somebody_elses_target_stays(world: World) -> None:
    """A stream in the target's place that another client made is not touched."""
    ModelStore(world).create_stream(TARGET, StreamConfig())
    assert dropped(world) == "nothing was left"
    assert TARGET in world.streams


@pytest.mark.parametrize("published", [0, 1])
@pytest.mark.parametrize("call", range(1, 30))
def test_what_was_cut_off_anywhere_can_be_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch, call: int, published: int
) -> None:
    """Once the store answers again, either nothing is left of the copy or all of it exists."""
    monkeypatch.setattr(query, "PUBLISH_PATIENCE", -1.0)
    driver = drive(world, BEFORE_PUBLISHING)
    for index in range(published):
        driver.perform(Publish((index,)))
    calls: list[str] = []

    def gate(what: str) -> Fate:
        calls.append(what)
        return Fate.REPLY_LOST if len(calls) == call else Fate.DONE

    broken = ModelStore(world, gate)
    with suppress(StoreUnavailable, InfrastructureError):
        abandon(REQUEST, sources=[broken], target=broken)
    dropped(world)
    assert world.staging() == []
    assert (TARGET in world.streams) == (published > 0)
    if published:
        assert isinstance(asked(world, driver.plan), Complete)


def test_publishing_that_would_have_to_move_bytes_is_no_matter_of_the_operator(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another client deleted staged bytes, a driver has to copy them again."""
    monkeypatch.setattr(query, "PUBLISH_PATIENCE", -1.0)
    driver = drive(world, BEFORE_PUBLISHING)
    driver.perform(Publish((0,)))
    for name in world.staging():
        if name != driver.journal.name:
            del world.segments[name]
    with pytest.raises(InfrastructureError, match="publishing could not be finished"):
        dropped(world)
