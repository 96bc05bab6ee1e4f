"""Objects that are longer than a process has memory for."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from sluice.archive.runs import archive as archives
from sluice.archive.runs import notes as noted
from sluice.archive.runs.archive import Archive
from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.archive.runs.notes import Notes
from sluice.core.archive.manifest import StoredObject
from sluice.core.archive.names import Format, NoteName, head_name
from sluice.core.archive.notes import Note, PutNote
from sluice.core.values.model import ArchivedRun
from sluice.engine.archive.planning import resolve_archive
from sluice.engine.archive.query import ArchiveWatch
from sluice.errors import ArchiveDamaged, PlanTooLarge
from support.archiving.archive_runs import REQUEST, root_of
from support.archiving.archives import Source, take
from support.engine.sources import put_source
from support.model import ModelStore, World
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from sluice.core.archive.plan import ArchivePlan

OWNER = "ab" * 16


@pytest.fixture
def objects() -> MemoryObjects:
    """Return an archive of one run."""
    found, source = MemoryObjects(), Source()
    source.write([100, 200])
    take(Archive(found), Format.SEGMENTS, source)
    return found


def test_a_manifest_is_read_up_to_the_length_that_there_is_memory_for(
    objects: MemoryObjects,
) -> None:
    """The length of its object and its unpacked length count."""
    whole = Archive(objects)
    head = whole.head()
    assert head is not None
    entry = head.runs[0]
    run = ArchivedRun(path="", run=entry.run, sha256=entry.sha256)
    for most in (entry.size - 1, entry.size):
        small = ArchiveRoot("s3://it", lambda _: objects, most=most).archive()
        for read in (lambda: small.manifest(entry), lambda: small.pinned(run)):  # noqa: B023
            with pytest.raises(PlanTooLarge, match=entry.name) as caught:
                read()
            assert "sluice archive" in caught.value.remedy
    assert max(objects.got[-4:]) <= entry.size
    assert whole.manifest(entry) == whole.pinned(run)[1]


def test_a_head_that_is_longer_than_any_is_damaged(objects: MemoryObjects) -> None:
    """The head is not read to its end."""
    objects.put(head_name(2), b" " * (archives.MOST_SHORT + 1))
    with pytest.raises(ArchiveDamaged, match="too long"):
        Archive(objects).head()


def test_a_head_that_nobody_would_read_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive does not change."""
    objects, source = MemoryObjects(), Source()
    archive = Archive(objects)
    source.write([100])
    take(archive, Format.SEGMENTS, source)
    source.write([100])
    before = archive.head()
    monkeypatch.setattr(archives, "MOST_SHORT", len(objects.held[head_name(1)]))
    with pytest.raises(PlanTooLarge, match="2 runs"):
        take(archive, Format.SEGMENTS, source)
    assert archive.head() == before


def test_a_note_that_is_longer_than_any_is_damaged(
    objects: MemoryObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note that no client would read is not made."""
    monkeypatch.setattr(noted, "MOST_SHORT", 100)
    with pytest.raises(PlanTooLarge, match="the plan of this run"):
        Notes(objects, OWNER).begin(Note(of="0" * 64, begun=OWNER, put=(), gaps=()))
    objects.put(str(NoteName(OWNER, 0)), b" " * 101)
    with pytest.raises(ArchiveDamaged, match="no note"):
        Notes(objects, OWNER).read()


def test_a_watcher_of_a_run_keeps_none_of_its_notes() -> None:
    """Notes are read one by one and once, so their number does not change the memory."""
    peaks = []
    for count in (10, 80):
        objects, world = MemoryObjects(), World()
        put_source(world, [30] * 40)
        found = resolve_archive(REQUEST, ModelStore(world), Archive(objects)).plan
        assert found is not None
        (segment,) = found.segments
        plan = found.model_copy(
            update={"segments": (segment.model_copy(update={"end": count * 100}),)}
        )
        write_notes(objects, plan, count)
        watch = ArchiveWatch(plan, root_of(objects))
        tracemalloc.start()
        assert watch.measure().bytes == count * 100
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        reads = len(objects.got)
        assert watch.measure().bytes == count * 100
        assert len(objects.got) == reads
    assert peaks[1] < 2 * peaks[0]


def write_notes(objects: MemoryObjects, plan: ArchivePlan, count: int) -> None:
    """Note a plan, and the objects put so far, in so many notes of a hundred objects each."""
    notes = Notes(objects, plan.copy_id)
    notes.begin(Note(of=plan.hash, plan=plan))
    for start in range(0, count * 100, 100):
        stored = tuple(
            StoredObject(name="x" * 100, size=1, sha256="ab" * 32, start=at, end=at + 1)
            for at in range(start, start + 100)
        )
        notes.add(Note(of=plan.hash, put=(PutNote(segment=0, objects=stored),)))
