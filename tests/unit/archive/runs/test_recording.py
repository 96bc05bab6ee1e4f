"""Recording runs, removing them, and finding them again."""

import threading
from pathlib import Path

import pytest

from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.runs import archive as archive_module
from sluice.archive.runs.archive import Archive, find_run
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.documents import encode
from sluice.core.archive.head import Head
from sluice.core.archive.names import Format
from sluice.core.values.archive_layout import HEADS
from sluice.errors import ArchiveMoved, ArchiveNotFound, InvalidSpec
from support.archiving.archives import Source, grown_archive, held, take
from support.model import Fate
from support.model.gated_objects import GatedObjects
from support.model.memory_objects import MemoryObjects


def test_of_many_that_record_a_run_one_does(tmp_path: Path) -> None:
    """Of drivers that record different runs on one head, one wins, and the others get an error."""
    archive = Archive(DirectoryObjects(tmp_path))
    source = Source()
    source.write([10])
    take(archive, Format.SEGMENTS, source)
    source.write([10])
    gate = threading.Barrier(8)
    results: list[object] = []

    class Waiting(DirectoryObjects):
        """A store in which all drivers reach the head at once."""

        def put_new(self, name: str, data: bytes | bytearray | memoryview) -> bool:
            gate.wait()
            return super().put_new(name, data)

    def run(number: int) -> None:
        config = archive.manifest(archive.head().runs[-1]).config  # type: ignore[union-attr]
        own = config.model_copy(update={"tags": (f"driver={number}",)})
        try:
            results.append(take(Archive(Waiting(tmp_path)), Format.SEGMENTS, source, config=own))
        except ArchiveMoved as error:
            results.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    heads = [one for one in results if isinstance(one, Head)]
    assert len(heads) == 1
    assert archive.head() == heads[0]
    assert verify_archive(archive).problems == []


def test_recording_again_changes_nothing() -> None:
    """A driver that lost the answer records the same run once more."""
    archive, source = grown_archive(Format.SEGMENTS)
    on = archive.head()
    source.write([5])
    head = take(archive, Format.SEGMENTS, source)
    manifest = archive.manifest(head.runs[-1])
    assert archive.record(manifest, on, verified=False) == head
    assert archive.head() == head


def test_a_run_on_an_old_head_is_refused() -> None:
    """A driver that was stopped until heads were swept gets an error."""
    archive, source = grown_archive(Format.SEGMENTS)
    old = archive.head()
    source.write([5])
    mine = archive.manifest(take(archive, Format.SEGMENTS, source).runs[-1])
    source.write([5])
    last = take(archive, Format.SEGMENTS, source)
    archive.drop_runs([4], last)
    del held(archive)[f"{HEADS}{4:016x}"]
    with pytest.raises(ArchiveMoved, match="too late"):
        archive.record(mine, old, verified=False)
    head = archive.head()
    assert head is not None
    assert [one.run for one in head.runs] == [1, 2, 3, 5]


def test_a_head_that_is_swept_while_it_is_read_is_none_that_is_missing() -> None:
    """A later head exists by then, and is read."""
    archive, source = grown_archive(Format.SEGMENTS)
    before = archive.head()
    assert before is not None
    there, objects, name = archive.objects, held(archive), f"{HEADS}{before.number:016x}"
    assert isinstance(there, MemoryObjects)

    def gate(what: str) -> Fate:
        if what == f"get {name}" and name in objects:
            source.write([5])
            take(archive, Format.SEGMENTS, source)
            del objects[name]
        return Fate.DONE

    late = Archive(GatedObjects(there, gate)).head()
    assert late is not None
    assert late == archive.head()
    assert late.number == before.number + 1


def test_a_manifest_that_readers_would_refuse_is_not_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run with more objects than a manifest may list is refused. Earlier runs stay."""
    archive, source = grown_archive(Format.SEGMENTS)
    head = archive.head()
    assert head is not None
    longest = len(encode(archive.manifest(head.runs[-1])))
    monkeypatch.setattr(archive_module, "MOST_BYTES", longest)
    source.write([5])
    with pytest.raises(InvalidSpec, match="bytes of JSON") as caught:
        take(archive, Format.SEGMENTS, source)
    assert caught.value.field == "spec.destination.path"
    assert "another path" in caught.value.remedy
    assert archive.head() == head
    assert verify_archive(archive).problems == []


def test_forgotten_runs_are_not_verified_and_the_last_one_stays() -> None:
    """A removed run does not count any more, and chains skip it."""
    archive, _ = grown_archive(Format.SEGMENTS)
    head = archive.head()
    assert head is not None
    with pytest.raises(InvalidSpec, match="last run"):
        archive.drop_runs([3], head)
    assert [one.run for one in archive.drop_runs([1, 2], head).runs] == [3]
    assert verify_archive(archive).runs == (3,)
    with pytest.raises(ArchiveMoved):
        archive.drop_runs([1], head)


def test_runs_are_found_by_number_and_time() -> None:
    """A run is chosen as the last one, by its number, or as the last one up to a time."""
    archive, _ = grown_archive(Format.SEGMENTS)
    head = archive.head()
    assert head is not None
    assert find_run(head).run == 3
    assert find_run(head, run=2).run == 2
    assert find_run(head, until=head.runs[1].time + 59_999).run == 2
    assert find_run(head, until=head.runs[1].time - 1).run == 1
    with pytest.raises(ArchiveNotFound, match="the archive has 1, 2, 3"):
        find_run(head, until=5)
