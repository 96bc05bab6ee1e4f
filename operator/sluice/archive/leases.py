"""Holding a lease, and seeing those of others."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from uuid import uuid4

from sluice.archive.archive import let_go
from sluice.core.archive.documents import decode, encode
from sluice.core.archive.lease import GRACE, RENEW, LeaseNote, Work
from sluice.core.archive.names import LEASES
from sluice.errors import SluiceError, StoreBusy, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.archive.archive import Archive
    from sluice.archive.objects import Found, Objects
    from sluice.core.archive.head import RunEntry

_SINCE_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that goes on while the machine is suspended; Linux' monotonic one does not."""

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
    work: Work
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
    over: tuple[Found, ...]


class Lease:
    """A lease of ours: held while its block runs, if `renew` is called now and then.

    Args:
        objects: of the archive.
        owner: 32 hexadecimal digits, the same for whoever goes on with this work later.
        work: what is done. Of those who write each has a lease of its own, so that none takes away
            another one's.
        run: which run is read, as the head has it.
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
        work: Work,
        *,
        run: RunEntry | None = None,
        grace: float = GRACE,
        clock: Callable[[], float] = since_boot,
    ) -> None:
        self.name = f"{_drivers(owner)}{uuid4().hex}" if work is Work.WRITE else f"{LEASES}{owner}"
        self.earlier: tuple[str, ...] = ()
        self._owner = owner
        self._objects = objects
        self._note = LeaseNote(work=work, run=run)
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
            held = self._check()
        except BaseException:
            with suppress(SluiceError):
                self.give_back()
            raise
        self.earlier = tuple(one for one in held if one.startswith(_drivers(self._owner)))
        return self

    def __exit__(self, *_exc: object) -> None:
        """Give it back."""
        self.give_back()

    def give_back(self) -> None:
        """Give it back before its time is over."""
        self._written = -math.inf
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
        return look(self._objects, mine.modified, self._grace)

    def _write(self) -> None:
        began = self._clock()
        self._objects.put(self.name, encode(self._note))
        self._written = began

    def _check(self) -> list[str]:
        """Of writing and sweeping, whoever comes second sees the other, and gives way.

        Returns:
            The names of the other leases that count, where there is anything to give way to.
        """
        excluded = _EXCLUDED.get(self._note.work)
        if excluded is None:
            return []
        others = [other for other in self._look().held if other.name != self.name]
        for other in others:
            if other.work is excluded:
                self.give_back()
                raise StoreBusy(
                    f"{other.name} says that somebody is at work there, {other.work} by name",
                    remedy="Wait until that is done; what was killed is forgotten after "
                    f"{excluded.counts(self._grace) / 3600:.0f} h.",
                )
        return [other.name for other in others]


_EXCLUDED = {Work.WRITE: Work.SWEEP, Work.SWEEP: Work.WRITE}


def _drivers(owner: str) -> str:
    """Before the names of the leases of those who write for an owner."""
    return f"{LEASES}{owner}-"


def forget(objects: Objects, owner: str) -> None:
    """Delete the leases of all who wrote for an owner; nobody may be at work for it any more."""
    names = [one.name for one in objects.list(LEASES) if one.name.startswith(_drivers(owner))]
    objects.delete(names)


def look(objects: Objects, now: int, grace: float) -> Leases:
    """All leases of an archive at this time of the store's clock, in ms."""
    held: list[HeldLease] = []
    over: list[Found] = []
    for found in objects.list(LEASES):
        data = objects.get(found.name)
        if data is None:
            continue  # given back meanwhile
        if found.modified + grace * 1000 <= now:
            over.append(found)
            continue
        note = decode(LeaseNote, data, name=found.name)
        if found.modified + note.work.counts(grace) * 1000 <= now:
            over.append(found)
            continue
        held.append(HeldLease(found.name, note.work, note.run))
    return Leases(now, tuple(held), tuple(over))


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

    Where the run was let go, a lease that the owner left behind counts on, if it counted still.

    Raises:
        ArchiveNotFound: the run was let go, and its objects may have been swept since.
    """
    lease = Lease(archive.objects, owner, Work.READ, run=entry, grace=grace)
    before = archive.objects.look(lease.name)
    now = lease.look().now
    # Whoever sweeps reads the head first, then the leases. So either it sees ours, or we see that
    # the head does not list the run any more.
    head = archive.head()
    listed = head is not None and any(one.sha256 == entry.sha256 for one in head.runs)
    if not listed and (before is None or before.modified + grace * 1000 <= now):
        lease.give_back()
        raise let_go(entry.run)
    return lease
