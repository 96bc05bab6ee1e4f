"""Drivers that are held up while other drivers use the archive."""

from typing import TypeVar

import pytest

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.leases import Lease
from sluice.archive.runs.sweep import sweep
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.lease import LeaseWork
from sluice.core.archive.retention import Retention
from sluice.core.copy.steps import DeleteJournal, RecordRun, Step, Transfer, Verify
from sluice.core.values.archive_layout import LEASES, WORK
from sluice.engine.archive.archive_run import ArchiveCopy
from sluice.engine.archive.erase import Erased, erase_archive
from sluice.engine.archive.planning import resolve_archive
from sluice.engine.archive.retention import retain
from sluice.engine.tasks.executor import InlineExecutor
from sluice.errors import CopyAborted, StoreBusy
from support.archiving.archive_runs import LIMITS, MAKER, PATH, REQUEST, archive_once, root_of
from support.engine.plans import SOURCE
from support.engine.sources import events_of, put_source
from support.model import Fate, ModelStore, World, segment_name
from support.model.gated_objects import GatedObjects
from support.model.memory_objects import MemoryObjects

DAY = 24 * 3600.0
S = TypeVar("S", bound=Step)


class Place:
    """An archive with a run, whose clock stands still; its stream was written to since."""

    def __init__(self) -> None:
        self.time = 1_000_000.0
        self.objects = MemoryObjects(lambda: self.time)
        self.archive = Archive(self.objects)
        self.world = World()
        put_source(self.world, [30] * 4)
        self.take()
        self.time += DAY
        self.write(5)

    def write(self, seed: int) -> None:
        """Write to the stream."""
        self.world.segments[segment_name(SOURCE, 0)].data += events_of([30] * 20, seed=seed)

    def take(self) -> None:
        """Make a run."""
        store = ModelStore(self.world)
        assert archive_once(store, self.objects, now=lambda: self.time).error is None

    def runs(self) -> tuple[int, ...]:
        """Return the existing runs, and check that all are whole."""
        found = verify_archive(self.archive)
        assert found.problems == []
        return found.runs

    def leases(self) -> list[str]:
        """Return the names of all leases."""
        return [one.name for one in self.objects.list(LEASES)]


class Driver:
    """A driver of the run that is due, moved by hand."""

    def __init__(self, place: Place) -> None:
        store, root = ModelStore(place.world), root_of(place.objects)
        archive = root.archive(PATH)
        plan = resolve_archive(REQUEST, store, archive, now=lambda: place.time).plan
        assert plan is not None
        self.copy = ArchiveCopy(plan, [store], archive)
        self._executor = InlineExecutor([store], root)

    def begin(self) -> None:
        """Begin the run."""
        assert self.copy.begin(permit=None) is None

    def reach(self, kind: type[S]) -> S:
        """Do all steps before the first one of this kind; return that step."""
        while not isinstance(step := self.copy.look(), kind):
            if isinstance(step, Transfer | Verify):
                slices = self.copy.slices(step, LIMITS, 1)
                self.copy.absorb(step, self._executor.run(slices))
            else:
                self.copy.perform(step)
        return step


@pytest.fixture
def place() -> Place:
    """Return an archive with a run."""
    return Place()


@pytest.fixture
def driver(place: Place) -> Driver:
    """Return a driver that has begun the next run."""
    made = Driver(place)
    made.begin()
    return made


@pytest.mark.parametrize("anew", [False, True], ids=["abandoned", "begun anew"])
def test_a_run_whose_objects_were_swept_is_not_recorded(
    place: Place, driver: Driver, *, anew: bool
) -> None:
    """A driver that is held up just before the record finds its first note gone."""
    step = driver.reach(RecordRun)
    place.time += 2 * DAY
    assert sweep(place.archive).objects
    if anew:
        Driver(place).begin()
    driver.copy.perform(step)
    assert place.runs() == (1,)
    if not anew:
        with pytest.raises(CopyAborted):
            driver.copy.look()
        driver.copy.let_go()
        driver = Driver(place)
        driver.begin()
    driver.copy.perform(driver.reach(RecordRun))
    assert place.runs() == (1, 2)


def test_nothing_is_recorded_during_a_sweep(place: Place, driver: Driver) -> None:
    """A driver that counted as dead gives way before it records."""
    step = driver.reach(RecordRun)
    place.objects.delete(place.leases())
    with Lease(place.objects, "cd" * 16, LeaseWork.SWEEP) as lease:
        with pytest.raises(StoreBusy, match="Sweep by name"):
            driver.copy.perform(step)
        assert place.leases() == [lease.name]
    driver.copy.perform(driver.reach(RecordRun))
    assert place.runs() == (1, 2)


def test_the_end_of_a_driver_keeps_the_others_lease(place: Place, driver: Driver) -> None:
    """A driver that fails or is refused keeps the leases of drivers that continue its run."""
    other = Driver(place)
    other.begin()
    step = driver.reach(RecordRun)
    other.copy.let_go()
    with pytest.raises(StoreBusy, match="Write by name"):
        sweep(place.archive)
    driver.copy.perform(step)
    assert place.runs() == (1, 2)


def test_a_run_that_is_over_leaves_no_lease(place: Place, driver: Driver) -> None:
    """The driver that finishes the run releases the leases of killed drivers."""
    driver.reach(Verify)
    place.take()
    assert place.runs() == (1, 2)
    assert place.leases() == []


@pytest.mark.parametrize("killed", ["driver", "retention", "sweep"])
def test_a_resource_that_is_deleted_waits_for_none_of_its_own_that_were_killed(
    place: Place, killed: str
) -> None:
    """Its killed drivers are known to be gone. No other resource's lease counts as its own."""
    if killed == "driver":
        Driver(place).begin()
    else:
        until_killed(place, LeaseWork.READ if killed == "retention" else LeaseWork.SWEEP)
    assert len(place.leases()) == 1
    with Lease(place.objects, "ef" * 16, LeaseWork.READ), pytest.raises(StoreBusy, match="works "):
        erase_archive(REQUEST, root_of(place.objects))
    assert place.runs() == (1,)
    assert erase_archive(REQUEST, root_of(place.objects)) == Erased()
    assert list(place.objects.list()) == []


def until_killed(place: Place, work: LeaseWork) -> None:
    """Remove runs and sweep, until the process is killed while it holds this lease."""

    def gate(_: str) -> Fate:
        if any(f'"{work}"'.encode() in place.objects.held[name] for name in place.leases()):
            raise _KilledError
        return Fate.DONE

    there = Archive(GatedObjects(place.objects, gate))
    with pytest.raises(_KilledError):
        retain(there, Retention(), thorough=True, maker=MAKER.id)


class _KilledError(BaseException):
    """The end of the process: whatever it calls after this raises the error as well."""


def test_a_driver_that_lives_on_gives_way_to_a_deletion(place: Place, driver: Driver) -> None:
    """The driver takes its lease again, and finds the objects of its run gone."""
    step = driver.reach(RecordRun)
    assert erase_archive(REQUEST, root_of(place.objects)) == Erased()
    driver.copy.perform(step)
    with pytest.raises(CopyAborted):
        driver.copy.look()
    driver.copy.let_go()
    assert list(place.objects.list()) == []


@pytest.mark.parametrize("done", [True, False], ids=["recorded", "given up"])
def test_a_late_driver_leaves_the_notes_of_the_next_run(
    place: Place, driver: Driver, *, done: bool
) -> None:
    """Another driver has deleted the notes of its run, and another run has begun meanwhile."""
    step = driver.reach(DeleteJournal if done else Verify)
    place.take()
    place.write(6)
    other = Driver(place)
    other.begin()
    other.reach(Verify)
    notes = [one for one in place.objects.held if one.startswith(WORK)]
    if done:
        driver.copy.perform(step)
    else:
        driver.copy.give_up()
    assert [one for one in place.objects.held if one.startswith(WORK)] == notes
    other.copy.perform(other.reach(RecordRun))
    assert place.runs() == (1, 2, 3)
