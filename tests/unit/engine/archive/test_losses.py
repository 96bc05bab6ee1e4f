"""Sources that lose bytes before they are archived, or that changed since."""

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.names import Format
from sluice.core.archive.request import ArchiveRequest
from sluice.engine.archive.query import told_of
from sluice.engine.archive.slices import CheckSlice
from sluice.engine.copy.report import Outcome
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.slices import Slice, SliceResult
from sluice.errors import (
    InvalidSpec,
    SourceNotFound,
    SourceReplaced,
    SourceTruncated,
    TooManyEvents,
)
from support.archiving.archive_runs import REQUEST, archive_once, held_by, last_run, root_of
from support.engine.executors import Relay
from support.engine.plans import SOURCE
from support.engine.sources import events_of, put_source
from support.model import CREATION_TIME, ModelStore, World, segment_name
from support.model.memory_objects import MemoryObjects

FIRST = segment_name(SOURCE, 0)
EVENT = 20
"""Bytes of an event, with its header."""


def asked(form: Format = Format.SEGMENTS, *, record: bool = True) -> ArchiveRequest:
    """Return a request for a run in this format, of a stream that may have lost bytes."""
    return REQUEST.model_copy(
        update={"format": form, "on_truncation": "Record" if record else "Fail"}
    )


@pytest.fixture
def world() -> World:
    """Return a world with a source of two segments, of 10 events each."""
    made = World()
    put_source(made, [EVENT - 8] * 10, [EVENT - 8] * 10)
    made.numbers[SOURCE] = 2
    return made


def write(world: World, segment: int = 0, count: int = 10) -> None:
    """Write events to a segment."""
    world.segments[segment_name(SOURCE, segment)].data += events_of([EVENT - 8] * count, seed=count)


def truncate(world: World, to: int, segment: int = 0) -> None:
    """Let a segment begin at another offset."""
    world.segments[segment_name(SOURCE, segment)].start = to


@pytest.mark.parametrize("form", list(Format))
def test_a_first_run_begins_with_what_there_is(world: World, form: Format) -> None:
    """A stream that was truncated before is archived from its head on, without a gap."""
    truncate(world, 3 * EVENT)
    objects = MemoryObjects()
    archive_once(ModelStore(world), objects, asked(form, record=False))
    manifest = last_run(objects)
    assert [(one.start, one.end) for one in manifest.segments] == [(60, 200), (0, 200)]
    assert held_by(objects, manifest)[0] == world.bytes_of(SOURCE)[0][3 * EVENT :]
    assert not any(one.gaps for one in manifest.segments)


@pytest.mark.parametrize("form", list(Format))
def test_what_was_lost_between_two_runs_is_a_gap(world: World, form: Format) -> None:
    """The run is refused unless the gap may be recorded. Earlier runs keep their bytes."""
    objects, store = MemoryObjects(), ModelStore(world)
    archive_once(store, objects, asked(form))
    before = held_by(objects, last_run(objects))
    write(world)
    truncate(world, 13 * EVENT)
    with pytest.raises(SourceTruncated, match="offsets 200 to 260 of segment 0 are gone"):
        archive_once(store, objects, asked(form, record=False))
    report = archive_once(store, objects, asked(form))
    assert (report.lost, report.added) == (60, 140)
    manifest = last_run(objects)
    (gap,) = manifest.segments[0].gaps
    assert (gap.start, gap.end, gap.reason, gap.run) == (200, 260, "SourceTruncated", 2)
    data = world.bytes_of(SOURCE)[0]
    assert held_by(objects, manifest)[0] == before[0] + data[13 * EVENT :]
    write(world)
    assert archive_once(store, objects, asked(form)).error is None
    again = last_run(objects)
    assert again.segments[0].gaps == (gap,)
    assert held_by(objects, again)[0] == before[0] + world.bytes_of(SOURCE)[0][13 * EVENT :]


class Changing(Relay):
    """An executor that changes the source before one of its slices.

    Args:
        world: that of the source.
        objects: those of the archive.
        at: the slice of its kind that the change precedes.
        change: changes the source.
        kind: the kind of slices.
    """

    def __init__(
        self,
        world: World,
        objects: MemoryObjects,
        at: int,
        change: Callable[[], object],
        *,
        kind: type[Slice] = Slice,
    ) -> None:
        super().__init__(InlineExecutor([ModelStore(world)], root_of(objects)))
        self._at = at
        self._change = change
        self._kind = kind

    def submit(self, work: Slice) -> Future[SliceResult]:
        """See Executor."""
        self._at -= isinstance(work, self._kind)
        if self._at == -1 and isinstance(work, self._kind):
            self._change()
        return super().submit(work)


def truncating(world: World, objects: MemoryObjects, at: int, to: int | None) -> Changing:
    """Return an executor that truncates or drops the first segment before one of its slices."""
    if to is None:
        return Changing(world, objects, at, lambda: world.scale(SOURCE, 2, truncate=True))
    return Changing(world, objects, at, lambda: truncate(world, to))


@pytest.mark.parametrize("to", [2 * EVENT, 5 * EVENT, 8 * EVENT, 10 * EVENT, None])
@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("form", list(Format))
def test_what_is_lost_while_a_run_is_at_work_is_a_gap(
    world: World, form: Format, at: int, to: int | None
) -> None:
    """Existing bytes are archived, and each offset is either archived or in a gap."""
    objects, store = MemoryObjects(), ModelStore(world)
    data = [bytes(one) for one in world.bytes_of(SOURCE)]
    report = archive_once(store, objects, asked(form), executor=truncating(world, objects, at, to))
    assert report.outcome is Outcome.ARCHIVED, report.error
    manifest = last_run(objects)
    held = held_by(objects, manifest)
    for segment, whole in zip(manifest.segments, data, strict=True):
        assert (segment.start, segment.end) == (0, 200)
        there = b"".join(whole[one.start : one.end] for one in segment.stretches)
        assert held[segment.id] == there
    lost = sum(gap.end - gap.start for one in manifest.segments for gap in one.gaps)
    assert lost == report.lost


def test_a_sealed_stream_that_was_made_again_is_refused(world: World) -> None:
    """Its segments may have the numbers of segments that are archived to their end."""
    objects, store = MemoryObjects(), ModelStore(world)
    store.seal_stream(SOURCE)
    archive_once(store, objects)
    assert last_run(objects).sealed
    assert archive_once(store, objects).added == 0
    world.segments.clear()
    put_source(world, [30], [10])
    with pytest.raises(SourceReplaced, match="segment 0 is not the one that is archived"):
        archive_once(store, objects)
    assert verify_archive(Archive(objects)).runs == (1, 2)


@pytest.mark.parametrize("form", list(Format))
def test_a_stream_that_is_shorter_than_its_archive_is_refused(world: World, form: Format) -> None:
    """A store that was set back has the same segments, with other events later."""
    objects, store = MemoryObjects(), ModelStore(world)
    archive_once(store, objects, asked(form))
    del world.segments[FIRST].data[5 * EVENT :]
    with pytest.raises(SourceReplaced, match="segment 0 ends at 100, and 200 are archived"):
        archive_once(store, objects, asked(form))
    assert verify_archive(Archive(objects)).runs == (1,)


def test_a_run_that_may_lack_nothing_fails(world: World) -> None:
    """It is refused during the run as well, and leaves no notes."""
    objects = MemoryObjects()
    executor = truncating(world, objects, 1, 9 * EVENT)
    report = archive_once(ModelStore(world), objects, asked(record=False), executor=executor)
    assert report.error is not None
    assert report.error.reason == "SourceTruncated"
    assert report.cleaned
    assert not [name for name in objects.held if not name.startswith("data/")]


@pytest.mark.parametrize("form", list(Format))
def test_segments_that_came_and_went_between_two_runs_are_told(world: World, form: Format) -> None:
    """Their content is unknown, and so is the rest of a segment that is gone."""
    objects, store = MemoryObjects(), ModelStore(world)
    archive_once(store, objects, asked(form))
    write(world)
    world.scale(SOURCE, 3)
    world.scale(SOURCE, 1, truncate=True)
    with pytest.raises(SourceTruncated, match="segment 0 is gone"):
        archive_once(store, objects, asked(form, record=False))
    assert archive_once(store, objects, asked(form)).error is None
    manifest = last_run(objects)
    assert [one.epoch for one in manifest.segments] == [0, 0, 1, 1, 1, 2]
    head = Archive(objects).head()
    assert head is not None
    told = told_of(Archive(objects), head.runs[-1])
    ends = [(one.id, one.end, None) for one in manifest.segments[:5]]
    assert [(gap.segment, gap.begin, gap.end) for gap in told.gaps] == ends
    assert told.lost == 0
    lost = [one.lost for one in manifest.segments]
    assert [one is not None and one.run == 2 for one in lost] == [True] * 5 + [False]
    assert all(one.sealed for one in manifest.segments[:5])
    write(world, segment=manifest.segments[-1].id)
    assert archive_once(store, objects, asked(form)).added == 200
    assert last_run(objects).segments[:5] == manifest.segments[:5]


def test_another_stream_of_the_name_is_refused(world: World) -> None:
    """A stream that was deleted and made again is not added to the archive of the old one."""
    objects, store = MemoryObjects(), ModelStore(world)
    archive_once(store, objects)
    world.segments.clear()
    put_source(world, [10])
    with pytest.raises(SourceReplaced):
        archive_once(store, objects)
    del world.streams[SOURCE]
    with pytest.raises(SourceNotFound):
        archive_once(store, objects)
    assert verify_archive(Archive(objects)).runs == (1,)


def test_an_archive_is_of_one_stream_and_one_format(world: World) -> None:
    """A later run changes neither."""
    objects, store = MemoryObjects(), ModelStore(world)
    archive_once(store, objects)
    with pytest.raises(InvalidSpec, match="has the format Segments") as caught:
        archive_once(store, objects, asked(Format.PARQUET))
    assert caught.value.field == "spec.format"
    other = SOURCE.model_copy(update={"stream": "other"})
    with pytest.raises(InvalidSpec, match=f"is one of {SOURCE}") as caught:
        archive_once(store, objects, REQUEST.model_copy(update={"source": other}))
    assert caught.value.field == "spec.destination.path"


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("at", [0, 1])
def test_a_stream_that_is_replaced_while_it_is_read_is_refused(
    world: World, at: int, *, verify: bool
) -> None:
    """This holds if its last bytes came from the new stream: a mixture is never recorded."""
    put_source(world, [EVENT - 8] * 10)

    def replace() -> None:
        there = world.segments[FIRST]
        there.data[:] = events_of([EVENT - 8] * 20, seed=7)
        there.attributes[CREATION_TIME] += 1000

    objects = MemoryObjects()
    executor = Changing(world, objects, at, replace)
    request = REQUEST.model_copy(update={"verify": verify})
    report = archive_once(ModelStore(world), objects, request, executor=executor)
    assert report.error is not None
    assert report.error.reason == "SourceReplaced"
    assert Archive(objects).head() is None


@pytest.mark.parametrize("gone", [True, False])
def test_what_becomes_of_a_source_that_is_read_does_no_harm(world: World, *, gone: bool) -> None:
    """Once all is put, the source may be truncated or deleted before the check and the record."""
    objects = MemoryObjects()

    def change() -> None:
        if gone:
            world.segments.clear()
            del world.streams[SOURCE]
        else:
            truncate(world, 10 * EVENT)

    data = [bytes(one) for one in world.bytes_of(SOURCE)]
    executor = Changing(world, objects, 0, change, kind=CheckSlice)
    assert archive_once(ModelStore(world), objects, executor=executor).error is None
    assert list(held_by(objects, last_run(objects)).values()) == data


def test_more_events_than_are_allowed_become_no_objects(world: World) -> None:
    """The store's count refuses them at once; if that is too low, the run stops."""
    objects, store = MemoryObjects(), ModelStore(world)
    request = asked(Format.EVENT_OBJECTS).model_copy(update={"max_events": 19})
    with pytest.raises(TooManyEvents):
        archive_once(store, objects, request)
    for segment in world.segments.values():
        segment.attributes.clear()
    put_source(world, [EVENT - 8] * 10, [EVENT - 8] * 10)
    for number in range(2):
        there = world.segments[segment_name(SOURCE, number)]
        there.attributes = {one: value for one, value in there.attributes.items() if value > 10}
    report = archive_once(store, objects, request)
    assert report.error is not None
    assert report.error.reason == "TooManyEvents"
    assert Archive(objects).head() is None
    assert len([name for name in objects.held if name.startswith("events/")]) <= 20
    allowed = request.model_copy(update={"max_events": 20})
    assert archive_once(store, objects, allowed).events == 20


def test_a_run_that_is_asked_for_twice_is_made_once(world: World) -> None:
    """The key identifies the run. Another key asks for another run."""
    objects, store = MemoryObjects(), ModelStore(world)
    first = archive_once(store, objects, REQUEST.model_copy(update={"run_key": "a"}))
    write(world)
    again = archive_once(store, objects, REQUEST.model_copy(update={"run_key": "a"}))
    assert (again.outcome, again.run, again.digest) == (Outcome.ALREADY_COMPLETE, 1, first.digest)
    other = archive_once(store, objects, REQUEST.model_copy(update={"run_key": "b"}))
    assert (other.outcome, other.run, other.added) == (Outcome.ARCHIVED, 2, 200)


def test_bytes_that_are_no_events_are_archived_as_they_are(world: World) -> None:
    """The format Segments archives them without a number of events. Later runs do not count."""
    there = world.segments[FIRST]
    there.data = bytearray(b"\xff" * 70)
    objects, store = MemoryObjects(), ModelStore(world)
    assert archive_once(store, objects).events is None
    there.data += b"\x00" * 35
    archive_once(store, objects)
    manifest = last_run(objects)
    assert held_by(objects, manifest)[0] == there.data
    assert manifest.segments[0].events is None
    assert manifest.segments[1].events == 10
