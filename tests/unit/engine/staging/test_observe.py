"""The looks of a driver while another driver acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy import journal
from sluice.core.copy.next_step import next_step
from sluice.core.copy.observed import Observed
from sluice.core.copy.steps import Bind, MakeTarget, Stage
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.staging.observe import observe, observe_known
from support.engine.appends import APPEND, put_target
from support.engine.plans import COPY, TARGET
from support.engine.sources import begun, drive, go, planned, put_source
from support.model import ModelStore, World

if TYPE_CHECKING:
    from sluice.core.values.model import StreamName
    from sluice.engine.copy.stream_copy import StreamCopyWork
    from sluice.stores.reading import Stream


class Overtaken(ModelStore):
    """The store of a driver that another driver overtakes after its first look at the target.

    Args:
        world: the world in which both act.
        other: the driver that makes the target and binds it.
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
    """A driver that sees no target, and then a record of its segments, looks at it again."""
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


def staged(world: World) -> tuple[StreamCopyWork, Observed]:
    """Return an append whose next step is Stage, and the knowledge of its driver."""
    put_source(world, [40, 40], [9])
    put_target(world, 2)
    copy = begun(world, APPEND)
    go(copy, world, Stage)
    return copy, Observed(copy.journal.loaded, None)


def test_a_copy_whose_journal_only_got_digests_is_as_known() -> None:
    """Another driver that stages the same bytes records their digests."""
    world = World()
    copy, known = staged(world)
    other = CopyJournal(ModelStore(world), COPY, TARGET)
    other.load()
    other.write([journal.digest_record(0, 0, [b"d" * 32])])
    seen = observe_known(known, copy.plan, copy.journal, copy.sources)
    assert seen is not None
    assert seen.journal == other.loaded != known.journal


def test_a_copy_whose_journal_tells_of_a_restart_is_not_as_known() -> None:
    """Another driver has restarted a segment from offset 20 on."""
    world = World()
    copy, known = staged(world)
    other = CopyJournal(ModelStore(world), COPY, TARGET)
    other.load()
    other.write([journal.amend_record(0, copy.plan.segments[0].edition, 20)])
    assert observe_known(known, copy.plan, copy.journal, copy.sources) is None


def test_a_copy_that_was_begun_again_is_not_as_known() -> None:
    """Its journal has the same records as that of the aborted run, under another name."""
    world = World()
    copy, known = staged(world)
    other = CopyJournal(ModelStore(world), COPY, TARGET)
    other.load()
    other.delete()
    again = begun(world, APPEND)
    go(again, world, Stage)
    assert again.journal.loaded == known.journal
    assert observe_known(known, copy.plan, copy.journal, copy.sources) is None


def test_a_copy_without_a_journal_is_not_as_known() -> None:
    """The copy is complete, or was aborted."""
    world = World()
    copy, known = staged(world)
    ModelStore(world).delete(copy.journal.name)
    assert observe_known(known, copy.plan, copy.journal, copy.sources) is None
