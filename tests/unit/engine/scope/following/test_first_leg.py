"""The first leg of a scope whose streams are followed, which ends where following begins."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from sluice.core.follow.catching_up import Staging
from sluice.core.scope.scope import StreamState
from sluice.core.values import identity
from sluice.core.workloads.answers import Following, Planned, ScopePlanned
from sluice.engine.scope.following.first_leg import FirstLegRunner
from sluice.engine.scope.planning import resolve_scope
from sluice.engine.scope.query import abandon_scope, ask_scope
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.errors import InvalidSpec, StoreUnavailable
from support.engine.plans import ADDRESS
from support.engine.scope_drivers import SCOPE_ID, SharedStore, damage, states
from support.engine.scope_requests import (
    drop,
    in_source,
    in_target,
    log_of,
    plan_of,
    put,
    put_others,
)
from support.following.followed_scopes import FOLLOW, Follower, arrived, write
from support.model import Fate, World
from support.until import TIGHT, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.workloads.answers import ScopeEnded
    from sluice.core.workloads.scope_log import ScopeState
    from sluice.engine.scope.report import ScopeReport

MANY = [f"s{number:03}" for number in range(6)]


@pytest.fixture
def world() -> World:
    """Return a world with some small streams."""
    made = World()
    put(made, *MANY)
    return made


def first_leg(
    world: World,
    gate: Callable[[str], Fate] = lambda _: Fate.DONE,
    meanwhile: Callable[[], None] = lambda: None,
    staging: Staging | None = None,
) -> ScopeReport:
    """Plan the copy, call `meanwhile`, and run the first leg as a driver does."""
    store = SharedStore(world, gate)
    plan = resolve_scope(FOLLOW, source=(ADDRESS, store), target=(ADDRESS, store)).plan
    meanwhile()
    return FirstLegRunner(
        plan,
        sources=[store],
        target=store,
        executor=InlineExecutor([store], store),
        limits=lambda: Limits(parallelism=2),
        patience=0.1,
        staging=staging,
    ).run()


def state_of(world: World) -> ScopeState:
    """Return the state that the log holds."""
    state = log_of(world).load()
    assert state is not None
    return state


def asked(world: World) -> Planned | ScopeEnded:
    """Return the stores' answer to the operator."""
    site = (ADDRESS, SharedStore(world))
    return ask_scope(FOLLOW, source=site, target=site)


def is_there(world: World, name: str) -> bool:
    """Tell whether a target has all bytes of its source, and is not marked as complete."""
    there = world.streams[in_target(name)]
    whose = identity.stream_copy_id(SCOPE_ID, name)
    same = world.bytes_of(in_target(name)) == world.bytes_of(in_source(name))
    return same and identity.completed(there.config.tags, whose) is None


def test_it_ends_once_all_planned_bytes_are_readable(world: World) -> None:
    """No stream has a result. The stores tell the operator that a follower has to go on."""
    before = plan_of(world, FOLLOW)
    report = first_leg(world)
    assert report.is_over
    assert states(report.results) == {"Planned": len(MANY)}
    assert all(is_there(world, name) for name in MANY)
    assert (state_of(world).live, state_of(world).results) == (True, {})
    answer = asked(world)
    assert isinstance(answer, Following)
    assert answer.plan.streams == before.streams
    assert first_leg(world).is_over


def test_a_follower_goes_on(world: World) -> None:
    """It copies bytes and streams that came meanwhile. The operator's plan stays the same."""
    first_leg(world)
    before = asked(world)
    assert isinstance(before, Following)
    write(world, MANY[2], [30])
    put(world, "later")
    driver = Follower(world)
    try:
        arrived(world, *MANY, "later")
        until("it joined", lambda: state_of(world).joined == 1, poll=TIGHT)
        answer = asked(world)
        assert answer == before
    finally:
        driver.kill()


def test_a_stream_that_cannot_be_copied_stops_no_other(world: World) -> None:
    """The stream has a failure as its result, and the first leg is over."""
    report = first_leg(world, meanwhile=lambda: damage(world, 3))
    assert report.is_over
    assert states(report.results) == {"Planned": len(MANY) - 1, "Failed": 1}
    (failed,) = state_of(world).results.values()
    assert failed.stream == MANY[3]
    assert isinstance(asked(world), Following)


def test_a_stream_whose_store_is_away_is_left_to_the_follower(world: World) -> None:
    """The first leg is over without it. The follower copies the stream once its store is back."""
    away = [f"out/{MANY[1]}"]

    def gate(what: str) -> Fate:
        if away and away[0] in what and not what.startswith("describe"):
            raise StoreUnavailable("its segment container is away")
        return Fate.DONE

    report = first_leg(world, gate)
    assert report.is_over
    assert state_of(world).live
    others = [name for name in MANY if name != MANY[1]]
    assert all(is_there(world, name) for name in others)
    away.clear()
    driver = Follower(world)
    try:
        arrived(world, *MANY)
    finally:
        driver.kill()


def test_a_store_that_is_away_lets_the_attempt_fail(world: World) -> None:
    """No stream is live, so another driver runs the first leg again."""

    def gate(what: str) -> Fate:
        if "out/" in what and "_sluice" not in what and not what.startswith(("describe", "list")):
            raise StoreUnavailable("it is away")
        return Fate.DONE

    report = first_leg(world, gate)
    assert report.trouble is not None
    assert report.trouble.reason == "StoreUnavailable"
    assert not state_of(world).live
    assert isinstance(asked(world), ScopePlanned)
    assert first_leg(world).is_over


@pytest.mark.parametrize("last", [60, 450])
def test_a_copy_that_is_aborted_meanwhile_is_not_live(world: World, last: int) -> None:
    """The report names the abort, also if a stream failed before, and if the abort comes late."""
    calls = count(1)  # several threads make these calls

    def gate(what: str) -> Fate:
        if next(calls) == last:
            log = log_of(world)
            log.load()
            log.call_off()
        return Fate.DONE

    report = first_leg(world, gate, lambda: damage(world, 0))
    assert report.trouble is not None
    assert report.trouble.reason == "CopyAborted"
    assert not state_of(world).live


def test_a_scope_that_is_deleted_after_its_first_leg_leaves_its_targets(world: World) -> None:
    """This holds even if no follower has come yet."""
    first_leg(world)
    store = SharedStore(world)
    abandon_scope(FOLLOW, source=store, target=store, known=None)
    for name in MANY:
        assert world.bytes_of(in_target(name)) == world.bytes_of(in_source(name))
        assert world.streams[in_target(name)].config.tags == ("team=a",)
    assert world.staging() == []


def test_an_empty_scope_is_live_at_once() -> None:
    """A follower then waits for the scope's first streams."""
    world = World()
    assert first_leg(world).is_over
    assert state_of(world).live
    assert isinstance(asked(world), Following)


def test_a_plan_of_an_empty_scope_is_not_over_before_a_driver_has_come() -> None:
    """The operator has stored the plan, but no driver has recorded it in the log."""
    world = World()
    known = plan_of(world, FOLLOW)
    site = (ADDRESS, SharedStore(world))
    answer = ask_scope(FOLLOW, source=site, target=site, known=known)
    assert isinstance(answer, Planned)
    assert answer.plan == known


def test_only_what_follows_has_a_first_leg(world: World) -> None:
    """The runner refuses the plan of a copy that does not follow its streams."""
    store = SharedStore(world)
    with pytest.raises(InvalidSpec, match="has no first leg"):
        FirstLegRunner(
            plan_of(world), sources=[store], target=store, executor=InlineExecutor([store], store)
        )


def test_a_follower_says_that_the_first_leg_is_over(world: World) -> None:
    """A follower may run the first leg itself. It does not wait for failed streams."""
    log_of(world).begin(plan_of(world, FOLLOW))
    damage(world, 3)
    driver = Follower(world)
    try:
        until("it is live", lambda: state_of(world).live, poll=TIGHT)
        assert [one.state for one in state_of(world).results.values()] == [StreamState.FAILED]
    finally:
        driver.kill()


@pytest.mark.parametrize("name", ["gone", "taken"])
def test_streams_that_cannot_be_planned_are_named(world: World, name: str) -> None:
    """One source is deleted after the plan. Another joins later, and its target is taken."""
    plan = plan_of(world, FOLLOW)
    assert plan.follows
    if name == "gone":
        report = first_leg(world, meanwhile=lambda: drop(world, in_source(MANY[0])))
        assert report.is_over
        assert states(report.results)["Failed"] == 1
        return
    put_others(world, name)
    first_leg(world)
    put(world, name)
    driver = Follower(world)
    try:
        until(
            "it is named",
            lambda: [one.stream for one in state_of(world).plan.scope.settled] == [name],
            poll=TIGHT,
        )
        assert state_of(world).joined == 1
    finally:
        driver.kill()


def test_streams_that_are_far_behind_are_staged_again(world: World) -> None:
    """A later driver stages those that are more than `far` bytes behind, and leaves the others."""
    first_leg(world)
    write(world, MANY[1], [90] * 4)
    write(world, MANY[2], [9])
    behind = world.bytes_of(in_target(MANY[2]))
    assert first_leg(world, staging=Staging(far=200)).is_over
    assert world.bytes_of(in_target(MANY[1])) == world.bytes_of(in_source(MANY[1]))
    assert world.bytes_of(in_target(MANY[2])) == behind
    assert (state_of(world).live, state_of(world).results) == (True, {})
