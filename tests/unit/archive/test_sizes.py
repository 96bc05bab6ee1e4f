"""What is longer than a process has memory for."""

from __future__ import annotations

import pytest

from sluice.archive import archive as archives
from sluice.archive import notes as noted
from sluice.archive.archive import Archive
from sluice.archive.notes import Notes
from sluice.archive.shelf import Shelf
from sluice.core.archive.names import Format, NoteName, head_name
from sluice.core.archive.notes import Note
from sluice.core.model import ArchivedRun
from sluice.errors import ArchiveDamaged, PlanTooLarge
from support.archives import Source, take
from support.memory_objects import MemoryObjects

OWNER = "ab" * 16


@pytest.fixture
def objects() -> MemoryObjects:
    """Gives an archive of one run."""
    found, source = MemoryObjects(), Source()
    source.write([100, 200])
    take(Archive(found), Format.SEGMENTS, source)
    return found


def test_a_manifest_is_read_up_to_the_length_that_there_is_memory_for(
    objects: MemoryObjects,
) -> None:
    """By its object and by what that would be unpacked to; elsewhere it is read."""
    whole = Archive(objects)
    head = whole.head()
    assert head is not None
    entry = head.runs[0]
    run = ArchivedRun(path="", run=entry.run, sha256=entry.sha256)
    for most in (entry.size - 1, entry.size):
        small = Shelf("s3://it", lambda _: objects, most=most).archive()
        for read in (lambda: small.manifest(entry), lambda: small.pinned(run)):  # noqa: B023
            with pytest.raises(PlanTooLarge, match=entry.name) as caught:
                read()
            assert "sluice archive" in caught.value.remedy
    assert max(objects.got[-4:]) <= entry.size
    assert whole.manifest(entry) == whole.pinned(run)[1]


def test_a_head_that_is_longer_than_any_is_damaged(objects: MemoryObjects) -> None:
    """It is not read to its end."""
    objects.put(head_name(2), b" " * (archives.MOST_SHORT + 1))
    with pytest.raises(ArchiveDamaged, match="too long"):
        Archive(objects).head()


def test_a_head_that_nobody_would_read_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive stays as it is."""
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
    """And none is made that nobody would read."""
    monkeypatch.setattr(noted, "MOST_SHORT", 100)
    with pytest.raises(PlanTooLarge, match="the plan of this run"):
        Notes(objects, OWNER).begin(Note(of="0" * 64, begun=OWNER, put=(), gaps=()))
    objects.put(str(NoteName(OWNER, 0)), b" " * 101)
    with pytest.raises(ArchiveDamaged, match="no note"):
        Notes(objects, OWNER).read()
