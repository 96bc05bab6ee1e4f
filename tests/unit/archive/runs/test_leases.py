"""Leases of writers, readers and sweeps at one time."""

import time
from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

import pytest

from sluice.archive.objects.objects import ObjectInfo
from sluice.archive.runs.archive import Archive
from sluice.archive.runs.leases import Lease
from sluice.archive.runs.sweep import sweep
from sluice.core.archive.lease import GRACE, RENEW, SWEEPING, LeaseWork
from sluice.core.archive.names import Format
from sluice.core.values.archive_layout import LEASES
from sluice.errors import StoreBusy, StoreUnavailable
from support.archiving.sweeps import Clock, crashed, three_runs
from support.model import Fate
from support.model.gated_objects import GatedObjects
from support.model.memory_objects import MemoryObjects

OWNER = uuid4().hex


def test_no_sweep_begins_beside_a_writer(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """A writer's objects are safe as long as it renews its lease."""
    three_runs(archive, Format.SEGMENTS)
    with Lease(objects, OWNER, LeaseWork.WRITE, clock=clock) as lease:
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


def test_no_writer_begins_during_a_sweep(objects: MemoryObjects) -> None:
    """A writer that comes during deletions waits, and leaves no lease behind."""
    with Lease(objects, uuid4().hex, LeaseWork.SWEEP) as sweeping:
        with (
            pytest.raises(StoreBusy, match="Sweep by name") as caught,
            Lease(objects, OWNER, LeaseWork.WRITE),
        ):
            pass
        assert caught.value.retryable
        assert [one.name for one in objects.list(LEASES)] == [sweeping.name]
    with Lease(objects, OWNER, LeaseWork.WRITE):
        pass


def test_a_killed_writer_keeps_nobody_for_ever(
    archive: Archive, objects: MemoryObjects, clock: Clock
) -> None:
    """A lease that is not renewed counts for the grace time and is swept then."""
    three_runs(archive, Format.SEGMENTS)
    Lease(objects, OWNER, LeaseWork.WRITE).__enter__()
    clock.now += GRACE - 1
    with pytest.raises(StoreBusy):
        sweep(archive)
    clock.now += 2
    sweep(archive)
    assert not list(objects.list(LEASES))


def test_a_killed_sweep_keeps_writers_for_an_hour(objects: MemoryObjects, clock: Clock) -> None:
    """Its lease counts no longer, and the sweep relies on it for half of that."""
    sweeping = Lease(objects, uuid4().hex, LeaseWork.SWEEP, clock=clock)
    sweeping.__enter__()
    clock.now += SWEEPING / 2
    assert not sweeping.is_held
    with pytest.raises(StoreBusy, match="Sweep by name"), Lease(objects, OWNER, LeaseWork.WRITE):
        pass
    clock.now += SWEEPING / 2
    with Lease(objects, OWNER, LeaseWork.WRITE):
        pass


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.REPLY_LOST])
@pytest.mark.parametrize("call", ["put leases/", "look leases/", "list leases/", "delete 1"])
def test_a_sweep_whose_call_is_lost_leaves_no_lease(
    archive: Archive, objects: MemoryObjects, clock: Clock, call: str, fate: Fate
) -> None:
    """The call may take the lease or release it; no run is blocked by a lost call."""
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
    """This holds for a long listing, even if the sweep deletes nothing for long."""
    three_runs(archive, Format.SEGMENTS)
    monkeypatch.setattr(time, "clock_gettime", lambda _: clock.now)
    monkeypatch.setattr(archive, "objects", Slow(objects, clock))
    sweep(archive)


class Slow(MemoryObjects):
    """Objects whose listing takes ten minutes for each object."""

    def __init__(self, there: MemoryObjects, clock: Clock) -> None:
        super().__init__(clock)
        self.held, self.modified = there.held, there.modified
        self._now = clock

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """List a folder, slowly unless it holds leases."""
        for found in super().list(prefix, after):
            if prefix != LEASES:
                self._now.now += 600
            yield found


def test_a_writer_that_was_held_up_too_long_is_told(objects: MemoryObjects, clock: Clock) -> None:
    """After half the grace time without a renewal, a writer does not rely on its lease."""
    with Lease(objects, OWNER, LeaseWork.WRITE, clock=clock) as lease:
        clock.now += GRACE / 2 + 1
        assert not lease.is_held
        with pytest.raises(StoreBusy, match="too long"):
            lease.renew()


def test_the_time_counts_for_which_a_machine_is_suspended(
    objects: MemoryObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux' monotonic clock stands still then, but the lease may end."""
    with Lease(objects, OWNER, LeaseWork.WRITE) as lease:
        now = time.clock_gettime

        def later(clock: int) -> float:
            return now(clock) + (GRACE if clock == time.CLOCK_BOOTTIME else 0)

        monkeypatch.setattr(time, "clock_gettime", later)
        assert not lease.is_held


def test_each_driver_of_a_run_has_a_lease_of_its_own(objects: MemoryObjects) -> None:
    """The first driver does not block the second, and the second one's end keeps its lease."""
    with Lease(objects, OWNER, LeaseWork.WRITE) as first:
        with Lease(objects, OWNER, LeaseWork.WRITE) as second:
            assert second.earlier == (first.name,)
        with (
            pytest.raises(StoreBusy, match="Write by name"),
            Lease(objects, uuid4().hex, LeaseWork.SWEEP),
        ):
            pass


@pytest.mark.parametrize(
    ("mine", "theirs"), [(LeaseWork.WRITE, LeaseWork.SWEEP), (LeaseWork.SWEEP, LeaseWork.WRITE)]
)
def test_a_writer_that_was_taken_for_given_up_gives_way(
    objects: MemoryObjects, clock: Clock, mine: LeaseWork, theirs: LeaseWork
) -> None:
    """A client whose lease was deleted sees at its next renewal that another one has begun."""
    lease = Lease(objects, OWNER, mine, clock=clock)
    lease.__enter__()
    objects.delete([lease.name])
    with Lease(objects, uuid4().hex, theirs) as other:
        clock.now += RENEW + 1
        with pytest.raises(StoreBusy, match=f"{theirs} by name"):
            lease.renew()
        assert not lease.is_held
        assert [one.name for one in objects.list(LEASES)] == [other.name]
