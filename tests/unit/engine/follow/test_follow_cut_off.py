"""A follower that is cut off at any call: the next one goes on, and each byte comes once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from sluice.core.follow.catching_up import Staging
from sluice.core.values import identity
from sluice.core.values.model import KeyRange
from sluice.core.values.wish import Wish
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.report import Outcome
from sluice.engine.follow import wishes
from sluice.engine.follow.work import FollowWork
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.runner import Runner
from support.engine.actors import Actor
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import CHUNK, REQUEST, events_of, put_source
from support.model import Fate, ModelStore, World, segment_name
from support.search import searches, some

if TYPE_CHECKING:
    from collections.abc import Callable

FOLLOW = REQUEST.model_copy(update={"follow": True, "on_truncation": "Record"})
MANY = 2_000
KEY = "key"
SEAL = Wish(cutover="SealAndDrain")
NEAR, FAR = False, True
ENDS = pytest.mark.parametrize(
    ("cutover", "far"),
    [(False, NEAR), (True, NEAR), (False, FAR)],
    ids=["sealed", "cutover", "caught-up"],
)


def drive(store: ModelStore, clock: Actor, *, staging: Staging | None = None) -> object:
    """Run one driver from beginning to end."""
    plan = resolve(FOLLOW, [store], store).plan
    if plan is None:
        return Outcome.ALREADY_COMPLETE
    how = {"key": KEY, "every": 0.0, "long": 600, "longest": 45}
    work = FollowWork(plan, [store], store, clock=clock, staging=staging, **how)
    (report,) = Runner(
        [work],
        executor=InlineExecutor([store], store),
        limits=lambda: Limits(slice_bytes=2 * CHUNK),
        clock=clock,
    ).run()
    return report.outcome if report.error is None else report.error.message


class Scene:
    """A source with more and more changes while it is followed.

    Args:
        cutover: whether the owner requests the seal; otherwise another client seals the source.
        far: whether drivers stage all missing bytes at each look, and several changes come at once.
    """

    def __init__(self, *, cutover: bool = False, far: bool = False) -> None:
        self.staging = Staging(far=0) if far else None
        self.world = World()
        put_source(self.world, [20, 9], [30])
        self.world.numbers[SOURCE] = 2
        self.left: list[Callable[[], object]] = [
            lambda: self.write(0, [40, 8]),
            lambda: self.lose(0, [50, 12, 9], 2),
            lambda: self.write(1, [11]),
            lambda: self.scale({1}, [(0.5, 0.75), (0.75, 1.0)]),
            lambda: self.write(2, [70]),
            lambda: self.scale({0, self.place(2)}, [(0.0, 0.75)]),
            lambda: self.write(0, [33]),
            self.wish if cutover else lambda: ModelStore(self.world).seal_stream(SOURCE),
            *[lambda: self.write(0, [21]) for _ in range(3) if cutover],
        ]

    def wish(self) -> None:
        """Ask for a cutover."""
        log = CopyJournal(ModelStore(self.world), COPY, TARGET)
        assert wishes.write(SEAL, log, key=KEY)

    def place(self, number: int) -> int:
        """Return the id of the segment with this number in the tail."""
        tail = self.world.streams[SOURCE].segments
        return next(one.id for one in tail if one.id % (1 << 32) == number)

    def write(self, place: int, sizes: list[int]) -> None:
        """Write to the segment at this place of the tail."""
        tail = self.world.streams[SOURCE].segments
        there = self.world.segments[segment_name(SOURCE, tail[place].id)]
        if there.sealed:
            return  # its writers have moved to the target
        there.data += events_of(sizes, 100 + len(self.left))

    def lose(self, place: int, sizes: list[int], count: int) -> None:
        """Write events, and lose the first of them before any client has read them."""
        tail = self.world.streams[SOURCE].segments
        there = self.world.segments[segment_name(SOURCE, tail[place].id)]
        lost = len(there.data) + sum(sizes[:count]) + 8 * count
        self.write(place, sizes)
        there.start = lost

    def scale(self, sealed: set[int], ranges: list[tuple[float, float]]) -> None:
        """Scale the source."""
        keys = [KeyRange(low=low, high=high) for low, high in ranges]
        self.world.replace(SOURCE, sealed, keys)

    def run(self, actor: Actor, calls: int = MANY, fate: Fate = Fate.DONE) -> None:
        """Let a driver make `calls` calls, and give the last one this fate.

        Whenever the driver waits for bytes, the next change happens.
        """
        for number in range(calls):
            if not actor.alive:
                return
            if actor.pending.startswith("take"):
                for _ in range(1 if self.staging is None else 3):
                    if self.left:
                        self.left.pop(0)()
            actor.move(fate if number == calls - 1 else Fate.DONE)

    def driver(self, name: str) -> Actor:
        """Return a driver before its first call."""
        actor = Actor(name, self.world, partial(drive, staging=self.staging))
        actor.move()
        return actor

    def wanted(self) -> list[bytes]:
        """Return the target's expected content, except for lost bytes: see `is_whole`."""
        return self.world.bytes_of(SOURCE)

    def is_whole(self) -> bool:
        """Tell whether the target has all bytes, with or without those lost meanwhile."""
        first, *others = self.wanted()
        there, *rest = self.world.bytes_of(TARGET)
        lost = self.world.segments[segment_name(SOURCE, 0)].start
        begins = [at for at in range(lost + 1) if first[:at] + first[lost:] == there]
        return rest == others and bool(begins)


@ENDS
def test_a_driver_that_is_left_alone_follows_all_of_it(*, cutover: bool, far: bool) -> None:
    """The scene has writes, a loss, a split, a merge and the end.

    Some events are longer than one append.
    """
    scene = Scene(cutover=cutover, far=far)
    actor = scene.driver("driver")
    scene.run(actor)
    assert actor.error is None, actor.error
    assert actor.result is Outcome.COPIED
    assert scene.left == [] or cutover
    assert scene.world.streams[SOURCE].sealed
    assert scene.is_whole()
    assert scene.world.staging() == []
    key = identity.staging_key(identity.catch_up_id(COPY, 0), 0, 0)
    assert any(key in line for line in scene.world.history) == far


def calls_of_a_driver(*, cutover: bool, far: bool) -> int:
    """Return the number of calls that an undisturbed driver makes."""
    scene = Scene(cutover=cutover, far=far)
    scene.run(scene.driver("first"))
    return sum(1 for line in scene.world.history if line.startswith("first: "))


@searches
@pytest.mark.parametrize("fate", [Fate.DONE, Fate.REQUEST_LOST, Fate.REPLY_LOST])
@ENDS
def test_whatever_call_is_the_last_one_the_next_driver_goes_on(
    fate: Fate, *, cutover: bool, far: bool
) -> None:
    """The driver is killed after each of its calls, which was done, lost, or unanswered."""
    calls = calls_of_a_driver(cutover=cutover, far=far)
    for number in range(1, calls, some(317)):
        scene = Scene(cutover=cutover, far=far)
        first = scene.driver("first")
        scene.run(first, number, fate)
        if first.alive:
            first.kill()
        second = scene.driver("second")
        scene.run(second)
        assert second.error is None, (number, second.error)
        assert second.result in {Outcome.COPIED, Outcome.ALREADY_COMPLETE}, (number, second.result)
        assert scene.is_whole(), number
        assert scene.world.staging() == [], number


@searches
@ENDS
def test_a_driver_that_is_overtaken_at_any_call_does_no_harm(*, cutover: bool, far: bool) -> None:
    """Another driver does all that is left, and then the first one goes on with its call.

    The exception is a change of the target's policy, for which a store has no condition.
    """
    for number in range(1, calls_of_a_driver(cutover=cutover, far=far), some(317)):
        scene = Scene(cutover=cutover, far=far)
        first = scene.driver("first")
        scene.run(first, number)
        if first.pending.startswith("update_stream"):
            scene.run(first, 1)
        second = scene.driver("second")
        scene.run(second)
        assert second.error is None, (number, second.error)
        assert second.result in {Outcome.COPIED, Outcome.ALREADY_COMPLETE}, (number, second.result)
        whole = scene.world.bytes_of(TARGET)
        assert scene.is_whole(), number
        scene.run(first)
        assert first.error is None, (number, first.error)
        assert first.result in {Outcome.COPIED, Outcome.ALREADY_COMPLETE}, (number, first.result)
        assert scene.world.bytes_of(TARGET) == whole, number
        third = scene.driver("third")
        scene.run(third)
        assert third.result is Outcome.ALREADY_COMPLETE
        assert scene.world.staging() == [], number
