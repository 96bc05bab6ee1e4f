"""StreamArchive: which run is to be made, when the next one is, and what a run needs.

A run is made as a copy is: planned, attempted, tried again, given up. What is decided here is that
there is one to be made at all.
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
    """What to do now. `world` has the answers to `decide.questions`, or why there are none."""
    if archive.deleted is not None:
        return decide.reconcile(archive, world)
    decided = decide.reconcile(archive, world)
    if archive.done:
        decided = replace(decided, status=ArchiveStatus(archive, world.now).at_rest())
    return _in_time(archive, world, _held(archive, world, decided))


def after_failure(archive: ArchiveSeen, world: World, trouble: Trouble) -> Decision:
    """What to do when an action failed; see `copy.after_failure`."""
    decided = decide.after_failure(archive, world, trouble)
    return decided if archive.deleted is not None else _in_time(archive, world, decided)


def _held(archive: ArchiveSeen, world: World, decided: Decision) -> Decision:
    """The decision; and the resource is held where runs go with it, and nothing holds it yet.

    So it is where that is wanted only since the last run, after which it was let go. Where the
    store allows no such thing, the resource would never go.
    """
    status = decided.status
    there = isinstance(status, StreamArchiveStatus) and status.archive is not None
    wanted = archive.keeps and there and isinstance(world.target, StoreSeen)
    if not wanted or archive.finalizer or AddFinalizer() in decided.actions:
        return decided
    return replace(decided, actions=(AddFinalizer(), HoldStores(), *decided.actions))


def _in_time(archive: ArchiveSeen, world: World, decided: Decision) -> Decision:
    """The decision, made again no later than when the next run is due."""
    if archive.later is None or archive.spec.suspend:
        return decided
    left = max((archive.later - world.now).total_seconds(), 0.05)
    return replace(decided, again=left if decided.again is None else min(decided.again, left))
