"""Decide what to do next about a StreamArchive, and when.

A run is planned, attempted, tried again and given up as a copy is, by `decide`. This module adds
the rest between two runs, the time of the next run, and the finalizer that keeps runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.api.status.archive_status import StreamArchiveStatus
from sluice.core.reconcile.copies import decide
from sluice.core.reconcile.copies.actions import AddFinalizer, HoldStores
from sluice.core.reconcile.copies.archive_status import ArchiveStatus
from sluice.core.reconcile.shared.store_seen import StoreSeen

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.reconcile.copies.archive_seen import ArchiveSeen
    from sluice.core.reconcile.copies.world import World
    from sluice.core.values.trouble import Trouble


def reconcile_archive(archive: ArchiveSeen, world: World) -> Decision:
    """Decide what to do now.

    `world` has the answers to `decide.questions`, or why there are none.
    """
    if archive.deleted is not None:
        return decide.reconcile(archive, world)
    decided = decide.reconcile(archive, world)
    if archive.done:
        status = ArchiveStatus(archive, world.now).at_rest()
        status = status.model_copy(update={"job_ref": decided.status.job_ref})
        decided = replace(decided, status=status)
    return _in_time(archive, world, _held(archive, world, decided))


def after_failure(archive: ArchiveSeen, world: World, trouble: Trouble) -> Decision:
    """Decide what to do after an action that failed; see `decide.after_failure`."""
    decided = decide.after_failure(archive, world, trouble)
    return decided if archive.deleted is not None else _in_time(archive, world, decided)


def _held(archive: ArchiveSeen, world: World, decided: Decision) -> Decision:
    """Add the finalizer to the decision, if the runs are deleted with the resource.

    It may be missing: the last run's end removed it, and only then the spec got `onDelete: Delete`.
    If the StreamStore forbids the deletion, no finalizer is set, or the resource could never go.
    """
    status = decided.status
    there = isinstance(status, StreamArchiveStatus) and status.archive is not None
    wanted = archive.keeps and there and isinstance(world.target, StoreSeen)
    if not wanted or archive.finalizer or AddFinalizer() in decided.actions:
        return decided
    return replace(decided, actions=(AddFinalizer(), HoldStores(), *decided.actions))


def _in_time(archive: ArchiveSeen, world: World, decided: Decision) -> Decision:
    """Have the next look no later than the next scheduled run."""
    if archive.later is None or archive.spec.suspend:
        return decided
    left = max((archive.later - world.now).total_seconds(), 0.05)
    return replace(decided, again=left if decided.again is None else min(decided.again, left))
