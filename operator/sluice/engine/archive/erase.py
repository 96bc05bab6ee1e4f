"""Delete an archive: only objects that its resource has made.

Other objects may lie at the archive's path, even in folders of the same names. So an object is
deleted only if its name has the form of an archive's names. Nothing is deleted if another resource
may have made runs there. The lease of the deletion stays until all is deleted, and keeps drivers
from writing meanwhile.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.archive.runs.leases import Lease, delete_all_leases
from sluice.archive.runs.notes import Notes
from sluice.core.archive.lease import LeaseWork
from sluice.core.archive.names import is_known, read_note, read_run
from sluice.core.values.archive_layout import DATA, EVENTS, HEADS, LEASES, RUNS, WORK
from sluice.core.values.model import ArchivedRun
from sluice.engine.archive.planning import PATH_FIELD, noted_plan
from sluice.errors import ArchiveDamaged, ArchiveUnsupported, PlanTooLarge, StoreBusy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.archive.objects.objects import ObjectInfo
    from sluice.archive.runs.archive import Archive
    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.core.archive.head import Head
    from sluice.core.archive.request import ArchiveRequest

ERASE_SECONDS: Final = 20.0
"""Seconds that one call spends on each folder at most, since the operator has other work to do."""

_BATCH: Final = 500
_NAMES: Final = 3


@dataclass(slots=True)
class Erased:
    """The result of deleting an archive.

    Attributes:
        kept: why nothing was deleted, for people; empty if the archive was deleted.
        strangers: how many objects in the archive's folders do not belong to it, and stay.
        names: the names of the first such objects.
        more: whether there may be more such objects, since the time ran out.
    """

    kept: str = ""
    strangers: int = 0
    names: tuple[str, ...] = ()
    more: bool = False

    @property
    def said(self) -> str:
        """What stays, as the rest of a sentence "The archive ..."; empty if nothing stays."""
        if self.kept:
            return f"stays: {self.kept}"
        if not self.strangers:
            return ""
        count = f"{self.strangers}{' or more' if self.more else ''}"
        names = ", ".join(repr(name)[:120] for name in self.names)
        return f"is deleted; {count} objects in its folders are not of it and stay, such as {names}"

    def add(self, name: str) -> None:
        """Count an object that stays."""
        self.strangers += 1
        if len(self.names) < _NAMES:
            self.names += (name,)


def erase_archive(
    request: ArchiveRequest, root: ArchiveRoot, *, seconds: float = ERASE_SECONDS
) -> Erased:
    """Delete an archive with all its runs, if the requesting resource has made all of them.

    None of the archive's drivers may still be at work. The leases that killed drivers left behind
    are deleted. A deletion that was killed can be repeated, since it takes the same lease. Heads
    are deleted before the objects that they list, so that no reader is led to deleted objects.

    Args:
        request: a run of the archive.
        root: the place that holds it.
        seconds: limit for each folder, after which this call lists and deletes no more of it.

    Returns:
        What stays.

    Raises:
        StoreBusy: more is left to delete, or another client is at work in the archive.
        ArchiveDamaged: another client may be at work in it: a lease of the last day cannot be read.
    """
    archive = root.archive(request.path, field=PATH_FIELD)
    try:
        head = archive.head()
        if not _is_ours(request, archive, head):
            return Erased(kept="it has runs that this resource has not made")
    except (ArchiveDamaged, ArchiveUnsupported, PlanTooLarge) as error:
        return Erased(kept=f"it is not known who has made its runs: {error.message}")
    if request.maker is not None:
        delete_all_leases(archive.objects, request.maker.id)
    lease = Lease(archive.objects, _eraser(request), LeaseWork.SWEEP)
    begun = archive.objects.look(lease.name) is not None
    lease.__enter__()
    if any(one.name != lease.name for one in lease.look().held):
        if not begun:
            lease.give_back()
        raise StoreBusy(f"another process works in the archive at {request.path}")
    told = _Eraser(archive, lease, seconds).erase()
    lease.give_back()
    return told


class _Eraser:
    """Deletion of an archive's objects, with a count of the objects that do not belong to it.

    Args:
        archive: the archive.
        lease: the lease to renew meanwhile.
        seconds: limit for each folder. If only foreign objects were seen by then, the rest of the
            folder is skipped.
    """

    def __init__(self, archive: Archive, lease: Lease, seconds: float) -> None:
        self._archive = archive
        self._lease = lease
        self._told = Erased()
        self._seconds = seconds
        self._over = False

    def erase(self) -> Erased:
        """Delete the archive's objects and return what stays. Raise StoreBusy if more is left."""
        self._notes()
        for folder in (HEADS, RUNS, DATA, EVENTS):
            self._folder(folder)
        # Our lease keeps drivers from beginning to write, so none of these leases counts.
        self._delete([name for name in self._known(LEASES) if name != self._lease.name])
        return self._told

    def _folder(self, folder: str) -> None:
        """Delete the archive's objects in a folder. Raise StoreBusy if more is left."""
        names: list[str] = []
        count = 0
        for name in self._known(folder):
            names.append(name)
            count += 1
            if len(names) == _BATCH:
                self._delete(names)
                names = []
        # Delete the last head after the others: an older head may list objects swept since.
        self._delete(names[:-1])
        self._delete(names[-1:])
        self._check(folder, count)

    def _notes(self) -> None:
        """Delete all notes, each run's plan last. Raise StoreBusy if more is left."""
        notes = (read_note(name) for name in self._known(WORK))
        owners = {note.owner for note in notes if note is not None}
        for owner in owners:
            self._lease.renew()
            Notes(self._archive.objects, owner).delete()
        self._check(WORK, len(owners))

    def _known(self, folder: str) -> Iterator[str]:
        """Yield the names of the archive's objects in a folder until the time is over."""
        end = time.monotonic() + self._seconds
        self._over = False
        for found in _objects(self._archive, folder):
            if is_known(found.name):
                yield found.name
            else:
                self._told.add(found.name)
            if time.monotonic() > end:
                self._over = True
                return

    def _check(self, folder: str, count: int) -> None:
        """Raise StoreBusy if the time ran out in a folder where objects were deleted.

        If none were deleted there, only note that the folder may hold more foreign objects.
        """
        if self._over and count:
            raise StoreBusy(
                f"{count} objects of {folder} in the archive are deleted, and more are left"
            )
        self._told.more |= self._over

    def _delete(self, names: list[str]) -> None:
        if names:
            self._lease.renew()
            self._archive.objects.delete(names)


def _objects(archive: Archive, folder: str) -> Iterator[ObjectInfo]:
    """List a folder's objects, without the marker object that some tools make for the folder."""
    return (one for one in archive.objects.list(folder) if len(one.name) > len(folder))


def _is_ours(request: ArchiveRequest, archive: Archive, head: Head | None) -> bool:
    """Tell whether the requesting resource has made all runs.

    The head's runs tell their maker. Without a head, the noted plans and the last manifest do:
    another client may be writing an archive there, or the archive's head may be lost.
    """
    maker = request.maker
    if head is not None:
        return maker is not None and {one.maker for one in head.runs} == {maker.id}
    names = (read_note(one.name) for one in archive.objects.list(WORK))
    owners = {name.owner for name in names if name is not None and name.number == 0}
    plans = [noted_plan(Notes(archive.objects, owner).read_on()) for owner in sorted(owners)]
    makers = [plan.maker for plan in plans if plan is not None]
    runs = [run for one in archive.objects.list(RUNS) if (run := read_run(one.name)) is not None]
    if runs:
        last = ArchivedRun(path="", run=runs[-1].run, sha256=runs[-1].sha256)
        makers.append(archive.pinned(last)[1].maker)
    return all(one is not None and maker is not None and one.id == maker.id for one in makers)


def _eraser(request: ArchiveRequest) -> str:
    """Return the owner of the lease under which an archive is deleted for a resource."""
    return hashlib.sha256(f"erase {request.archive_id}".encode()).hexdigest()[:32]
