"""StreamArchive: which run is to be made, when the next one is, and what a run needs.

A run is made as a copy is: planned, attempted, tried again, given up. What is decided here is that
there is one to be made at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.core.reconcile import copy
from sluice.core.reconcile.archive_status import ArchiveStatus

if TYPE_CHECKING:
    from sluice.core.reconcile.archive_seen import ArchiveSeen
    from sluice.core.reconcile.world import Decision, World
    from sluice.core.trouble import Trouble


def reconcile_archive(archive: ArchiveSeen, world: World) -> Decision:
    """What to do now. `world` has the answers to `copy.questions`, or why there are none."""
    if archive.deleted is not None:
        return copy.reconcile(archive, world)
    decided = copy.reconcile(archive, world)
    if archive.done:
        decided = replace(decided, status=ArchiveStatus(archive, world.now).at_rest())
    return _in_time(archive, world, decided)


def after_failure(archive: ArchiveSeen, world: World, trouble: Trouble) -> Decision:
    """What to do when an action failed; see `copy.after_failure`."""
    decided = copy.after_failure(archive, world, trouble)
    return decided if archive.deleted is not None else _in_time(archive, world, decided)


def _in_time(archive: ArchiveSeen, world: World, decided: Decision) -> Decision:
    """The decision, made again no later than when the next run is due."""
    if archive.later is None or archive.spec.suspend:
        return decided
    left = max((archive.later - world.now).total_seconds(), 0.05)
    return replace(decided, again=left if decided.again is None else min(decided.again, left))
