"""Holding a lease, and seeing those of others."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Self

from sluice.archive.archive import let_go
from sluice.core.archive.documents import decode, encode
from sluice.core.archive.lease import GRACE, RENEW, LeaseNote, Work
from sluice.core.archive.names import LEASES
from sluice.errors import StoreBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.archive.archive import Archive
    from sluice.archive.objects import Objects
    from sluice.core.archive.head import RunEntry


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
        over: the names of those that do not count any more.
    """

    now: int
    held: tuple[HeldLease, ...]
    over: tuple[str, ...]


class Lease:
    """A lease of ours: held while its block runs, if `renew` is called now and then.

    Args:
        objects: of the archive.
        owner: 32 hexadecimal digits, the same for whoever goes on with this work later.
        work: what is done.
        run: which run is read, as the head has it.
        grace: seconds that leases count for; the same for everybody.
        clock: our own seconds, which only ever go forward.
    """

    def __init__(
        self,
        objects: Objects,
        owner: str,
        work: Work,
        *,
        run: RunEntry | None = None,
        grace: float = GRACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = f"{LEASES}{owner}"
        self._objects = objects
        self._note = LeaseNote(work=work, run=run)
        self._grace = grace
        self._clock = clock
        self._written = 0.0

    def __enter__(self) -> Self:
        """Take it.

        Raises:
            StoreBusy: somebody does what excludes this.
        """
        self._write()
        try:
            self._check()
        except BaseException:
            self._objects.delete([self.name])
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        """Give it back."""
        self.give_back()

    def give_back(self) -> None:
        """Give it back before its time is over."""
        self._objects.delete([self.name])

    @property
    def is_held(self) -> bool:
        """Whether it certainly counts still: half of the grace time is for clocks and calls."""
        return self._clock() - self._written < self._grace / 2

    def renew(self) -> None:
        """Write it again, if it is time to.

        Raises:
            StoreBusy: it was not written for so long that others may have taken it for given up.
        """
        if not self.is_held:
            raise StoreBusy(f"{self.name} was not renewed for too long")
        if self._clock() - self._written > RENEW:
            self._write()

    def look(self) -> Leases:
        """All leases, ours too, which tells the store's clock."""
        self._write()
        mine = self._objects.look(self.name)
        if mine is None:
            raise StoreBusy(f"{self.name} was deleted by somebody else")
        return look(self._objects, mine.modified, self._grace)

    def _write(self) -> None:
        began = self._clock()
        self._objects.put(self.name, encode(self._note))
        self._written = began

    def _check(self) -> None:
        """Of writing and sweeping, whoever comes second sees the other, and gives way."""
        excluded = _EXCLUDED.get(self._note.work)
        for other in self.look().held:
            if other.work is excluded and other.name != self.name:
                raise StoreBusy(
                    f"{other.name} says that somebody is at work there, {other.work} by name",
                    remedy="Wait until that is done; what was killed is forgotten after "
                    f"{self._grace / 3600:.0f} h.",
                )


_EXCLUDED = {Work.WRITE: Work.SWEEP, Work.SWEEP: Work.WRITE}


def look(objects: Objects, now: int, grace: float) -> Leases:
    """All leases of an archive at this time of the store's clock, in ms."""
    held, over = [], []
    for found in objects.list(LEASES):
        data = objects.get(found.name)
        if data is None:
            continue  # given back meanwhile
        if found.modified + grace * 1000 <= now:
            over.append(found.name)
            continue
        note = decode(LeaseNote, data, name=found.name)
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
