"""Reader groups of a followed source, made in the target by drivers that are cut off."""

from __future__ import annotations

import pytest

from sluice.core.values.groups import DEFAULT_SETTINGS, GroupConfig, GroupName, GroupState
from sluice.engine.copy.report import Outcome
from sluice.engine.workloads.following import group_state, make_group
from sluice.engine.workloads.stream import StreamWorkload
from sluice.errors import StoreUnavailable
from support.engine.plans import SOURCE, TARGET
from support.engine.sources import put_source
from support.model import Fate, ModelGroup, ModelStore, World
from unit.engine.follow.test_follow import FOLLOW, nothing, run

GROUP, NEW = GroupName("in", "billing"), GroupName("out", "bills")
AT = {0: 28, 1: 0}
"""The position of the group in source and target, behind the first event."""


def complete() -> World:
    """Return the world of a complete copy, with a reader group of its source."""
    world = World()
    put_source(world, [20, 9], [30])
    config = GroupConfig(DEFAULT_SETTINGS, (SOURCE,))
    world.groups[GROUP] = ModelGroup(config, GroupState((), {SOURCE: AT}, {}))
    assert run(world, nothing).outcome is Outcome.COPIED
    return world


def regroup(store: ModelStore) -> None:
    """Make the group in the target unless it exists, as the command line and the operator do."""
    workload = StreamWorkload(FOLLOW)
    made, why = group_state(workload, store, store, name="billing", into="bills")
    assert not why
    if not made:
        make_group(workload, store, store, name="billing", into="bills")


def calls() -> list[str]:
    """Return the calls of a driver that is not cut off."""
    seen: list[str] = []

    def gate(what: str) -> Fate:
        seen.append(what)
        return Fate.DONE

    regroup(ModelStore(complete(), gate))
    return seen


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.REPLY_LOST])
def test_a_group_that_was_cut_off_at_any_call_is_made_by_the_next_driver(fate: Fate) -> None:
    """This includes the time between the controller's part and the group's first record.

    No reader can begin without that record. Afterwards the group stands where the source's group
    stood, and is not made anew.
    """
    for number in range(len(calls())):
        world = complete()
        left = number

        def gate(_: str) -> Fate:
            nonlocal left
            left -= 1
            return fate if left == -1 else Fate.DONE

        with pytest.raises(StoreUnavailable):
            regroup(ModelStore(world, gate))
        regroup(ModelStore(world))
        state = world.groups[NEW].state
        assert state is not None, number
        assert state.positions == {TARGET: AT}
        identity = world.groups[NEW].identity
        regroup(ModelStore(world))
        assert world.groups[NEW].identity == identity
