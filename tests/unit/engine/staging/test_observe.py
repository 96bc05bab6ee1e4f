"""What a driver sees while another one acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.next_step import next_step
from sluice.core.copy.steps import Bind, MakeTarget
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.staging.observe import observe
from support.engine.plans import COPY, TARGET
from support.engine.sources import drive, planned, put_source
from support.model import ModelStore, World

if TYPE_CHECKING:
    from sluice.core.values.model import StreamName
    from sluice.engine.copy.stream_copy import StreamCopyWork
    from sluice.stores.reading import Stream


class Overtaken(ModelStore):
    """The store of a driver that another one overtakes after its first look at the target.

    Args:
        world: where both act.
        other: makes the target and binds it.
    """

    def __init__(self, world: World, other: StreamCopyWork) -> None:
        super().__init__(world)
        self._other = other
        self._overtaken = False

    def describe(self, name: StreamName) -> Stream | None:
        """See Catalog."""
        found = super().describe(name)
        if name == TARGET and not self._overtaken:
            self._overtaken = True
            for expected in (MakeTarget, Bind):
                step = self._other.look()
                assert isinstance(step, expected)
                self._other.perform(step)
        return found


def test_a_target_made_meanwhile_is_not_taken_for_one_that_was_deleted() -> None:
    """A driver that saw no target, and then that it is bound, looks at the target again."""
    world = World()
    put_source(world, [40, 40], [9])
    faster = drive(world, 0)
    plan = planned(ModelStore(world))
    store = Overtaken(world, faster)
    seen = observe(plan, CopyJournal(store, COPY, TARGET), [store], store)
    assert seen.target is not None
    assert seen.journal is not None
    assert seen.journal.target == seen.target.segments
    next_step(plan, seen)
