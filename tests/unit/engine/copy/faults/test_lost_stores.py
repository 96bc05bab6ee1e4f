"""Stores that lose their data while a copy runs, as a store in memory does at its next start."""

from __future__ import annotations

import pytest

from sluice.core.copy.steps import Commit
from sluice.engine.copy.abort import abort
from sluice.engine.copy.report import StreamReport
from sluice.errors import CopyAborted, SluiceError, TargetLost
from support.engine.appends import driven, put_target
from support.engine.plans import COPY, TARGET
from support.engine.sources import (
    BEFORE_PUBLISHING,
    REQUEST,
    copy_all,
    drive,
    planned,
    put_source,
    split,
)
from support.model import Fate, ModelStore, World

STEPS = range(1, BEFORE_PUBLISHING + 1)


@pytest.fixture
def world() -> World:
    """Return a world with a source of two segments."""
    made = World()
    put_source(made, [40, 40], [9])
    return made


@pytest.mark.parametrize("steps", STEPS)
def test_a_store_that_came_back_empty_is_told_from_an_abort(world: World, steps: int) -> None:
    """No abort deletes a scope.

    The message names the missing objects and the question to answer.
    """
    copy = drive(world, steps)
    world.lose()
    with pytest.raises(TargetLost, match="has neither the scope out nor the journal") as caught:
        copy.look()
    assert "lost its data" in caught.value.remedy
    assert "aborted" not in str(caught.value)


@pytest.mark.parametrize("steps", STEPS)
def test_a_copy_without_its_journal_was_aborted_or_its_store_lost_data(
    world: World, steps: int
) -> None:
    """If the scope exists, the causes look the same, so the message claims neither."""
    aborted = drive(world, steps)
    abort(COPY, TARGET, ModelStore(world))
    with pytest.raises(CopyAborted) as by_abort:
        aborted.look()
    lost = drive(world, steps)
    world.lose()
    world.scopes.add("out")  # made again by hand
    with pytest.raises(CopyAborted, match="aborted while it ran, or the store has lost") as by_loss:
        lost.look()
    assert str(by_loss.value) == str(by_abort.value)


def test_a_copy_that_makes_its_scope_may_be_aborted_before_that(world: World) -> None:
    """So a missing scope proves nothing then."""
    world.scopes.discard("out")
    copy = drive(world, 0, REQUEST.model_copy(update={"make_scope": True}))
    abort(COPY, TARGET, ModelStore(world))
    with pytest.raises(CopyAborted):
        copy.look()


@pytest.mark.parametrize("made_again", [False, True])
def test_an_append_misses_its_target(world: World, *, made_again: bool) -> None:
    """An abort of an append never deletes the target."""
    put_target(world, 2)
    copy = driven(world, Commit)
    world.lose()
    world.scopes |= {"out"} if made_again else set()
    with pytest.raises(TargetLost):
        copy.look()


def _run_until_lost(world: World, call: int) -> StreamReport | SluiceError:
    """Run a copy whose store loses all its data before this call."""
    calls = iter(range(call))

    def gate(_: str) -> Fate:
        if next(calls, None) is None and world.scopes:
            world.lose()
        return Fate.DONE

    plan = split(planned(ModelStore(world)))
    store = ModelStore(world, gate)
    (report,) = copy_all(store, plan)
    return report


@pytest.mark.parametrize("call", range(1, 60, 3))
def test_a_driver_never_takes_a_lost_store_for_an_abort(world: World, call: int) -> None:
    """This holds at any call. A late call makes only empty segments in the empty store."""
    report = _run_until_lost(world, call)
    assert isinstance(report, StreamReport)
    if world.scopes:
        return  # the copy was done before that call
    assert report.error is not None
    assert not report.cleaned
    assert not world.streams
    if report.error.reason == "TargetLost":
        assert not any(segment.data for segment in world.segments.values())
    else:  # the copy had not begun
        assert report.error.reason in {"TargetScopeNotFound", "ScopeNotFound"}
