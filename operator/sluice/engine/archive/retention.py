"""Letting go of runs that need not be kept, and deleting what only they had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from sluice.archive.runs.leases import Lease
from sluice.archive.runs.sweep import Swept, sweep
from sluice.core.archive.lease import GRACE, LeaseWork
from sluice.core.archive.retention import let_go
from sluice.core.values.archive_layout import RUNS, WORK
from sluice.errors import ArchiveNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.archive.objects.objects import ObjectInfo
    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.head import Head
    from sluice.core.archive.retention import Retention


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """What became of an archive.

    Attributes:
        let_go: the numbers of runs that can be restored no more, or would be.
        swept: what was deleted, or would be; None where nothing was old enough to look for.
    """

    let_go: tuple[int, ...]
    swept: Swept | None


def retain(
    archive: Archive,
    retention: Retention,
    *,
    grace: float = GRACE,
    dry: bool = False,
    thorough: bool = False,
    maker: str | None = None,
    told: Callable[[ObjectInfo], None] | None = None,
) -> Retained:
    """Let go of runs, and sweep what they alone had once that is older than the grace time.

    How old a run is goes by the store's clock: one of ours that is wrong must not cost a run.

    Whoever sweeps lists the whole archive, which has its price. So without `thorough` it is done
    only if there is a manifest or a note that nobody needs.

    Args:
        archive: where.
        retention: which runs are kept.
        grace: seconds that an object stays at least; the same for everybody.
        dry: change nothing, only tell.
        thorough: sweep in any case.
        maker: the identity of the resource that it is done for.
        told: of each object that is, or would be, deleted.

    Raises:
        ArchiveNotFound: there is no archive.
        ArchiveMoved: a run was recorded meanwhile; nothing was let go.
        StoreBusy: somebody writes, so nothing was swept.
    """
    with Lease(archive.objects, uuid4().hex, LeaseWork.READ, maker=maker, grace=grace) as lease:
        # The leases before the head: whoever reads a run has its lease before it looks at the head.
        leases = lease.look()
        head = archive.head()
        if head is None:
            raise ArchiveNotFound("there is no archive here")
        read = {one.run.run for one in leases.held if one.run is not None}
        gone = let_go(head.runs, retention, now=leases.now, read=read)
        if gone:
            head = head.without(gone) if dry else archive.forget(gone, head)
        due = thorough or _is_due(archive, head, leases.now - round(grace * 1000))
    swept = None
    if due:
        swept = sweep(archive, grace=grace, dry=dry, without=gone, maker=maker, told=told)
    return Retained(let_go=tuple(gone), swept=swept)


def _is_due(archive: Archive, head: Head, before: int) -> bool:
    """Whether there is a manifest that no head lists, or a note, from before this time."""
    listed = {one.name for one in head.runs}
    return any(
        found.modified < before and found.name not in listed
        for folder in (RUNS, WORK)
        for found in archive.objects.list(folder)
    )
