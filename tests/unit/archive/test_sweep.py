import time
from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

import pytest

from sluice.archive.archive import Archive
from sluice.archive.leases import Lease, hold, holding
from sluice.archive.objects import Found
from sluice.archive.sweep import sweep
from sluice.archive.verify import verify_archive
from sluice.core.archive.lease import GRACE, RENEW, SWEEPING, Work
from sluice.core.archive.names import EVENTS, HEADS, LEASES, Format
from sluice.errors import ArchiveDamaged, ArchiveNotFound, InvalidSpec, StoreBusy, StoreUnavailable
from support.archived_events import framed, many_events, write
from support.archives import Source, take
from support.gated_objects import GatedObjects
from support.memory_objects import MemoryObjects
from support.model import Fate

FORMATS = list(Format)
OWNER = uuid4().hex


class Clock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        """What it shows."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Gives the clock of the store, and of those who work there."""
    return Clock()


@pytest.fixture
def objects(clock: Clock) -> MemoryObjects:
    """Gives an empty store."""
    return MemoryObjects(clock)


@pytest.fixture
def archive(objects: MemoryObjects) -> Archive:
    """Gives an archive without a run."""
    return Archive(objects)


def three_runs(archive: Archive, form: Format) -> None:
    """Record three runs, the last one with bytes that the others have not got."""
    source = Source()
    for _ in range(3):
        source.write([10, 300] * 5)
        take(archive, form, source)


def crashed(objects: MemoryObjects, form: Format) -> set[str]:
    """Leave behind what a driver leaves that is killed before it records; the names."""
    before = set(objects.held)
    write(form, objects, framed(many_events(99, [77] * 9)), 1 << 40)
    objects.put(f"runs/{9:016x}-{'ab' * 32}.json.zst", b"never recorded")
    objects.put(f".partial/{'01' * 16}", b"half an obj")
    return set(objects.held) - before


@pytest.mark.parametrize("form", FORMATS)
def test_what_a_crash_left_is_swept_after_the_grace_time(
    archive: Archive, objects: MemoryObjects, clock: Clock, form: Format
) -> None:
    """What no run lists goes when it is old enough, and nothing else does."""
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
    """What would be deleted is told, and is there afterwards; whoever writes is not kept."""
    three_runs(archive, form)
    crashed(objects, form)
    clock.now += GRACE + 1
    whole = dict(objects.held)
    told: list[str] = []
    with Lease(objects, OWNER, Work.WRITE):
        would = sweep(archive, dry=True, told=lambda one: told.append(one.name))
    assert objects.held == whole
    assert sweep(archive) == would
    assert set(told) == set(whole) - set(objects.held)


@pytest.mark.parametrize("form", FORMATS)
def test_what_only_forgotten_runs_had_is_swept(
    archive: Archive, objects: MemoryObjects, clock: Clock, form: Format
) -> None:
    """Runs that are let go take their manifests with them, and share the rest with those kept."""
    three_runs(archive, form)
    head = archive.head()
    assert head is not None
    archive.forget([1, 2], head)
    clock.now += GRACE + 1
    assert sweep(archive).runs == {1, 2}
    assert verify_archive(archive).problems == []
    assert len(list(objects.list(HEADS))) == 1


def test_objects_of_others_are_left_alone(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """What has no name of an archive was put there by somebody, and stays."""
    three_runs(archive, Format.SEGMENTS)
    names = ["data/README", "events/x/y", "notes.txt", "runs/mine", "heads/1"]
    names += [".partial/mine", f".partial/{'01' * 16}/{HEADS}{1:016x}"]
    for name in names:
        objects.put(name, b"mine")
    clock.now += 10 * GRACE
    sweep(archive)
    assert all(name in objects.held for name in names)


def test_nobody_sweeps_while_somebody_writes(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """A writer's objects are safe however long it takes, as long as it renews its lease."""
    three_runs(archive, Format.SEGMENTS)
    with Lease(objects, OWNER, Work.WRITE, clock=clock) as lease:
        left = crashed(objects, Format.SEGMENTS)
        for _ in range(int(2 * GRACE / RENEW)):
            clock.now += RENEW + 1
            lease.renew()
            assert lease.is_held
        with pytest.raises(StoreBusy, match="Write by name"):
            sweep(archive)
        assert left <= set(objects.held)
    assert sweep(archive).objects >= len(left)
    assert not list(objects.list(LEASES))


def test_nobody_writes_while_somebody_sweeps(objects: MemoryObjects) -> None:
    """Who comes while objects are deleted waits, and leaves no lease behind."""
    with Lease(objects, uuid4().hex, Work.SWEEP) as sweeping:
        with (
            pytest.raises(StoreBusy, match="Sweep by name") as caught,
            Lease(objects, OWNER, Work.WRITE),
        ):
            pass
        assert caught.value.retryable
        assert [one.name for one in objects.list(LEASES)] == [sweeping.name]
    with Lease(objects, OWNER, Work.WRITE):
        pass


def test_a_killed_writer_keeps_nobody_for_ever(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """A lease that is not renewed counts for the grace time and is swept then."""
    three_runs(archive, Format.SEGMENTS)
    Lease(objects, OWNER, Work.WRITE).__enter__()
    clock.now += GRACE - 1
    with pytest.raises(StoreBusy):
        sweep(archive)
    clock.now += 2
    sweep(archive)
    assert not list(objects.list(LEASES))


def test_a_killed_sweep_keeps_writers_for_an_hour(objects: MemoryObjects, clock: Clock) -> None:
    """Its lease counts no longer, and it relies on it for half of that."""
    sweeping = Lease(objects, uuid4().hex, Work.SWEEP, clock=clock)
    sweeping.__enter__()
    clock.now += SWEEPING / 2
    assert not sweeping.is_held
    with pytest.raises(StoreBusy, match="Sweep by name"), Lease(objects, OWNER, Work.WRITE):
        pass
    clock.now += SWEEPING / 2
    with Lease(objects, OWNER, Work.WRITE):
        pass


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.REPLY_LOST])
@pytest.mark.parametrize("call", ["put leases/", "look leases/", "list leases/", "delete 1"])
def test_a_sweep_whose_call_is_lost_leaves_no_lease(
    archive: Archive, objects: MemoryObjects, clock: Clock, call: str, fate: Fate
) -> None:
    """Neither where it is taken, nor where it is given back: no run is kept by it."""
    three_runs(archive, Format.SEGMENTS)
    clock.now += GRACE + 1
    lost: list[str] = []

    def gate(what: str) -> Fate:
        if lost or not what.startswith(call):
            return Fate.DONE
        lost.append(what)
        return fate

    with suppress(StoreUnavailable):
        sweep(Archive(GatedObjects(objects, gate)))
    assert lost
    assert not list(objects.list(LEASES))


def test_a_sweep_renews_its_lease_while_it_looks(
    archive: Archive, objects: MemoryObjects, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes to list what there is, where nothing is to be deleted for long."""
    three_runs(archive, Format.SEGMENTS)
    monkeypatch.setattr(time, "clock_gettime", lambda _: clock.now)
    monkeypatch.setattr(archive, "objects", Slow(objects, clock))
    sweep(archive)


class Slow(MemoryObjects):
    """Objects whose listings take ten minutes for each object."""

    def __init__(self, there: MemoryObjects, clock: Clock) -> None:
        super().__init__(clock)
        self.held, self.modified = there.held, there.modified
        self._now = clock

    def list(self, prefix: str = "", after: str = "") -> Iterator[Found]:
        """The objects in a folder, slowly unless these are leases."""
        for found in super().list(prefix, after):
            if prefix != LEASES:
                self._now.now += 600
            yield found


def test_a_writer_that_was_held_up_too_long_is_told(objects: MemoryObjects, clock: Clock) -> None:
    """After half the grace time without a renewal a lease is not relied on any more."""
    with Lease(objects, OWNER, Work.WRITE, clock=clock) as lease:
        clock.now += GRACE / 2 + 1
        assert not lease.is_held
        with pytest.raises(StoreBusy, match="too long"):
            lease.renew()


def test_the_time_counts_for_which_a_machine_is_suspended(
    objects: MemoryObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then Linux' monotonic clock stands still, and the lease may be over all the same."""
    with Lease(objects, OWNER, Work.WRITE) as lease:
        now = time.clock_gettime

        def later(clock: int) -> float:
            return now(clock) + (GRACE if clock == time.CLOCK_BOOTTIME else 0)

        monkeypatch.setattr(time, "clock_gettime", later)
        assert not lease.is_held


def test_each_driver_of_a_run_has_a_lease_of_its_own(objects: MemoryObjects) -> None:
    """A second one is not kept by the first, and takes nothing away from it when it ends."""
    with Lease(objects, OWNER, Work.WRITE) as first:
        with Lease(objects, OWNER, Work.WRITE) as second:
            assert second.earlier == (first.name,)
        with (
            pytest.raises(StoreBusy, match="Write by name"),
            Lease(objects, uuid4().hex, Work.SWEEP),
        ):
            pass


@pytest.mark.parametrize(("mine", "theirs"), [(Work.WRITE, Work.SWEEP), (Work.SWEEP, Work.WRITE)])
def test_whoever_was_taken_for_given_up_gives_way(
    objects: MemoryObjects, clock: Clock, mine: Work, theirs: Work
) -> None:
    """One whose lease was deleted sees at its next renewal who has begun meanwhile."""
    lease = Lease(objects, OWNER, mine, clock=clock)
    lease.__enter__()
    objects.delete([lease.name])
    with Lease(objects, uuid4().hex, theirs) as other:
        clock.now += RENEW + 1
        with pytest.raises(StoreBusy, match=f"{theirs} by name"):
            lease.renew()
        assert not lease.is_held
        assert [one.name for one in objects.list(LEASES)] == [other.name]


@pytest.mark.parametrize("form", FORMATS)
def test_a_run_that_is_read_is_not_swept(
    archive: Archive, objects: MemoryObjects, clock: Clock, form: Format
) -> None:
    """A run that is let go while it is restored stays whole until that is done."""
    source = Source()
    source.write([10, 20])
    first = take(archive, form, source).runs[0]
    (segment,) = source.segments
    segment.start = len(segment.data)
    source.write([30])
    head = take(archive, form, source)
    manifest = archive.manifest(first)
    with holding(archive, OWNER, first) as lease:
        archive.forget([1], head)
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
    """Of a bucket a listing may say more precisely when an object was made than a look at it."""

    class Bucket(MemoryObjects):
        """Objects as such a bucket tells of them."""

        def look(self, name: str) -> Found | None:
            """What is known of an object."""
            found = objects.look(name)
            return found and found._replace(modified=found.modified // 1000 * 1000)

        def list(self, prefix: str = "", after: str = "") -> Iterator[Found]:
            """The objects in a folder and below it."""
            return objects.list(prefix, after)

    clock.now += 0.7
    bucket = Bucket(clock)
    bucket.held, bucket.modified = objects.held, objects.modified
    archive = Archive(bucket)
    three_runs(archive, Format.SEGMENTS)
    Lease(bucket, OWNER, Work.WRITE, clock=clock).__enter__()
    clock.now += GRACE + 1
    sweep(archive)
    assert not [one.name for one in bucket.list(LEASES)]


def test_a_lease_that_is_taken_again_is_not_swept(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """A copy that is gone on with after a day keeps its run, though its lease was over."""
    three_runs(archive, Format.SEGMENTS)
    head = archive.head()
    assert head is not None
    entry = head.runs[0]
    lease = hold(archive, OWNER, entry)
    hold(archive, uuid4().hex, entry)
    clock.now += GRACE + 1

    def again(_: Found) -> None:
        lease.look()

    sweep(archive, told=again)
    assert [one.name for one in objects.list(LEASES)] == [lease.name]


def test_a_run_that_was_let_go_cannot_be_held(archive: Archive) -> None:
    """Who comes too late to keep it is told, instead of reading what is being deleted."""
    three_runs(archive, Format.SEGMENTS)
    head = archive.head()
    assert head is not None
    archive.forget([1], head)
    with (
        pytest.raises(ArchiveNotFound, match="run 1 of the archive was let go"),
        holding(archive, OWNER, head.runs[0]),
    ):
        pass


def test_an_archive_that_cannot_be_read_is_not_swept(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """Where it is not known what is needed, nothing is deleted."""
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
    """Less than an hour is no time in which everybody notices that they are late."""
    with pytest.raises(InvalidSpec) as caught:
        sweep(archive, grace=60)
    assert caught.value.field == "grace"


def test_a_sweep_that_is_cut_off_is_done_again(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """However many objects are gone when it ends, the archive is whole and the next one goes on."""
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
    """The first names that a sweep would delete."""
    told: list[str] = []
    sweep(archive, dry=True, told=lambda one: told.append(one.name))
    return told[:count]
