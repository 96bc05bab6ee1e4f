"""A scope whose streams are followed by a few threads, on a store in memory."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from sluice.core.scope.scope import StreamState
from sluice.core.values import identity
from sluice.core.values.wish import Wish
from sluice.engine.scope.query import abandon_scope
from sluice.errors import StoreUnavailable
from support.engine.scope_drivers import SCOPE_ID, SharedStore, states
from support.engine.scope_requests import drop, in_source, in_target, log_of, put, put_others
from support.following.followed_scopes import (
    FOLLOW,
    KEY,
    SHORT,
    Follower,
    HeldClock,
    arrived,
    wish,
    write,
)
from support.model import Fate, World
from support.search import searches, seeds
from support.until import TIGHT, until

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY = [f"s{number:02}" for number in range(20)]
DRAIN = Wish(cutover="Drain")


@pytest.fixture
def world() -> World:
    """Return a world with many small streams."""
    made = World()
    put(made, *MANY)
    return made


@pytest.fixture
def followers() -> Iterator[list[Follower]]:
    """Return a list for drivers, and kill those drivers after the test."""
    all_: list[Follower] = []
    yield all_
    for one in all_:
        one.kill()


def live(world: World, *streams: str) -> None:
    """Wait until these streams are followed."""
    for stream in streams:
        whose = identity.stream_copy_id(SCOPE_ID, stream)

        def is_live(name: str = stream, copy_id: str = whose) -> bool:
            there = world.streams.get(in_target(name))
            return there is not None and identity.is_live(there.config.tags, copy_id)

        until(f"{stream} is followed", is_live, poll=TIGHT)


def test_a_few_threads_follow_many_streams_until_they_are_drained(
    world: World, followers: list[Follower]
) -> None:
    """All later events of all streams arrive, those of parked streams too."""
    driver = Follower(world)
    followers.append(driver)
    live(world, *MANY)
    for turn in range(3):
        for name in MANY[turn::2]:
            write(world, name, [9, 30 + turn], turn)
        arrived(world, *MANY)
    wish(world, DRAIN)
    report = driver.join()
    assert report is not None, driver.error
    assert report.is_over
    assert states(report.results) == {"Copied": len(MANY)}
    assert {one.ended for one in report.results} == {"Drained"}
    assert all(one.digest for one in report.results)
    for name in MANY:
        assert world.bytes_of(in_target(name)) == world.bytes_of(in_source(name))
        copy_id = identity.stream_copy_id(SCOPE_ID, name)
        assert identity.completed(world.streams[in_target(name)].config.tags, copy_id)


def test_streams_in_which_nothing_comes_are_parked(world: World, followers: list[Follower]) -> None:
    """A parked stream holds no thread, and only its length is read.

    Its later events still arrive.
    """
    asked: list[str] = []

    def gate(what: str) -> Fate:
        asked.append(what.split(maxsplit=1)[0])
        return Fate.DONE

    driver = Follower(world, gate=gate, pace=SHORT._replace(rest=1e6))
    followers.append(driver)

    def are_parked() -> bool:
        return len(driver.runner._lanes.parked()) == len(MANY)

    until("all are parked", are_parked, poll=TIGHT)
    asked.clear()
    time.sleep(0.5)
    assert set(asked) <= {"infos", "list_streams", "read", "info"}, set(asked)
    for name in MANY:
        write(world, name, [20])
    arrived(world, *MANY)


def test_a_stream_that_the_scope_gets_later_joins(world: World, followers: list[Follower]) -> None:
    """The driver plans, records, copies and follows it like the others. So does a second driver."""
    driver = Follower(world)
    followers.append(driver)
    live(world, MANY[0])
    put(world, "later", sizes=(50, 60))
    live(world, "later")
    write(world, "later", [8], 3)
    arrived(world, "later")
    driver.kill()
    write(world, "later", [18], 4)
    put(world, "last")
    second = Follower(world)
    followers.append(second)
    live(world, "last")
    wish(world, DRAIN)
    report = second.join()
    assert report is not None, second.error
    assert states(report.results) == {"Copied": len(MANY) + 2}
    arrived(world, *MANY, "later", "last")


def test_a_stream_whose_target_exists_fails_and_stops_no_other(
    world: World, followers: list[Follower]
) -> None:
    """Its result has the reason. A stream that comes at the same time joins."""
    driver = Follower(world)
    followers.append(driver)
    live(world, MANY[0])
    put_others(world, "taken")
    put(world, "taken", "free")
    live(world, "free")
    wish(world, DRAIN)
    report = driver.join()
    assert report is not None, driver.error
    results = {one.stream: one for one in report.results}
    assert results["free"].state is StreamState.COPIED
    assert results["taken"].trouble is not None
    assert results["taken"].trouble.reason == "TargetExists"


def test_a_stream_that_is_gone_is_named_and_its_target_stays(
    world: World, followers: list[Follower]
) -> None:
    """The driver reports SourceNotFound, and goes on following the other streams."""
    driver = Follower(world)
    followers.append(driver)
    live(world, *MANY)
    data = world.bytes_of(in_source(MANY[3]))
    drop(world, in_source(MANY[3]))
    until("it is named", lambda: driver.listener.results, poll=TIGHT)
    write(world, MANY[4], [33])
    arrived(world, MANY[4])
    assert world.bytes_of(in_target(MANY[3])) == data
    wish(world, DRAIN)
    report = driver.join()
    assert report is not None, driver.error
    (lost,) = [one for one in report.results if one.state is StreamState.FAILED]
    assert lost.stream == MANY[3]
    assert lost.trouble is not None
    assert lost.trouble.reason == "SourceNotFound"
    assert report.counts.copied == len(MANY) - 1


def test_a_stream_that_fails_holds_up_no_other_and_goes_on_once_it_can(
    world: World, followers: list[Follower]
) -> None:
    """The driver reports the stream when it gives it up, and begins it anew later."""
    broken = [f"out/{MANY[5]}"]

    def gate(what: str) -> Fate:
        if broken and broken[0] in what and not what.startswith("describe"):
            raise StoreUnavailable("its segment container is away")
        return Fate.DONE

    driver = Follower(world, gate=gate)
    followers.append(driver)
    others = [name for name in MANY if name != MANY[5]]
    live(world, *others)
    until("it is named", lambda: driver.listener.results, poll=TIGHT)
    for name in MANY:
        write(world, name, [40])
    arrived(world, *others)
    assert {one.stream for one in driver.listener.results} == {MANY[5]}
    broken.clear()
    arrived(world, *MANY)
    wish(world, DRAIN)
    report = driver.join()
    assert report is not None, driver.error
    assert report.is_over
    assert states(report.results) == {"Copied": len(MANY)}


@pytest.mark.parametrize("owned", [True, False])
def test_a_cutover_seals_every_source_if_it_is_the_owners_wish(
    world: World, followers: list[Follower], *, owned: bool
) -> None:
    """It includes a stream that the scope got just before.

    With another key, no source is sealed.
    """
    driver = Follower(world, pace=SHORT._replace(listing=1e6))
    followers.append(driver)
    live(world, *MANY)
    put(world, "new")
    wish(world, Wish(cutover="SealAndDrain"), KEY if owned else "a guess")
    if owned:
        report = driver.join()
        assert report is not None, driver.error
        assert states(report.results) == {"Copied": len(MANY) + 1}
        assert {one.ended for one in report.results} == {"CutOver"}
        arrived(world, "new")
    else:
        time.sleep(0.3)
    sealed = {world.streams[in_source(name)].sealed for name in MANY}
    assert sealed == {owned}


def test_a_second_process_ends_what_the_first_one_follows(
    world: World, followers: list[Follower]
) -> None:
    """The second process has another key. The first process does not overwrite its wishes.

    This includes the wishes of streams that the first process begins anew.
    """
    broken = [f"out/{MANY[5]}"]

    def gate(what: str) -> Fate:
        if broken and broken[0] in what and not what.startswith("describe"):
            raise StoreUnavailable("its segment container is away")
        return Fate.DONE

    first = Follower(world, gate=gate, key="the first")
    followers.append(first)
    live(world, *(name for name in MANY if name != MANY[5]))
    second = Follower(world, wish=Wish(cutover="SealAndDrain"), key="the second")
    followers.append(second)
    until("it is named", lambda: first.listener.results, poll=TIGHT)
    broken.clear()
    for driver in (second, first):
        report = driver.join()
        assert report is not None, driver.error
        assert report.is_over
        assert states(report.results) == {"Copied": len(MANY)}
    log = log_of(world)
    log.load()
    assert log.loaded is not None
    # A process that finds a target complete, or a source sealed, does not know why.
    assert {one.ended for one in log.loaded.results.values()} <= {"CutOver", "SourceSealed", None}
    assert all(world.streams[in_source(name)].sealed for name in MANY)


def test_the_whole_has_to_be_idle_to_end(world: World, followers: list[Follower]) -> None:
    """One stream that takes events keeps all others followed."""
    clock = HeldClock(seconds=10)
    driver = Follower(world, wish=Wish(idle_seconds=20), clock=clock)
    followers.append(driver)
    while clock.monotonic() < 60:
        write(world, MANY[0], [5])
        arrived(world, MANY[0])
        clock.go_on()
    assert not driver.listener.results
    live(world, *MANY)
    clock.let_go()
    report = driver.join()
    assert report is not None, driver.error
    assert {one.ended for one in report.results} == {"Idle"}
    arrived(world, *MANY)


def test_a_changed_configuration_of_a_source_is_copied(
    world: World, followers: list[Follower]
) -> None:
    """The target gets the new tags even if no events come in the stream."""
    followers.append(Follower(world))
    live(world, *MANY)
    there = world.streams[in_source(MANY[2])]
    there.config = there.config.model_copy(update={"tags": ("team=b",)})
    until(
        "the tag is there",
        lambda: "team=b" in world.streams[in_target(MANY[2])].config.tags,
        poll=TIGHT,
    )


def test_a_scope_without_streams_is_followed_until_it_has_some(followers: list[Follower]) -> None:
    """The driver makes the target's scope, and waits for the first stream."""
    world = World()
    world.scopes.remove("out")
    driver = Follower(world, request=FOLLOW.model_copy(update={"make_scope": True}))
    followers.append(driver)
    time.sleep(0.2)
    assert driver.report is None
    put(world, "first")
    live(world, "first")
    write(world, "first", [8])
    arrived(world, "first")
    wish(world, DRAIN)
    report = driver.join()
    assert report is not None, driver.error
    assert states(report.results) == {"Copied": 1}


def test_a_scope_without_streams_ends_as_wished(followers: list[Follower]) -> None:
    """The copy is over, and has no results."""
    world = World()
    driver = Follower(world, wish=DRAIN)
    followers.append(driver)
    report = driver.join()
    assert report is not None, driver.error
    assert report.is_over
    assert report.results == ()


@searches
@pytest.mark.parametrize("seed", seeds(1))
def test_drivers_that_are_killed_while_streams_join_lose_nothing(
    world: World, followers: list[Follower], seed: int
) -> None:
    """Each next driver goes on, and sometimes two run at once. All bytes arrive once, in order."""
    chance = random.Random(seed)  # noqa: S311 - repeatable
    names = list(MANY)
    for turn in range(8):
        kill_after = chance.randrange(5, 600)
        calls = 0

        def gate(_: str) -> Fate:
            nonlocal calls
            calls += 1
            if calls > kill_after:  # noqa: B023 - of this turn
                followers[-1].dead = True
            return Fate.DONE

        followers.append(Follower(world, gate=gate))
        for _ in range(6):
            write(world, chance.choice(names), [chance.randrange(60)], chance.randrange(99))
            if chance.random() < 0.2:
                put(world, f"join-{turn}-{len(names)}")
                names.append(f"join-{turn}-{len(names)}")
            time.sleep(0.01)
        if chance.random() < 0.7:
            followers[-1].kill()
    for one in followers:
        one.kill()
    driver = Follower(world)
    followers.append(driver)
    live(world, *names)
    wish(world, DRAIN)
    report = driver.join()
    assert report is not None, driver.error
    assert states(report.results) == {"Copied": len(names)}, [
        one.trouble for one in report.results if one.trouble
    ]
    for name in names:
        assert world.bytes_of(in_target(name)) == world.bytes_of(in_source(name))
    assert [name for name in world.staging() if "/_sluice-copies/" not in name] == []


@pytest.mark.parametrize("beside", [False, True])
def test_a_followed_scope_that_is_deleted_leaves_its_targets(
    world: World, followers: list[Follower], *, beside: bool
) -> None:
    """All targets keep their bytes and belong to no copy, those of joined streams too.

    A driver that still runs ends, since it finds each stream's journal deleted.
    """
    driver = Follower(world)
    followers.append(driver)
    live(world, *MANY)
    put(world, "later")
    live(world, "later")
    if not beside:
        driver.kill()
    store = SharedStore(world)
    abandon_scope(FOLLOW, source=store, target=store, known=None)
    if beside:
        report = driver.join()
        assert report is not None, driver.error
        assert report.counts.copied == 0
    for name in (*MANY, "later"):
        assert world.bytes_of(in_target(name)) == world.bytes_of(in_source(name))
        assert world.streams[in_target(name)].config.tags == ("team=a",)
    assert world.staging() == []
