"""The end of a live copy: its target stays with its bytes so far, as a user's stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.follow.position import LEFT
from sluice.core.values import identity
from sluice.core.values.model import (
    RetentionType,
    ScaleType,
    Scaling,
    StreamConfig,
    StreamRetention,
)
from sluice.engine.copy import leaving, targets
from sluice.engine.copy.abort import abort
from sluice.engine.copy.leaving import leave
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.query import CopyEnded, How, end
from sluice.engine.copy.report import Outcome
from sluice.engine.follow.work import FollowWork
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.runner import Runner
from sluice.engine.workloads.stream import StreamWorkload
from sluice.errors import AbortRefused, CopyAborted, StoreUnavailable, TargetExists
from support.engine.actors import Actor
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import CHUNK, put_source
from support.model import Fate, ModelStore, World, segment_name
from support.search import searches, some
from unit.engine.follow.test_follow import FOLLOW, killed, nothing, run, write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DAY = StreamRetention(type=RetentionType.TIME, minimum=86_400_000)
BY_EVENTS = Scaling(type=ScaleType.BY_EVENTS, target_rate=100, scale_factor=2, min_segments=4)
CONFIG = StreamConfig(scaling=BY_EVENTS, retention=DAY, tags=("team=a",))
MANY = 3_000


def put_live() -> World:
    """Make a live copy whose follower was killed."""
    world = World()
    put_source(world, [20, 9], [30])
    world.streams[SOURCE].config = CONFIG
    killed(world, lambda: write(world, 0, [40, 8], 7), nothing)
    return world


def ended(world: World) -> CopyEnded:
    """End the copy, as the operator does for a deleted resource."""
    return end(FOLLOW, sources=None, target=ModelStore(world))


def assert_left(world: World) -> None:
    """Check that the target is an ordinary stream, and that nothing else is left."""
    found = world.streams[TARGET]
    least = len(found.segments)
    assert found.config == CONFIG.model_copy(
        update={"scaling": BY_EVENTS.model_copy(update={"min_segments": least})}
    )
    assert world.staging() == []
    assert CopyJournal(ModelStore(world), COPY, TARGET).load() is None
    for one in found.segments:
        there = world.segments[segment_name(TARGET, one.id)]
        position = identity.position_attribute(COPY, one.id)
        assert there.attributes[position] == LEFT


def test_a_live_target_stays_as_far_as_it_has_come() -> None:
    """It has its source's policies and no mark of the copy, and all else is deleted."""
    world = put_live()
    before = world.bytes_of(TARGET)
    assert ended(world) == CopyEnded(How.LEFT)
    assert world.bytes_of(TARGET) == before
    assert_left(world)
    assert ended(world) == CopyEnded(How.NOTHING)
    assert world.bytes_of(TARGET) == before


def test_the_copy_is_not_begun_again_into_a_target_that_was_left() -> None:
    """The target is a user's stream now, so the copy is refused as for any existing stream."""
    world = put_live()
    ended(world)
    with pytest.raises(TargetExists):
        run(world)
    assert_left(world)


def test_a_follower_that_still_runs_appends_nothing_behind_the_end() -> None:
    """The store refuses the append, and the driver reports the end of the copy."""
    world = World()
    (first,) = put_source(world, [20])
    world.streams[SOURCE].config = CONFIG

    def leave_it() -> None:
        assert ended(world) == CopyEnded(How.LEFT)
        write(world, 0, [30], 7)

    report = run(world, nothing, leave_it, nothing)
    assert report.error is not None
    assert report.error.reason in {"TargetExists", "CopyAborted"}, report.error
    assert world.bytes_of(TARGET) == [first]
    assert_left(world)


def test_a_driver_that_finds_an_end_that_was_cut_off_does_not_go_on() -> None:
    """The journal's record of the end counts, even if the rest of the end is still missing."""
    world = put_live()

    def gate(what: str) -> Fate:
        return Fate.REQUEST_LOST if what.startswith("set_attribute") else Fate.DONE

    with pytest.raises(StoreUnavailable):
        leave(COPY, TARGET, ModelStore(world, gate))
    report = run(world, nothing)
    assert report.error is not None
    assert isinstance(report.error, CopyAborted) or report.error.reason == "CopyAborted"
    assert "stays as far as it has come" in report.error.message
    assert ended(world) == CopyEnded(How.LEFT)
    assert_left(world)


@searches
def test_an_end_cut_off_anywhere_can_be_repeated() -> None:
    """This holds at any last call, whether it was done or not."""
    calls: list[str] = []

    def counted(what: str) -> Fate:
        calls.append(what)
        return Fate.DONE

    leave(COPY, TARGET, ModelStore(put_live(), counted))
    for number in range(0, len(calls), some(5)):
        for fate in (Fate.REQUEST_LOST, Fate.REPLY_LOST):
            world = put_live()
            before = world.bytes_of(TARGET)
            seen: list[str] = []

            def gate(
                what: str, seen: list[str] = seen, last: int = number, fate: Fate = fate
            ) -> Fate:
                seen.append(what)
                return fate if len(seen) == last + 1 else Fate.DONE

            with pytest.raises(StoreUnavailable):
                leave(COPY, TARGET, ModelStore(world, gate))
            ended(world)
            assert world.bytes_of(TARGET) == before
            assert_left(world)


def drive(store: ModelStore, clock: Actor) -> object:
    """Run one driver from beginning to end."""
    try:
        plan = resolve(FOLLOW, [store], store).plan
    except TargetExists:
        return "TargetExists"
    assert plan is not None
    work = FollowWork(plan, [store], store, clock=clock, every=0.0)
    (report,) = Runner(
        [work],
        executor=InlineExecutor([store], store),
        limits=lambda: Limits(slice_bytes=2 * CHUNK),
        clock=clock,
    ).run()
    assert report.error is not None
    return report.error.reason


def scene(calls: int) -> tuple[World, Actor]:
    """Move a driver by `calls` calls while events come to its source, and hold it there."""
    world = World()
    put_source(world, [20, 9], [30])
    world.streams[SOURCE].config = CONFIG
    actor = Actor("driver", world, drive)
    actor.move()
    for number in range(calls):
        if number % 40 == 39:
            write(world, number // 40 % 2, [9 + number % 5], number)
        actor.move()
    return world, actor


@searches
def test_an_end_at_any_call_of_a_driver_leaves_whole_events_and_no_mark() -> None:
    """The driver goes on with its call afterwards, and finds the copy ended.

    Before the copy is live, it is dropped. Once its first segment is published, it is finished
    first.
    """
    hows = set()
    for number in range(1, 400, some(53)):
        world, actor = scene(number)
        how = ended(world).how
        hows.add(how)
        there = world.bytes_of(TARGET) if TARGET in world.streams else None
        assert (there is None) == (how is not How.LEFT), (number, how)
        if there is None:  # a driver that has not begun yet may begin
            actor.kill()
            continue
        for _ in range(MANY):
            if not actor.alive:
                break
            actor.move()
        assert not actor.alive
        assert actor.error is None, (number, actor.error)
        assert actor.result in {"TargetExists", "CopyAborted", "TargetReplaced"}, number
        assert world.bytes_of(TARGET) == there, number
        assert_left(world)
        for ours, theirs in zip(there, world.bytes_of(SOURCE), strict=True):
            assert theirs.startswith(ours)
    assert hows >= {How.DROPPED, How.LEFT}


def test_a_late_change_of_the_configuration_is_undone() -> None:
    """A driver that was delayed right before it marks the target as live sets no mark."""
    world, actor = scene(0)
    while not (actor.pending.startswith("update_stream") and published(world)):
        actor.move()
    assert ended(world) == CopyEnded(How.LEFT)
    for _ in range(MANY):
        if actor.alive:
            actor.move()
    assert_left(world)


def published(world: World) -> bool:
    """Tell whether both segments are published."""
    attribute = identity.publish_attribute(COPY)
    names = [segment_name(TARGET, one) for one in (0, 1)]
    return all(
        name in world.segments and attribute in world.segments[name].attributes for name in names
    )


def test_a_live_copy_is_not_aborted_but_ended() -> None:
    """`sluice abort` says that its target stays."""
    world = put_live()
    store = ModelStore(world)
    with pytest.raises(AbortRefused, match="follows its source") as refused:
        abort(COPY, TARGET, store)
    assert "sluice abort" in (refused.value.remedy or "")
    workload = StreamWorkload(FOLLOW)
    said = workload.abort(list, store)
    assert said == "ended; out/t stays as far as it has come, as a stream like any other"
    assert_left(world)
    assert workload.abort(list, store) == "nothing to abort"


def test_a_target_that_is_gone_costs_nothing_but_the_journal() -> None:
    """A user has deleted it while the copy was live."""
    world = put_live()
    store = ModelStore(world)
    store.seal_stream(TARGET)
    store.delete_stream(TARGET)
    assert ended(world).how is How.DROPPED
    assert TARGET not in world.streams
    assert world.staging() == []


def test_a_damaged_journal_keeps_no_live_copy_from_its_end() -> None:
    """The target's segments show which source they follow."""
    world = put_live()
    before = world.bytes_of(TARGET)
    log = CopyJournal(ModelStore(world), COPY, TARGET)
    log.load()
    world.segments[log.name].data[40:60] = b"?" * 20
    assert ended(world) == CopyEnded(How.LEFT)
    assert world.bytes_of(TARGET) == before
    found = world.streams[TARGET].config
    assert (found.retention, found.tags) == (DAY, ("team=a",))
    assert world.staging() == []
    for one in world.streams[TARGET].segments:
        there = world.segments[segment_name(TARGET, one.id)]
        assert there.attributes[identity.position_attribute(COPY, one.id)] == LEFT


def test_a_copy_that_has_ended_by_itself_is_not_left() -> None:
    """Its target is whole, and stays marked so."""
    world = World()
    put_source(world, [20])
    assert run(world, nothing).outcome is Outcome.COPIED
    assert ended(world) == CopyEnded(How.NOTHING)
    assert identity.completed(world.streams[TARGET].config.tags, COPY) is not None


def unhalted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave followers able to append."""
    monkeypatch.setattr(leaving, "_halt", lambda *_: None)


def unrecorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the end out of the journal."""
    write_all = CopyJournal.write

    def write_others(self: CopyJournal, records: Sequence[Mapping[str, Any]]) -> None:
        if left := [one for one in records if one["record"] != "leave"]:
            write_all(self, left)

    monkeypatch.setattr(CopyJournal, "write", write_others)


def unmended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the check after a change of the configuration."""
    monkeypatch.setattr(targets, "mend", lambda *_: None)


def append_behind_the_end() -> None:
    """Let a follower append its bytes after the end of the copy."""
    world, actor = scene(0)
    while not world.streams.get(TARGET) or not published(world):
        actor.move()
    write(world, 0, [33], 99)
    while not actor.pending.startswith("append "):
        actor.move()
    assert ended(world) == CopyEnded(How.LEFT)
    before = world.bytes_of(TARGET)
    actor.move()
    assert world.bytes_of(TARGET) == before


@pytest.mark.parametrize(
    ("fault", "walk"),
    [
        (unhalted, append_behind_the_end),
        (unrecorded, test_a_driver_that_finds_an_end_that_was_cut_off_does_not_go_on),
        (unmended, test_a_late_change_of_the_configuration_is_undone),
    ],
)
def test_a_seeded_fault_is_caught(
    fault: Callable[[pytest.MonkeyPatch], None],
    walk: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An assertion fails if a necessary rule is broken, and not otherwise."""
    walk()
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        walk()
