"""A follower that ends as its owner requests, on a store in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from sluice.core.values.model import KeyRange
from sluice.core.values.wish import Wish
from sluice.engine.copy.report import Outcome
from sluice.engine.follow.watch import Quiet
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.tasks.limits import Limits
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import ManualClock, events_of, put_source
from support.model import ModelStore, World
from unit.engine.follow.test_follow import killed, nothing, run, write, write_wish

if TYPE_CHECKING:
    from collections.abc import Callable

SEAL = Wish(cutover="SealAndDrain")
KEY = "key"
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def wishing(world: World, wish: Wish, key: str = "") -> Callable[[], object]:
    """Return an action that requests an end."""
    return lambda: write_wish(world, wish, key)


def writing(world: World, seed: int) -> Callable[[], object]:
    """Return an action that writes to the source."""
    return lambda: write(world, 0, [40], seed)


@pytest.mark.parametrize(
    ("wish", "why"), [(Wish(cutover="Drain"), "Drained"), (Wish(idle_seconds=20), "Idle")]
)
def test_a_copy_ends_once_nothing_comes(wish: Wish, why: str) -> None:
    """It goes on while bytes come now and then."""
    world = World()
    put_source(world, [20])
    clock = ManualClock()
    acts = [writing(world, seed) for seed in range(8)]
    report = run(world, wishing(world, wish), *acts, *[nothing] * 8, clock=clock, rounds=4)
    assert (report.outcome, report.ended) == (Outcome.COPIED, why), report.error
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)
    assert not world.streams[SOURCE].sealed


def test_a_wish_can_be_changed_and_taken_back() -> None:
    """The last request counts."""
    world = World()
    put_source(world, [20])
    acts = [wishing(world, Wish(idle_seconds=6)), wishing(world, Wish()), nothing, nothing]
    report = run(world, *acts, wishing(world, Wish(cutover="Drain")), *[nothing] * 5, rounds=2)
    assert report.ended == "Drained", report.error


def test_a_copy_ends_after_so_many_bytes() -> None:
    """It ends with the block that reaches the number. The rest stays in the source."""
    world = World()
    (first,) = put_source(world, [20])
    acts = [wishing(world, Wish(bytes=len(first) + 60)), writing(world, 1), writing(world, 2)]
    report = run(world, *acts, writing(world, 3), *[nothing] * 3)
    assert report.ended == "Bytes", report.error
    assert world.bytes_of(TARGET) == [first + events_of([40], 1) + events_of([40], 2)]


def test_a_copy_ends_at_its_time_though_clocks_are_set_back() -> None:
    """The copy ends when its clock shows the time. Later bytes stay in the source."""
    world = World()
    (first,) = put_source(world, [20])
    day = [NOON - timedelta(minutes=5)]

    def set_clock(minutes: int) -> Callable[[], None]:
        return lambda: day.append(NOON + timedelta(minutes=minutes))

    acts = [wishing(world, Wish(time=NOON)), set_clock(-1), writing(world, 1), set_clock(-60)]
    more = [writing(world, 2), set_clock(0), writing(world, 3), set_clock(-90), writing(world, 4)]
    report = run(world, *acts, *more, wall=lambda: day[-1])
    assert report.ended == "Time", report.error
    assert world.bytes_of(TARGET) == [first + events_of([40], 1) + events_of([40], 2)]


def test_a_cutover_seals_the_source_and_has_all_of_it() -> None:
    """The reason names the cutover, and other requested ends do not count."""
    world = World()
    put_source(world, [20], [9])
    wish = SEAL.model_copy(update={"bytes": 1, "time": NOON})
    acts = [writing(world, 1), wishing(world, wish, KEY), writing(world, 2)]
    report = run(world, *acts, key=KEY, wall=lambda: NOON)
    assert (report.outcome, report.ended) == (Outcome.COPIED, "CutOver"), report.error
    assert world.streams[SOURCE].sealed
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)


@pytest.mark.parametrize("wish", [SEAL, Wish(cutover="Drain"), Wish(idle_seconds=5)])
def test_an_end_beside_a_scale_event_comes_after_it(wish: Wish) -> None:
    """A follower that waits for the scale event goes on appending meanwhile."""
    world = World()
    put_source(world, [20])
    world.numbers[SOURCE] = 1

    def all_at_once() -> None:
        write_wish(world, wish, KEY)
        write(world, 0, [40, 50, 60], 7)
        halves = [KeyRange(low=0.0, high=0.5), KeyRange(low=0.5, high=1.0)]
        world.replace(SOURCE, {0}, halves)

    report = run(world, all_at_once, *[nothing] * 9, key=KEY)
    assert report.ended in {"CutOver", "Drained", "Idle"}, report.error
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)


@pytest.mark.parametrize("key", ["", "other"])
def test_a_cutover_that_is_not_its_owners_seals_nothing(key: str) -> None:
    """The follower goes on until another request."""
    world = World()
    put_source(world, [20])
    report = run(world, wishing(world, SEAL, "forged"), writing(world, 1), nothing, key=key)
    assert report.ended == "Bytes", report.error
    assert not world.streams[SOURCE].sealed


def test_a_wish_of_the_drivers_own_is_written_down() -> None:
    """`sluice run -f` makes such a request. A later request replaces it."""
    world = World()
    put_source(world, [20])
    report = run(world, *[nothing] * 9, wish=SEAL, key=KEY)
    assert report.ended == "CutOver", report.error
    other = World()
    put_source(other, [20])
    wish = Wish(idle_seconds=60)
    acts = [nothing, wishing(other, Wish(cutover="Drain")), *[nothing] * 3]
    assert run(other, *acts, wish=wish).ended == "Drained"


def test_a_wish_is_seen_while_bytes_wait_for_their_rate() -> None:
    """This holds while a block takes minutes, and while bytes are compared."""
    world = World()
    put_source(world, [20])
    clock = ManualClock()
    times: list[float] = []

    def limits() -> Limits:
        if clock.now > 30 and not times:
            times.append(clock.now)
            write_wish(world, Wish(bytes=1))
        return Limits(bytes_per_second=1)

    acts = [lambda: write(world, 0, [90] * 50, 7), *[nothing] * 9]
    report = run(world, *acts, limits=limits, clock=clock, rounds=200, pause=0.0)
    assert report.ended == "Bytes", report.error
    assert times
    assert len(world.bytes_of(TARGET)[0]) < 28 + 98 * 3


def test_a_limit_that_changes_holds_at_once() -> None:
    """It holds for a waiting block's rate, and for the bytes in flight of a current session."""
    world = World()
    put_source(world, [20])
    clock = ManualClock()
    slow = Limits(bytes_per_second=1)
    fast = Limits(bytes_per_second=1 << 20, in_flight_bytes=64 << 20)

    def limits() -> Limits:
        return slow if clock.now < 60 else fast

    acts = [lambda: write(world, 0, [90] * 50, 7), *[nothing] * 9]
    report = run(world, *acts, limits=limits, clock=clock, rounds=200, pause=0.01)
    assert report.ended == "Bytes", report.error
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)
    assert clock.now < 120


def test_bytes_that_another_driver_followed_are_no_silence() -> None:
    """A driver that slept for long saw no bytes, which does not prove that none came."""
    clock = ManualClock()
    quiet = Quiet(clock)
    quiet.note({0: 100, 1: 50})
    clock.now += 3600
    quiet.note({0: 170, 1: 50})
    assert quiet.seconds == 0
    clock.now += 7
    quiet.note({1: 50})
    quiet.note({0: 170})
    assert quiet.seconds == 7
    quiet.note({2: 0})
    assert quiet.seconds == 0


def test_a_driver_begins_its_wait_anew() -> None:
    """A killed driver does not hand on how long no bytes came."""
    world = World()
    put_source(world, [20])
    wish = Wish(idle_seconds=30)
    for _ in range(3):
        killed(world, wishing(world, wish), nothing, rounds=10)
    journal = CopyJournal(ModelStore(world), COPY, TARGET).load()
    assert journal is not None
    assert journal.trail.stopped is None
    report = run(world, *[nothing] * 5, rounds=10)
    assert report.ended == "Idle", report.error


def test_an_idle_copy_goes_on_for_ever() -> None:
    """Its owner may change the requested end any number of times before that end is reached."""
    world = World()
    put_source(world, [20])
    acts = [wishing(world, Wish(idle_seconds=9_000 + n)) for n in range(50)]
    report = run(world, *acts, writing(world, 1), nothing, rounds=20)
    assert report.ended == "Bytes", report.error
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)
