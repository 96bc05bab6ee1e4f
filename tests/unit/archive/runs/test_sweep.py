from collections.abc import Iterator
from uuid import uuid4

import pytest

from sluice.archive.objects.objects import ObjectInfo
from sluice.archive.runs.archive import Archive
from sluice.archive.runs.leases import Lease, hold, holding
from sluice.archive.runs.sweep import sweep
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.lease import GRACE, LeaseWork
from sluice.core.archive.names import Format
from sluice.core.values.archive_layout import EVENTS, HEADS, LEASES
from sluice.errors import ArchiveDamaged, ArchiveNotFound, InvalidSpec
from support.archiving.archives import Source, take
from support.archiving.sweeps import Clock, crashed, three_runs
from support.model.memory_objects import MemoryObjects

FORMATS = list(Format)
OWNER = uuid4().hex


@pytest.mark.parametrize("form", FORMATS)
def test_what_a_crash_left_is_swept_after_the_grace_time(
    archive: Archive, objects: MemoryObjects, clock: Clock, form: Format
) -> None:
    """Old objects that no run lists are deleted, and no others."""
    three_runs(archive, form)
    left = crashed(objects, form)
    clock.now += GRACE - 1
    assert sweep(archive).objects == 0
    clock.now += 2
    whole = dict(objects.held)
    swept = sweep(archive)
    gone = set(whole) - set(objects.held)
    assert gone == left | {f"{HEADS}{1:016x}", f"{HEADS}{2:016x}"}
    assert (swept.objects, swept.runs) == (len(gone), {9})
    assert swept.bytes == sum(len(whole[name]) for name in gone)
    assert verify_archive(archive).problems == []
    assert verify_archive(archive).runs == (1, 2, 3)
    assert sweep(archive).objects == 0


@pytest.mark.parametrize("form", FORMATS)
def test_a_dry_run_tells_and_deletes_nothing(
    archive: Archive, objects: MemoryObjects, clock: Clock, form: Format
) -> None:
    """The objects are reported and stay, and writers are not blocked."""
    three_runs(archive, form)
    crashed(objects, form)
    clock.now += GRACE + 1
    whole = dict(objects.held)
    told: list[str] = []
    with Lease(objects, OWNER, LeaseWork.WRITE):
        would = sweep(archive, dry=True, told=lambda one: told.append(one.name))
    assert objects.held == whole
    assert sweep(archive) == would
    assert set(told) == set(whole) - set(objects.held)


@pytest.mark.parametrize("form", FORMATS)
def test_what_only_forgotten_runs_had_is_swept(
    archive: Archive, objects: MemoryObjects, clock: Clock, form: Format
) -> None:
    """Removed runs take their manifests with them; objects of other runs stay."""
    three_runs(archive, form)
    head = archive.head()
    assert head is not None
    archive.drop_runs([1, 2], head)
    clock.now += GRACE + 1
    assert sweep(archive).runs == {1, 2}
    assert verify_archive(archive).problems == []
    assert len(list(objects.list(HEADS))) == 1


def test_objects_of_others_are_left_alone(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """Another client put the objects without an archive's name, and they stay."""
    three_runs(archive, Format.SEGMENTS)
    names = ["data/README", "events/x/y", "notes.txt", "runs/mine", "heads/1"]
    names += [".partial/mine", f".partial/{'01' * 16}/{HEADS}{1:016x}"]
    for name in names:
        objects.put(name, b"mine")
    clock.now += 10 * GRACE
    sweep(archive)
    assert all(name in objects.held for name in names)


@pytest.mark.parametrize("form", FORMATS)
def test_a_run_that_is_read_is_not_swept(
    archive: Archive, objects: MemoryObjects, clock: Clock, form: Format
) -> None:
    """A run that is removed during its restore stays whole until the end of that."""
    source = Source()
    source.write([10, 20])
    first = take(archive, form, source).runs[0]
    (segment,) = source.segments
    segment.start = len(segment.data)
    source.write([30])
    head = take(archive, form, source)
    manifest = archive.manifest(first)
    with holding(archive, OWNER, first) as lease:
        archive.drop_runs([1], head)
        clock.now += GRACE - 1
        lease.look()
        clock.now += 2
        sweep(archive)
        assert archive.manifest(first) == manifest
        assert all(one.name in objects.held for one in manifest.objects)
    assert sweep(archive).runs == {1}


def test_leases_are_swept_where_an_object_is_told_to_the_second(
    objects: MemoryObjects, clock: Clock
) -> None:
    """A bucket's listing may have a more precise time of an object than a look at it."""

    class Bucket(MemoryObjects):
        """Objects with the times of such a bucket."""

        def look(self, name: str) -> ObjectInfo | None:
            """Return the facts about an object."""
            found = objects.look(name)
            return found and found._replace(modified=found.modified // 1000 * 1000)

        def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
            """List the objects in a folder and below it."""
            return objects.list(prefix, after)

    clock.now += 0.7
    bucket = Bucket(clock)
    bucket.held, bucket.modified = objects.held, objects.modified
    archive = Archive(bucket)
    three_runs(archive, Format.SEGMENTS)
    Lease(bucket, OWNER, LeaseWork.WRITE, clock=clock).__enter__()
    clock.now += GRACE + 1
    sweep(archive)
    assert not [one.name for one in bucket.list(LEASES)]


def test_a_lease_that_is_taken_again_is_not_swept(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """A restore that is resumed after a day keeps its run, though its lease had ended."""
    three_runs(archive, Format.SEGMENTS)
    head = archive.head()
    assert head is not None
    entry = head.runs[0]
    lease = hold(archive, OWNER, entry)
    hold(archive, uuid4().hex, entry)
    clock.now += GRACE + 1

    def again(_: ObjectInfo) -> None:
        lease.look()

    sweep(archive, told=again)
    assert [one.name for one in objects.list(LEASES)] == [lease.name]


def test_a_run_that_was_let_go_cannot_be_held(archive: Archive) -> None:
    """A late reader gets an error instead of reading objects that are being deleted."""
    three_runs(archive, Format.SEGMENTS)
    head = archive.head()
    assert head is not None
    archive.drop_runs([1], head)
    with (
        pytest.raises(ArchiveNotFound, match="run 1 of the archive was let go"),
        holding(archive, OWNER, head.runs[0]),
    ):
        pass


def test_an_archive_that_cannot_be_read_is_not_swept(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """If the needed objects are unknown, nothing is deleted."""
    with pytest.raises(ArchiveNotFound):
        sweep(archive)
    three_runs(archive, Format.SEGMENTS)
    head = archive.head()
    assert head is not None
    clock.now += GRACE + 1
    crashed(objects, Format.SEGMENTS)
    objects.held[head.runs[0].name] = b"x"
    whole = dict(objects.held)
    with pytest.raises(ArchiveDamaged):
        sweep(archive)
    assert objects.held == whole


def test_a_grace_time_that_is_too_short_is_refused(archive: Archive) -> None:
    """In less than an hour, clients may not notice that they are late."""
    with pytest.raises(InvalidSpec) as caught:
        sweep(archive, grace=60)
    assert caught.value.field == "grace"


def test_a_sweep_that_is_cut_off_is_done_again(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """The archive is whole after any number of deletions, and the next sweep goes on."""
    three_runs(archive, Format.EVENT_OBJECTS)
    crashed(objects, Format.EVENT_OBJECTS)
    clock.now += GRACE + 1
    for count in range(1, 5):
        for name in cut_off(archive, count):
            del objects.held[name]
        assert verify_archive(archive).problems == []
    sweep(archive)
    assert len(list(objects.list(EVENTS))) == 30


def cut_off(archive: Archive, count: int) -> list[str]:
    """Return the first names that a sweep would delete."""
    told: list[str] = []
    sweep(archive, dry=True, told=lambda one: told.append(one.name))
    return told[:count]
