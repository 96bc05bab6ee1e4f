from __future__ import annotations

import copy
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.values import identity
from sluice.core.workloads.answers import Planned, ScopeEnded, ScopePlanned
from sluice.engine.scope.query import ask_scope
from sluice.errors import (
    StoreUnavailable,
)
from support.engine.plans import ADDRESS
from support.engine.scope_drivers import SharedStore, copy_scope
from support.engine.scope_requests import (
    COPIED,
    REQUEST,
    abandoned,
    begin,
    drop,
    in_source,
    in_target,
    names_of,
    plan_of,
    put,
    put_others,
    run,
    states_of,
    tag,
    wanted,
)
from support.engine.sources import put_source
from support.model import Fate, ModelStore, World, segment_name

if TYPE_CHECKING:
    from sluice.core.scope.request import ScopeRequest

ALL = {"a": COPIED, "b": COPIED, "c": COPIED}


@pytest.fixture
def world() -> World:
    """Return a world with three streams in scope `in`."""
    made = World()
    put(made, "a", "b", "c")
    return made


def asked(
    world: World,
    request: ScopeRequest = REQUEST,
    store: ModelStore | None = None,
    **given: Any,
) -> Planned | ScopeEnded:
    """Ask the stores for the state of the copy, and check that this changes nothing."""
    before = copy.deepcopy((world.scopes, world.streams, world.segments))
    site = (ADDRESS, store or SharedStore(world))
    found = ask_scope(request, **({"source": site, "target": site} | given))
    assert (world.scopes, world.streams, world.segments) == before
    return found


def ended(world: World, request: ScopeRequest = REQUEST, **given: Any) -> ScopeEnded:
    """Return the result of a copy that is over."""
    found = asked(world, request, **given)
    assert isinstance(found, ScopeEnded)
    return found


def test_what_is_copied_is_confirmed_by_the_target(world: World) -> None:
    """The result has its bytes and events, whatever drivers reported."""
    report = run(world)
    found = ended(world)
    assert found.results == report.results
    assert states_of(found) == ALL


@pytest.mark.parametrize("move", [False, True])
def test_a_driver_is_not_believed(world: World, *, move: bool) -> None:
    """A stream must exist, be whole and hold the planned bytes to count as copied."""
    request = wanted(move=move)
    plan = plan_of(world, request)
    run(world, request)
    drop(world, in_target("a"))
    tags = world.streams[in_target("b")].config.tags
    tag(world, in_target("b"), *(one for one in tags if not one.startswith("sluice.dev/complete")))
    publish = identity.publish_attribute(identity.stream_copy_id(REQUEST.scope_id, "c"))
    world.segments[segment_name(in_target("c"), 0)].attributes[publish] = 1
    found = ended(world, request)
    assert set(states_of(found).values()) == {"TargetReplaced"}
    assert all(one.trouble is not None and one.trouble.field is None for one in found.results)
    assert found.plan.streams == plan.streams


def test_what_a_driver_lied_about_is_tried_again_when_asked(world: World) -> None:
    """A missing target is copied anew. A wrong target stays until it is deleted."""
    run(world)
    drop(world, in_target("a"))
    publish = identity.publish_attribute(identity.stream_copy_id(REQUEST.scope_id, "c"))
    world.segments[segment_name(in_target("c"), 0)].attributes[publish] = 1
    found = asked(world, again=True)
    assert isinstance(found, Planned)
    assert names_of(found.plan) == [("a", "a")]
    assert found.plan.scope is not None
    assert {one.stream: one.state.value for one in found.plan.scope.settled} == {
        "b": COPIED,
        "c": "Failed",
    }
    copy_scope(found.plan, SharedStore(world))
    drop(world, in_target("c"))
    again = asked(world, again=True)
    assert isinstance(again, Planned)
    copy_scope(again.plan, SharedStore(world))
    assert states_of(ended(world)) == ALL


def test_targets_that_live_on_stay_copied(world: World) -> None:
    """Users of a target may write to it, scale it and truncate it."""
    report = run(world)
    world.segments[segment_name(in_target("a"), 0)].data += b"more"
    world.scale(in_target("b"), 2)
    world.scale(in_target("c"), 2, truncate=True)
    found = ended(world)
    assert states_of(found) == ALL
    assert [one.bytes for one in found.results] == [one.bytes for one in report.results]
    assert [one.events for one in found.results] == [one.events for one in report.results]


def test_what_the_source_had_lost_is_told(world: World) -> None:
    """Gaps list the bytes that were gone before they were read."""
    request = wanted(on_truncation="Record")
    put_source(world, [40, 40], name=in_source("gone"))
    plan = plan_of(world, request)
    world.segments[segment_name(in_source("gone"), 0)].start = 48
    copy_scope(plan, SharedStore(world))
    lost = {one.stream: (one.bytes, one.lost) for one in ended(world, request).results}
    assert lost["gone"] == (48, 48)


def test_what_was_appended_is_confirmed_by_its_receipt(world: World) -> None:
    """The target belongs to another owner and has no mark of the copy."""
    put_others(world, "a")
    request = wanted(on_exists="Append")
    run(world, request)
    assert states_of(ended(world, request)) == ALL
    for name in world.staging():
        if name.startswith("out/a/"):
            del world.segments[name]
    assert states_of(ended(world, request)) == {**ALL, "a": "TargetReplaced"}


def test_confirming_takes_few_calls() -> None:
    """Each stream takes two calls, and one call lists all targets."""
    world, calls = World(), Counter[str]()
    put(world, *(f"s{number}" for number in range(40)))
    run(world)

    def gate(what: str) -> Fate:
        calls[what.split(maxsplit=1)[0]] += 1
        return Fate.DONE

    assert len(ended(world, store=SharedStore(world, gate)).results) == 40
    del calls["read"]  # reads of the log
    assert calls == {"infos": 1, "list_streams": 1, "describe": 40, "attributes": 40}


def test_what_was_copied_in_a_run_before_is_confirmed_too(world: World) -> None:
    """The earlier run's plan is not known any more, but its targets are still marked whole."""
    plan = plan_of(world)
    drop(world, in_source("b"))
    copy_scope(plan, SharedStore(world))
    put(world, "b")
    again = asked(world, again=True)
    assert isinstance(again, Planned)
    copy_scope(again.plan, SharedStore(world))
    assert states_of(ended(world)) == ALL
    drop(world, in_target("a"))
    assert states_of(ended(world)) == {**ALL, "a": "TargetReplaced"}


def test_a_copy_that_is_not_over_is_not_looked_at(world: World) -> None:
    """The answer has the plan, and no target is checked."""
    plan = plan_of(world)
    begin(world, plan, "a")

    def gate(what: str) -> Fate:
        assert what.split(maxsplit=1)[0] in {"infos", "read"}
        return Fate.DONE

    assert asked(world, store=SharedStore(world, gate)) == ScopePlanned(plan=plan, recorded=True)


def test_a_known_plan_that_is_done_has_ended_though_its_log_is_gone(world: World) -> None:
    """An operator that lost its memory after the end does not copy again."""
    known = plan_of(world)
    assert asked(world, known=known) == Planned(plan=known)
    report = run(world)
    abandoned(world)
    found = ended(world, known=known)
    assert found.results == report.results
    drop(world, in_target("b"))
    assert asked(world, known=known) == Planned(plan=known)


def test_a_known_plan_of_a_later_run_holds(world: World) -> None:
    """An operator that died after it wrote the plan, before a driver began, uses it."""
    plan = plan_of(world)
    drop(world, in_source("b"))
    copy_scope(plan, SharedStore(world))
    put(world, "b")
    again = asked(world, known=plan, again=True)
    assert isinstance(again, Planned)
    assert asked(world, known=again.plan) == Planned(plan=again.plan)
    assert isinstance(asked(world, known=plan), ScopeEnded)


def test_a_store_that_is_away_says_nothing(world: World) -> None:
    """A stream that could not be checked does not count as failed."""
    run(world)

    def gate(what: str) -> Fate:
        return Fate.REQUEST_LOST if what.startswith("describe out/b") else Fate.DONE

    with pytest.raises(StoreUnavailable):
        asked(world, store=SharedStore(world, gate))
