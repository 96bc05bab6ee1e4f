"""Parts of one segment that are put at the same time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.names import Format
from sluice.engine.archive.slices import ArchiveSlice
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.errors import InfrastructureError
from support.archiving.archive_runs import REQUEST, archive_once, held_by, last_run, root_of
from support.engine.executors import Relay, failed
from support.engine.plans import SOURCE
from support.engine.sources import events_of, put_source
from support.model import ModelStore, World, segment_name
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from sluice.engine.tasks.slices import Slice, SliceResult

EVENTS = [20] * 40
"""The sizes of events, which take 1,120 bytes with headers. Objects have 64 bytes."""


def now() -> float:
    """Return a constant time."""
    return 2.0


class Tasks(Relay):
    """An executor of several slots, whose results come in any order and are lost sometimes.

    Args:
        world: that of the source.
        objects: those of the archive.
        slots: their number.
        lost: the share of lost results.
        seed: the seed of chance.

    Attributes:
        puts: the slices that put bytes into objects.
    """

    def __init__(
        self,
        world: World,
        objects: MemoryObjects,
        *,
        slots: int = 3,
        lost: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(InlineExecutor([ModelStore(world)], root_of(objects)), slots)
        self._chance = random.Random(seed)  # noqa: S311 - no secrets
        self._lost = lost
        self.puts: list[ArchiveSlice] = []

    def submit(self, work: Slice) -> Future[SliceResult]:
        """See Executor."""
        if isinstance(work, ArchiveSlice):
            self.puts.append(work)
        future = super().submit(work)
        lost = self._chance.random() < self._lost
        return failed(InfrastructureError("lost")) if lost else future


def world_of(data: bytes) -> World:
    """Return a world with a stream of one segment with these bytes."""
    world = World()
    put_source(world, [])
    world.segments[segment_name(SOURCE, 0)].data += data
    return world


def made_in_order(world: World) -> MemoryObjects:
    """Return an archive whose parts were put one after another."""
    objects = MemoryObjects()
    archive_once(ModelStore(world), objects, limits=lambda: Limits(slice_bytes=1 << 20), now=now)
    return objects


def test_several_tasks_put_one_segment() -> None:
    """Each part begins where an object does, and the run is as if one task had put it all."""
    world = world_of(events_of(EVENTS))
    objects = MemoryObjects()
    tasks = Tasks(world, objects)
    report = archive_once(
        ModelStore(world), objects, limits=lambda: Limits(slice_bytes=1 << 20), executor=tasks
    )
    assert sorted(one.at for one in tasks.puts) == [0, 320, 640, 960]
    assert report.events == 40
    assert objects.held.keys() >= {one.name for one in last_run(made_in_order(world)).objects}


def test_the_first_parts_of_all_segments_come_first() -> None:
    """The rest of one long segment does not delay the other segments."""
    world = World()
    put_source(world, [20] * 40, [20] * 10)
    objects = MemoryObjects()
    tasks = Tasks(world, objects, slots=1)
    archive_once(ModelStore(world), objects, executor=tasks)
    assert {one.segment for one in tasks.puts[:2]} == {0, 1}


@pytest.mark.parametrize("form", [Format.PARQUET, Format.EVENT_OBJECTS])
def test_other_formats_are_put_one_after_the_other(form: Format) -> None:
    """Their objects begin with events, whose places are known only from the bytes before."""
    world = world_of(events_of(EVENTS))
    objects = MemoryObjects()
    tasks = Tasks(world, objects)
    request = REQUEST.model_copy(update={"format": form})
    report = archive_once(ModelStore(world), objects, request, executor=tasks)
    begun = [one.at for one in tasks.puts]
    assert begun == sorted({*begun})
    assert report.events == 40


def test_a_later_run_goes_on_within_an_object() -> None:
    """Its first part ends at the next multiple of an object's size, and others begin there."""
    world = world_of(events_of([20] * 5))
    objects = MemoryObjects()
    archive_once(ModelStore(world), objects)
    world.segments[segment_name(SOURCE, 0)].data += events_of(EVENTS, seed=1)
    tasks = Tasks(world, objects)
    report = archive_once(
        ModelStore(world), objects, limits=lambda: Limits(slice_bytes=1 << 20), executor=tasks
    )
    assert sorted(one.at for one in tasks.puts) == [140, 512, 832, 1152]
    assert report.events == 45


def nested(sizes: Sequence[int]) -> bytes:
    """Return events that contain events, so that a part may begin at a wrong place."""
    bodies = [events_of([9] * (size // 17), seed=size) for size in sizes]
    return b"".join(len(body).to_bytes(8, "big") + body for body in bodies)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.one_of(
        st.lists(st.integers(0, 200), max_size=30).map(events_of),
        st.lists(st.integers(0, 400), max_size=12).map(nested),
        st.tuples(st.lists(st.integers(0, 90), max_size=15), st.binary(max_size=300)).map(
            lambda parts: events_of(parts[0]) + parts[1]
        ),
    ),
    slots=st.integers(1, 4),
    lost=st.sampled_from([0.0, 0.3]),
    seconds=st.sampled_from([0.0, 20.0]),
    seed=st.integers(0, 99),
)
def test_however_parts_come_the_run_is_the_same(
    data: bytes, slots: int, lost: float, seconds: float, seed: int
) -> None:
    """Parts are cut off, lost, in any order, begun inside an event, or without events."""
    world = world_of(data)
    objects = MemoryObjects()
    limits = Limits(slice_bytes=128, slice_seconds=seconds)
    archive_once(
        ModelStore(world),
        objects,
        limits=lambda: limits,
        executor=Tasks(world, objects, slots=slots, lost=lost, seed=seed),
        patience=None,
        now=now,
    )
    manifest = last_run(objects)
    assert held_by(objects, manifest) == {0: data}
    assert manifest.segments == last_run(made_in_order(world)).segments
    assert verify_archive(Archive(objects)).problems == []
