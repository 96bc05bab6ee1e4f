"""The progress of a followed scope, as the operator and the command line measure it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.follow.lag import NOTHING_LEFT, FollowedStreams, StreamLag
from sluice.core.values.wish import Wish
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.engine.scope.following import looking
from sluice.engine.scope.following.measuring import FollowedScopeWatch
from sluice.engine.workloads.following import write_wish
from sluice.engine.workloads.scope import ScopeWorkload
from sluice.errors import StoreUnavailable
from support.engine.scope_drivers import SharedStore, states
from support.engine.scope_requests import in_source, in_target, log_of, plan_of, put, put_others
from support.engine.sources import ManualClock
from support.following.followed_scopes import FOLLOW, KEY, Follower, arrived, write
from support.model import Fate, World, segment_name
from support.until import TIGHT, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.follow.lag import Followed

MANY = [f"s{number:02}" for number in range(12)]
EACH = 13
"""Bytes of each stream at the beginning."""


@pytest.fixture
def world() -> World:
    """Return a world with some small streams."""
    made = World()
    put(made, *MANY)
    return made


class Measured:
    """A watch of a followed scope, with a clock that the test advances."""

    def __init__(
        self, world: World, gate: Callable[[str], Fate] = lambda _: Fate.DONE, **changes: object
    ) -> None:
        self.world = world
        self.clock = ManualClock()
        plan = plan_of(world, FOLLOW.model_copy(update=changes))
        assert isinstance(plan, ScopeCopyPlan)
        self.plan = plan
        store = SharedStore(world, gate)
        self.watch = FollowedScopeWatch(plan, store, store, self.clock.monotonic)

    def look(self, after: float = 0.0) -> Followed:
        """Advance the clock by `after` seconds, and return the measurement."""
        self.clock.now += after
        progress = self.watch.measure()
        assert progress.follow is not None
        assert progress.bytes == progress.follow.position
        assert progress.total == progress.bytes + progress.follow.lag_bytes
        return progress.follow

    def streams(self, after: float = 0.0) -> FollowedStreams:
        """Advance the clock by `after` seconds, and return the measured numbers of streams."""
        found = self.look(after).streams
        assert found is not None
        return found


def is_live(world: World) -> bool:
    """Tell whether the log says that all streams are followed."""
    state = log_of(world).load()
    return state is not None and state.live


def left_by_a_follower(world: World, *acts: Callable[[], object]) -> None:
    """Follow until all bytes have arrived, call `acts`, and kill the follower."""
    driver = Follower(world)
    try:
        until("it is live", lambda: is_live(world), poll=TIGHT)
        arrived(world, *MANY)
        for act in acts:
            act()
    finally:
        driver.kill()


def size(world: World, *names: str) -> int:
    """Return the number of bytes in these sources."""
    return sum(len(data) for name in names for data in world.bytes_of(in_source(name)))


def test_nothing_is_said_before_a_driver_has_come(world: World) -> None:
    """No log exists yet, so no wish can be written either."""
    measured = Measured(world)
    progress = measured.watch.measure()
    assert (progress.bytes, progress.total) == (0, EACH * len(MANY))
    assert progress.follow is None
    store = SharedStore(world)
    assert not write_wish(ScopeWorkload(FOLLOW), store, Wish(cutover="Drain"), key=KEY)


def test_the_first_leg_counts_what_is_staged(world: World) -> None:
    """Streams that wait count as coming. The scope is not live before the log says so."""
    measured = Measured(world)
    log = log_of(world)
    log.begin(measured.plan)
    follow = measured.look()
    assert not follow.live
    assert follow.lag_bytes == EACH * len(MANY)
    assert follow.streams == FollowedStreams(coming=len(MANY))
    assert follow.wish == Wish()
    left_by_a_follower(world)
    follow = measured.look()
    assert follow.live
    assert follow.streams == FollowedStreams(followed=len(MANY))
    assert (follow.position, follow.lag_bytes) == (size(world, *MANY), 0)


def test_bytes_that_come_are_behind_with_their_age_and_their_streams(world: World) -> None:
    """The stream with the oldest bytes is first.

    Bytes that have arrived are not behind any more.
    """
    left_by_a_follower(world)
    measured = Measured(world)
    assert measured.look().lag.certain
    before = size(world, *MANY)
    write(world, MANY[4], [50])
    follow = measured.look(20.0)
    assert follow.lag_bytes == size(world, *MANY) - before
    write(world, MANY[7], [500, 500])
    follow = measured.look(30.0)
    assert (follow.lag.seconds, follow.lag.certain) == (30.0, True)
    assert follow.unproved.seconds == 30.0
    assert follow.streams is not None
    first, second = follow.streams.worst
    assert (first.stream, first.seconds) == (MANY[4], 30.0)
    assert (second.stream, second.seconds) == (MANY[7], 0.0)
    assert first.bytes + second.bytes == follow.lag_bytes == size(world, *MANY) - before
    left_by_a_follower(world)
    follow = measured.look(10.0)
    assert (follow.lag_bytes, follow.lag.seconds) == (0, 0.0)
    assert follow.position == size(world, *MANY)
    assert follow.streams == FollowedStreams(followed=len(MANY))


def test_ten_streams_are_named_at_most(world: World) -> None:
    """Of streams whose bytes are equally old, those with most bytes are named."""
    left_by_a_follower(world)
    measured = Measured(world)
    measured.look()
    for number, name in enumerate(MANY):
        write(world, name, [10 * number + 1])
    worst = measured.streams(10.0).worst
    assert [one.stream for one in worst] == MANY[:1:-1]


def test_what_was_compared_is_told(world: World) -> None:
    """`proved` counts the bytes that the journals record as compared."""
    left_by_a_follower(world)
    measured = Measured(world)
    before = measured.look()
    assert before.proved == before.position
    for name in MANY[:3]:
        write(world, name, [200])
    driver = Follower(world)
    try:
        until(
            "it is compared",
            lambda: measured.look(1.0).proved == size(world, *MANY),
            poll=TIGHT,
        )
    finally:
        driver.kill()
    assert measured.look(10.0).unproved.seconds == 0.0


def test_scale_events_are_seen(world: World) -> None:
    """All bytes of a segment are behind until the target mirrors that segment."""
    left_by_a_follower(world)
    measured = Measured(world)
    measured.look()
    world.scale(in_source(MANY[5]), 2)
    new = world.streams[in_source(MANY[5])].segments[0]
    world.segments[segment_name(in_source(MANY[5]), new.id)].data += b"\0\0\0\0\0\0\0\x02ab"
    follow = measured.look(10.0)
    assert follow.lag_bytes == 10
    assert follow.segments == len(MANY)
    left_by_a_follower(world)
    follow = measured.look(10.0)
    assert follow.lag_bytes == 0
    assert (follow.segments, follow.ended) == (len(MANY) + 1, 1)


def test_streams_that_join_or_fail_are_counted(world: World) -> None:
    """A failed stream is named with its reason."""
    measured = Measured(world)
    put_others(world, "taken")

    def join() -> None:
        put(world, "free", "taken")
        arrived(world, "free")

    left_by_a_follower(world, join)
    streams = measured.streams()
    assert (streams.followed, streams.failed, streams.joined) == (len(MANY) + 1, 1, 2)
    (failure,) = streams.failures
    assert failure.stream == "taken"
    assert failure.trouble is not None
    assert failure.trouble.reason == "TargetExists"
    assert streams.total == len(MANY) + 2


def test_all_streams_are_told_each_with_its_state(world: World) -> None:
    """There is no list before the scope is live. A stream that joins or fails renews the list."""
    measured = Measured(world)
    log_of(world).begin(measured.plan)
    assert measured.look().results is None
    left_by_a_follower(world)
    results = measured.look().results
    assert results is not None
    assert states(results) == {"Followed": len(MANY)}
    assert measured.look(10.0).results is results
    put_others(world, "taken")

    def join() -> None:
        put(world, "free", "taken")
        arrived(world, "free")

    left_by_a_follower(world, join)
    results = measured.look(10.0).results
    assert results is not None
    assert states(results) == {"Followed": len(MANY) + 1, "Failed": 1}
    assert {one.stream for one in results} == {*MANY, "free", "taken"}


def test_a_stream_that_is_to_come_is_behind_with_all_its_bytes(world: World) -> None:
    """The scope is live without it. The measurement names it with the age of its bytes."""
    away = ["out/late"]

    def gate(what: str) -> Fate:
        if away[0] in what and not what.startswith("describe"):
            raise StoreUnavailable("its segment container is away")
        return Fate.DONE

    measured = Measured(world)
    put(world, "late")
    driver = Follower(world, gate=gate)
    try:
        until("it is live", lambda: is_live(world), poll=TIGHT)
        arrived(world, *MANY)
    finally:
        driver.kill()
    measured.look()
    follow = measured.look(20.0)
    assert follow.live
    assert follow.streams is not None
    assert (follow.streams.followed, follow.streams.coming) == (len(MANY), 1)
    assert follow.streams.worst == (StreamLag("late", EACH, 20.0),)
    assert follow.lag.seconds == 20.0


def test_the_end_is_told_with_its_reason(world: World) -> None:
    """All bytes have arrived and are compared, and no stream is followed any more."""
    measured = Measured(world)
    driver = Follower(world, wish=Wish(cutover="SealAndDrain"))
    report = driver.join()
    assert report is not None, driver.error
    progress = measured.watch.measure()
    assert progress.published
    follow = progress.follow
    assert follow is not None
    assert (follow.stopped, follow.sealed, follow.lag_bytes) == ("CutOver", True, 0)
    assert follow.position == follow.proved == size(world, *MANY)
    assert follow.streams == FollowedStreams(ended=len(MANY), sealed=len(MANY))
    assert follow.wish == Wish(cutover="SealAndDrain")


def test_an_empty_scope_that_ends_says_so() -> None:
    """The reason is that nothing was left, since no stream has a reason of its own."""
    world = World()
    measured = Measured(world)
    driver = Follower(world, wish=Wish(cutover="Drain"))
    report = driver.join()
    assert report is not None, driver.error
    follow = measured.look()
    assert (follow.live, follow.stopped) == (True, NOTHING_LEFT)


def test_a_wish_is_written_and_read(world: World) -> None:
    """The operator writes the wish. Each measurement has the present wish."""
    left_by_a_follower(world)
    measured = Measured(world)
    wish = Wish(idle_seconds=99)
    assert write_wish(ScopeWorkload(FOLLOW), SharedStore(world), wish, key=KEY)
    assert measured.look().wish == wish


def test_a_quiet_scope_costs_a_question_for_each_segment(world: World) -> None:
    """The look reads no journal, and asks for no position in a target."""
    asked: list[str] = []

    def gate(what: str) -> Fate:
        asked.append(what.split(maxsplit=1)[0])
        return Fate.DONE

    left_by_a_follower(world)
    measured = Measured(world, gate)
    measured.look()
    asked.clear()
    measured.look(10.0)
    assert set(asked) == {"infos"}
    assert len(asked) <= 3, asked


def test_a_store_that_answers_for_some_streams_is_enough(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams without an answer stay as the last look saw them.

    Without any answer, the look fails.
    """
    monkeypatch.setattr(looking, "TOGETHER", 4)
    calls: list[str] = []
    refused: list[int] = []

    def gate(what: str) -> Fate:
        if what.startswith("infos"):
            calls.append(what)
            if len(calls) in refused:  # the first question is about the scope's log
                raise StoreUnavailable("it is away")
        return Fate.DONE

    left_by_a_follower(world)
    measured = Measured(world, gate)
    measured.look()
    for name in MANY:
        write(world, name, [70])
    calls.clear()
    refused.append(2)
    whole = size(world, *MANY) - EACH * len(MANY)
    assert measured.look(1.0).lag_bytes == whole * 2 // 3
    calls.clear()
    refused.extend(range(3, 10))
    with pytest.raises(StoreUnavailable):
        measured.look(1.0)
    refused.clear()
    assert measured.look(1.0).lag_bytes == whole


def test_many_streams_take_turns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look asks about at most `ASKED` segments. Two looks together see all streams."""
    monkeypatch.setattr(looking, "ASKED", len(MANY) // 2)
    left_by_a_follower(world)
    measured = Measured(world)
    measured.look()
    measured.look()
    before = size(world, *MANY)
    for name in MANY:
        write(world, name, [20])
    measured.look()
    follow = measured.look(10.0)
    assert follow.lag_bytes == size(world, *MANY) - before


def test_what_was_not_looked_at_is_not_certain(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look finds only `FOUND` live streams, so the age of the lag is uncertain."""
    monkeypatch.setattr(looking, "FOUND", len(MANY) // 2)
    left_by_a_follower(world)
    measured = Measured(world)
    follow = measured.look()
    assert not follow.lag.certain
    assert follow.lag_bytes == 0
    assert follow.streams == FollowedStreams(followed=len(MANY))
    assert measured.look().lag.certain
    assert in_target(MANY[0]) in world.streams
