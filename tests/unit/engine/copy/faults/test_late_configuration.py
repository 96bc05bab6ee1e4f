"""A driver that changes its target's configuration after another driver ended the copy."""

import pytest

from sluice.core.copy.steps import ConfigureTarget, Done, FixSegmentCount, Scale, Shape, Step
from sluice.core.values import identity
from sluice.core.values.model import Scaling, StreamConfig
from sluice.engine.copy.report import Outcome
from sluice.engine.copy.stream_copy import StreamCopyWork
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import copy_all, go, planned, put_scaled_source, split
from support.model import Fate, ModelStore, World

MERGED = [("split", 0), ("truncate", 0), ("merge", 0), ("merge", 0)]
CONFIG = StreamConfig(scaling=Scaling(min_segments=1), tags=("team=a",))


@pytest.mark.parametrize("kind", [Scale, FixSegmentCount])
def test_what_a_late_change_takes_from_a_whole_target_is_given_back(kind: type[Step]) -> None:
    """Stores have no conditional change of a stream, so the late driver restores it."""
    world = World()
    put_scaled_source(world, [[21, 14], [30, 22, 31]], MERGED)
    world.streams[SOURCE].config = CONFIG
    whole: list[StreamConfig] = []
    is_late = False

    def gate(what: str) -> Fate:
        if is_late and not whole and what == f"update_stream {TARGET}":
            (report,) = copy_all(ModelStore(world), late.plan)
            assert report.outcome is Outcome.COPIED
            whole.append(world.streams[TARGET].config)
        return Fate.DONE

    store = ModelStore(world, gate)
    late = StreamCopyWork(split(planned(store)), 0, [store], store)
    late.plan = late.journal.begin(late.plan)
    step = go(late, world, kind)
    is_late = True
    late.perform(step)
    assert [identity.completed(config.tags, COPY) for config in whole] == [late.digest()]
    assert [world.streams[TARGET].config] == whole


@pytest.mark.parametrize("kind", [Shape, Scale, FixSegmentCount])
def test_a_stream_in_the_place_of_the_target_is_left_as_it_is(kind: type[Step]) -> None:
    """A driver that is about to scale its target finds another client's stream of that name."""
    world = World()
    put_scaled_source(world, [[21, 14], [30, 22, 31]], MERGED)
    store = ModelStore(world)
    late = StreamCopyWork(split(planned(store)), 0, [store], store)
    late.plan = late.journal.begin(late.plan)
    step = go(late, world, kind)
    store.seal_stream(TARGET)
    store.delete_stream(TARGET)
    store.create_stream(TARGET, CONFIG)
    segments = world.streams[TARGET].segments
    late.perform(step)
    stream = world.streams[TARGET]
    assert (stream.config, stream.segments) == (CONFIG, segments)


def test_a_mark_that_a_late_change_takes_away_is_set_again() -> None:
    """After setting the mark, a driver checks it before it deletes the journal."""
    world = World()
    put_scaled_source(world, [[21, 14], [30, 22, 31]], MERGED)
    store = ModelStore(world)
    late = StreamCopyWork(split(planned(store)), 0, [store], store)
    late.plan = late.journal.begin(late.plan)
    step = go(late, world, FixSegmentCount)
    copy = StreamCopyWork(late.plan, 0, [store], store)
    assert copy.begin(permit=None) is None
    copy.perform(go(copy, world, ConfigureTarget))
    at_rest = world.streams[TARGET].config.model_copy(update={"tags": identity.owner_tags(COPY)})
    assert isinstance(step, FixSegmentCount)
    store.update_stream(TARGET, at_rest)  # the late call of that step
    assert isinstance(copy.look(), ConfigureTarget)
    assert isinstance(go(copy, world), Done)
    assert identity.completed(world.streams[TARGET].config.tags, COPY) is not None
