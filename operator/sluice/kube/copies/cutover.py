"""Cut over from a followed source: write how the copy is to end, and make its reader groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from sluice.engine.workloads.following import make_group, write_wish
from sluice.errors import StoreNotReady
from sluice.kube.copies.following import wish_for

if TYPE_CHECKING:
    from sluice.kube.copies.observer import CopyObserver
    from sluice.kube.copies.situation import Situation

_log = structlog.get_logger()


async def write_wish_of(situation: Situation, observer: CopyObserver) -> None:
    """Write into the journal how the copy is to end.

    Before the target is recorded there, there is no place for it.
    """
    wish, workload, key = wish_for(situation.resource), situation.workload, situation.seen.uid
    if wish is None:
        return
    _, target = await observer.stores(situation)
    taken = await observer.blocking(lambda: write_wish(workload, target, wish, key=key))
    situation.memory.wish = wish if taken else None
    if taken:
        _log.info("wish written", cutover=wish.cutover)


async def make_group_of(situation: Situation, observer: CopyObserver, name: str) -> None:
    """Make a reader group in the target where that of the source stands, or adopt it.

    Raises:
        StoreNotReady: the source's store cannot be reached.
        ReaderGroupExists, ReaderGroupBusy, InvalidSpec: as `make_group` does.
    """
    sources, target = await observer.stores(situation)
    if not sources:
        raise StoreNotReady("the source's store cannot be reached, to look at a reader group")
    group = next(one for one in situation.world.groups if one.name == name)
    workload, source = situation.workload, sources[0]
    made = await observer.blocking(
        lambda: make_group(workload, source, target, name=group.name, into=group.target)
    )
    _log.info("reader group made" if made else "reader group adopted", group=name)
