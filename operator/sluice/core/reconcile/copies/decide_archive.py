"""Decide what to do next about a StreamArchive, and when.

Its runs are decided on as all runs are. This module adds the finalizer that keeps runs which are
deleted with the resource, and the restore drills.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.api.status.archive_status import StreamArchiveStatus
from sluice.core.reconcile.copies.actions import AddFinalizer, HoldStores
from sluice.core.reconcile.copies.drill.decide import beside, on_deletion
from sluice.core.reconcile.copies.scheduled import decide
from sluice.core.reconcile.shared.store_seen import StoreSeen

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.reconcile.copies.archive_seen import ArchiveSeen
    from sluice.core.reconcile.copies.world import World


def reconcile_archive(archive: ArchiveSeen, world: World) -> Decision:
    """Decide what to do now.

    `world` has the answers to `decide.questions`, or why there are none.
    """
    decided = decide.reconcile_scheduled(archive, world)
    if archive.deleted is not None:
        return on_deletion(archive, world, decided)
    decided = beside(archive, world, _held(archive, world, decided))
    if archive.drill_later is None or archive.spec.suspend:
        return decided
    left = max((archive.drill_later - world.now).total_seconds(), 0.05)
    return replace(decided, again=left if decided.again is None else min(decided.again, left))


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
