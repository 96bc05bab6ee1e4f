"""Runs of archives on the model store."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.archive.runs.archive import Archive
from sluice.core.archive.names import Format
from sluice.engine.copy.report import Outcome
from sluice.engine.tasks.limits import Limits
from support.archiving.archive_runs import REQUEST, archive_once, held_by, last_run
from support.engine.plans import SOURCE
from support.engine.sources import events_of, put_scaled_source, put_source
from support.model import ModelStore, World, segment_name
from support.model.memory_objects import MemoryObjects


@pytest.fixture
def world() -> World:
    """Return a world with a source of three segments, one of which is empty."""
    made = World()
    put_source(made, [40, 0, 3, 40, 100, 7], [], [9])
    return made


@pytest.mark.parametrize("form", list(Format))
def test_a_run_goes_through_its_steps(world: World, form: Format) -> None:
    """It puts objects, reads them back, records the run and deletes its notes."""
    objects = MemoryObjects()
    contents = world.bytes_of(SOURCE)
    request = REQUEST.model_copy(update={"format": form})
    report = archive_once(ModelStore(world), objects, request)
    assert report.outcome is Outcome.ARCHIVED
    assert (report.run, report.bytes, report.events) == (1, sum(map(len, contents)), 7)
    manifest = last_run(objects)
    assert list(held_by(objects, manifest).values()) == contents
    head = Archive(objects).head()
    assert head is not None
    assert head.runs[-1].verified
    assert not [name for name in objects.held if name.startswith(("work/", "leases/"))]


@pytest.mark.parametrize("form", list(Format))
def test_later_runs_add_what_is_new(world: World, form: Format) -> None:
    """Objects of earlier runs are listed again, and none is put twice."""
    objects, store = MemoryObjects(), ModelStore(world)
    request = REQUEST.model_copy(update={"format": form})
    world.numbers[SOURCE] = 3
    for number in range(4):
        data = world.segments[segment_name(SOURCE, world.streams[SOURCE].segments[0].id)].data
        data += events_of([30, 5, 60], seed=number)
        report = archive_once(store, objects, request)
        assert report.run == number + 1
        before = set(objects.held)
        manifest = last_run(objects)
        assert list(held_by(objects, manifest).values()) == world.bytes_of(SOURCE)
        if number == 1:
            world.scale(SOURCE, 2)
    assert {one.name for one in manifest.objects} <= before
    assert [one.epoch for one in manifest.segments] == [0, 0, 0, 1, 1]


def test_a_stream_that_was_scaled_before_keeps_its_epochs() -> None:
    """Each scale event made an epoch of its own, from the head on."""
    world = World()
    put_scaled_source(world, [[20, 3], [7]], [("split", 0), ("merge", 1), ("split", 2)])
    objects = MemoryObjects()
    archive_once(ModelStore(world), objects)
    manifest = last_run(objects)
    assert list(held_by(objects, manifest).values()) == world.bytes_of(SOURCE)
    assert max(one.epoch for one in manifest.segments) == 3


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    runs=st.lists(st.lists(st.integers(0, 90), max_size=12), min_size=1, max_size=4),
    slice_bytes=st.sampled_from([1, 64, 1000]),
    form=st.sampled_from(list(Format)),
    forgetful=st.booleans(),
)
def test_events_are_counted_over_slices_objects_and_runs(
    runs: list[list[int]], slice_bytes: int, form: Format, *, forgetful: bool
) -> None:
    """Counts and places are right wherever objects end, even within headers.

    This holds for any driver that goes on. The archive is verified from its bytes, since a source
    may have lost the bytes of earlier runs.
    """
    world = World()
    put_source(world, [])
    there = world.segments[segment_name(SOURCE, 0)]
    objects, events = MemoryObjects(), 0
    request = REQUEST.model_copy(update={"format": form})
    for number, sizes in enumerate(runs):
        if forgetful:
            there.start = len(there.data)
        there.data += events_of(sizes, seed=number)
        events += len(sizes)
        limits = Limits(slice_bytes=slice_bytes)
        archive_once(ModelStore(world), objects, request, limits=lambda limits=limits: limits)  # type: ignore[misc]
        manifest = last_run(objects)
        assert manifest.events == events
        assert held_by(objects, manifest) == {0: bytes(there.data)}
