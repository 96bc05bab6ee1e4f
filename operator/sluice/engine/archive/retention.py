"""Apply a retention policy: let go of runs, and delete objects that only they listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from sluice.archive.runs.leases import Lease
from sluice.archive.runs.sweep import Swept, sweep
from sluice.core.archive.lease import GRACE, LeaseWork
from sluice.core.archive.retention import expired
from sluice.core.values.archive_layout import RUNS, WORK
from sluice.errors import ArchiveNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from sluice.archive.objects.objects import ObjectInfo
    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.head import Head
    from sluice.core.archive.retention import Retention


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """The result of applying a retention policy.

    Attributes:
        let_go: the numbers of the runs that were, or would be, let go. They cannot be restored.
        swept: the deleted objects, or those to delete; None if no sweep was due.
        named: the numbers of the runs that no rule keeps, and that stay since they were named.
    """

    let_go: tuple[int, ...]
    swept: Swept | None
    named: tuple[int, ...] = ()


def retain(
    archive: Archive,
    retention: Retention,
    *,
    grace: float = GRACE,
    dry: bool = False,
    thorough: bool = False,
    maker: str | None = None,
    named: Container[str] = (),
    told: Callable[[ObjectInfo], None] | None = None,
) -> Retained:
    """Let go of runs, and sweep their unlisted objects once these are older than the grace time.

    A sweep lists the whole archive, which is slow and costs requests. So without `thorough` it
    runs only if there is a manifest or a note that no run needs.

    Args:
        archive: the archive.
        retention: which runs to keep.
        grace: seconds that an object stays at least; the same for all clients of the archive.
        dry: change nothing, only tell what would be done.
        thorough: sweep in any case.
        maker: the identity of the resource that it is done for.
        named: the SHA-256 of the manifests of runs that stay in any case.
        told: called with each object that is, or would be, deleted.

    Raises:
        ArchiveNotFound: there is no archive.
        ArchiveMoved: a run was recorded meanwhile; nothing was let go.
        StoreBusy: a driver writes, so nothing was swept.
    """
    with Lease(archive.objects, uuid4().hex, LeaseWork.READ, maker=maker, grace=grace) as lease:
        # Look at the leases before the head: a reader takes its lease before it looks at the head.
        # The age of runs goes by the store's clock, so that a wrong local clock costs no run.
        leases = lease.look()
        head = archive.head()
        if head is None:
            raise ArchiveNotFound("there is no archive here")
        read = {one.run.run for one in leases.held if one.run is not None}
        gone = expired(head.runs, retention, now=leases.now, read=read, named=named)
        old = expired(head.runs, retention, now=leases.now, read=read)
        if gone:
            head = head.without(gone) if dry else archive.drop_runs(gone, head)
        due = thorough or _is_due(archive, head, leases.now - round(grace * 1000))
    swept = None
    if due:
        swept = sweep(archive, grace=grace, dry=dry, without=gone, maker=maker, told=told)
    kept = tuple(one for one in old if one not in gone)
    return Retained(let_go=tuple(gone), swept=swept, named=kept)


def _is_due(archive: Archive, head: Head, before: int) -> bool:
    """Tell whether there is a note, or a manifest that the head does not list, from before a time.

    Args:
        archive: the archive.
        head: its head.
        before: the time in ms of the store's clock.
    """
    listed = {one.name for one in head.runs}
    return any(
        found.modified < before and found.name not in listed
        for folder in (RUNS, WORK)
        for found in archive.objects.list(folder)
    )
