"""The sample stream, made on the model store."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from sluice.core.values.model import Scaling, StreamConfig
from sluice.engine.streams.reading import events_of
from sluice.engine.streams.sample import EVENTS, SAMPLE, make_sample
from sluice.errors import InvalidSpec
from support.model import ModelStore, World
from support.model.world import Fate


class Killed(BaseException):
    """The end of the process that made the sample."""


def orders(world: World) -> list[int]:
    """Return the numbers of all orders that the stream holds."""
    return sorted(json.loads(event.data)["order"] for event in events_of(ModelStore(world), SAMPLE))


def test_the_sample_is_made_with_its_scope_and_stays_as_it_is() -> None:
    """Each event is there once, after one run and after two; a customer's orders are in order."""
    world = World()
    assert make_sample(ModelStore(world)) == EVENTS
    assert make_sample(ModelStore(world)) == EVENTS
    assert orders(world) == list(range(1, EVENTS + 1))
    by_customer = defaultdict(list)
    for event in events_of(ModelStore(world), SAMPLE):
        order = json.loads(event.data)
        by_customer[order["customer"]].append(order["order"])
    assert all(numbers == sorted(numbers) for numbers in by_customer.values())
    assert len(by_customer) > 10


@pytest.mark.parametrize("after", [0, 1, 2, 500, EVENTS - 1])
def test_a_run_goes_on_where_a_killed_run_stopped(after: int) -> None:
    """Whatever the killed run had stored, no event is missing, and none is there twice."""
    world = World()
    appends = 0

    def kill(call: str) -> Fate:
        nonlocal appends
        if call.startswith("append "):
            appends += 1
            if appends > after:
                raise Killed
        return Fate.DONE

    with pytest.raises(Killed):
        make_sample(ModelStore(world, kill))
    assert make_sample(ModelStore(world)) == EVENTS
    assert orders(world) == list(range(1, EVENTS + 1))


def test_another_stream_of_the_name_is_refused_by_its_field() -> None:
    """The other stream does not change."""
    world = World()
    world.scopes.add(SAMPLE.scope)
    ModelStore(world).create_stream(SAMPLE, StreamConfig(scaling=Scaling(min_segments=3)))
    with pytest.raises(InvalidSpec, match="already") as caught:
        make_sample(ModelStore(world))
    assert caught.value.field == "scaling"
    assert orders(world) == []


def test_a_sample_that_was_scaled_is_refused() -> None:
    """Its new segments do not know which events are stored, so they would be written twice."""
    world = World()
    make_sample(ModelStore(world))
    world.scale(SAMPLE, 1)
    with pytest.raises(InvalidSpec, match="scaled"):
        make_sample(ModelStore(world))
    assert orders(world) == list(range(1, EVENTS + 1))
