"""A live copy: its target for other clients, and its configuration as its source's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.follow_progress import proved_record
from sluice.core.events.chain import Link
from sluice.core.follow.position import LEFT
from sluice.core.follow.rows import proved
from sluice.core.values import identity, marks
from sluice.core.values.model import (
    KeyRange,
    RetentionType,
    ScaleType,
    Scaling,
    StreamConfig,
    StreamName,
    StreamRetention,
)
from sluice.core.verify.verification import Result, What
from sluice.core.workloads.answers import Complete
from sluice.engine.copy.planning import check_target, is_others
from sluice.engine.copy.query import ask
from sluice.engine.copy.report import Outcome
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.positions.position_map import position_map, translate
from sluice.engine.verify.compare import compare, match_copy
from sluice.errors import InvalidSpec, StoreBusy, TargetExists
from support.engine.plans import ADDRESS, COPY, SOURCE, TARGET
from support.engine.sources import CHUNK, ManualClock, events_of, put_source
from support.engine.verifying import subject
from support.model import ModelStore, World, segment_name
from unit.engine.follow.test_follow import FOLLOW, RECORD, killed, nothing, run, write

if TYPE_CHECKING:
    from sluice.core.verify.verification import Verification

DAY = StreamRetention(type=RetentionType.TIME, minimum=86_400_000)
WEEK = StreamRetention(type=RetentionType.TIME, minimum=7 * 86_400_000)
BY_EVENTS = Scaling(type=ScaleType.BY_EVENTS, target_rate=100, scale_factor=2, min_segments=1)
OTHER = "cd" * 16


def configure(world: World, config: StreamConfig) -> None:
    """Change the configuration of the source."""
    world.streams[SOURCE].config = config


def verified(world: World, *, follow: bool = True) -> Verification:
    """Compare the target with its source."""
    sides = [subject(world, SOURCE)], subject(world, TARGET, block=7)
    return compare(match_copy(COPY, "orders", *sides, whole=[0], follow=follow))


def truncate(world: World, name: StreamName, segment: int, offset: int) -> None:
    """Let the retention of a stream truncate the beginning of a segment."""
    world.segments[segment_name(name, segment)].start = offset


def live() -> World:
    """Make a live copy whose follower was killed."""
    world = World()
    put_source(world, [20, 9], [30])
    configure(world, StreamConfig(scaling=BY_EVENTS, retention=DAY, tags=("team=a",)))
    killed(world, lambda: write(world, 0, [40, 8], 7), nothing)
    return world


def test_a_live_target_has_the_retention_and_tags_of_its_source() -> None:
    """Its number of segments stays fixed, and a tag names the copy."""
    world = live()
    found = world.streams[TARGET].config
    assert found == marks.followed(world.streams[SOURCE].config, COPY, 2)
    assert found.retention == DAY
    assert found.scaling == Scaling(min_segments=2)
    assert "team=a" in found.tags
    assert identity.is_live(found.tags, COPY)
    assert not identity.is_live(found.tags, OTHER)


def test_a_change_at_the_source_comes_within_about_a_minute() -> None:
    """The check costs one call a minute."""
    world, clock = World(), ManualClock()
    put_source(world, [20])
    seen: list[StreamConfig] = []
    changed = StreamConfig(retention=WEEK, tags=("team=b", "cost=7"))
    report = run(
        world,
        nothing,
        lambda: configure(world, changed),
        lambda: clock.sleep(61),
        nothing,
        lambda: seen.append(world.streams[TARGET].config),
        clock=clock,
    )
    assert report.outcome is Outcome.COPIED, report.error
    assert marks.is_like(seen[0], marks.followed(changed, COPY, 1))
    final = world.streams[TARGET].config
    assert final.retention == WEEK
    assert set(identity.without_ours(final.tags)) == {"team=b", "cost=7"}
    assert identity.completed(final.tags, COPY) is not None
    assert not identity.is_followed(final.tags)


def test_a_source_with_more_tags_than_a_target_takes_is_followed() -> None:
    """A live copy does not end because of its tags."""
    world = World()
    put_source(world, [20])
    many = StreamConfig(tags=tuple(f"tag{n}" for n in range(127)))
    killed(world, nothing)
    configure(world, many)
    killed(world, nothing)
    assert len(world.streams[TARGET].config.tags) == 127
    assert identity.is_live(world.streams[TARGET].config.tags, COPY)


def test_a_live_copy_that_fails_keeps_its_target_and_all_records() -> None:
    """A user decides: nothing is dropped, and the copy still counts as live."""
    world = live()
    before = world.bytes_of(TARGET)

    def delete() -> None:
        ModelStore(world).seal_stream(SOURCE)
        ModelStore(world).delete_stream(SOURCE)

    report = run(world, nothing, delete, nothing)
    assert report.error is not None
    assert report.error.reason == "SourceNotFound"
    assert "out/t follows its source: nothing of it is dropped" in report.error.message
    assert not report.cleaned
    assert world.bytes_of(TARGET) == before
    assert identity.is_live(world.streams[TARGET].config.tags, COPY)
    assert CopyJournal(ModelStore(world), COPY, TARGET).load() is not None


def test_a_scale_event_takes_neither_mark_nor_retention_from_the_target() -> None:
    """This holds while the target has another policy, which allows fewer segments."""
    world = World()
    put_source(world, [20], [30])
    world.numbers[SOURCE] = 2
    configure(world, StreamConfig(retention=DAY))
    history: list[tuple[bool, StreamRetention]] = []

    def merge() -> None:
        world.replace(SOURCE, {0, 1}, [KeyRange(low=0, high=1)])

    original = ModelStore.update_stream

    def update(self: ModelStore, name: StreamName, config: StreamConfig, **how: object) -> None:
        original(self, name, config, **how)  # type: ignore[arg-type]  # as it was given
        history.append((identity.is_live(config.tags, COPY), config.retention))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModelStore, "update_stream", update)
        killed(world, nothing, merge, nothing, nothing)
    assert len(world.streams[TARGET].segments) == 1
    assert len(history) >= 3
    assert set(history) == {(True, DAY)}


def test_what_its_own_retention_takes_from_a_target_is_no_damage() -> None:
    """It may take the head of a segment, unproved bytes, or a whole earlier segment."""
    world = World()
    put_source(world, [20, 9], [30])
    world.numbers[SOURCE] = 2
    killed(world, lambda: write(world, 0, [40, 8], 7), nothing)
    known = CopyJournal(ModelStore(world), COPY, TARGET).load()
    assert known is not None
    assert proved(known, 0).held
    truncate(world, TARGET, 0, proved(known, 0).offset - 1)
    killed(world, lambda: write(world, 0, [50], 8), nothing, every=1e9)
    truncate(world, TARGET, 0, len(world.segments[segment_name(TARGET, 0)].data) - 3)

    def merge() -> None:
        world.replace(SOURCE, {0, 1}, [KeyRange(low=0, high=1)])

    journal = killed(world, merge, nothing)
    assert journal.trail.taken[0] > 0
    target = world.streams[TARGET]
    for one in target.made[0]:
        del world.segments[segment_name(TARGET, one.id)]
    target.made = target.made[1:]
    last = world.streams[SOURCE].segments[0].id
    report = run(world, lambda: write(world, last, [60], 9), nothing)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == [events_of([60], 9)]


def test_bytes_that_both_have_lost_are_passed_by() -> None:
    """They are unreadable, so their correctness does not matter."""
    world = World()
    put_source(world, [20])
    killed(world, lambda: write(world, 0, [50], 8), nothing, every=1e9)
    for name in (SOURCE, TARGET):
        truncate(world, name, 0, 28 + 58)
    report = run(world, lambda: write(world, 0, [7], 9), nothing)
    assert report.outcome is Outcome.COPIED, report.error


def test_another_copy_neither_takes_nor_appends_to_a_live_target() -> None:
    """The error has the remedy. A source, an archive or a comparison may read it."""
    world = live()
    store = ModelStore(world)
    there = store.describe(TARGET)
    assert there is not None
    with pytest.raises(TargetExists, match="follows its source by another copy") as refused:
        check_target(OTHER, TARGET, there, store, make_scope=False)
    assert "Name another target" in (refused.value.remedy or "")
    with pytest.raises(StoreBusy, match="takes no other events") as busy:
        is_others(OTHER, TARGET, store)
    assert "stopWhen" in (busy.value.remedy or "")
    tags = there.config.tags
    assert identity.is_unfinished(tags)
    assert not identity.is_unreadable(tags)
    assert identity.is_unreadable(identity.owner_tags(COPY))


def test_positions_of_a_live_copy_are_translated_as_far_as_it_has_come() -> None:
    """The refusal of a position behind it has the present bounds."""
    world = live()
    mapped = position_map(COPY, TARGET, ModelStore(world))
    ends = [len(data) for data in world.bytes_of(TARGET)]
    assert [(one.start, one.end, one.shift) for one in mapped] == [(0, end, 0) for end in ends]
    assert translate({0: ends[0], 1: 0}, mapped) == {0: ends[0], 1: 0}
    with pytest.raises(InvalidSpec, match=f"of segment 0 it has 0 to {ends[0]}, and not offset"):
        translate({0: ends[0] + 1, 1: 0}, mapped)


@pytest.mark.parametrize("done", [False, True])
def test_positions_behind_a_loss_are_shifted(*, done: bool) -> None:
    """This holds for live and ended copies. Positions of lost bytes are refused."""
    world = World()
    (first,) = put_source(world, [20])
    killed(world, nothing, request=RECORD)
    write(world, 0, [30, 40], 7)
    begin, behind = len(first), len(first) + 38
    truncate(world, SOURCE, 0, behind)
    if done:
        assert run(world, nothing, request=RECORD).outcome is Outcome.COPIED
    else:
        killed(world, nothing, request=RECORD)
    mapped = position_map(COPY, TARGET, ModelStore(world), follow=True)
    end = behind + 48
    assert [(one.start, one.end, one.at) for one in mapped] == [
        (0, begin, 0),
        (behind, end, begin),
    ]
    assert translate({0: behind}, mapped) == {0: begin}
    assert translate({0: end}, mapped) == {0: begin + 48}
    with pytest.raises(InvalidSpec, match="has not got this position"):
        translate({0: begin + 1}, mapped)
    found = verified(world)
    assert found.differences == ()
    assert found.result is Result.EQUAL


def test_a_live_copy_is_verified_up_to_its_position() -> None:
    """Newer bytes of source and target do not matter."""
    world = live()
    ends = [len(data) for data in world.bytes_of(TARGET)]
    write(world, 0, [77], 9)
    found = verified(world)
    assert found.result is Result.EQUAL
    assert found.differences == ()
    assert [(one.start, one.end) for one in found.segments] == [(0, end) for end in ends]
    assert [one.proved for one in found.segments] == ends


def test_a_byte_of_a_live_copy_that_changed_is_found() -> None:
    """The result has its offset."""
    world = live()
    world.segments[segment_name(TARGET, 0)].data[33] ^= 1
    (one,) = verified(world).differences
    assert (one.what, one.segment, one.offset) == (What.BYTES, 0, 33)


def test_a_chain_that_was_recorded_for_other_bytes_is_found() -> None:
    """Source and target are equal, but differ from the bytes that the copy has compared."""
    world = World()
    put_source(world, [20])
    killed(world, lambda: write(world, 0, [2 * CHUNK], 7), nothing)
    assert verified(world).result is Result.EQUAL
    journal = CopyJournal(ModelStore(world), COPY, TARGET)
    journal.load()
    end = len(world.bytes_of(TARGET)[0])
    write(world, 0, [9], 8)
    journal.write([proved_record(0, Link(end + 1, b"x" * 32, b"y" * 32, 1))])
    (one,) = verified(world).differences
    assert one.what is What.DIGEST
    assert "compared while it followed" in one.message


def test_heads_that_retention_took_make_no_difference() -> None:
    """The copy had compared these bytes, and they are counted."""
    world = live()
    truncate(world, SOURCE, 0, 28)
    truncate(world, TARGET, 1, 38)
    found = verified(world)
    assert found.result is Result.EQUAL
    assert (found.gone, found.taken, found.is_proved) == (28, 38, True)


def test_bytes_that_are_lost_before_they_were_compared_are_not_called_equal() -> None:
    """The source has lost them, and the copy has not compared them."""
    world = World()
    put_source(world, [20])
    killed(world, lambda: write(world, 0, [50], 8), nothing, every=1e9)
    truncate(world, SOURCE, 0, 40)
    found = verified(world)
    assert found.result is Result.INCOMPLETE
    assert not found.is_proved


def test_a_copy_that_has_followed_is_verified_by_its_digest() -> None:
    """The result has its bytes and events, including those after the plan."""
    world = World()
    put_source(world, [20, 9], [30])
    world.numbers[SOURCE] = 2

    def merge() -> None:
        world.replace(SOURCE, {0, 1}, [KeyRange(low=0, high=1)])

    later = lambda: write(world, world.streams[SOURCE].segments[0].id, [60], 9)  # noqa: E731 - as an argument
    report = run(world, lambda: write(world, 0, [40, 8], 7), merge, nothing, later, nothing)
    assert report.outcome is Outcome.COPIED, report.error
    found = verified(world)
    assert found.recorded_digest == report.digest
    assert found.result is Result.EQUAL, found.differences
    store = ModelStore(world)
    answer = ask(FOLLOW, sources=[(ADDRESS, store)], target=(ADDRESS, store), known=None)
    assert isinstance(answer, Complete)
    assert answer.bytes == sum(map(len, world.bytes_of(SOURCE)))
    assert (answer.events, answer.segments) == (6, 3)
    assert LEFT not in world.segments[segment_name(TARGET, 0)].attributes.values()
    tail = world.streams[TARGET].segments[0].id
    data = world.segments[segment_name(TARGET, tail)].data
    world.segments[segment_name(SOURCE, world.streams[SOURCE].segments[0].id)].data[20] ^= 1
    data[20] ^= 1
    (one,) = verified(world).differences
    assert one.what is What.DIGEST
