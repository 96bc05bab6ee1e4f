"""Hold leases on the runs of archives that a copy reads, so that no sweep deletes their objects."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.archive.runs.leases import delete_leases, hold
from sluice.archive.runs.source import ArchivedStore
from sluice.core.events.digest import CHUNK
from sluice.core.values import identity
from sluice.engine.slices.slices import CopySlice, VerifySlice
from sluice.errors import ArchiveDamaged, PermissionDenied, SluiceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sluice.archive.runs.leases import Lease
    from sluice.core.copy.plan import StreamPlan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.tasks.slices import SliceResult
    from sluice.stores.base import Source


class Readings:
    """The leases of a copy on the runs that it reads. Live streams need none.

    A lease is named after the copy and the driver. So a driver never ends the lease of another
    driver at work. The lease of a driver that died holds for a day, for the driver that goes on.

    Args:
        copy_id: the copy.
        stores: the stores that it reads from.
    """

    def __init__(self, copy_id: str, stores: Sequence[Source]) -> None:
        self._copy = copy_id
        self._stores = stores
        self._leases: dict[str, Lease | None] = {}

    @property
    def _runs(self) -> list[tuple[str, ArchivedStore]]:
        """The runs, each with the owner of its lease."""
        return [
            (identity.reading_key(self._copy, store.pinned.sha256), store)
            for store in self._stores
            if isinstance(store, ArchivedStore)
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the leases that this driver holds."""
        return tuple(lease.name for lease in self._leases.values() if lease is not None)

    def renew(self) -> None:
        """Take the leases, or write them again when that is due.

        Raises:
            ArchiveNotFound: the archive does not list a run any more; it may have been swept.
            ArchiveDamaged, ArchiveUnsupported: a run's manifest cannot be read as recorded.
        """
        for owner, store in self._runs:
            lease = self._leases.get(owner)
            if lease is not None and lease.is_held:
                lease.renew()
            elif lease is not None or owner not in self._leases:
                self._leases[owner] = _hold(store, owner)

    def give_back(self) -> None:
        """Delete this driver's leases, and those that the copy's earlier drivers left behind."""
        for owner, store in self._runs:
            lease = self._leases.pop(owner, None)
            with suppress(SluiceError):  # a lease that stays ends by itself after a day
                if lease is None:
                    delete_leases(store.archive.objects, owner)
                else:
                    lease.give_back()
                    store.archive.objects.delete(lease.earlier)

    def compare(self, results: Iterable[SliceResult]) -> None:
        """Compare the digests of what was read with those that the archives recorded.

        Raises:
            ArchiveDamaged: the bytes read are not the archived ones.
        """
        for result in results:
            work = result.slice
            if isinstance(work, CopySlice | VerifySlice):
                _compare(work.source, result.digests, self._stores[work.store])


def release(plan: StreamPlan, places: Sequence[Place]) -> None:
    """Delete the leases that an aborted copy has left in archives.

    Args:
        plan: the copy's recorded plan.
        places: the stores of its sources. Stores of live streams are not asked.
    """
    runs = [
        place.run(source.archive)
        for source in plan.sources
        if source.archive is not None and isinstance(place := places[source.store], ArchiveRoot)
    ]
    Readings(plan.copy_id, runs).give_back()


def _hold(store: ArchivedStore, owner: str) -> Lease | None:
    """Take a lease; None where the credentials only allow reading.

    Without a lease, a sweep may delete the run once retention has dropped it. The copy then fails
    for the missing objects, and publishes nothing.
    """
    try:
        return hold(store.archive, owner, store.entry)
    except PermissionDenied:
        return None


def _compare(name: str, found: Mapping[int, bytes], source: Source) -> None:
    """Compare digests of a segment's chunks, by chunk number, with those of its store."""
    known = source.digests(name) if found else {}
    for chunk, digest in found.items():
        if known.get(chunk, digest) != digest:
            raise ArchiveDamaged(
                f"{source!r}: what was archived of {name} from offset {chunk * CHUNK} on has the "
                f"SHA-256 {known[chunk].hex()}, and the objects hold other bytes: {digest.hex()}"
            )
