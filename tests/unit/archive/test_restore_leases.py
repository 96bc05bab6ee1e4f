"""Runs that are kept from being swept while they are restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.archive.sweep import sweep
from sluice.core.archive.lease import GRACE
from sluice.core.archive.names import LEASES
from sluice.core.model import ArchivedRun
from sluice.core.steps import Transfer
from sluice.engine.executor import InlineExecutor
from sluice.engine.reading import Readings
from sluice.engine.report import Outcome
from sluice.engine.settle import How, end
from sluice.errors import PermissionDenied
from support.memory_objects import MemoryObjects
from support.model import ModelStore
from support.restore_lab import BLOCK, PATH, Lab

if TYPE_CHECKING:
    from sluice.core.plan import StreamPlan


def test_the_lease_is_held_while_a_run_is_read_and_given_back() -> None:
    """Nobody sweeps what is read; when it is over the lease is gone, whatever came of it."""
    lab = Lab().three()
    seen = []

    class Looking(InlineExecutor):
        def run(self, tasks):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - as its base
            seen.append([one.name for one in lab.objects.list(LEASES)])
            return super().run(tasks)

    store = ModelStore(lab.world, block=BLOCK)
    runner = lab.runner(store, lab.plan(store, lab.request()))
    runner._rounds._executor = Looking(runner._runs[0].copy.sources, store)
    (report,) = runner.run()
    assert report.outcome is Outcome.COPIED
    assert seen
    assert len({*map(tuple, seen)}) == len(seen[0]) == 1
    assert list(lab.objects.list(LEASES)) == []


def begin_reading(lab: Lab, store: ModelStore, plan: StreamPlan) -> None:
    """Do what a driver does that is killed before it reads the first byte."""
    copy = lab.runner(store, plan)._runs[0].copy
    copy.plan = copy.ledger.begin(copy.plan)  # type: ignore[attr-defined]
    while not isinstance(step := copy.look(), Transfer):
        copy.perform(step)


def test_a_run_that_was_let_go_is_restored_while_its_lease_counts() -> None:
    """Whoever goes on with a restore within a day finds all of it; later it is refused."""
    for later, works in ((GRACE - 60, True), (2 * GRACE, False)):
        lab = Lab().three()
        store = ModelStore(lab.world, block=BLOCK)
        plan = lab.plan(store, lab.request(run=1))
        begin_reading(lab, store, plan)
        head = lab.archive.head()
        assert head is not None
        lab.archive.forget([1], head)
        lab.now += later
        sweep(lab.archive)
        assert (head.runs[0].name in lab.objects.held) == works
        (report,) = lab.runner(store, plan).run()
        if works:
            assert report.outcome is Outcome.COPIED, report.error
            assert lab.restored == lab.then[0]
        else:
            assert report.error is not None
            assert report.error.reason == "ArchiveNotFound"
            lab.assert_nothing_is_there()


def test_the_end_of_a_driver_keeps_the_lease_of_another_one() -> None:
    """It ends those that were there when it came, of drivers that were killed, and its own."""
    lab = Lab().three()
    head = lab.archive.head()
    assert head is not None
    last = head.runs[-1]
    source = lab.shelf.run(ArchivedRun(path=PATH, run=last.run, sha256=last.sha256))
    leases = []
    drivers = [Readings("ab" * 16, [source]) for _ in range(3)]
    for driver in drivers:
        driver.renew()
        leases += [one.name for one in lab.objects.list(LEASES) if one.name not in leases]
    drivers[1].give_back()
    assert [one.name for one in lab.objects.list(LEASES)] == leases[2:]
    drivers[0].give_back()
    assert [one.name for one in lab.objects.list(LEASES)] == leases[2:]
    Readings("ab" * 16, [source]).give_back()
    assert list(lab.objects.list(LEASES)) == []


def test_an_aborted_restore_gives_its_lease_back() -> None:
    """Whoever ends a restore whose driver was killed leaves nothing in the archive."""
    lab = Lab().three()
    store = ModelStore(lab.world, block=BLOCK)
    plan = lab.plan(store, lab.request())
    begin_reading(lab, store, plan)
    assert list(lab.objects.list(LEASES))
    assert end(lab.request(), sources=[lab.shelf], target=store).how is How.DROPPED
    assert list(lab.objects.list(LEASES)) == []
    lab.assert_nothing_is_there()


def test_whoever_may_only_read_restores_all_the_same() -> None:
    """Without the right to write there is no lease; the run is compared as ever."""
    lab = Lab().three()

    class ReadOnly(MemoryObjects):
        def put(self, name: str, data: object) -> None:  # noqa: ARG002 - see Objects
            raise PermissionDenied(name)

    denied = ReadOnly()
    denied.held, denied.modified = lab.objects.held, lab.objects.modified
    lab.objects = denied
    assert lab.restore().outcome is Outcome.COPIED
    assert lab.restored == lab.then[-1]
