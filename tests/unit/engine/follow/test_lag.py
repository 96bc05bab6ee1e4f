"""The lag of a copy behind its source, as the operator measures it in the stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.follow_progress import wish_record
from sluice.core.values import identity
from sluice.core.values.model import KeyRange, StoreAddress
from sluice.core.values.wish import Wish
from sluice.core.workloads.answers import Complete, Following, Planned
from sluice.engine.copy.planning import resolve
from sluice.engine.follow import wishes
from sluice.engine.follow.lag import FollowWatch
from sluice.engine.follow.work import FollowWork
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.runner import Runner
from sluice.engine.workloads.stream import StreamWorkload
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import CHUNK, REQUEST, ManualClock, events_of, put_source
from support.model import EVENT_COUNT, Fate, ModelStore, World, segment_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.follow.lag import Followed
    from sluice.core.workloads.answers import Answer

FOLLOW = REQUEST.model_copy(update={"follow": True})
STORE = StoreAddress(backend="pravega", uri="tcp://store:9090")


class Killed(Exception):
    """The end of a driver that is killed."""


def write(world: World, segment: int, sizes: list[int], seed: int = 7) -> int:
    """Write events to a segment of the source. Return their bytes."""
    there = world.segments[segment_name(SOURCE, segment)]
    data = events_of(sizes, seed)
    there.data += data
    there.attributes[EVENT_COUNT] += len(sizes)
    return len(data)


def follow(world: World, *acts: Callable[[], object], end: bool = False) -> None:
    """Follow the source during some changes, some rounds apart. Then kill the driver.

    Args:
        world: the world.
        acts: the changes.
        end: whether the copy ends instead, and the driver is not killed.
    """
    left = [act for act in acts for _ in range(5)]
    clock = ManualClock()

    def gate(what: str) -> Fate:
        if what.startswith("take"):
            clock.now += 1.0
            if left:
                act = left.pop(0)
                if act not in left:
                    act()
            elif end:
                log = CopyJournal(ModelStore(world), COPY, TARGET)
                wishes.write(Wish(cutover="Drain"), log)
            else:
                raise Killed
        return Fate.DONE

    if end:
        drive(world, gate, clock)
    else:
        with pytest.raises(Killed):
            drive(world, gate, clock)


def drive(world: World, gate: Callable[[str], Fate], clock: ManualClock | None = None) -> None:
    """Run a driver to its end."""
    clock = clock or ManualClock()
    store = ModelStore(world, gate)
    plan = resolve(FOLLOW, [store], store).plan
    assert plan is not None
    runner = Runner(
        [FollowWork(plan, [store], store, clock=clock, every=0.0)],
        executor=InlineExecutor([store], store),
        limits=lambda: Limits(slice_bytes=2 * CHUNK),
        clock=clock,
    )
    runner.run()


class Watched:
    """A watch of one copy, as the operator measures it."""

    def __init__(self, world: World, gate: Callable[[str], Fate] = lambda _: Fate.DONE) -> None:
        self.now = 0.0
        store = ModelStore(world, gate)
        plan = resolve(FOLLOW, [store], store).plan
        assert plan is not None
        self.watch = FollowWatch(plan, store, store, lambda: self.now)

    def look(self, seconds: float = 0.0) -> Followed:
        """Advance the clock by `seconds`, and return the measurement."""
        self.now += seconds
        found = self.watch.measure().follow
        assert found is not None
        return found


def nothing() -> None:
    """Do nothing."""


def asked(world: World) -> Answer:
    """Ask the stores about the copy."""
    store = ModelStore(world)
    places = [(STORE, store)]
    planned = StreamWorkload(FOLLOW).plan(places, places[0]).plan
    return StreamWorkload(FOLLOW).ask(places, places[0], known=planned, again=False)


def test_a_copy_is_planned_then_follows_then_is_complete() -> None:
    """The result of a complete copy has all bytes and events, including later ones."""
    world = World()
    data = put_source(world, [20, 9], [30])
    assert type(asked(world)) is Planned
    more = []
    follow(world, nothing, lambda: more.append(write(world, 0, [40, 5])), nothing)
    answer = asked(world)
    assert isinstance(answer, Following)
    assert answer.recorded
    assert answer.stopped is None
    follow(world, nothing, end=True)
    whole = asked(world)
    assert isinstance(whole, Complete)
    assert whole.bytes == sum(map(len, data)) + sum(more)
    assert (whole.events, whole.segments) == (5, 2)


def test_a_complete_copy_tells_where_it_has_ended_in_all_segments_that_take_events() -> None:
    """Its cuts include the segment that the scale event left as it was."""
    world = World()
    put_source(world, [20, 9], [30])
    world.numbers[SOURCE] = 2
    halves = [KeyRange(low=0.5, high=0.75), KeyRange(low=0.75, high=1)]
    follow(world, nothing, lambda: world.replace(SOURCE, {1}, halves), nothing, end=True)
    whole = asked(world)
    assert isinstance(whole, Complete)
    assert whole.cut is not None
    tail = [one.id for one in world.streams[SOURCE].segments]
    ends = {tail[0]: 45, tail[1]: 0, tail[2]: 0}
    store = ModelStore(world)
    assert store.read_cut(whole.cut.source or "") == (SOURCE, ends)
    assert store.read_cut(whole.cut.target or "") == (TARGET, ends)


def test_a_copy_that_is_not_live_has_no_lag() -> None:
    """Its progress is that of any copy."""
    world = World()
    put_source(world, [20])
    watched = Watched(world)
    assert watched.watch.measure().follow is None
    assert not watched.watch.measure().published


def test_lag_is_what_the_source_has_and_the_target_has_not() -> None:
    """The lag in bytes is exact. In seconds it is the age of the first unreached sample."""
    world = World()
    (data,) = put_source(world, [20, 9])
    follow(world, nothing)
    watched = Watched(world)
    first = watched.look()
    assert (first.live, first.position, first.lag_bytes) == (True, len(data), 0)
    assert first.lag == (0.0, True, False)
    more = write(world, 0, [50])
    assert watched.look(10).lag_bytes == more
    assert watched.look(7).lag.seconds == 7
    assert watched.look(40).lag.seconds == 47
    follow(world, nothing)
    last = watched.look(1)
    assert (last.position, last.lag_bytes, last.lag.seconds) == (len(data) + more, 0, 0.0)


def test_segments_that_the_target_does_not_mirror_yet_are_behind() -> None:
    """Segments of several scale events count, and a fully followed segment does not."""
    world = World()
    (data,) = put_source(world, [20])
    follow(world, nothing)
    watched = Watched(world)
    watched.look()
    world.replace(SOURCE, {0}, [KeyRange(low=0.0, high=0.5), KeyRange(low=0.5, high=1.0)])
    low, high = (one.id for one in world.streams[SOURCE].segments)
    size = write(world, low, [30]) + write(world, high, [40])
    assert watched.look(10).lag_bytes == size
    world.replace(SOURCE, {high}, [KeyRange(low=0.5, high=0.7), KeyRange(low=0.7, high=1.0)])
    size += write(world, world.streams[SOURCE].segments[-1].id, [12])
    later = watched.look(10)
    assert (later.lag_bytes, later.ended, later.segments) == (size, 0, 1)
    assert later.lag.seconds == 10
    follow(world, nothing, nothing, nothing)
    last = watched.look(1)
    assert (last.lag_bytes, last.ended, last.segments) == (0, 2, 3)
    assert last.position == len(data) + size
    assert last.lag == (0.0, True, False)
    assert not last.sealed


def test_a_sealed_source_and_the_end_are_told() -> None:
    """The measurement says that the source is sealed.

    A complete copy is published, without a lag.
    """
    world = World()
    put_source(world, [20], [9])
    follow(world, nothing)
    watched = Watched(world)
    assert not watched.look().sealed
    ModelStore(world).seal_stream(SOURCE)
    assert watched.look(1).sealed
    follow(world, nothing, end=True)
    done = watched.watch.measure()
    assert done.published
    assert done.follow is None


def test_bytes_that_were_not_compared_have_an_age_of_their_own() -> None:
    """Bytes that have arrived in the target are not behind, but may still be uncompared."""
    world = World()
    (data,) = put_source(world, [20])
    follow(world, nothing)
    watched = Watched(world)
    assert watched.look().proved == len(data)
    there = world.segments[segment_name(SOURCE, 0)]
    more = write(world, 0, [50])
    target = world.segments[segment_name(TARGET, 0)]
    target.data += there.data[-more:]
    position = identity.position_attribute(COPY, 0)
    target.attributes[position] += more
    watched.look(10)
    found = watched.look(12)
    assert (found.lag_bytes, found.lag.seconds) == (0, 0.0)
    assert (found.proved, found.unproved.seconds) == (len(data), 12)


def test_a_copy_that_goes_live_while_it_is_looked_at_is_proved_at_the_next_look() -> None:
    """Its journal was read before the bytes were verified, and no more bytes come."""
    world = World()
    (data,) = put_source(world, [20, 9])

    def dying(what: str) -> Fate:
        if what.startswith("append "):  # append of the first bytes, not of the journal
            raise Killed
        return Fate.DONE

    with pytest.raises(Killed):
        drive(world, dying)
    driven: list[str] = []

    def gate(what: str) -> Fate:
        if what.startswith("attributes") and not driven:
            driven.append(what)
            follow(world, nothing)
        return Fate.DONE

    watched = Watched(world, gate)
    first = watched.look()
    assert (first.live, first.proved) == (True, 0)
    assert watched.look(1).proved == len(data)


def test_what_was_compared_is_recorded_though_nothing_comes_any_more() -> None:
    """Otherwise the proof of a silent source would stand still."""
    world = World()
    (data,) = put_source(world, [8])  # a chunk; later bytes are part of the next one
    follow(world, nothing)
    watched = Watched(world)
    more: list[int] = []
    quiet = [nothing] * 8
    follow(world, nothing, lambda: more.append(write(world, 0, [1])), *quiet)
    assert watched.look(60).proved == len(data) + more[0]


def test_a_wish_that_only_claims_to_be_the_owners_is_told() -> None:
    """It equals the owner's, but no follower obeys it. So the owner writes the wish again."""
    world = World()
    put_source(world, [20])
    follow(world, nothing)
    watched = Watched(world)
    log = CopyJournal(ModelStore(world), COPY, TARGET)
    wish = Wish(cutover="SealAndDrain")

    def look() -> tuple[Wish | None, bool]:
        found = watched.look()
        return found.wish, any(one.is_owners("key") for one in found.claims or ())

    assert look() == (Wish(), False)
    assert wishes.write(wish, log, key="key")
    assert look() == (wish, True)
    log.write([wish_record(1, wish, "f" * 64)])
    assert look() == (wish, False)
    assert wishes.write(wish, log, key="key")
    assert look() == (wish, True)
