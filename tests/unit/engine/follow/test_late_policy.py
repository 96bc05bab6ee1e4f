"""A driver that changes the target's policy late: a store has no condition for that.

The store then scales the target to a number of segments that it had before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.values import identity
from support.engine.plans import COPY, SOURCE, TARGET
from support.model import segment_name
from unit.engine.follow.test_follow_machine import Following

if TYPE_CHECKING:
    from support.engine.actors import Actor


def late(machine: Following, *, by: str) -> Actor:
    """A driver that is held up right before it fixes the number of segments that there are.

    Args:
        machine: the machine, whose source is made here.
        by: what makes it do so: a scale event to fewer segments, or another tag of the source.
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
    machine.hold(first, f"update_stream {TARGET}", 0)
    assert first.pending == f"update_stream {TARGET}"
    return first


@pytest.mark.parametrize("by", ["merge", "tag"])
def test_a_policy_that_is_set_late_ends_the_copy_by_name(by: str) -> None:
    """Another driver has followed a scale event meanwhile. The target has no byte that is wrong.

    Each later driver says the same, and the target is never said to be whole.
    """
    machine = Following()
    driver = late(machine, by=by)
    other = machine.alive[1]
    machine.go_on(other)
    machine.scale(0, [40], merges=True)
    machine.go_on(other)
    machine.write(0, [50])
    machine.go_on(other)
    layouts = machine.layouts()
    before = machine.world.bytes_of(TARGET)
    machine.step(driver)
    assert machine.layouts() == layouts + 1, "the store has not scaled the target"
    machine.write(0, [8])  # a follower that has nothing to append does not look at its target
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
    driver = late(machine, by="merge")
    machine.go_on(machine.alive[1])
    machine.write(0, [50])
    machine.step(driver)
    assert not machine.rescaled
    machine.teardown()
