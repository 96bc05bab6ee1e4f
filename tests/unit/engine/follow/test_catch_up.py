"""Staging, verification and merge of a copy that is far behind: a store in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.copy.journal import target_record
from sluice.core.copy.steps import BeginCatchUp, EndCatchUp, Publish, Transfer, Verify
from sluice.core.events.chain import Chain, Link
from sluice.core.follow.catching_up import Staging, plan_of
from sluice.core.follow.rows import proved
from sluice.core.values import identity
from sluice.core.values.model import KeyRange
from sluice.core.values.wish import Wish
from sluice.engine.copy.leaving import leave
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.report import Outcome
from sluice.engine.follow.until_near import UntilNear
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.runner import Runner
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import CHUNK, ManualClock, put_source
from support.model import EVENT_COUNT, ModelStore, World, segment_name
from unit.engine.follow.test_follow import (
    FOLLOW,
    RECORD,
    killed,
    nothing,
    run,
    write,
    write_wish,
)
from unit.engine.follow.test_follow_bytes import TEXT, plain_source

if TYPE_CHECKING:
    from sluice.core.copy.journal import Journal
    from sluice.core.copy.steps import Step
    from sluice.engine.copy.report import StreamReport

STAGING = Staging(far=100, part_bytes=2 * CHUNK)
MANY = [40, 8, 31, 50, 12, 9, 22]


def put_behind(world: World, *, more: bool = True, request: Any = FOLLOW) -> Journal:
    """Make a copy whose follower was killed, while its source went on."""
    put_source(world, [20, 9], [30])
    journal = killed(world, lambda: write(world, 0, [40], 7), nothing, request=request)
    if more:
        write(world, 0, MANY, 8)
        write(world, 1, [90], 9)
    return journal


def merged(world: World, number: int = 0) -> list[int | None]:
    """Return the bytes that a catch-up has merged into each of the target's segments."""
    attribute = identity.publish_attribute(identity.catch_up_id(COPY, number))
    names = [segment_name(TARGET, one.id) for one in world.streams[TARGET].segments]
    return ModelStore(world).attributes([(name, attribute) for name in names])


def until_near(world: World, request: Any = FOLLOW, limits: Limits | None = None) -> StreamReport:
    """Run a driver that ends where a follower goes on."""
    store = ModelStore(world)
    plan = resolve(request, [store], store).plan
    assert plan is not None
    at = limits or Limits(slice_bytes=2 * CHUNK)
    clock = ManualClock()
    work = UntilNear(plan, [store], store, staging=STAGING, clock=clock, limits=lambda: at)
    executor = InlineExecutor([store], store)
    (report,) = Runner([work], executor=executor, limits=lambda: at, clock=clock).run()
    assert work.is_live or report.error is not None
    return report


def drive_until(world: World, last: type[Step], *, itself: bool = False) -> None:
    """Run a driver that dies before the first step of this kind, or right after it."""
    store = ModelStore(world)
    plan = resolve(FOLLOW, [store], store).plan
    assert plan is not None
    work = UntilNear(plan, [store], store, staging=STAGING, clock=ManualClock())
    work.begin(permit=None)
    while not isinstance(step := work.look(), last):
        if isinstance(step, Transfer | Verify):
            slices = work.slices(step, Limits(slice_bytes=2 * CHUNK), 1)
            work.absorb(step, InlineExecutor([store], store).run(slices))
        else:
            work.perform(step)
    if itself:
        work.perform(step)


def journal_of(world: World) -> Journal:
    """Return the journal of the copy."""
    found = CopyJournal(ModelStore(world), COPY, TARGET).load()
    assert found is not None
    return found


def test_what_is_missing_from_far_behind_is_staged_and_merged() -> None:
    """Each segment is merged at once, with its events. Only the copy's journal stays beside it."""
    world = World()
    put_behind(world)
    behind = [len(data) for data in world.bytes_of(SOURCE)]
    behind = [end - len(there) for end, there in zip(behind, world.bytes_of(TARGET), strict=True)]
    assert until_near(world).error is None
    assert merged(world) == behind
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)
    assert len(world.staging()) == 1
    for one in world.streams[SOURCE].segments:
        ours, theirs = (world.segments[segment_name(name, one.id)] for name in (TARGET, SOURCE))
        assert ours.attributes[EVENT_COUNT] == theirs.attributes[EVENT_COUNT]


def test_what_was_staged_counts_as_compared() -> None:
    """The record has the digest of all bytes, as if they had been read back."""
    world = World()
    put_behind(world)
    until_near(world)
    journal = journal_of(world)
    for index, data in enumerate(world.bytes_of(SOURCE)):
        chain = Chain(Link(0))
        chain.feed(memoryview(data))
        assert proved(journal, index) == chain.link


def test_bytes_that_the_source_loses_once_they_are_staged_are_not_lost() -> None:
    """They are merged and count as proved, though the copy fails if bytes are lost."""
    world = World()
    put_behind(world)
    all_of_it = world.bytes_of(SOURCE)
    drive_until(world, Publish)
    for one in world.streams[SOURCE].segments:
        there = world.segments[segment_name(SOURCE, one.id)]
        there.start = len(there.data)
    assert until_near(world).error is None
    assert world.bytes_of(TARGET) == all_of_it
    journal = journal_of(world)
    assert [proved(journal, index).offset for index in (0, 1)] == [len(one) for one in all_of_it]
    report = run(world, nothing, rounds=40)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == all_of_it


def test_bytes_of_earlier_segments_do_not_keep_a_driver_from_what_comes_behind_them() -> None:
    """The source was scaled meanwhile: near bytes are followed, and far bytes are staged."""
    world = World()
    put_behind(world, more=False)
    write(world, 0, [9], 8)
    keys = [KeyRange(low=0.0, high=0.25), KeyRange(low=0.25, high=0.5)]
    world.replace(SOURCE, {0}, keys)
    last = world.streams[SOURCE].segments[0].id
    write(world, last, MANY, 9)
    assert until_near(world).error is None
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)
    assert journal_of(world).trail.caught_up == 1


def test_a_copy_whose_journal_is_damaged_leaves_nothing_staged_when_it_is_ended() -> None:
    """Marks at the target's segments show the staged bytes."""
    world = World()
    put_behind(world)
    drive_until(world, Publish)
    log = CopyJournal(ModelStore(world), COPY, TARGET)
    log.load()
    world.segments[log.name].data += b"\0" * 7 + b"\x09{damaged}"
    assert leave(COPY, TARGET, ModelStore(world))
    assert world.staging() == []


def test_a_journal_that_another_client_wrote_for_a_catch_up_is_not_believed() -> None:
    """Its segments must be those of the catch-up, in source and target."""
    world = World()
    put_behind(world)
    drive_until(world, BeginCatchUp, itself=True)
    begun = journal_of(world).trail.catch_up
    assert begun is not None
    plan = plan_of(journal_of(world).plan, begun)
    log = CopyJournal(ModelStore(world), plan.copy_id, TARGET, plan)
    log.load()
    log.begin(plan)
    log.write([target_record((8, 9))])
    report = until_near(world)
    assert report.error is not None
    assert report.error.reason == "JournalDamaged"
    assert merged(world) == [None, None]


def test_a_target_that_is_near_is_followed_only() -> None:
    """A driver that catches up begins nothing, and a driver that appends never stages."""
    world = World()
    put_behind(world, more=False)
    write(world, 0, [20], 9)
    assert until_near(world).error is None
    assert journal_of(world).trail.catch_up is None
    write(world, 0, MANY, 8)
    assert run(world, nothing, rounds=40).outcome is Outcome.COPIED
    assert merged(world) == [None, None]
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)


def test_a_first_leg_catches_up_with_what_came_meanwhile() -> None:
    """The driver of the first leg goes on until the target is near."""
    world = World()
    put_source(world, [20, 9], [30])
    store = ModelStore(world)
    plan = resolve(FOLLOW, [store], store).plan
    assert plan is not None
    CopyJournal(store, COPY, TARGET, plan).begin(plan)
    write(world, 0, MANY, 8)
    assert until_near(world).error is None
    assert merged(world)[0] is not None
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)


def test_a_rate_or_an_end_in_bytes_keeps_bytes_from_being_staged() -> None:
    """With a rate, tasks bring no gain. An end in bytes is met exactly, by appending."""
    world = World()
    put_behind(world)
    slow = Limits(slice_bytes=2 * CHUNK, bytes_per_second=1000)
    assert until_near(world, limits=slow).error is None
    assert journal_of(world).trail.catch_up is None
    there = sum(map(len, world.bytes_of(TARGET)))
    write_wish(world, Wish(bytes=there + 60))
    report = run(world, nothing, rounds=40, staging=STAGING)
    assert (report.outcome, report.ended) == (Outcome.COPIED, "Bytes"), report.error
    assert merged(world) == [None, None]
    assert there + 60 <= sum(map(len, world.bytes_of(TARGET))) < there + 160


def test_a_follower_that_is_faster_makes_what_is_staged_void() -> None:
    """It appends, and ends another driver's catch-up. No byte is in the target twice."""
    world = World()
    put_behind(world)
    drive_until(world, Publish)
    assert len(world.staging()) > 1
    assert killed(world, nothing, rounds=40).trail.caught_up == 1
    assert merged(world) == [None, None]
    assert len(world.staging()) == 1
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)
    report = run(world, nothing)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)
    assert world.staging() == []


def test_bytes_that_are_lost_before_they_are_staged_are_left_out() -> None:
    """The loss is recorded as by a follower, and all bytes behind it are followed."""
    world = World()
    put_behind(world, request=RECORD)
    there = world.segments[segment_name(SOURCE, 0)]
    (first, _) = world.bytes_of(SOURCE)
    had = len(world.bytes_of(TARGET)[0])
    there.start = had + 48 + 16
    report = run(world, nothing, rounds=40, request=RECORD, staging=STAGING)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET)[0] == first[:had] + first[there.start :]
    assert report.segments[0].lost == there.start - had
    assert world.staging() == []


def test_plain_bytes_are_caught_up_with() -> None:
    """A segment of plain bytes is staged like any other."""
    world = World()
    plain_source(world, TEXT)
    killed(world, nothing)
    world.segments[segment_name(SOURCE, 0)].data += TEXT * 40
    assert until_near(world).error is None
    assert merged(world) == [40 * len(TEXT)]
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)


def test_bytes_that_are_no_events_are_named_and_all_before_them_is_followed() -> None:
    """As with a follower, no byte behind them is in the target."""
    world = World()
    put_behind(world)
    good = world.bytes_of(SOURCE)[0]
    world.segments[segment_name(SOURCE, 0)].data += b"\xff" * 40
    report = run(world, nothing, rounds=40, staging=STAGING)
    assert report.error is not None
    assert report.error.reason == "EventsDamaged"
    assert f"offset {len(good)}" in report.error.message
    assert world.bytes_of(TARGET)[0] == good


@pytest.mark.parametrize("more", [False, True], ids=["staged", "merged"])
def test_a_copy_that_is_ended_leaves_nothing_of_a_catch_up(*, more: bool) -> None:
    """The copy is deleted at any progress of the catch-up."""
    world = World()
    put_behind(world)
    drive_until(world, EndCatchUp if more else Publish)
    assert len(world.staging()) > 1
    before = world.bytes_of(TARGET)
    assert leave(COPY, TARGET, ModelStore(world))
    assert world.staging() == []
    assert world.bytes_of(TARGET) == before
