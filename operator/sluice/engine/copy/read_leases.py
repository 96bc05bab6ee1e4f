"""Reading runs of archives while a copy is made of them: they are kept from being swept."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sluice.archive.runs.leases import forget, hold
from sluice.archive.runs.shelf import Shelf
from sluice.archive.runs.source import ArchivedStore
from sluice.core.events.digest import CHUNK
from sluice.core.values import identity
from sluice.engine.copy.slices import CopySlice, VerifySlice
from sluice.errors import ArchiveDamaged, PermissionDenied, SluiceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sluice.archive.runs.leases import Lease
    from sluice.core.copy.plan import StreamPlan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.rounds.slices import SliceResult
    from sluice.stores.base import Source


class Readings:
    """The leases of a copy on the runs that it reads; of live streams there are none.

    They are named from the copy and the driver: what a driver leaves behind counts for a day for
    whoever goes on, and none ends that of another one that is at work.

    Args:
        copy_id: the copy.
        stores: that it reads from.
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
        """The names of the leases that are held."""
        return tuple(lease.name for lease in self._leases.values() if lease is not None)

    def renew(self) -> None:
        """Take the leases, or write them again if it is time to.

        Raises:
            ArchiveNotFound: a run was let go, and may have been swept since.
            ArchiveDamaged, ArchiveUnsupported: its manifest is not what was written down.
        """
        for owner, store in self._runs:
            lease = self._leases.get(owner)
            if lease is not None and lease.is_held:
                lease.renew()
            elif lease is not None or owner not in self._leases:
                self._leases[owner] = _hold(store, owner)

    def give_back(self) -> None:
        """Need the runs no more: delete our leases, and those that were there before them."""
        for owner, store in self._runs:
            lease = self._leases.pop(owner, None)
            with suppress(SluiceError):  # it is over in a day
                if lease is None:
                    forget(store.archive.objects, owner)
                else:
                    lease.give_back()
                    store.archive.objects.delete(lease.earlier)

    def compare(self, results: Iterable[SliceResult]) -> None:
        """Hold what was read of archives against the digests that these have of it.

        Raises:
            ArchiveDamaged: they are not those that were archived, though each object is.
        """
        for result in results:
            work = result.slice
            if isinstance(work, CopySlice | VerifySlice):
                _compare(work.source, result.digests, self._stores[work.store])


def release(plan: StreamPlan, places: Sequence[Place]) -> None:
    """Give the leases back that a copy which was aborted has left in archives.

    Args:
        plan: of the copy, as it was recorded.
        places: where its sources are; of live streams they are not looked at.
    """
    runs = [
        place.run(source.archive)
        for source in plan.sources
        if source.archive is not None and isinstance(place := places[source.store], Shelf)
    ]
    Readings(plan.copy_id, runs).give_back()


def _hold(store: ArchivedStore, owner: str) -> Lease | None:
    """Take a lease; None where we may only read.

    Nothing keeps such a run from being swept once it is let go. If it is, what is missing is told,
    and nothing gets visible of what was restored.
    """
    try:
        return hold(store.archive, owner, store.entry)
    except PermissionDenied:
        return None


def _compare(name: str, found: Mapping[int, bytes], source: Source) -> None:
    """Hold digests of a segment's chunks, by number, against those that its store has."""
    known = source.digests(name) if found else {}
    for chunk, digest in found.items():
        if known.get(chunk, digest) != digest:
            raise ArchiveDamaged(
                f"{source!r}: what was archived of {name} from offset {chunk * CHUNK} on has the "
                f"SHA-256 {known[chunk].hex()}, and the objects hold other bytes: {digest.hex()}"
            )
