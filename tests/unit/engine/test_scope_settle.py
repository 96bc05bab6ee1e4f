from __future__ import annotations

import copy
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core import identity
from sluice.core.reconcile.scope_results import planned_results
from sluice.core.reconcile.world import Planned, ScopeEnded
from sluice.core.scope import StreamState
from sluice.core.steps import Done, Publish, Verify
from sluice.engine import pool, settle
from sluice.engine.scope_settle import abandon_scope, ask_scope
from sluice.engine.stream import StreamCopy
from sluice.errors import (
    InfrastructureError,
    JournalDamaged,
    PermissionDenied,
    StoreUnavailable,
)
from support.model import Fate, ModelStore, World, segment_name
from support.plans import ADDRESS
from support.scope_drivers import SharedStore, copy_scope
from support.scope_requests import (
    COPIED,
    REQUEST,
    drop,
    in_source,
    in_target,
    log_of,
    names_of,
    plan_of,
    put,
    put_others,
    run,
    states_of,
    tag,
    wanted,
)
from support.sources import go, put_source

if TYPE_CHECKING:
    from sluice.core.plan import Plan
    from sluice.core.scope_request import ScopeRequest
    from sluice.core.steps import Step

ALL = {"a": COPIED, "b": COPIED, "c": COPIED}


@pytest.fixture
def world() -> World:
    """Gives a world with three streams in scope `in`."""
    made = World()
    put(made, "a", "b", "c")
    return made


def asked(
    world: World,
    request: ScopeRequest = REQUEST,
    store: ModelStore | None = None,
    **given: Any,
) -> Planned | ScopeEnded:
    """What the stores say of the copy; nothing is changed by asking."""
    before = copy.deepcopy((world.scopes, world.streams, world.segments))
    site = (ADDRESS, store or SharedStore(world))
    found = ask_scope(request, **({"source": site, "target": site} | given))
    assert (world.scopes, world.streams, world.segments) == before
    return found


def ended(world: World, request: ScopeRequest = REQUEST, **given: Any) -> ScopeEnded:
    """What came of a copy that is over."""
    found = asked(world, request, **given)
    assert isinstance(found, ScopeEnded)
    return found


def abandoned(
    world: World,
    request: ScopeRequest = REQUEST,
    *,
    known: Plan | None = None,
    source: bool = True,
) -> str:
    """What abandoning the copy comes to."""
    store = SharedStore(world)
    return abandon_scope(request, source=store if source else None, target=store, known=known)


def begin(world: World, plan: Plan, name: str, until: type[Step] | None = None) -> StreamCopy:
    """A driver that died when it was that far with one stream of a plan."""
    store = ModelStore(world)
    log_of(world).begin(plan)
    place = next(i for i, one in enumerate(plan.streams) if one.target.stream == name)
    driver = StreamCopy(plan.streams[place], place, [store], store)
    driver.plan = driver.ledger.begin(driver.plan)
    if until is not None:
        go(driver, world, until)
    return driver


# -- asking


def test_what_is_copied_is_confirmed_by_the_target(world: World) -> None:
    """With the bytes and events that it holds, whatever drivers said."""
    report = run(world)
    found = ended(world)
    assert found.results == report.results
    assert states_of(found) == ALL


@pytest.mark.parametrize("move", [False, True])
def test_a_driver_is_not_believed(world: World, *, move: bool) -> None:
    """That a stream is copied that is not there, is not whole, or holds something else."""
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
    """A target that is gone is copied anew; one that is something else stays until it is gone."""
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
    """Writing to them, scaling and truncating them is their users' own business."""
    report = run(world)
    world.segments[segment_name(in_target("a"), 0)].data += b"more"
    world.scale(in_target("b"), 2)
    world.scale(in_target("c"), 2, truncate=True)
    found = ended(world)
    assert states_of(found) == ALL
    assert [one.bytes for one in found.results] == [one.bytes for one in report.results]
    assert [one.events for one in found.results] == [one.events for one in report.results]


def test_what_the_source_had_lost_is_told(world: World) -> None:
    """Bytes that were gone before they were read, where gaps are recorded."""
    request = wanted(on_truncation="Record")
    put_source(world, [40, 40], name=in_source("gone"))
    plan = plan_of(world, request)
    world.segments[segment_name(in_source("gone"), 0)].start = 48
    copy_scope(plan, SharedStore(world))
    lost = {one.stream: (one.bytes, one.lost) for one in ended(world, request).results}
    assert lost["gone"] == (48, 48)


def test_what_was_appended_is_confirmed_by_its_receipt(world: World) -> None:
    """The target is somebody's: it has no mark of the copy."""
    put_others(world, "a")
    request = wanted(on_exists="Append")
    run(world, request)
    assert states_of(ended(world, request)) == ALL
    for name in world.staging():
        if name.startswith("out/a/"):
            del world.segments[name]
    assert states_of(ended(world, request)) == {**ALL, "a": "TargetReplaced"}


def test_confirming_takes_few_calls() -> None:
    """Two for each stream, and one listing of all targets."""
    world, calls = World(), Counter[str]()
    put(world, *(f"s{number}" for number in range(40)))
    run(world)

    def gate(what: str) -> Fate:
        calls[what.split(maxsplit=1)[0]] += 1
        return Fate.DONE

    assert len(ended(world, store=SharedStore(world, gate)).results) == 40
    del calls["read"]  # of the log
    assert calls == {"infos": 1, "list_streams": 1, "describe": 40, "attributes": 40}


def test_what_was_copied_in_a_run_before_is_confirmed_too(world: World) -> None:
    """Its plan is not at hand any more, and its target still says that it is whole."""
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
    """The plan is told, and no target is asked for."""
    plan = plan_of(world)
    begin(world, plan, "a")

    def gate(what: str) -> Fate:
        assert what.split(maxsplit=1)[0] in {"infos", "read"}
        return Fate.DONE

    assert asked(world, store=SharedStore(world, gate)) == Planned(plan=plan, recorded=True)


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
    """An operator that died after it wrote it down, before a driver began, is not asked again."""
    plan = plan_of(world)
    drop(world, in_source("b"))
    copy_scope(plan, SharedStore(world))
    put(world, "b")
    again = asked(world, known=plan, again=True)
    assert isinstance(again, Planned)
    assert asked(world, known=again.plan) == Planned(plan=again.plan)
    assert isinstance(asked(world, known=plan), ScopeEnded)


def test_a_store_that_is_away_says_nothing(world: World) -> None:
    """No stream counts as failed since nobody could look at it."""
    run(world)

    def gate(what: str) -> Fate:
        return Fate.REQUEST_LOST if what.startswith("describe out/b") else Fate.DONE

    with pytest.raises(StoreUnavailable):
        asked(world, store=SharedStore(world, gate))


# -- abandoning


def test_nothing_begun_is_nothing_to_abandon(world: World) -> None:
    """Whether a plan was written down by somebody or not."""
    known = plan_of(world)
    before = copy.deepcopy((world.streams, world.segments))
    assert abandoned(world) == "nothing was left"
    assert abandoned(world, known=known) == "of 3, nothing was left"
    assert (world.streams, world.segments) == before


@pytest.mark.parametrize("source", [True, False])
def test_what_is_unpublished_goes_and_what_is_being_published_is_finished(
    world: World, *, source: bool
) -> None:
    """What is copied stays, what was not begun needs nothing, and no log is left."""
    put(world, "d")
    plan = plan_of(world)
    begin(world, plan, "a", Done)
    log = log_of(world)
    log.load()
    log.ended({0: planned_results(plan)[0].model_copy(update={"state": StreamState.COPIED})})
    begin(world, plan, "b", Verify)
    begin(world, plan, "c", Publish)._publish(0)
    told = abandoned(world, source=source)
    assert told == (
        "1 of 4 streams are copied and stay; of 1, nothing was left; of 1, what was staged was "
        "dropped; of 1, publishing had begun and was finished"
    )
    assert world.staging() == []
    assert {name.stream for name in world.streams if name.scope == "out"} == {"a", "c"}
    assert abandoned(world, source=source) == "nothing was left"


def test_the_plan_that_is_known_is_cleared_where_the_log_is_gone(world: World) -> None:
    """Or cannot be read; without any plan a damaged log stays."""
    known = plan_of(world)
    begin(world, known, "b", Verify)
    world.segments[log_of(world).name].data[9:12] = b"xxx"
    with pytest.raises(JournalDamaged):
        abandoned(world)
    with pytest.raises(JournalDamaged):
        abandoned(world, wanted(scope_id=REQUEST.scope_id), known=plan_of_another(known))
    assert "of 1, what was staged was dropped" in abandoned(world, known=known)
    assert world.staging() == []
    assert in_target("b") not in world.streams


def plan_of_another(plan: Plan) -> Plan:
    """The same plan of another copy."""
    assert plan.scope is not None
    scope = plan.scope.model_copy(update={"scope_id": "00" * 16})
    return plan.model_copy(update={"scope": scope})


@pytest.mark.parametrize("call", range(1, 60, 3))
def test_what_was_cut_off_anywhere_can_be_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """Once the store answers again nothing is left but what is whole."""
    monkeypatch.setattr(settle, "PUBLISH_PATIENCE", -1.0)
    monkeypatch.setattr(pool, "AT_ONCE", 1)
    plan = plan_of(world)
    begin(world, plan, "a", Verify)
    begin(world, plan, "c", Publish)._publish(0)
    calls = [0]

    def gate(what: str) -> Fate:
        calls[0] += 1
        return Fate.REPLY_LOST if calls[0] == call else Fate.DONE

    broken = SharedStore(world, gate)
    with suppress(StoreUnavailable, InfrastructureError):
        abandon_scope(REQUEST, source=broken, target=broken, known=plan)
    abandoned(world, known=plan)
    assert world.staging() == []
    assert {name.stream for name in world.streams if name.scope == "out"} == {"c"}


def test_one_that_cannot_be_ended_keeps_the_log_and_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are tried; what is to be done still is found by the next try."""
    monkeypatch.setattr(settle, "PUBLISH_PATIENCE", -1.0)
    plan = plan_of(world)
    two = begin(world, plan, "a", Publish)
    two._publish(0)
    begin(world, plan, "c", Verify)
    damaged = begin(world, plan, "b", Publish)
    world.segments[damaged.ledger.name].data[9:12] = b"xxx"
    with pytest.raises(JournalDamaged):
        abandoned(world)
    assert log_of(world).load() is not None
    assert in_target("c") not in world.streams
    assert world.bytes_of(in_target("a")) == world.bytes_of(in_source("a"))


def test_what_failed_for_good_is_let_go(world: World) -> None:
    """Also what a run before left, and what was settled since as impossible."""

    class Refusing(SharedStore):
        def merge(self, target: str, source: str, *args: object, **more: object) -> None:
            if target.startswith("out/b"):
                raise PermissionDenied("not this one")
            super().merge(target, source, *args, **more)  # type: ignore[arg-type]

    copy_scope(plan_of(world), Refusing(world))
    assert len(world.staging()) > 1
    told = abandoned(world)
    assert told == "2 of 3 streams are copied and stay; of 1, what was staged was dropped"
    assert world.staging() == []
    assert in_target("b") not in world.streams


def test_a_moved_scope_is_deleted_where_no_driver_came_to_it(world: World) -> None:
    """All of it was moved, and the driver died before the end."""
    request = wanted(move=True)
    run(world, request)
    world.scopes.add("in")
    assert ended(world, request).kept is None
    assert abandoned(world, request) == "3 of 3 streams are copied and stay"
    assert "in" not in world.scopes
    assert world.staging() == []


def test_a_scope_whose_move_is_abandoned_stays(world: World) -> None:
    """Sources that were sealed are sealed for good, and are told of."""
    request = wanted(move=True)
    plan = plan_of(world, request)
    begin(world, plan, "b", Publish)
    assert world.streams[in_source("b")].sealed
    told = abandoned(world, request)
    assert told == (
        "of 2, nothing was left; of 1, what was staged was dropped, and the source is sealed and "
        "stays so"
    )
    assert {name.stream for name in world.streams if name.scope == "in"} == {"a", "b", "c"}
    assert world.staging() == []
