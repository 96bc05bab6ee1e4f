"""Look at what a copy that follows its source has of its own: its wish, and its reader groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.api.kinds.streamcopy import StreamCopySpec
from sluice.core.reconcile.copies.world import GroupSeen
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.access import ending
from sluice.core.workloads.request import wish_of
from sluice.engine.workloads.following import group_state
from sluice.kube.api.objects import origins_of
from sluice.kube.copies.store_access import look_at_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.api.fields.continuous import ReaderGroupSpec
    from sluice.api.registry import Copy
    from sluice.core.follow.lag import Followed
    from sluice.core.values.wish import Wish
    from sluice.engine.access.source_runs import Place
    from sluice.engine.workloads.workload import Workload
    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.storeview import StoreView


def wish_for(resource: Copy) -> Wish | None:
    """Return how a copy is to end; None if it follows no source."""
    return wish_of(resource.spec)


async def seal_trouble(
    stores: StoreView, body: Object, resource: Copy, *, eager: bool
) -> Trouble | None:
    """Tell why a copy that asks for it may not seal its source; None if it may, or does not ask.

    It goes on following meanwhile: what it may do does not change.
    """
    wish = wish_for(resource)
    if wish is None or wish.cutover != "SealAndDrain":
        return None
    ((path, what),) = origins_of(resource)
    needed = ending(moves=False, seals=True)
    seen = await look_at_store(stores, body, path, what, needed, eager=eager)
    return seen if isinstance(seen, Trouble) else None


def is_wished(
    resource: Copy, written: Wish | None, follow: Followed | None, *, key: str = ""
) -> bool:
    """Tell whether the journal says how a copy is to end as its spec does.

    Args:
        resource: the copy.
        written: what this process has written last. Another process may have written it with
            another consent, so each process writes it once.
        follow: how far the copy is. Nothing is written where nothing can be.
        key: the key by which followers know that the owner wishes to seal the source. Another
            client may have replaced the owner's wish by one that says the same, which no follower
            goes by.
    """
    wish = wish_for(resource)
    if wish is None or follow is None or follow.wish is None or follow.stopped is not None:
        return True
    seals = wish.cutover == "SealAndDrain" and follow.claims is not None
    if seals and not any(one.is_owners(key) for one in follow.claims or ()):
        return False
    return wish == follow.wish == written


def groups_of(resource: Copy) -> Sequence[ReaderGroupSpec]:
    """Return the reader groups that are to go on in the target."""
    return resource.spec.reader_groups if isinstance(resource.spec, StreamCopySpec) else ()


def look_at_groups(
    workload: Workload, source: Place, target: Place, groups: Sequence[ReaderGroupSpec]
) -> tuple[GroupSeen, ...]:
    """Look at the reader groups of a complete copy. This blocks; nothing is changed."""
    seen = []
    for group in groups:
        made, why = group_state(workload, source, target, name=group.name, into=group.made)
        ready = not made and not why
        seen.append(GroupSeen(name=group.name, target=group.made, made=made, ready=ready, why=why))
    return tuple(seen)
