from __future__ import annotations

import copy
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.steps import Done, Publish, Verify
from sluice.core.scope.scope import StreamState
from sluice.core.workloads.answers import ScopeEnded
from sluice.core.workloads.scope_log import planned_results
from sluice.engine.access import parallel
from sluice.engine.copy import query
from sluice.engine.scope.query import abandon_scope
from sluice.errors import (
    InfrastructureError,
    JournalDamaged,
    PermissionDenied,
    StoreUnavailable,
)
from support.engine.scope_drivers import SharedStore, copy_scope
from support.engine.scope_requests import (
    REQUEST,
    abandoned,
    begin,
    in_source,
    in_target,
    log_of,
    plan_of,
    put,
    resolved,
    run,
    wanted,
)
from support.model import Fate, World

if TYPE_CHECKING:
    from sluice.core.workloads.plan import Plan


@pytest.fixture
def world() -> World:
    """Return a world with three streams in scope `in`."""
    made = World()
    put(made, "a", "b", "c")
    return made


def test_nothing_begun_is_nothing_to_abandon(world: World) -> None:
    """This holds with and without a recorded plan."""
    known = plan_of(world)
    before = copy.deepcopy((world.streams, world.segments))
    assert abandoned(world) == "nothing was left"
    assert abandoned(world, known=known) == "of 3, nothing was left"
    assert (world.streams, world.segments) == before


@pytest.mark.parametrize("source", [True, False])
def test_what_is_unpublished_goes_and_what_is_being_published_is_finished(
    world: World, *, source: bool
) -> None:
    """Copied streams stay, streams that were not begun need nothing, and no log is left."""
    put(world, "d")
    plan = plan_of(world)
    begin(world, plan, "a", Done)
    log = log_of(world)
    log.load()
    log.ended({0: planned_results(plan)[0].model_copy(update={"state": StreamState.COPIED})})
    begin(world, plan, "b", Verify)
    begin(world, plan, "c", Publish).perform(Publish((0,)))
    told = abandoned(world, source=source)
    assert told == (
        "1 of 4 streams are copied and stay; of 1, nothing was left; of 1, what was staged was "
        "dropped; of 1, publishing had begun and was finished"
    )
    assert world.staging() == []
    assert {name.stream for name in world.streams if name.scope == "out"} == {"a", "c"}
    assert abandoned(world, source=source) == "nothing was left"


def test_the_plan_that_is_known_is_cleared_where_the_log_is_gone(world: World) -> None:
    """The operator's plan replaces a missing or damaged log. Without it, a damaged log stays."""
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
    """Return the same plan for another copy."""
    assert plan.scope is not None
    scope = plan.scope.model_copy(update={"scope_id": "00" * 16})
    return plan.model_copy(update={"scope": scope})


@pytest.mark.parametrize("call", range(1, 60, 3))
def test_what_was_cut_off_anywhere_can_be_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """Once the store answers again, only whole streams are left."""
    monkeypatch.setattr(query, "PUBLISH_PATIENCE", -1.0)
    monkeypatch.setattr(parallel, "AT_ONCE", 1)
    plan = plan_of(world)
    begin(world, plan, "a", Verify)
    begin(world, plan, "c", Publish).perform(Publish((0,)))
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
    """All streams are tried, and the next try finds the remaining ones."""
    monkeypatch.setattr(query, "PUBLISH_PATIENCE", -1.0)
    plan = plan_of(world)
    two = begin(world, plan, "a", Publish)
    two.perform(Publish((0,)))
    begin(world, plan, "c", Verify)
    damaged = begin(world, plan, "b", Publish)
    damaged.perform(Publish((0,)))
    world.segments[damaged.journal.name].data[9:12] = b"xxx"
    with pytest.raises(JournalDamaged):
        abandoned(world)
    assert log_of(world).load() is not None
    assert in_target("c") not in world.streams
    assert world.bytes_of(in_target("a")) == world.bytes_of(in_source("a"))


def test_what_failed_for_good_is_let_go(world: World) -> None:
    """The staged bytes of a failed stream are deleted, and its target with them."""

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
    """All streams were moved, and the driver died before the end."""
    request = wanted(move=True)
    run(world, request)
    world.scopes.add("in")
    found = resolved(world, request)
    assert isinstance(found, ScopeEnded)
    assert found.kept is None
    assert abandoned(world, request) == "3 of 3 streams are copied and stay"
    assert "in" not in world.scopes
    assert world.staging() == []


def test_a_scope_whose_move_is_abandoned_stays(world: World) -> None:
    """Sealed sources stay sealed, and the result names them."""
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


def test_a_plan_that_somebody_put_there_deletes_no_other_scope(world: World) -> None:
    """A copy without a move deletes no scope, and a move only its own scope."""
    world.scopes.add("other")
    known = plan_of(world, wanted(move=True))
    assert known.scope is not None
    for request, source in ((REQUEST, "in"), (wanted(move=True), "other")):
        world.streams.clear()
        scope = known.scope.model_copy(update={"source": source})
        forged = known.model_copy(update={"streams": (), "scope": scope})
        assert abandoned(world, request, known=forged) == "nothing was left"
    assert world.scopes == {"in", "out", "other"}


def test_a_log_that_a_late_driver_wrote_to_is_not_left_behind(world: World) -> None:
    """The abort has not seen the late records. It checks all streams again and deletes the log."""
    plan = plan_of(world)
    log = log_of(world)
    log.begin(plan)

    def late(what: str) -> Fate:
        if what == f"delete {log.name}":
            log.ended(
                {0: planned_results(plan)[0].model_copy(update={"state": StreamState.COPIED})}
            )
        return Fate.DONE

    store = SharedStore(world, late)
    abandon_scope(REQUEST, source=store, target=store, known=plan)
    assert log_of(world).load() is None
    assert world.staging() == []
