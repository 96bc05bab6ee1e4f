"""Answers to the operator about a scope that was followed to its end."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from sluice.core.scope import scope as values
from sluice.core.values.wish import Wish
from sluice.core.workloads.answers import Following, Planned, ScopeEnded
from sluice.engine.follow import state
from sluice.engine.scope import query
from sluice.engine.scope.query import ask_scope
from sluice.engine.workloads.following import write_wish
from sluice.engine.workloads.scope import ScopeWorkload
from sluice.errors import StoreBusy
from support.engine.plans import ADDRESS
from support.engine.scope_drivers import SharedStore, states
from support.engine.scope_requests import in_target, log_of, put
from support.following.followed_scopes import FOLLOW, KEY, Follower, arrived, write
from support.model import World
from support.until import TIGHT, until

if TYPE_CHECKING:
    from sluice.engine.scope.log import ScopeLog

NAMES = ("a", "b", "c")


@pytest.fixture
def world() -> World:
    """Return a world with three streams."""
    made = World()
    put(made, *NAMES)
    return made


def ask(world: World) -> Planned | ScopeEnded:
    """Ask the stores for the state of the copy, as the operator does."""
    site = (ADDRESS, SharedStore(world))
    return ask_scope(FOLLOW, source=site, target=site)


def follow_to_the_end(world: World) -> None:
    """Follow the scope until it is drained."""
    driver = Follower(world, wish=Wish(cutover="Drain"))
    report = driver.join()
    assert report is not None, driver.error
    assert report.is_over


def test_each_result_says_why_and_where_its_stream_ended(world: World) -> None:
    """It has a cut of the source and one of the target, so that readers can go on from either."""
    write(world, "a", [40, 60])
    follow_to_the_end(world)
    ended = ask(world)
    assert isinstance(ended, ScopeEnded)
    assert states(ended.results) == {"Copied": len(NAMES)}
    for one in ended.results:
        assert one.ended == "Drained"
        assert one.ends is not None
        assert one.ends.source is not None
        assert one.ends.target is not None
        assert one.stream in one.ends.source
        for data in world.bytes_of(in_target(one.stream)):
            assert f"={len(data)}" in one.ends.target


def test_a_cut_that_no_config_map_takes_is_left_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut that is too long is left out whole, since a shortened cut is of no use."""
    follow_to_the_end(world)
    monkeypatch.setattr(query, "MOST_CUT", 3)
    ended = ask(world)
    assert isinstance(ended, ScopeEnded)
    assert {one.ends for one in ended.results} == {values.Ends()}
    monkeypatch.setattr(state, "MOST_CUT", 3)
    assert isinstance(ask(world), ScopeEnded)


def test_the_plan_of_a_followed_scope_is_told_without_streams_that_have_joined(
    world: World,
) -> None:
    """The operator's ConfigMap stays the same, however many streams join."""
    driver = Follower(world)
    try:
        arrived(world, *NAMES)
        put(world, "late")
        arrived(world, "late")
        until("the log says that it is live", lambda: is_live(world), poll=TIGHT)
    finally:
        driver.kill()
    answer = ask(world)
    assert isinstance(answer, Following)
    assert sorted(one.name for one in answer.plan.items) == list(NAMES)


def is_live(world: World) -> bool:
    """Tell whether the log says that the streams are followed."""
    found = log_of(world).load()
    return found is not None and found.live


def test_a_wish_gives_up_beside_clients_that_write_without_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write fails with StoreBusy and frees the operator's thread. The operator tries later."""
    driver = Follower(world)
    try:
        arrived(world, *NAMES)
    finally:
        driver.kill()
    other, seconds = log_of(world), count(1)
    other.load()
    append = type(other)._append

    def beside(log: ScopeLog, records: list[dict[str, object]]) -> bool:
        """Append another wish before each write of the log under test, and refuse that write."""
        if log is other:
            return append(log, records)
        other.wish(Wish(idle_seconds=next(seconds)))
        return False

    monkeypatch.setattr(type(other), "_append", beside)
    workload, store = ScopeWorkload(FOLLOW), SharedStore(world)
    with pytest.raises(StoreBusy):
        write_wish(workload, store, Wish(cutover="Drain"), key=KEY)
