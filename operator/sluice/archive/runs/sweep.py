"""Sweeping: deleting what no run needs.

What the runs of the head list stays, and so does what a run lists that somebody reads. Of the rest
only what is older than the grace time is deleted: it is left over from runs that were let go, or
that were never recorded. Nobody writes meanwhile, so nothing that is deleted can be listed later.
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
    """What was deleted, or would be.

    Attributes:
        objects: how many.
        bytes: in them.
        runs: the numbers of those that are gone for good.
    """

    objects: int = 0
    bytes: int = 0
    runs: set[int] = field(default_factory=set)


def sweep(
    archive: Archive,
    *,
    grace: float = GRACE,
    dry: bool = False,
    without: Collection[int] = (),
    maker: str | None = None,
    told: Callable[[ObjectInfo], None] | None = None,
) -> Swept:
    """Delete what no run needs. It can be stopped anywhere, and done again.

    Args:
        archive: where.
        grace: seconds that an object stays at least; the same for everybody.
        dry: delete nothing, only tell.
        without: the numbers of runs that would be let go before; only where nothing is deleted.
        maker: the identity of the resource that it is done for.
        told: of each object that is, or would be, deleted.

    Raises:
        ArchiveNotFound: there is no archive, so it is not known what is needed.
        ArchiveDamaged: a manifest cannot be read, likewise.
        StoreBusy: somebody writes, or this took so long that somebody may have begun to.
        InvalidSpec: the grace time is too short to be safe.
    """
    if grace < LEAST_GRACE:
        raise InvalidSpec(f"a grace time of {grace:.0f} s is too short", field="grace")
    swept = Swept()
    work = LeaseWork.READ if dry else LeaseWork.SWEEP
    with Lease(archive.objects, uuid4().hex, work, maker=maker, grace=grace) as lease:
        # The head before the leases: whoever reads a run took a lease before the head was asked
        # whether it still lists the run.
        head = archive.head()
        if head is None:
            raise ArchiveNotFound("there is no archive here")
        leases = lease.look()
        if without and dry:
            head = head.without(without)
        needed = _Needed(archive, head, {one.run for one in leases.held if one.run}, lease)
        before = leases.now - round(grace * 1000)
        batch: list[str] = []
        for found in _all(archive):
            lease.renew()
            if found.modified >= before or needed.has(found.name):
                continue
            swept.objects += 1
            swept.bytes += found.size
            if run := read_run(found.name):
                swept.runs.add(run.run)
            if told:
                told(found)
            if batch and _folder(batch[-1]) != _folder(found.name):
                _delete(archive, lease, batch, dry=dry)
                batch = []
            batch.append(found.name)
            if len(batch) == _BATCH:
                _delete(archive, lease, batch, dry=dry)
                batch = []
        _delete(archive, lease, batch, dry=dry)
        # Whoever goes on with a copy may have taken its lease again meanwhile.
        over = [one.name for one in leases.over if _is_still(archive.objects.look(one.name), one)]
        _delete(archive, lease, over, dry=dry)
    return swept


def _is_still(found: ObjectInfo | None, before: ObjectInfo) -> bool:
    """Whether a lease that is over was not written again.

    Not all that a store says of an object tells to the millisecond when it was made.
    """
    return found is not None and found.modified < before.modified + 1000


def _all(archive: Archive) -> Iterator[ObjectInfo]:
    """Everything that can be swept.

    Notes come before what they tell of, so nobody goes on with what is gone; manifests come after
    what they list, so a rest is known of.
    """
    for folder in (WORK, EVENTS, DATA, RUNS, HEADS, PARTIAL):
        yield from archive.objects.list(folder)


def _folder(name: str) -> str:
    """The folder that an object lies in; folders are swept one after the other."""
    return name.partition("/")[0]


def _delete(archive: Archive, lease: Lease, names: list[str], *, dry: bool) -> None:
    lease.renew()
    if not dry:
        archive.objects.delete(names)


class _Needed:
    """What runs list.

    Args:
        archive: where they are.
        head: whose runs are needed.
        read: the runs that are needed besides.
        lease: renewed meanwhile.
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
        """Whether an object is needed, or is none of an archive's and so none of our business."""
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
