"""One segment that stands still in source or target, while the others are followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.engine.copy.report import Outcome
from sluice.errors import EventsDamaged, StoreTimeout, StoreUnavailable
from sluice.stores.tails import Broken
from support.engine.plans import SOURCE, TARGET
from support.engine.sources import ManualClock, events_of, put_source
from support.model import World, segment_name
from support.model.store import ModelAppender
from support.model.tails import ModelTails
from unit.engine.follow.test_follow import nothing, run, write

if TYPE_CHECKING:
    from collections.abc import Callable

STILL = segment_name(TARGET, 0)
"""The segment of the target that stands still."""


class Stall:
    """A target segment that confirms no append, so that no room is left for more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on = False
        self.most = 0
        monkeypatch.setattr(
            ModelAppender, "has_room", lambda one, _: not (self.on and one._name == STILL)
        )
        monkeypatch.setattr(ModelTails, "pause", self._note(ModelTails.pause))

    def _note(self, pause: Callable[[ModelTails, str], None]) -> Callable[[ModelTails, str], None]:
        def noted(tails: ModelTails, name: str) -> None:
            self.most = max(self.most, tails._offsets[name])
            pause(tails, name)

        return noted


def test_a_target_segment_that_stands_still_holds_no_other_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bytes of its source are kept within a bound, and appended in order afterwards."""
    world = World()
    first, second = put_source(world, [20], [30])
    stall = Stall(monkeypatch)
    seen: list[list[int]] = []

    def lengths() -> None:
        seen.append([len(data) for data in world.bytes_of(TARGET)])

    def stop() -> None:
        stall.on = True
        write(world, 0, [50] * 20, 8)
        write(world, 1, [11], 9)

    def go_on() -> None:
        lengths()
        stall.on = False

    begin = lambda: write(world, 0, [5], 7)  # noqa: E731 - as an argument
    report = run(world, begin, nothing, stop, go_on, nothing, rounds=60)
    assert report.outcome is Outcome.COPIED, report.error
    assert seen == [[len(first) + 13, len(second) + 19]]
    assert stall.most < len(first) + 13 + 3 * 32
    wanted = first + events_of([5], 7) + events_of([50] * 20, 8)
    assert world.bytes_of(TARGET) == [wanted, second + events_of([11], 9)]


def test_an_end_waits_for_what_is_not_appended_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sealed segment is ended once its last bytes are in the target."""
    world = World()
    (first,) = put_source(world, [20])
    stall = Stall(monkeypatch)

    def end() -> None:
        stall.on = True
        write(world, 0, [9, 8], 8)
        world.streams[SOURCE].sealed = True
        world.segments[segment_name(SOURCE, 0)].sealed = True

    def go_on() -> None:
        assert world.bytes_of(TARGET) == [first + events_of([5], 7)]
        stall.on = False

    begin = lambda: write(world, 0, [5], 7)  # noqa: E731 - as an argument
    report = run(world, begin, nothing, end, go_on, nothing, rounds=5)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)


def test_damage_is_told_once_all_before_it_is_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds even if the store was busy when the damage came."""
    world = World()
    (first,) = put_source(world, [20])
    stall = Stall(monkeypatch)

    def damage() -> None:
        stall.on = True
        write(world, 0, [9], 8)
        world.segments[segment_name(SOURCE, 0)].data += b"text without any event in it"

    def go_on() -> None:
        stall.on = False

    begin = lambda: write(world, 0, [5], 7)  # noqa: E731 - as an argument
    report = run(world, begin, nothing, damage, go_on, nothing)
    assert report.error is not None
    assert report.error.reason == EventsDamaged.__name__
    assert world.bytes_of(TARGET) == [first + events_of([5], 7) + events_of([9], 8)]


@pytest.mark.parametrize("error", [StoreTimeout("late"), StoreUnavailable("gone")])
def test_a_source_segment_whose_store_is_away_holds_no_other_up(
    error: StoreUnavailable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is asked again every few seconds, and the reading continues at its position."""
    world = World()
    first, second = put_source(world, [20], [30])
    name, away = segment_name(SOURCE, 0), [False]
    asked: list[float] = []
    clock = ManualClock()
    events = ModelTails._events

    def come(tails: ModelTails, one: str, at: int) -> list[object]:
        if away[0] and one == name:
            asked.append(clock.now)
            return [Broken(name, error)]
        return list(events(tails, one, at))

    monkeypatch.setattr(ModelTails, "_events", come)

    def go() -> None:
        away[0] = True
        write(world, 0, [50], 8)
        write(world, 1, [11], 9)

    def come_back() -> None:
        assert world.bytes_of(TARGET) == [first, second + events_of([11], 9)]
        away[0] = False

    report = run(world, nothing, go, come_back, nothing, rounds=20, clock=clock)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)
    assert 2 <= len(asked) <= 5


def test_the_session_ends_if_no_segment_of_the_source_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another look then finds the cause."""
    world = World()
    put_source(world, [20], [30])
    away, looks = [False], [0]
    events = ModelTails._events

    def come(tails: ModelTails, one: str, at: int) -> list[object]:
        if away[0]:
            looks[0] += 1
            away[0] = looks[0] < 6
            return [Broken(one, StoreUnavailable("gone"))]
        return list(events(tails, one, at))

    monkeypatch.setattr(ModelTails, "_events", come)

    def go() -> None:
        away[0] = True
        write(world, 0, [50], 8)

    report = run(world, nothing, go, nothing, rounds=20)
    assert report.outcome is Outcome.COPIED, report.error
    assert looks[0] == 6
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)
