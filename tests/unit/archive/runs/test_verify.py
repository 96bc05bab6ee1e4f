import hashlib
import json
import random
from pathlib import Path

import pytest
import zstandard

from sluice.archive.formats.reading import read_segment
from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.runs.archive import Archive, find_run
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.documents import encode
from sluice.core.archive.head import Head
from sluice.core.archive.names import Format
from sluice.core.events.digest import CHUNK
from sluice.core.values.archive_layout import DATA, EVENTS, HEADS, RUNS
from sluice.errors import ArchiveDamaged, ArchiveNotFound
from support.archiving.archives import Source, grown_archive, held, take
from support.model.memory_objects import MemoryObjects

FORMATS = list(Format)


@pytest.mark.parametrize("form", FORMATS)
def test_a_whole_archive_has_no_problems(form: Format) -> None:
    """Three incremental runs are verified at once, each object read once."""
    archive, source = grown_archive(form)
    found = verify_archive(archive)
    assert found.problems == []
    assert found.runs == (1, 2, 3)
    assert found.bytes == sum(len(one.data) for one in source.segments)
    assert found.objects == len([name for name in held(archive) if name.startswith(DATA)])


@pytest.mark.parametrize("form", FORMATS)
def test_each_run_is_what_the_stream_was(form: Format) -> None:
    """Each run by itself has exactly the bytes that the stream had then."""
    archive = Archive(MemoryObjects())
    source = Source()
    then = []
    for number in range(4):
        source.write([100 * number, 3000, 5] * 20)
        if number == 2:
            source.split()
        take(archive, form, source)
        then.append([bytes(one.data) for one in source.segments])
    head = archive.head()
    assert head is not None
    for entry, data in zip(head.runs, then, strict=True):
        manifest = archive.manifest(entry)
        assert [
            b"".join(
                bytes(block)
                for block in read_segment(archive.objects, form, one, one.start, one.end)
            )
            for one in manifest.segments
        ] == data
        assert entry.bytes == sum(map(len, data))


def test_chunks_that_grow_over_runs_are_verified() -> None:
    """Runs that end inside chunks have digests of these, and all are compared."""
    archive = Archive(MemoryObjects())
    source = Source()
    for _ in range(3):
        source.write([CHUNK // 3] * 4)
        take(archive, Format.SEGMENTS, source)
    assert verify_archive(archive).problems == []
    assert verify_archive(archive, runs=[2]).bytes < verify_archive(archive).bytes


@pytest.mark.parametrize("form", FORMATS)
def test_20_flipped_bytes_are_each_named(form: Format) -> None:
    """A random changed byte in data or manifests is found, and its object is named."""
    archive, _ = grown_archive(form)
    objects = held(archive)
    chance = random.Random(7)  # noqa: S311 - no secrets
    names = sorted(name for name in objects if not name.startswith(HEADS) and objects[name])
    for _ in range(20):
        name = chance.choice(names)
        good = objects[name]
        bad = bytearray(good)
        bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        objects[name] = bytes(bad)
        found = verify_archive(archive)
        assert [one.name for one in found.problems] == [name]
        assert found.problems[0].what.startswith(f"{name} ")
        assert found.damaged
        objects[name] = good
    assert verify_archive(archive).problems == []


@pytest.mark.parametrize("form", FORMATS)
def test_missing_objects_are_each_named(form: Format) -> None:
    """A missing object is named, with the runs that need it."""
    archive, _ = grown_archive(form)
    objects = held(archive)
    first, *_, last = sorted(name for name in objects if name.startswith(DATA))
    for name in (first, last):
        del objects[name]
    found = verify_archive(archive)
    assert [(one.name, one.what) for one in found.problems] == [
        (first, f"{first} is missing"),
        (last, f"{last} is missing"),
    ]
    assert [one.runs for one in found.problems] == [(1, 2, 3), (3,)]


@pytest.mark.parametrize("form", FORMATS)
def test_swapped_objects_are_each_named(form: Format) -> None:
    """Both objects are named, each with the owner of its bytes."""
    archive, _ = grown_archive(form)
    objects = held(archive)
    one, other = sorted(name for name in objects if name.startswith(DATA))[1:3]
    objects[one], objects[other] = objects[other], objects[one]
    found = {problem.name: problem.what for problem in verify_archive(archive).problems}
    assert found.keys() == {one, other}
    if len(objects[one]) == len(objects[other]):
        assert found[one] == f"{one} holds the bytes of {other}"


def test_an_object_in_anothers_place_is_told_apart() -> None:
    """For objects of any length the message says whose bytes they hold."""
    archive, _ = grown_archive(Format.SEGMENTS)
    objects = held(archive)
    one, other = sorted(name for name in objects if name.startswith(DATA))[:2]
    objects[one] = objects[other]
    (problem,) = verify_archive(archive).problems
    assert problem.what == f"{one} holds the bytes of {other}"


@pytest.mark.parametrize("what", ["missing", "changed"])
def test_all_damaged_events_of_an_index_are_named(what: str) -> None:
    """One damaged event does not hide another."""
    archive, _ = grown_archive(Format.EVENT_OBJECTS)
    objects = held(archive)
    names = sorted(name for name in objects if name.startswith(EVENTS) and objects[name])
    chosen = [names[3], names[4], names[-1]]
    for name in chosen:
        if what == "missing":
            del objects[name]
        else:
            objects[name] = bytes(len(objects[name]))
    assert [one.name for one in verify_archive(archive).problems] == chosen


def edit(archive: Archive, run: int, old: bytes, new: bytes) -> str:
    """Change only a run's manifest, and return its name."""
    head = archive.head()
    assert head is not None
    name = find_run(head, run=run).name
    text = zstandard.ZstdDecompressor().decompress(held(archive)[name])
    assert old in text
    held(archive)[name] = zstandard.ZstdCompressor().compress(text.replace(old, new, 1))
    return name


@pytest.mark.parametrize("run", [1, 2, 3])
def test_an_edited_manifest_is_named(run: int) -> None:
    """The head knows each manifest's SHA-256."""
    archive, _ = grown_archive(Format.SEGMENTS)
    name = edit(archive, run, b"team=a", b"team=b")
    (problem,) = verify_archive(archive).problems
    assert (problem.name, problem.runs) == (name, (run,))
    assert problem.what == f"{name} holds other bytes than the head says"


def forge(archive: Archive, run: int, old: bytes, new: bytes) -> Head:
    """Change a manifest, and its name and head to fit; return the earlier head."""
    head = archive.head()
    assert head is not None
    before = find_run(head, run=run)
    name = edit(archive, run, old, new)
    data = held(archive).pop(name)
    sha256 = hashlib.sha256(data).hexdigest()
    held(archive)[name.replace(before.sha256, sha256)] = data
    fields = before.model_dump() | {
        "name": name.replace(before.sha256, sha256),
        "sha256": sha256,
        "size": len(data),
    }
    runs = [one.model_dump() if one.run != run else fields for one in head.runs]
    forged = Head.model_validate({"number": head.number, "runs": runs})
    held(archive)[f"{HEADS}{head.number:016x}"] = encode(forged)
    return head


@pytest.mark.parametrize("run", [1, 2])
def test_a_manifest_that_was_edited_with_its_head_breaks_the_chain(run: int) -> None:
    """The next run has the SHA-256 of its parent."""
    archive, _ = grown_archive(Format.SEGMENTS)
    forge(archive, run, b"team=a", b"team=b")
    (problem,) = verify_archive(archive).problems
    assert problem.runs == (run + 1,)
    assert f"adds to a run {run} that is another one" in problem.what


def test_a_head_that_was_written_down_tells_of_any_change() -> None:
    """A consistent change still gives another head than the recorded one."""
    archive, _ = grown_archive(Format.SEGMENTS)
    known = verify_archive(archive).head
    assert verify_archive(archive, head=known).problems == []
    forge(archive, 3, b"team=a", b"team=b")
    assert verify_archive(archive).problems == []
    (problem,) = verify_archive(archive, head=known).problems
    assert problem.name == f"{HEADS}{3:016x}"
    assert problem.runs == (1, 2, 3)


def test_the_head_of_a_later_minor_version_is_the_one_that_was_written_down() -> None:
    """Its SHA-256 is that of the object, with the fields that are unknown here."""
    archive, _ = grown_archive(Format.SEGMENTS)
    objects, name = held(archive), f"{HEADS}{3:016x}"
    body = json.loads(objects[name])
    objects[name] = json.dumps(body | {"version": "1.9", "later": True}).encode()
    known = hashlib.sha256(objects[name]).hexdigest()
    found = verify_archive(archive, head=known)
    assert (found.head, found.problems) == (known, [])


def test_digests_that_are_not_those_of_the_bytes_are_named() -> None:
    """The objects are whole but differ from the source's bytes, so the manifest is named."""
    archive, _ = grown_archive(Format.SEGMENTS)
    head = archive.head()
    assert head is not None
    digests = archive.manifest(head.runs[-1]).segments[0].stretches[0].digests
    forge(archive, 3, digests.encode(), hashlib.sha256(b"").hexdigest().encode())
    (problem,) = verify_archive(archive).problems
    assert problem.name.startswith(RUNS)
    assert problem.runs == (3,)
    assert "has another digest than the bytes 0 to" in problem.what


def test_numbers_of_events_that_are_wrong_are_named() -> None:
    """A manifest with another number of events is not believed."""
    archive, _ = grown_archive(Format.SEGMENTS)
    head = archive.head()
    assert head is not None
    entry = archive.manifest(head.runs[-1]).segments[-1].stretches[0].objects[0]
    forge(archive, 3, f'"first":{entry.first},"last":{entry.last}'.encode(), b'"first":1,"last":9')
    (problem,) = verify_archive(archive).problems
    assert "says other events" in problem.what


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"version":"1.1"', b'"version":"1.1","more":1', "more"),
        (b'"kind":"sluice.dev/archive-run"', b'"kind":"other"', "kind"),
        (b'"run":2', b'"run":7', "another run"),
        (b'"format":"Segments"', b'"format":"Parquet"', "in the place of"),
        (b'"high":0.5', b'"high":0.4', "all keys"),
        (b'"epoch":0', b'"epoch":5', "order|epoch"),
        (b'"start":0', b'"start":8', "offset|cut"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_named(old: bytes, new: bytes, why: str) -> None:
    """Contradictions are refused on reading, for any SHA-256."""
    archive, _ = grown_archive(Format.SEGMENTS)
    forge(archive, 2, old, new)
    found = verify_archive(archive, runs=[2])
    (problem,) = found.problems
    assert problem.name.startswith(RUNS)
    with pytest.raises(ArchiveDamaged, match=why):
        raise ArchiveDamaged(problem.what)


def test_a_damaged_head_is_named() -> None:
    """Without its head no part of an archive can be believed."""
    archive, _ = grown_archive(Format.SEGMENTS)
    name = f"{HEADS}{3:016x}"
    held(archive)[name] = held(archive)[name][:-9]
    (problem,) = verify_archive(archive).problems
    assert problem == (name, f"{name} is no JSON", ())


def test_no_archive_and_no_run_are_told() -> None:
    """Verifying nothing is an error, not a success."""
    with pytest.raises(ArchiveNotFound):
        verify_archive(Archive(MemoryObjects()))
    archive, _ = grown_archive(Format.SEGMENTS)
    with pytest.raises(ArchiveNotFound, match="no run 9"):
        verify_archive(archive, runs=[1, 9])


def test_gaps_are_verified_around(tmp_path: Path) -> None:
    """A segment that lost bytes between two runs is whole on both sides of the gap."""
    archive = Archive(DirectoryObjects(tmp_path))
    source = Source()
    source.write([1000] * 30)
    take(archive, Format.PARQUET, source)
    source.write([500] * 30)
    (segment,) = source.segments
    segment.start = len(segment.data) - 508 * 10
    head = take(archive, Format.PARQUET, source)
    assert verify_archive(archive).problems == []
    manifest = archive.manifest(head.runs[-1])
    (archived,) = manifest.segments
    (gap,) = archived.gaps
    assert (gap.start, gap.end, gap.reason, gap.run) == (30240, segment.start, "SourceTruncated", 2)
    assert archived.events == 40
    with pytest.raises(ArchiveDamaged, match="no byte 30240 of segment 0"):
        list(read_segment(archive.objects, Format.PARQUET, archived, 0, archived.end))
    tail = b"".join(
        bytes(block)
        for block in read_segment(
            archive.objects, Format.PARQUET, archived, segment.start, archived.end
        )
    )
    assert tail == segment.data[segment.start :]
