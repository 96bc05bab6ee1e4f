"""Take, renew and give back leases, and list the leases of all processes."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from uuid import uuid4

from sluice.archive.runs.archive import run_is_gone
from sluice.core.archive.documents import decode, encode
from sluice.core.archive.lease import GRACE, RENEW, LeaseNote, LeaseWork
from sluice.core.archive.names import is_lease
from sluice.core.values.archive_layout import LEASES
from sluice.errors import (
    ArchiveDamaged,
    ArchiveUnsupported,
    SluiceError,
    StoreBusy,
    StoreUnavailable,
)
from sluice.stores.deadline import even_so

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.archive.objects.objects import ObjectInfo, Objects
    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.head import RunEntry

_SINCE_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that goes on while the machine is suspended; Linux' monotonic one does not."""

_LONGEST: Final = 64 << 10
"""Most bytes of a lease that is read. Sluice writes about 200."""

_TIDY: Final = 10.0
"""Seconds to give a lease back, even after the deadline of all other calls."""

_TRIES: Final = 3
"""How often to try to give a lease back: a lease that stays would block others for long."""


def since_boot() -> float:
    """Return seconds of a clock that never goes back, and goes on during suspension."""
    return time.clock_gettime(_SINCE_BOOT)


class HeldLease(NamedTuple):
    """A lease of any process that still counts.

    Attributes:
        name: name of its object.
        work: what its owner does.
        run: the run that is read, as the head listed it; None for other work.
    """

    name: str
    work: LeaseWork
    run: RunEntry | None


class Leases(NamedTuple):
    """All leases of an archive at one time.

    Attributes:
        now: the time, in ms of the store's clock.
        held: leases that count, in the order of their names.
        over: objects of leases that do not count any more.
    """

    now: int
    held: tuple[HeldLease, ...]
    over: tuple[ObjectInfo, ...]


class Lease:
    """A lease of this process. It is held while its block runs, if `renew` is called regularly.

    Args:
        objects: the objects of the archive.
        owner: 32 hexadecimal digits, the same for each process that goes on with this work.
        work: the kind of work. Each process that writes or reads has its own lease, so that none
            deletes the lease of another.
        run: the run that is read, as the head lists it.
        maker: the identity of the resource that the work is done for.
        grace: seconds for which leases other than those of sweeps count; the same for all
            processes.
        clock: this process's clock, in seconds, which never goes back.

    Attributes:
        name: name of its object.
        earlier: names of the same owner's other leases that counted at the first look.
    """

    def __init__(
        self,
        objects: Objects,
        owner: str,
        work: LeaseWork,
        *,
        run: RunEntry | None = None,
        maker: str | None = None,
        grace: float = GRACE,
        clock: Callable[[], float] = since_boot,
    ) -> None:
        self.name = (
            f"{LEASES}{owner}" if work is LeaseWork.SWEEP else f"{_drivers(owner)}{uuid4().hex}"
        )
        self.earlier: tuple[str, ...] = ()
        self._looked = False
        self._owner = owner
        self._objects = objects
        self._note = LeaseNote(work=work, run=run, maker=maker)
        self._grace = grace
        self._clock = clock
        self._written = -math.inf

    def __enter__(self) -> Self:
        """Take the lease.

        Raises:
            StoreBusy: another process does work that excludes this.
        """
        try:
            self._write()
            self._check()
        except BaseException:
            with suppress(SluiceError):
                self.give_back()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        """Give the lease back."""
        self.give_back()

    def give_back(self) -> None:
        """Delete the lease before its time is over."""
        self._written = -math.inf
        with even_so(_TIDY):
            for _ in range(_TRIES - 1):
                with suppress(StoreUnavailable):
                    self._objects.delete([self.name])
                    return
            self._objects.delete([self.name])

    @property
    def is_held(self) -> bool:
        """Whether the lease certainly still counts.

        Half of its time is left for differences of clocks and for slow calls.
        """
        return self._clock() - self._written < self._note.work.counts(self._grace) / 2

    def renew(self, *, now: bool = False) -> None:
        """Write the lease again when that is due, and check that no excluded work has begun.

        Args:
            now: whether to write it in any case.

        Raises:
            StoreBusy: it was not written for so long that it may not count any more, its object is
                gone, or excluded work has begun.
        """
        if not self.is_held:
            raise StoreBusy(f"{self.name} was not renewed for too long")
        if now or self._clock() - self._written > RENEW:
            self._write()
            self._check()

    def look(self) -> Leases:
        """Write the lease, and return all leases. The own lease shows the store's clock."""
        self._write()
        return self._look()

    def _look(self) -> Leases:
        mine = self._objects.look(self.name)
        if mine is None:
            raise StoreBusy(f"{self.name} was deleted by another process")
        found = look(self._objects, mine.modified, self._grace)
        if not self._looked:
            self._looked = True
            names = [one.name for one in found.held if one.name.startswith(_drivers(self._owner))]
            self.earlier = tuple(name for name in names if name != self.name)
        return found

    def _write(self) -> None:
        began = self._clock()
        self._objects.put(self.name, encode(self._note))
        self._written = began

    def _check(self) -> None:
        """Give the lease back and raise StoreBusy if excluded work goes on.

        Writing and sweeping exclude each other. Each process writes its lease first and looks
        afterwards, so at least the second of two sees the other.
        """
        excluded = _EXCLUDED.get(self._note.work)
        if excluded is None:
            return
        for other in self._look().held:
            if other.name != self.name and other.work is excluded:
                self.give_back()
                raise StoreBusy(
                    f"{other.name} says that a process works there, {other.work} by name",
                    remedy="Wait until that is done; what was killed is forgotten after "
                    f"{excluded.counts(self._grace) / 3600:.0f} h.",
                )


_EXCLUDED = {LeaseWork.WRITE: LeaseWork.SWEEP, LeaseWork.SWEEP: LeaseWork.WRITE}


def _drivers(owner: str) -> str:
    """Return the prefix of the names of an owner's leases, but for those of sweeps."""
    return f"{LEASES}{owner}-"


def delete_leases(objects: Objects, owner: str) -> None:
    """Delete the leases of an owner's drivers. None of them may be at work any more."""
    names = [one.name for one in _all(objects) if one.name.startswith(_drivers(owner))]
    objects.delete(names)


def delete_all_leases(objects: Objects, maker: str) -> None:
    """Delete all leases of work for a resource. That work must be over.

    A driver that is still alive finds its lease gone before it records a run, and stops.
    """
    names = []
    for found in _all(objects):
        # A lease that cannot be read may be for another resource, so it stays.
        with suppress(ArchiveDamaged, ArchiveUnsupported):
            data = _data(objects, found.name)
            if data is not None and decode(LeaseNote, data, name=found.name).maker == maker:
                names.append(found.name)
    if names:
        objects.delete(names)


def look(objects: Objects, now: int, grace: float) -> Leases:
    """Return all leases of an archive.

    Args:
        objects: the objects of the archive.
        now: the time, in ms of the store's clock.
        grace: seconds for which leases other than those of sweeps count.

    Raises:
        ArchiveDamaged, ArchiveUnsupported: a lease that may count cannot be read.
    """
    held: list[HeldLease] = []
    over: list[ObjectInfo] = []
    for found in _all(objects):
        if found.modified + grace * 1000 <= now:
            over.append(found)
            continue
        data = _data(objects, found.name)
        if data is None:
            continue  # it was given back meanwhile
        note = decode(LeaseNote, data, name=found.name)
        if found.modified + note.work.counts(grace) * 1000 <= now:
            over.append(found)
            continue
        held.append(HeldLease(found.name, note.work, note.run))
    return Leases(now, tuple(held), tuple(over))


def _all(objects: Objects) -> Iterator[ObjectInfo]:
    """Yield the objects of all leases. Objects with other names are ignored."""
    return (found for found in objects.list(LEASES) if is_lease(found.name))


def _data(objects: Objects, name: str) -> bytes | None:
    """Read a lease's object; None if it is gone. ArchiveDamaged if it is too long for a lease."""
    data = objects.get(name, 0, _LONGEST + 1)
    if data is not None and len(data) > _LONGEST:
        raise ArchiveDamaged(f"{name} is no lease: it is too long", name=name)
    return data


@contextmanager
def holding(
    archive: Archive, owner: str, entry: RunEntry, *, grace: float = GRACE
) -> Iterator[Lease]:
    """Hold a lease, so that no sweep deletes a run's objects while the block runs and renews it.

    Raises:
        ArchiveNotFound: as `hold` does.
    """
    lease = hold(archive, owner, entry, grace=grace)
    try:
        yield lease
    finally:
        lease.give_back()


def hold(archive: Archive, owner: str, entry: RunEntry, *, grace: float = GRACE) -> Lease:
    """Take a lease that keeps sweeps from deleting a run's objects. The caller gives it back.

    If no head lists the run any more, its objects are still there as long as a lease of an earlier
    driver of this owner counts. Then this lease is taken too.

    Raises:
        ArchiveNotFound: no head lists the run any more, and its objects may have been swept.
    """
    lease = Lease(archive.objects, owner, LeaseWork.READ, run=entry, grace=grace)
    lease.look()
    # A sweep reads the head first, then the leases. This lease is written before the head is read.
    # So either the sweep sees the lease, or the head read here does not list the run any more.
    head = archive.head()
    listed = head is not None and any(one.sha256 == entry.sha256 for one in head.runs)
    if not listed and not lease.earlier:
        lease.give_back()
        raise run_is_gone(entry.run)
    return lease
