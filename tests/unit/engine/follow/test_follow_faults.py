"""Seeded faults in the rules of following, each of which breaks an invariant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest

from sluice.core.copy import follow_progress
from sluice.core.copy.follow_folding import TrailFolding
from sluice.core.copy.follow_progress import Loss
from sluice.core.copy.steps import ConfigureTarget
from sluice.core.follow import ending, following
from sluice.core.follow.cutting import Cut, Cutter
from sluice.core.follow.position import Position
from sluice.core.follow.rows import row_of
from sluice.core.values.wish import Wish
from sluice.engine.follow import catch_up, large_event, observe, perform, watch
from sluice.engine.follow.changes import Changes
from sluice.engine.follow.session import Session
from support.engine.plans import SOURCE, TARGET
from support.model import ModelStore
from support.model.store import ModelAppender
from unit.engine.follow.test_follow_machine import NOON, SEAL, Following

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.reading import Buffer
    from sluice.stores.writing import CompareAndSet
    from support.engine.actors import Actor


def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the check that bytes are where they have to be."""

    def confirm(_: Session, line: Any) -> None:
        if line.appender is not None and line.appender.acknowledged is not None:
            line.confirmed = line.appender.acknowledged

    monkeypatch.setattr(Session, "_confirm", confirm)
    monkeypatch.setattr(observe, "_foreign", lambda *_, **__: 0)


def skipped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move a position behind a loss before the loss is recorded."""

    def skip(
        journal: Journal,
        losses: Sequence[tuple[int, int, int]],
        log: CopyJournal,
        _: ModelStore,
        target: ModelStore,
    ) -> None:
        for index, start, end in losses:
            row = row_of(journal, index)
            if perform._move(journal.plan, row, Position(start), Position(end), target):
                log.write([follow_progress.skip_record(index, len(row.lost), Loss(start, end))])

    monkeypatch.setattr(perform, "skip", skip)


def grown_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mirror a scale event once its segments are sealed, however far they are followed."""
    monkeypatch.setattr(following, "is_ended", lambda _, info: info.sealed)


def unfenced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the store append to the target without the fence."""

    def append(self: ModelAppender, data: Buffer, *, event_number: int, events: int = 1) -> None:
        def act() -> None:
            there = self._store._world.segments[self._name]
            there.data += data
            there.attributes[self._writer] = self.acknowledged = event_number
            self.offset = len(there.data)

        if "#" in self._name:
            fenced(self, data, event_number=event_number, events=events)
        else:
            self._store._call(f"append {self._name}", act)

    fenced = ModelAppender.append
    monkeypatch.setattr(ModelAppender, "append", append)


def torn(monkeypatch: pytest.MonkeyPatch) -> None:
    """End blocks where the received bytes end."""

    def feed(self: Cutter, data: bytes) -> Iterator[Cut]:
        self._start += len(data)
        yield Cut(data, self._start, 1, self._start - len(data))

    monkeypatch.setattr(Cutter, "feed", feed)


def unhalted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark the target whole while other followers may still append."""
    monkeypatch.setattr(
        following,
        "_end",
        lambda journal, rows: following._unproved(journal, rows) or ConfigureTarget(),
    )


def unconditional(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge a staged event without a condition on the target segment's position."""

    def merge(
        self: ModelStore, target: str, source: str, condition: CompareAndSet, **how: Any
    ) -> None:
        merged(self, target, source, condition._replace(expected=ANY), **how)

    merged = ModelStore.merge
    monkeypatch.setattr(ModelStore, "merge", merge)


def unswept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave discarded events staged."""
    monkeypatch.setattr(perform, "sweep", lambda *_: None)


def uncleared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave unmerged bytes of a catch-up staged."""
    for module in (catch_up, perform):
        monkeypatch.setattr(module, "clear_catch_up", lambda *_: None)


def unlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stage an event however late it comes."""
    monkeypatch.setattr(large_event, "position", lambda *_: ANY)


def write_past_a_follower(machine: Following) -> None:
    """Write to the target as another client, between two blocks of its follower."""
    machine.source([[20]], [], record=False, every=0.0, ready=1)
    machine.write_to_target(0, [9])
    machine.write(0, [30])


def die_within_a_skip(machine: Following) -> None:
    """Kill a driver while it skips a loss in a segment, before it records that."""
    machine.source([[20]], [], record=True, every=0.0, ready=1)
    machine.write(0, [30, 40])
    machine.truncate(0, 2)
    (first, _) = machine.alive
    machine.hold(first, "append_at", 0)
    machine.kill(first)
    machine.go_on(machine.driver())


def scale_past_a_follower(machine: Following) -> None:
    """Scale the source while bytes of the ending segment are not followed yet."""
    machine.source([[20]], [], record=False, every=0.0, ready=1)
    machine.kill(machine.alive[0])
    machine.write(0, [30])
    machine.scale(0, [40], merges=False)
    machine.go_on(machine.driver())


def append_side_by_side(machine: Following) -> None:
    """Let two followers append the same bytes."""
    machine.source([[20]], [], record=False, every=0.0, ready=2)
    machine.write(0, [30])
    for actor in machine.alive:
        machine.hold(actor, "append ", 0)
    for actor in machine.alive:
        machine.step(actor)


def write_a_long_event(machine: Following) -> None:
    """Write an event that comes in several pieces."""
    machine.source([[20]], [], record=False, every=0.0, ready=1)
    machine.write(0, [90])
    for _ in range(3):
        machine.step(machine.alive[0])


def append_after_the_end(machine: Following) -> None:
    """Hold a follower up before it appends, while another driver ends the copy."""
    machine.source([[20]], [], record=False, every=0.0, ready=1)
    (late, _) = machine.alive
    machine.write(0, [30])
    machine.hold(late, "append ", 0)
    machine.run(machine.wisher(Wish(bytes=1)))
    machine.run(machine.driver())
    machine.step(late)


def lose_an_event_that_is_merged(machine: Following) -> None:
    """Hold a driver up before it merges an event, while another one leaves the event out."""
    machine.source([[20]], [], record=True, every=0.0, longest=40, ready=1)
    (late, _) = machine.alive
    machine.write(0, [90, 20])
    machine.hold(late, "merge", 0)
    machine.truncate(0, 2)
    other = machine.driver()
    machine.hold(other, "append_at", 1)
    machine.step(other)  # the position is behind the event, which is still staged
    machine.step(late)
    machine.go_on(other)


def die_while_an_event_is_staged(machine: Following) -> None:
    """End the copy while an event is staged and not in the target."""
    machine.source([[20]], [], record=False, every=0.0, longest=40, ready=1)
    (first, _) = machine.alive
    machine.write(0, [90])
    machine.hold(first, "append ", 1)
    machine.kill(first)
    machine.run(machine.wisher(Wish(bytes=1)))


def catch_up_side_by_side(machine: Following) -> None:
    """Let a driver stage the missing bytes, which another one appends before the merge."""
    machine.source([[20]], [], record=False, every=0.0, far=0, ready=1)
    machine.kill(machine.alive[0])
    machine.write(0, [30, 40])
    late = machine.driver()
    machine.hold(late, "merge", 0)
    machine.staging = None
    machine.write(0, [50])
    machine.go_on(machine.driver())
    machine.step(late)


def stage_after_the_end(machine: Following) -> None:
    """Hold a driver up before it stages an event, while another one ends the copy."""
    machine.source([[20]], [], record=False, every=0.0, longest=40, ready=1)
    (late, _) = machine.alive
    machine.write(0, [90])
    machine.hold(late, "create", 0)
    machine.run(machine.wisher(Wish(bytes=1)))
    machine.run(machine.driver())
    machine.run(late)
    assert machine.world.staging() == []


def sealed_unrecorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seal the source without a record before."""

    def seal(journal: Journal, _: CopyJournal, source: ModelStore, __: str) -> None:
        source.seal_stream(journal.plan.sources[0].stream)

    monkeypatch.setattr(perform, "seal_source", seal)


def sealed_for_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept any request in the journal as its owner's."""
    monkeypatch.setattr(ending, "_is_owners", lambda _, claimed, __: claimed is not None)


def ended_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept an end though a seal of the source was recorded since."""

    def add(self: TrailFolding, plan: StreamPlan, record: Mapping[str, Any]) -> tuple[int, ...]:
        record = dict(record)
        if record["record"] == "stop":
            record["sealings"] = len(self._sealing)
        return fold(self, plan, record)

    fold = TrailFolding.add
    monkeypatch.setattr(TrailFolding, "add", add)


def taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a request withdraw an earlier decision to seal."""

    def is_sealing(journal: Journal, key: str) -> bool:
        return ending.may_seal(journal, key) and decided(journal, key)

    decided = ending.is_sealing
    for module in (ending, following, perform, watch):
        monkeypatch.setattr(module, "is_sealing", is_sealing)


def unawaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scale the target while changes of its policy may come."""
    monkeypatch.setattr(Changes, "wait", lambda *_: None)


def fix_an_earlier_number(machine: Following) -> None:
    """Hold a driver up before it fixes the number of segments, while another one scales."""
    machine.source([[20], [30]], [], record=False, every=0.0, ready=2)
    late, other = machine.alive[:2]
    config = machine.world.streams[SOURCE].config
    machine.world.streams[SOURCE].config = config.model_copy(update={"tags": ("team=b",)})
    machine.hold(late, f"update_stream {TARGET}", 0)
    machine.scale(0, [40], merges=True)
    before = machine.layouts()
    while machine.layouts() == before:
        machine.step(other)
    machine.step(late)


def wish_for_a_cutover(machine: Following, *, ready: int = 1) -> Actor:
    """Ask a follower to cut over. Return the driver."""
    machine.source([[20]], [], record=False, every=0.0, ready=ready)
    machine.write(0, [30])
    machine.run(machine.wisher(SEAL))
    return machine.alive[0]


def seal_by_its_owner(machine: Following) -> None:
    """Seal the source as its owner requests."""
    machine.run(wish_for_a_cutover(machine))


def seal_by_another_client(machine: Following) -> None:
    """Write the same request and decision as a client without the key."""
    machine.source([[20]], [], record=False, every=0.0, ready=1)
    machine.forge(replays=False)
    machine.go_on(machine.alive[0])


def end_before_a_seal(machine: Following) -> None:
    """Hold a driver up before it records an end, while another one seals the source."""
    machine.source([[20]], [], record=False, every=0.0, ready=2)
    machine.run(machine.wisher(Wish(time=NOON)))
    machine.set_clocks(2)
    late, other = machine.alive[:2]
    machine.hold(late, "append_at", 0)
    machine.run(machine.wisher(SEAL))
    machine.write(0, [30])
    machine.hold(other, f"seal_stream {SOURCE}", 0)
    machine.write(0, [40])
    for _ in range(3):
        machine.step(late)
    machine.step(other)


def wish_too_late(machine: Following) -> None:
    """Request another end when the seal of the source is already decided."""
    driver = wish_for_a_cutover(machine)
    machine.hold(driver, f"seal_stream {SOURCE}", 0)
    machine.run(machine.wisher(Wish(bytes=1)))
    machine.write(0, [40])
    machine.run(machine.driver())
    machine.step(driver)


WALKS = (
    (unchecked, write_past_a_follower),
    (skipped_first, die_within_a_skip),
    (grown_early, scale_past_a_follower),
    (unfenced, append_side_by_side),
    (torn, write_a_long_event),
    (unhalted, append_after_the_end),
    (unconditional, lose_an_event_that_is_merged),
    (unconditional, catch_up_side_by_side),
    (uncleared, catch_up_side_by_side),
    (unswept, die_while_an_event_is_staged),
    (unlooked, stage_after_the_end),
    (sealed_unrecorded, seal_by_its_owner),
    (sealed_for_anybody, seal_by_another_client),
    (ended_late, end_before_a_seal),
    (taken_back, wish_too_late),
    (unawaited, fix_an_earlier_number),
)


@pytest.mark.parametrize(("fault", "walk"), WALKS)
def test_a_seeded_fault_is_caught(
    fault: Callable[[pytest.MonkeyPatch], None],
    walk: Callable[[Following], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The machine fails if a necessary rule is broken, and not otherwise."""
    machine = Following()
    walk(machine)
    machine.teardown()
    fault(monkeypatch)
    machine = Following()
    with pytest.raises(AssertionError):  # noqa: PT012 - where in the walk does not matter
        walk(machine)
        machine.teardown()
