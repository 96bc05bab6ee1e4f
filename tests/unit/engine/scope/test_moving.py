from __future__ import annotations

import pytest

from sluice.core.scope.scope import StreamResult, StreamState
from sluice.core.values.model import StreamName
from sluice.engine.scope.moving import delete_source_scope, why_kept
from support.engine.scope_drivers import SharedStore
from support.engine.scope_requests import in_source, plan_of, put, wanted
from support.model import Fate, ModelStore, World

MOVE = wanted(move=True)


@pytest.fixture
def world() -> World:
    """Return a world whose source scope holds only the streams of the test."""
    return World()


def deleted(world: World, *, move: bool = True) -> str | None:
    """Delete the scope of a whole move, and return the result."""
    empty = World()
    put(empty, "a")
    plan = plan_of(empty, wanted(move=move))
    return delete_source_scope(plan, ModelStore(world))


def test_an_empty_scope_is_deleted(world: World) -> None:
    """A scope that is already gone is no failure."""
    assert deleted(world) is None
    assert world.scopes == {"out"}
    assert deleted(world) is None


def test_a_scope_that_is_not_moved_stays(world: World) -> None:
    """Its deletion was not requested, and the result has no explanation."""
    assert deleted(world, move=False) is None
    assert "in" in world.scopes


@pytest.mark.parametrize(
    ("streams", "tables", "told"),
    [
        (["a"], [], "it has 1 stream (a)"),
        (["_RGreaders"], [], "it has 1 stream (_RGreaders)"),
        ([], ["t"], "it has 1 key-value table (t)"),
        (["b", "a"], ["t", "u"], "it has 2 streams (a, b) and 2 key-value tables (t, u)"),
        (list("abcdefg"), [], "it has 7 streams (a, b, c, d, e and 2 more)"),
    ],
)
def test_a_scope_with_anything_in_it_stays(
    world: World, streams: list[str], tables: list[str], told: str
) -> None:
    """Internal streams, as reader groups have them, and key-value tables count."""
    put(world, *streams)
    world.tables |= {StreamName(scope="in", stream=name) for name in tables}
    assert deleted(world) == told
    assert "in" in world.scopes
    assert world.refusals == 0


def test_a_scope_stays_where_a_stream_could_not_be_moved(world: World) -> None:
    """This holds even if that stream is gone: a user has to check."""
    put(world, "a")
    plan = plan_of(world, MOVE)
    assert plan.scope is not None
    lost = StreamResult(stream="b", target="b", state=StreamState.FAILED)
    scope = plan.scope.model_copy(update={"settled": (lost,)})
    plan = plan.model_copy(update={"scope": scope})
    world.streams.clear()
    told = "not all of its streams were moved"
    assert (
        delete_source_scope(plan, SharedStore(world)) == why_kept(plan, SharedStore(world)) == told
    )
    assert "in" in world.scopes


def test_a_stream_that_comes_in_the_last_moment_keeps_the_scope(world: World) -> None:
    """The store refuses the deletion, and the result says so."""

    def gate(what: str) -> Fate:
        if what.startswith("delete_scope"):
            put(world, "late")
        return Fate.DONE

    other = World()
    put(other, "a")
    told = delete_source_scope(plan_of(other, MOVE), ModelStore(world, gate))
    assert told == "in"
    assert in_source("late") in world.streams
