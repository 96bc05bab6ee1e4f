"""Deleting an archive: what its resource has made, by name, and nothing of anybody else's.

What lies at a path is not all of an archive: somebody may keep other things there, in folders of
the same names even. So an object is deleted only if its name is one that an archive gives, and only
where nothing says that somebody else has made runs there. The lease of the deletion stays until all
is done, and keeps everybody from writing meanwhile.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.archive.runs.leases import Lease, forget_all
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
    from sluice.archive.runs.shelf import Shelf
    from sluice.core.archive.head import Head
    from sluice.core.archive.request import ArchiveRequest

ERASE_SECONDS: Final = 20.0
"""For which an archive is deleted at a time: whoever has it done looks at other things as well."""

_BATCH: Final = 500
_NAMES: Final = 3


@dataclass(slots=True)
class Erased:
    """What became of an archive that was to be deleted.

    Attributes:
        kept: why nothing was deleted, for people; empty where it was.
        strangers: how many objects in the archive's folders are none of this archive, and stay.
        names: of the first of them.
        more: whether there may be more, which nobody waited for.
    """

    kept: str = ""
    strangers: int = 0
    names: tuple[str, ...] = ()
    more: bool = False

    @property
    def said(self) -> str:
        """What stays, to stand behind "The archive ..."; empty where nothing does."""
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
    request: ArchiveRequest, shelf: Shelf, *, seconds: float = ERASE_SECONDS
) -> Erased:
    """Delete an archive with all its runs, if whoever asks for it has made all of them.

    None of its drivers may be at work any more; what those that were killed have left is in
    nobody's way. Neither is whoever is killed here: who goes on has the same lease. The heads go
    before what they list, so that nobody reads what is deleted.

    Args:
        request: a run of the archive.
        shelf: the place that holds it.
        seconds: after which no more of a folder is deleted, or looked at, in this call.

    Returns:
        What stays.

    Raises:
        StoreBusy: there is more to delete, or somebody is at work in it.
        ArchiveDamaged: somebody may be at work in it: a lease of the last day cannot be read.
    """
    archive = shelf.archive(request.path, field=PATH_FIELD)
    try:
        head = archive.head()
        if not _is_ours(request, archive, head):
            return Erased(kept="it has runs that this resource has not made")
    except (ArchiveDamaged, ArchiveUnsupported, PlanTooLarge) as error:
        return Erased(kept=f"it is not known who has made its runs: {error.message}")
    if request.maker is not None:
        forget_all(archive.objects, request.maker.id)
    lease = Lease(archive.objects, _eraser(request), LeaseWork.SWEEP)
    begun = archive.objects.look(lease.name) is not None
    lease.__enter__()
    if any(one.name != lease.name for one in lease.look().held):
        if not begun:
            lease.give_back()
        raise StoreBusy(f"somebody is at work in the archive at {request.path}")
    told = _Eraser(archive, lease, seconds).erase()
    lease.give_back()
    return told


class _Eraser:
    """Deletes what is an archive's, and counts what is not.

    Args:
        archive: where.
        lease: renewed meanwhile.
        seconds: for each folder. Where nothing is deleted by then, all that was seen is somebody
            else's, and nobody waits for the rest of the folder.
    """

    def __init__(self, archive: Archive, lease: Lease, seconds: float) -> None:
        self._archive = archive
        self._lease = lease
        self._told = Erased()
        self._seconds = seconds
        self._over = False

    def erase(self) -> Erased:
        """Delete what is an archive's; what stays. StoreBusy: there is more."""
        self._notes()
        for folder in (HEADS, RUNS, DATA, EVENTS):
            self._folder(folder)
        # While ours is there nobody begins to write, so none of these is one that counts.
        self._delete([name for name in self._known(LEASES) if name != self._lease.name])
        return self._told

    def _folder(self, folder: str) -> None:
        """Delete what is an archive's in a folder. StoreBusy: there is more."""
        names: list[str] = []
        count = 0
        for name in self._known(folder):
            names.append(name)
            count += 1
            if len(names) == _BATCH:
                self._delete(names)
                names = []
        # The last head after the others: one before it may list what was swept since.
        self._delete(names[:-1])
        self._delete(names[-1:])
        self._check(folder, count)

    def _notes(self) -> None:
        """Delete all notes, of each run the plan last. StoreBusy: there is more."""
        notes = (read_note(name) for name in self._known(WORK))
        owners = {note.owner for note in notes if note is not None}
        for owner in owners:
            self._lease.renew()
            Notes(self._archive.objects, owner).delete()
        self._check(WORK, len(owners))

    def _known(self, folder: str) -> Iterator[str]:
        """The names of an archive's objects in a folder, until the time is over."""
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
        """What follows where the time was over before all of a folder was seen."""
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
    """What is in a folder, but for the mark by which some tools make an empty one."""
    return (one for one in archive.objects.list(folder) if len(one.name) > len(folder))


def _is_ours(request: ArchiveRequest, archive: Archive, head: Head | None) -> bool:
    """Whether all runs are this one's.

    Those of the head tell. Without one, those that are noted, and the last manifest: somebody may
    be about to bring an archive there, or has lost its head.
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
    """The owner of the lease under which an archive is deleted for a resource."""
    return hashlib.sha256(f"erase {request.archive_id}".encode()).hexdigest()[:32]
