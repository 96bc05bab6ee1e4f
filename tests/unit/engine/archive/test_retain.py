"""The removal of runs and the sweep of their objects; the deletion of archives."""

from collections.abc import Sequence
from contextlib import suppress

import pytest

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.leases import Lease, holding
from sluice.archive.runs.sweep import sweep
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.lease import LeaseWork
from sluice.core.archive.names import Format
from sluice.core.archive.retention import Retention
from sluice.core.copy.steps import DeleteJournal, Done, RecordRun, Replan, Step, Transfer, Verify
from sluice.core.values.archive_layout import HEADS, LEASES, RUNS
from sluice.engine.archive.archive_run import ArchiveCopy
from sluice.engine.archive.erase import erase_archive
from sluice.engine.archive.planning import resolve_archive
from sluice.engine.archive.retention import retain
from sluice.engine.tasks.executor import InlineExecutor
from sluice.errors import StoreBusy, StoreUnavailable
from support.archiving.archive_runs import LIMITS, REQUEST, archive_once, held_by, last_run, root_of
from support.engine.plans import SOURCE
from support.engine.sources import events_of, put_source
from support.model import Fate, ModelStore, World, segment_name
from support.model.gated_objects import GatedObjects, copied
from support.model.memory_objects import MemoryObjects

HOUR = 3600.0
DAY = 24 * HOUR


class Place:
    """An archive whose clock stands still, of a stream of one segment."""

    def __init__(self) -> None:
        self.time = 1_000_000.0
        self.objects = MemoryObjects(lambda: self.time)
        self.archive = Archive(self.objects)
        self.world = World()
        put_source(self.world, [30] * 4)

    def take(self, form: Format = Format.SEGMENTS) -> None:
        """Make a run a day after the one before."""
        self.time += DAY
        there = self.world.segments[segment_name(SOURCE, 0)]
        there.data += events_of([30, 50], seed=round(self.time))
        request = REQUEST.model_copy(update={"format": form})
        store = ModelStore(self.world)
        assert archive_once(store, self.objects, request, now=lambda: self.time).error is None

    def runs(self) -> tuple[int, ...]:
        """Return the existing runs, and check that all are whole."""
        found = verify_archive(self.archive)
        assert found.problems == []
        return found.runs


@pytest.fixture
def place() -> Place:
    """Return an archive with four runs."""
    made = Place()
    for _ in range(4):
        made.take()
    return made


def test_runs_are_let_go_and_swept(place: Place) -> None:
    """Objects of these runs alone go after the grace time; objects of other runs stay."""
    rule = Retention(keep_last=1)
    before, told = dict(place.objects.held), list[str]()
    would = retain(place.archive, rule, dry=True, told=lambda one: told.append(one.name))
    assert place.objects.held == before
    done = retain(place.archive, rule)
    assert done == would
    assert set(told) == set(before) - set(place.objects.held)
    assert done.let_go == (1, 2, 3)
    assert done.swept is not None
    assert done.swept.runs == {1, 2}  # the third run is too young
    assert place.runs() == (4,)
    assert not any(name.startswith("data/") for name in told)
    place.time += 2 * DAY
    done = retain(place.archive, rule)
    assert (done.let_go, done.swept and done.swept.runs) == ((), {3})
    assert [held_by(place.objects, last_run(place.objects))[0]] == place.world.bytes_of(SOURCE)
    assert retain(place.archive, rule).swept is None  # no object is left to check


def test_the_age_of_runs_goes_by_the_clock_of_the_store(place: Place) -> None:
    """A driver whose clock is years ahead, as here, removes no young run."""
    rule = Retention(keep_seconds=round(1.5 * DAY))
    assert retain(place.archive, rule).let_go == (1, 2)


def test_letting_runs_go_keeps_what_a_run_has_got(place: Place) -> None:
    """A current run keeps all its objects, and is recorded under the next number."""
    store, root = ModelStore(place.world), root_of(place.objects)
    place.world.segments[segment_name(SOURCE, 0)].data += events_of([30] * 20, seed=5)
    plan = resolve_archive(REQUEST, store, place.archive).plan
    assert plan is not None
    steps: list[type[Step]] = []
    copy, executor = ArchiveCopy(plan, [store], place.archive), InlineExecutor([store], root)
    copy.begin(permit=None)
    while not isinstance(step := copy.look(), Done):
        steps.append(type(step))
        if isinstance(step, Transfer | Verify):
            copy.absorb(step, executor.run(copy.slices(step, LIMITS, 1)))
        else:
            copy.perform(step)
        head = place.archive.head()
        assert head is not None
        if len(head.runs) > 1 and len(steps) in {1, 3}:
            place.archive.drop_runs([head.runs[0].run], head)
    assert copy.finished(step.digest).run == 7
    assert (steps[0], steps[-2:]) == (Transfer, [RecordRun, DeleteJournal])
    assert Replan not in steps
    assert place.runs() == (3, 4, 7)
    assert [held_by(place.objects, last_run(place.objects))[0]] == place.world.bytes_of(SOURCE)


def test_a_run_that_is_restored_is_not_let_go(place: Place) -> None:
    """It is removed once no client reads it any more."""
    head = place.archive.head()
    assert head is not None
    with holding(place.archive, "ef" * 16, head.runs[1]):
        assert retain(place.archive, Retention(keep_last=1)).let_go == (1, 3)
        assert place.runs() == (2, 4)
    assert retain(place.archive, Retention(keep_last=1)).let_go == (2,)


def test_a_run_that_follows_adds_to_what_is_kept(place: Place) -> None:
    """Its parent is the last run; earlier runs may be gone."""
    retain(place.archive, Retention(keep_last=1))
    place.take()
    assert place.runs() == (4, 6)
    assert [held_by(place.objects, last_run(place.objects))[0]] == place.world.bytes_of(SOURCE)


def test_whoever_writes_once_an_archive_is_deleted_keeps_the_lease(place: Place) -> None:
    """No client begins to write during the deletion. Remains of killed drivers are deleted."""
    Lease(place.objects, "12" * 16, LeaseWork.WRITE).__enter__()
    place.time += 2 * DAY
    taken: list[Lease] = []
    refused = 0

    def gate(_: str) -> Fate:
        nonlocal refused
        leases = [data for name, data in place.objects.held.items() if name.startswith(LEASES)]
        refused += any(b"Sweep" in one for one in leases)
        if refused and not taken:
            lease = Lease(place.objects, "34" * 16, LeaseWork.WRITE)
            with suppress(StoreBusy):
                taken.append(lease.__enter__())
        return Fate.DONE

    erase_archive(REQUEST, root_of(GatedObjects(place.objects, gate)))
    assert refused
    assert list(place.objects.held) == [lease.name for lease in taken]


class Crashing(MemoryObjects):
    """Objects of a server that dies while it deletes, in any order.

    Args:
        there: the objects.
        at: how many it deletes before.
    """

    def __init__(self, there: MemoryObjects, at: int) -> None:
        super().__init__(there._clock)
        self.held, self.modified = there.held, there.modified
        self._left = at

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects, the last one first."""
        for name in reversed(names):
            self._left -= 1
            if self._left < 0:
                raise StoreUnavailable(name)
            super().delete([name])


def test_an_archive_that_is_deleted_is_whole_or_not_seen(place: Place) -> None:
    """This holds whenever the server dies, and though an earlier head lists a swept run."""
    place.time += 2 * DAY
    with pytest.raises(StoreUnavailable):
        retain(Archive(Crashing(place.objects, 4)), Retention(keep_last=1))
    assert (len(list(place.objects.list(RUNS))), len(list(place.objects.list(HEADS)))) == (1, 5)
    place.time += 2 * HOUR  # so the lease of that sweep is over
    for at in range(len(place.objects.held)):
        there = copied(place.objects)
        there._clock = place.objects._clock
        with pytest.raises(StoreUnavailable):
            erase_archive(REQUEST, root_of(Crashing(there, at)))
        if Archive(there).head() is not None:
            assert verify_archive(Archive(there)).problems == []
    erase_archive(REQUEST, root_of(place.objects))
    assert not place.objects.held


@pytest.mark.parametrize("form", list(Format))
def test_what_a_killed_run_has_left_is_swept(form: Format) -> None:
    """Its notes go first, so a late driver begins anew, and no run lacks an object."""
    place = Place()
    place.take(form)
    place.world.segments[segment_name(SOURCE, 0)].data += events_of([30] * 20, seed=5)
    request = REQUEST.model_copy(update={"format": form})
    lost = iter(range(25))

    def gate(_: str) -> Fate:
        return Fate.DONE if next(lost, None) is not None else Fate.REQUEST_LOST

    there = GatedObjects(place.objects, gate)
    report = archive_once(ModelStore(place.world), there, request, now=lambda: place.time)
    assert report.error is not None
    left = [name for name in place.objects.held if name.startswith("work/")]
    assert left
    place.time += 2 * DAY
    order: list[str] = []
    sweep(place.archive, told=lambda found: order.append(found.name.partition("/")[0]))
    assert order[: len(left)] == ["work"] * len(left)
    assert "data" in order
    place.take(form)
    assert place.runs() == (1, 2)
    assert [held_by(place.objects, last_run(place.objects))[0]] == place.world.bytes_of(SOURCE)


def test_a_driver_that_slept_goes_on_with_what_is_there(place: Place) -> None:
    """Its lease ended and all its objects were swept meanwhile, but the run becomes whole."""
    place.world.segments[segment_name(SOURCE, 0)].data += events_of([30] * 20, seed=5)
    puts = 0

    def gate(what: str) -> Fate:
        nonlocal puts
        puts += what.startswith("put data")
        if what.startswith("put data") and puts == 3:
            place.time += 3 * DAY
            for name in [one for one in place.objects.held if one.startswith("leases/")]:
                place.objects.delete([name])
            sweep(place.archive)
        return Fate.DONE

    there = GatedObjects(place.objects, gate)
    store = ModelStore(place.world)
    report = archive_once(store, there, now=lambda: place.time)
    assert report.error is not None
    assert report.error.reason == "CopyAborted"
    assert place.runs() == (1, 2, 3, 4)
    assert archive_once(store, place.objects, now=lambda: place.time).run == 5
    assert place.runs() == (1, 2, 3, 4, 5)
