"""Runs that are kept from being swept while they are restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.archive.runs.sweep import sweep
from sluice.core.archive.lease import GRACE
from sluice.core.copy.steps import Transfer
from sluice.core.values.archive_layout import LEASES
from sluice.core.values.model import ArchivedRun
from sluice.engine.copy.query import How, end
from sluice.engine.copy.report import Outcome
from sluice.engine.slices.read_leases import Readings
from sluice.engine.tasks.executor import InlineExecutor
from sluice.errors import PermissionDenied
from support.archiving.restore_env import BLOCK, PATH, Env
from support.model import ModelStore
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan


def test_the_lease_is_held_while_a_run_is_read_and_given_back() -> None:
    """No sweep deletes bytes that are read. The lease is gone at the end, for any result."""
    env = Env().three()
    seen = []

    class Looking(InlineExecutor):
        def submit(self, work):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - as its base
            seen.append([one.name for one in env.objects.list(LEASES)])
            return super().submit(work)

    store = ModelStore(env.world, block=BLOCK)
    runner = env.runner(store, env.plan(store, env.request()))
    runner._scheduler._executor = Looking(runner._runs[0].copy.sources, store)
    (report,) = runner.run()
    assert report.outcome is Outcome.COPIED
    assert seen
    assert len({*map(tuple, seen)}) == len(seen[0]) == 1
    assert list(env.objects.list(LEASES)) == []


def begin_reading(env: Env, store: ModelStore, plan: StreamPlan) -> None:
    """Do the calls of a driver that is killed before it reads the first byte."""
    copy = env.runner(store, plan)._runs[0].copy
    copy.plan = copy.journal.begin(copy.plan)  # type: ignore[attr-defined]
    while not isinstance(step := copy.look(), Transfer):
        copy.perform(step)


def test_a_run_that_was_let_go_is_restored_while_its_lease_counts() -> None:
    """A driver that resumes within a day finds all of it. Later it is refused."""
    for later, works in ((GRACE - 60, True), (2 * GRACE, False)):
        env = Env().three()
        store = ModelStore(env.world, block=BLOCK)
        plan = env.plan(store, env.request(run=1))
        begin_reading(env, store, plan)
        head = env.archive.head()
        assert head is not None
        env.archive.drop_runs([1], head)
        env.now += later
        sweep(env.archive)
        assert (head.runs[0].name in env.objects.held) == works
        (report,) = env.runner(store, plan).run()
        if works:
            assert report.outcome is Outcome.COPIED, report.error
            assert env.restored == env.then[0]
        else:
            assert report.error is not None
            assert report.error.reason == "ArchiveNotFound"
            env.assert_nothing_is_there()


def test_the_end_of_a_driver_keeps_the_lease_of_another_one() -> None:
    """It releases earlier leases of killed drivers, and its own."""
    env = Env().three()
    head = env.archive.head()
    assert head is not None
    last = head.runs[-1]
    source = env.root.run(ArchivedRun(path=PATH, run=last.run, sha256=last.sha256))
    leases = []
    drivers = [Readings("ab" * 16, [source]) for _ in range(3)]
    for driver in drivers:
        driver.renew()
        leases += [one.name for one in env.objects.list(LEASES) if one.name not in leases]
    drivers[1].give_back()
    assert [one.name for one in env.objects.list(LEASES)] == leases[2:]
    drivers[0].give_back()
    assert [one.name for one in env.objects.list(LEASES)] == leases[2:]
    Readings("ab" * 16, [source]).give_back()
    assert list(env.objects.list(LEASES)) == []


def test_an_aborted_restore_gives_its_lease_back() -> None:
    """The end of a restore whose driver was killed leaves nothing in the archive."""
    env = Env().three()
    store = ModelStore(env.world, block=BLOCK)
    plan = env.plan(store, env.request())
    begin_reading(env, store, plan)
    assert list(env.objects.list(LEASES))
    assert end(env.request(), sources=[env.root], target=store).how is How.DROPPED
    assert list(env.objects.list(LEASES)) == []
    env.assert_nothing_is_there()


def test_whoever_may_only_read_restores_all_the_same() -> None:
    """Without the right to write there is no lease. The run is compared as usual."""
    env = Env().three()

    class ReadOnly(MemoryObjects):
        def put(self, name: str, data: object) -> None:  # noqa: ARG002 - see Objects
            raise PermissionDenied(name)

    denied = ReadOnly()
    denied.held, denied.modified = env.objects.held, env.objects.modified
    env.objects = denied
    assert env.restore().outcome is Outcome.COPIED
    assert env.restored == env.then[-1]
