"""Runs that are cut off at each of their calls, and concurrent drivers."""

import random
from contextlib import suppress
from functools import partial

import pytest
from greenlet import getcurrent, greenlet

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.names import Format
from sluice.core.archive.request import ArchiveRequest
from sluice.engine.archive.report import ArchiveReport
from sluice.errors import StoreUnavailable
from support.archiving.archive_runs import REQUEST, archive_once, held_by, last_run
from support.engine.plans import SOURCE
from support.engine.sources import events_of, put_source
from support.model import Fate, ModelStore, World, segment_name
from support.model.gated_objects import GatedObjects, copied
from support.model.memory_objects import MemoryObjects
from support.search import searches, seeds, some


def now() -> float:
    """Return a constant time."""
    return 2.0


def grown_world(objects: MemoryObjects, form: Format) -> World:
    """Return a stream with one archived run that was then written to and split."""
    world = World()
    put_source(world, [40, 0, 3, 40], [], [9])
    world.numbers[SOURCE] = 3
    archive_once(ModelStore(world), objects, REQUEST.model_copy(update={"format": form}), now=now)
    for segment in (0, 1):
        world.segments[segment_name(SOURCE, segment)].data += events_of([30, 70, 5], seed=segment)
    world.scale(SOURCE, 2)
    world.segments[segment_name(SOURCE, world.streams[SOURCE].segments[0].id)].data += events_of(
        [1, 2, 90], seed=9
    )
    return world


class Losing:
    """A gate that loses one call.

    Args:
        at: the number of the call, from 0.
        fate: its fate.
    """

    def __init__(self, at: int, fate: Fate) -> None:
        self.left = at
        self._fate = fate

    def __call__(self, _: str) -> Fate:
        """Return the fate of a call."""
        self.left -= 1
        return self._fate if self.left == -1 else Fate.DONE


@searches
@pytest.mark.parametrize("form", list(Format))
@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.REPLY_LOST])
def test_a_run_that_is_cut_off_anywhere_is_gone_on_with(form: Format, fate: Fate) -> None:
    """At any call the archive is unchanged or has the run. The next driver makes it the same."""
    before = MemoryObjects()
    world = grown_world(before, form)
    request = REQUEST.model_copy(update={"format": form})
    expected = copied(before)
    archive_once(ModelStore(world), expected, request, now=now)
    runs = set()
    for at in range(0, 1000, some(31)):
        gate = Losing(at, fate)
        there = copied(before)
        with suppress(StoreUnavailable):  # planning raises it; later the report has it
            archive_once(ModelStore(world, gate), GatedObjects(there, gate), request, now=now)
        if gate.left >= 0:
            break  # it makes no more calls
        found = verify_archive(Archive(there))
        assert found.problems == []
        runs.add(found.runs)
        again = archive_once(ModelStore(world), there, request, now=now)
        assert again.error is None
        if again.run == 2:
            assert lasting(there) == lasting(expected)
    assert runs == {(1,), (1, 2)}
    assert at > 50


def lasting(objects: MemoryObjects) -> dict[str, bytes]:
    """Return all objects but leases, of which a killed driver leaves one."""
    return {name: data for name, data in objects.held.items() if not name.startswith("leases/")}


@pytest.mark.parametrize("same", [True, False], ids=["one run", "two archives' runs"])
@searches
@pytest.mark.parametrize("seed", seeds(4))
def test_drivers_at_once_do_no_harm(seed: int, *, same: bool) -> None:
    """Two drivers of one run, or of two, take random turns; recorded runs are whole."""
    chance = random.Random(seed)  # noqa: S311 - no secrets
    form = chance.choice(list(Format))
    objects = MemoryObjects()
    world = grown_world(objects, form)
    request = REQUEST.model_copy(update={"format": form, "run_key": "now"})
    others = request if same else request.model_copy(update={"archive_id": "cd" * 16})
    main = getcurrent()

    def gate(_: str) -> Fate:
        main.switch()
        return Fate.DONE

    def driver(request: ArchiveRequest) -> ArchiveReport:
        store = ModelStore(world, gate)
        return archive_once(store, GatedObjects(objects, gate), request, now=now, patience=60)

    drivers = [greenlet(partial(driver, one)) for one in (request, others)]
    reports: list[ArchiveReport] = []
    while drivers:
        one = chance.choice(drivers)
        came = one.switch()
        if one.dead:
            drivers.remove(one)
            reports.append(came)
    assert [report.error for report in reports] == [None, None]
    manifest = last_run(objects)
    assert list(held_by(objects, manifest).values()) == world.bytes_of(SOURCE)
    assert manifest.run == (2 if same else 3)
    # A driver may add a note after the other one has deleted all; a later sweep deletes it.
    assert same or not [name for name in objects.held if name.startswith(("work/", "leases/"))]
