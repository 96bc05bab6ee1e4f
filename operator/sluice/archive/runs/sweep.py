"""Sweep an archive: delete the objects that no run needs.

Objects that are listed by the head's runs stay, and so do those of runs that are being read. Of the
rest, only objects older than the grace time are deleted. They are left over from runs that the head
does not list any more, or that were never recorded. No process writes during a sweep, so no deleted
object can be listed later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from sluice.archive.runs.leases import Lease
from sluice.core.archive.lease import GRACE, LEAST_GRACE, LeaseWork
from sluice.core.archive.names import Format, head_name, is_known, read_event, read_run
from sluice.core.values.archive_layout import DATA, EVENTS, HEADS, PARTIAL, RUNS, WORK
from sluice.errors import ArchiveNotFound, InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from sluice.archive.objects.objects import ObjectInfo
    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.head import Head, RunEntry

_BATCH: Final = 500
"""Objects that are deleted at a time."""


@dataclass(slots=True, kw_only=True)
class Swept:
    """The objects that were deleted, or would be.

    Attributes:
        objects: how many objects.
        bytes: their total size.
        runs: numbers of the runs whose manifests are among them.
    """

    objects: int = 0
    bytes: int = 0
    runs: set[int] = field(default_factory=set)

    def add(self, found: ObjectInfo) -> None:
        """Count an object."""
        self.objects += 1
        self.bytes += found.size
        if run := read_run(found.name):
            self.runs.add(run.run)


def sweep(
    archive: Archive,
    *,
    grace: float = GRACE,
    dry: bool = False,
    without: Collection[int] = (),
    maker: str | None = None,
    told: Callable[[ObjectInfo], None] | None = None,
) -> Swept:
    """Delete the objects that no run needs. A sweep can be stopped anywhere and repeated.

    Args:
        archive: the archive.
        grace: seconds that each object stays at least; the same for all processes.
        dry: whether to delete nothing, and only report.
        without: numbers of runs to count as removed from the head; used only if `dry` is set.
        maker: the identity of the resource that the sweep is done for.
        told: called with each object that is, or would be, deleted.

    Raises:
        ArchiveNotFound: there is no archive, so Sluice cannot tell which objects are needed.
        ArchiveDamaged: a manifest or a lease cannot be read, so the needed objects are
            unknown.
        StoreBusy: a process writes, or the sweep took so long that one may have begun to.
        InvalidSpec: the grace time is too short to be safe.
    """
    if grace < LEAST_GRACE:
        raise InvalidSpec(f"a grace time of {grace:.0f} s is too short", field="grace")
    swept = Swept()
    work = LeaseWork.READ if dry else LeaseWork.SWEEP
    with Lease(archive.objects, uuid4().hex, work, maker=maker, grace=grace) as lease:
        # Read the head before the leases: a reader of a run takes its lease before it checks that
        # the head still lists the run.
        head = archive.head()
        if head is None:
            raise ArchiveNotFound("there is no archive here")
        leases = lease.look()
        if without and dry:
            head = head.without(without)
        needed = _Needed(archive, head, {one.run for one in leases.held if one.run}, lease)
        before = leases.now - round(grace * 1000)
        doomed = _Deletion(archive, lease, dry=dry)
        for found in _all(archive):
            lease.renew()
            if found.modified >= before or needed.has(found.name):
                continue
            swept.add(found)
            if told:
                told(found)
            doomed.add(found.name)
        doomed.delete()
        # A lease that was over may have been written again meanwhile.
        over = [one.name for one in leases.over if _is_still(archive.objects.look(one.name), one)]
        _delete(archive, lease, over, dry=dry)
    return swept


def _is_still(found: ObjectInfo | None, before: ObjectInfo) -> bool:
    """Tell whether a lease that was over was not written again.

    A second's tolerance is needed, since not every answer of a store gives times to the ms.
    """
    return found is not None and found.modified < before.modified + 1000


def _all(archive: Archive) -> Iterator[ObjectInfo]:
    """Yield all objects that a sweep may delete.

    Notes come before the objects that they list, so that no driver goes on with objects that are
    gone. Manifests come after the objects that they list, so that the rest of an interrupted sweep
    is still known to belong to a run.
    """
    for folder in (WORK, EVENTS, DATA, RUNS, HEADS, PARTIAL):
        yield from archive.objects.list(folder)


def _folder(name: str) -> str:
    """Return the folder of an object. Folders are swept one after the other."""
    return name.partition("/")[0]


class _Deletion:
    """The objects of one folder that are deleted next, together.

    Args:
        archive: the archive.
        lease: the sweep's lease, which is renewed before objects are deleted.
        dry: whether to delete nothing.
    """

    def __init__(self, archive: Archive, lease: Lease, *, dry: bool) -> None:
        self._archive = archive
        self._lease = lease
        self._dry = dry
        self._names: list[str] = []

    def add(self, name: str) -> None:
        """Add an object, which is deleted once the batch is full or another folder begins."""
        if self._names and _folder(self._names[-1]) != _folder(name):
            self.delete()
        self._names.append(name)
        if len(self._names) == _BATCH:
            self.delete()

    def delete(self) -> None:
        """Delete the objects, and begin anew."""
        _delete(self._archive, self._lease, self._names, dry=self._dry)
        self._names = []


def _delete(archive: Archive, lease: Lease, names: list[str], *, dry: bool) -> None:
    lease.renew()
    if not dry:
        archive.objects.delete(names)


class _Needed:
    """The objects that runs list.

    Args:
        archive: the archive.
        head: the head whose runs are needed.
        read: other runs that are needed, since they are being read.
        lease: the sweep's lease, which is renewed while manifests are read.
    """

    def __init__(self, archive: Archive, head: Head, read: set[RunEntry], lease: Lease) -> None:
        self._names = {head_name(head.number)}
        self._indices: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for entry in {*head.runs, *read}:
            lease.renew()
            self._add(archive, entry)
        for indices in self._indices.values():
            indices.sort()

    def has(self, name: str) -> bool:
        """Tell whether an object must stay: a run needs it, or its name is not an archive's."""
        if name in self._names:
            return True
        if event := read_event(name):
            # An event is needed if a needed index has its place.
            indices = self._indices.get((event.epoch, event.segment), [])
            at = bisect_right(indices, (event.offset, 1 << 63)) - 1
            return at >= 0 and event.offset < indices[at][1]
        return not is_known(name)

    def _add(self, archive: Archive, entry: RunEntry) -> None:
        self._names.add(entry.name)
        manifest = archive.manifest(entry)
        for segment in manifest.segments:
            for stretch in segment.stretches:
                for one in stretch.objects:
                    if manifest.format is Format.EVENT_OBJECTS and one.name not in self._names:
                        place = (segment.epoch, segment.id)
                        self._indices[place].append((one.start, one.end))
                    self._names.add(one.name)
