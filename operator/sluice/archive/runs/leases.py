"""Holding a lease, and seeing those of others."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from uuid import uuid4

from sluice.archive.runs.archive import let_go
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
"""Bytes of the longest lease that is read; ours have some two hundred."""

_TIDY: Final = 10.0
"""Seconds to give it back, though the time for all else is over."""

_TRIES: Final = 3
"""How often it is tried to give a lease back: what is left behind keeps others for long."""


def since_boot() -> float:
    """Seconds that only ever go forward, and do not stand still."""
    return time.clock_gettime(_SINCE_BOOT)


class HeldLease(NamedTuple):
    """Somebody's lease that counts.

    Attributes:
        name: of its object.
        work: what its owner does.
        run: which run is read, as the head had it.
    """

    name: str
    work: LeaseWork
    run: RunEntry | None


class Leases(NamedTuple):
    """What a look at all leases has shown.

    Attributes:
        now: the store's clock, in ms.
        held: those that count, in the order of their names.
        over: those that do not count any more, as they were found.
    """

    now: int
    held: tuple[HeldLease, ...]
    over: tuple[ObjectInfo, ...]


class Lease:
    """A lease of ours: held while its block runs, if `renew` is called now and then.

    Args:
        objects: of the archive.
        owner: 32 hexadecimal digits, the same for whoever goes on with this work later.
        work: what is done. Of those who write or read each has a lease of its own, so that none
            takes away another one's.
        run: which run is read, as the head has it.
        maker: the identity of the resource that it is done for.
        grace: seconds that leases count for, but for those of sweeps; the same for everybody.
        clock: our own seconds, which only ever go forward.

    Attributes:
        name: of its object.
        earlier: the names of leases of the same owner that counted when this one was taken.
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
        """Take it.

        Raises:
            StoreBusy: somebody does what excludes this.
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
        """Give it back."""
        self.give_back()

    def give_back(self) -> None:
        """Give it back before its time is over."""
        self._written = -math.inf
        with even_so(_TIDY):
            for _ in range(_TRIES - 1):
                with suppress(StoreUnavailable):
                    self._objects.delete([self.name])
                    return
            self._objects.delete([self.name])

    @property
    def is_held(self) -> bool:
        """Whether it certainly counts still: half of its time is for clocks and calls."""
        return self._clock() - self._written < self._note.work.counts(self._grace) / 2

    def renew(self, *, now: bool = False) -> None:
        """Write it again, if it is time to, and see that nobody has taken it for given up.

        Args:
            now: whether it is time to in any case.

        Raises:
            StoreBusy: it was not written for so long that others may have taken it for given up,
                or somebody has.
        """
        if not self.is_held:
            raise StoreBusy(f"{self.name} was not renewed for too long")
        if now or self._clock() - self._written > RENEW:
            self._write()
            self._check()

    def look(self) -> Leases:
        """All leases, ours too, which tells the store's clock."""
        self._write()
        return self._look()

    def _look(self) -> Leases:
        mine = self._objects.look(self.name)
        if mine is None:
            raise StoreBusy(f"{self.name} was deleted by somebody else")
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
        """Of writing and sweeping, whoever comes second sees the other, and gives way."""
        excluded = _EXCLUDED.get(self._note.work)
        if excluded is None:
            return
        for other in self._look().held:
            if other.name != self.name and other.work is excluded:
                self.give_back()
                raise StoreBusy(
                    f"{other.name} says that somebody is at work there, {other.work} by name",
                    remedy="Wait until that is done; what was killed is forgotten after "
                    f"{excluded.counts(self._grace) / 3600:.0f} h.",
                )


_EXCLUDED = {LeaseWork.WRITE: LeaseWork.SWEEP, LeaseWork.SWEEP: LeaseWork.WRITE}


def _drivers(owner: str) -> str:
    """Before the names of the leases of those who write or read for an owner."""
    return f"{LEASES}{owner}-"


def forget(objects: Objects, owner: str) -> None:
    """Delete the leases of an owner's drivers, none of which may be at work any more."""
    names = [one.name for one in _all(objects) if one.name.startswith(_drivers(owner))]
    objects.delete(names)


def forget_all(objects: Objects, maker: str) -> None:
    """Delete the leases of all that was done for a resource, and is not any more.

    Whoever lives on though nobody knows of it finds that its lease is gone, before it records.
    """
    names = []
    for found in _all(objects):
        # What cannot be read is not known to be this one's.
        with suppress(ArchiveDamaged, ArchiveUnsupported):
            data = _data(objects, found.name)
            if data is not None and decode(LeaseNote, data, name=found.name).maker == maker:
                names.append(found.name)
    if names:
        objects.delete(names)


def look(objects: Objects, now: int, grace: float) -> Leases:
    """All leases of an archive at this time of the store's clock, in ms."""
    held: list[HeldLease] = []
    over: list[ObjectInfo] = []
    for found in _all(objects):
        if found.modified + grace * 1000 <= now:
            over.append(found)
            continue
        data = _data(objects, found.name)
        if data is None:
            continue  # given back meanwhile
        note = decode(LeaseNote, data, name=found.name)
        if found.modified + note.work.counts(grace) * 1000 <= now:
            over.append(found)
            continue
        held.append(HeldLease(found.name, note.work, note.run))
    return Leases(now, tuple(held), tuple(over))


def _all(objects: Objects) -> Iterator[ObjectInfo]:
    """All leases. What has no name of one is somebody else's, and says nothing."""
    return (found for found in objects.list(LEASES) if is_lease(found.name))


def _data(objects: Objects, name: str) -> bytes | None:
    """What stands in a lease; None where there is none. ArchiveDamaged: it is too long for one."""
    data = objects.get(name, 0, _LONGEST + 1)
    if data is not None and len(data) > _LONGEST:
        raise ArchiveDamaged(f"{name} is no lease: it is too long", name=name)
    return data


@contextmanager
def holding(
    archive: Archive, owner: str, entry: RunEntry, *, grace: float = GRACE
) -> Iterator[Lease]:
    """Keep a run's objects from being swept while the block runs and renews the lease.

    Raises:
        ArchiveNotFound: as `hold` does.
    """
    lease = hold(archive, owner, entry, grace=grace)
    try:
        yield lease
    finally:
        lease.give_back()


def hold(archive: Archive, owner: str, entry: RunEntry, *, grace: float = GRACE) -> Lease:
    """Take a lease that keeps a run's objects from being swept, and stays if nobody gives it back.

    Where the run was let go, those that the owner's earlier drivers left behind keep it on, if any
    counted still.

    Raises:
        ArchiveNotFound: the run was let go, and its objects may have been swept since.
    """
    lease = Lease(archive.objects, owner, LeaseWork.READ, run=entry, grace=grace)
    lease.look()
    # Whoever sweeps reads the head first, then the leases. So either it sees ours, or we see that
    # the head does not list the run any more.
    head = archive.head()
    listed = head is not None and any(one.sha256 == entry.sha256 for one in head.runs)
    if not listed and not lease.earlier:
        lease.give_back()
        raise let_go(entry.run)
    return lease
