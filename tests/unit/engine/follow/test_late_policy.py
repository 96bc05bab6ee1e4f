"""Drivers that change the target's policy late: a store has no condition for that.

The store then scales the target to an earlier number of segments. So drivers announce changes, and
a driver waits for them before it scales the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.values import identity
from sluice.core.values.wish import Wish
from sluice.core.workloads.answers import UNVERIFIED
from sluice.engine.copy.report import Outcome
from sluice.engine.follow.changes import LATE_SECONDS
from sluice.engine.journal.copy_journal import CopyJournal
from support.engine.plans import COPY, SOURCE, TARGET
from support.model import Fate, ModelStore, segment_name
from unit.engine.follow.test_follow_machine import Following

if TYPE_CHECKING:
    from sluice.core.copy.follow_progress import Trail
    from support.engine.actors import Actor

CHANGES = pytest.mark.parametrize("by", ["merge", "tag"])


def late(machine: Following, *, by: str, before: str = f"update_stream {TARGET}") -> Actor:
    """Hold a driver up right before it fixes the present number of segments.

    Args:
        machine: the machine, whose source is made here.
        by: the cause: a scale event to fewer segments, or another tag of the source.
        before: the call before which it is held up, once it has announced the change.
    """
    machine.source([[20], [30], [9]], [], record=False, every=0.0, ready=2)
    first = machine.alive[0]
    if by == "merge":
        machine.scale(0, [11], merges=True)
        machine.hold(first, f"update_stream {TARGET}", 0)  # relaxes the policy
        machine.step(first)
    else:
        config = machine.world.streams[SOURCE].config
        machine.world.streams[SOURCE].config = config.model_copy(update={"tags": ("team=b",)})
    while not (trail(machine).changes and first.pending == before):
        machine.step(first)
    return first


def trail(machine: Following) -> Trail:
    """Return the content of the journal."""
    found = CopyJournal(ModelStore(machine.world), COPY, TARGET).load()
    assert found is not None
    return found.trail


def scaled(machine: Following) -> Actor:
    """Scale the source once more, and let the other driver begin to follow that."""
    machine.scale(0, [40], merges=True)
    other = machine.alive[1]
    generation = len(machine.world.streams[SOURCE].made) - 1
    while trail(machine).scaled < generation:
        machine.step(other)
    return other


@CHANGES
def test_a_scale_event_waits_for_a_change_that_is_under_way(by: str) -> None:
    """The change comes while the target has the number of segments that it names."""
    machine = Following()
    driver = late(machine, by=by)
    other = machine.alive[1]
    machine.hold(other, "take", 0)
    layouts = machine.layouts()
    other = scaled(machine)
    for _ in range(20):
        machine.step(other)
    assert machine.layouts() == layouts
    machine.step(driver)
    machine.go_on(other)
    assert machine.layouts() == layouts + 1
    machine.teardown()


@CHANGES
def test_a_driver_that_was_held_up_for_long_makes_no_change(by: str) -> None:
    """Other drivers go on after a minute. The late one notices that, and looks again."""
    machine = Following()
    driver = late(machine, by=by, before=f"describe {TARGET}")
    began = machine.time.now
    machine.hold(machine.alive[1], "take", 0)
    other = scaled(machine)
    machine.hold(other, "take", 0)
    assert machine.time.now - began >= LATE_SECONDS
    assert trail(machine).changes == ()
    machine.step(driver)
    assert not driver.pending.startswith("update_stream")
    machine.teardown()


def test_a_target_is_not_given_up_while_a_change_is_under_way() -> None:
    """Afterwards the target is a user's stream. No late call scales it or takes its digest."""
    machine = Following()
    driver = late(machine, by="tag")
    machine.run(machine.wisher(Wish(bytes=1)))
    other = machine.alive[1]
    began = machine.time.now
    machine.run(other)
    assert other.result is Outcome.COPIED
    assert machine.time.now - began >= LATE_SECONDS
    config, layouts = machine.world.streams[TARGET].config, machine.layouts()
    assert identity.completed(config.tags, COPY) not in {None, UNVERIFIED}
    machine.run(driver)
    assert (machine.world.streams[TARGET].config, machine.layouts()) == (config, layouts)
    machine.teardown()


def test_a_change_that_failed_may_still_come() -> None:
    """Even the driver that made an unanswered call waits for its effect."""
    machine = Following()
    driver = late(machine, by="tag")
    machine.kill(machine.alive[1])
    (name,) = trail(machine).changes
    machine.lose(driver, Fate.REPLY_LOST)
    assert trail(machine).changes == (name,)
    machine.scale(0, [40], merges=True)
    began = machine.time.now
    while machine.layouts() == 1:
        machine.step(driver)
    assert machine.time.now - began >= LATE_SECONDS
    machine.teardown()


@CHANGES
def test_a_policy_that_is_set_too_late_ends_the_copy_by_name(by: str) -> None:
    """A call lasted longer than calls can last. The target has no wrong byte.

    Each later driver reports the same, and the target is never marked whole.
    """
    machine = Following()
    machine.late = True
    driver = late(machine, by=by)
    machine.hold(machine.alive[1], "take", 0)
    other = scaled(machine)
    machine.hold(other, "take", 0)
    machine.write(0, [50])
    machine.go_on(other)
    layouts = machine.layouts()
    before = machine.world.bytes_of(TARGET)
    machine.step(driver)
    assert machine.layouts() == layouts + 1, "the store has not scaled the target"
    machine.write(0, [8])  # a follower with no bytes to append does not look at its target
    for actor in (driver, other, machine.driver()):
        machine.run(actor)
        assert actor.result == "TargetReplaced", actor.result
    assert machine.world.bytes_of(TARGET)[: len(before)] == before
    stream, source = machine.world.streams[TARGET], machine.world.streams[SOURCE]
    assert identity.completed(stream.config.tags, COPY) is None
    for ours, theirs in zip(stream.readable, source.readable, strict=False):
        data = bytes(machine.world.segments[segment_name(TARGET, ours.id)].data)
        assert machine.held[theirs.id].startswith(data)
    rest = stream.readable[len(before) :]
    assert not any(machine.has_data(segment) for segment in rest)


def test_a_policy_that_is_set_late_to_the_same_number_does_nothing() -> None:
    """Drivers that are late by less than a scale event do no harm."""
    machine = Following()
    machine.late = True
    driver = late(machine, by="merge")
    machine.go_on(machine.alive[1])
    machine.write(0, [50])
    machine.step(driver)
    assert not machine.rescaled
    machine.teardown()
