"""Decide which owners need an EphemeralStream, from their earlier and their present state.

An owner is an object, not a name: an object that was deleted and made again is another owner. Once
the operator knows the object, the owner is *bound*, and the status keeps its uid. With tracking
OwnerReference an owner is bound only when its reference is seen on the resource. So the status
agrees with what Kubernetes' garbage collector goes by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sluice.api.status.ephemeral_status import OwnerStatus

if TYPE_CHECKING:
    from sluice.api.kinds.ephemeralstream import Owner
    from sluice.core.reconcile.ephemeral.world import EphemeralSeen, EphemeralWorld, OwnerSeen
    from sluice.core.values.trouble import Trouble

State = Literal["Absent", "Present", "Finished", "Gone", "Unknown", "Removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnersVerdict:
    """Judgement on the owners.

    Attributes:
        statuses: the owners' statuses to write, in the order of the spec.
        refer: owners whose reference has to be set: index in the spec, and uid.
        drop: uids whose reference has to be removed, since the spec no longer names their owner.
        bound: whether any owner was ever bound.
        alive: number of bound owners that exist, also finished ones, or that cannot be read.
        working: number of these that are not finished.
        collected: whether the resource has references to owners that are gone: Kubernetes'
            garbage collector will remove them, or delete the resource.
        trouble: why an owner cannot be read.
    """

    statuses: tuple[OwnerStatus, ...]
    refer: tuple[tuple[int, str], ...] = ()
    drop: frozenset[str] = frozenset()
    bound: bool = False
    alive: int = 0
    working: int = 0
    collected: bool = False
    trouble: Trouble | None = None

    @property
    def summary(self) -> str | None:
        """Owners alive and owners named, for a table."""
        named = [status for status in self.statuses if status.state != "Removed"]
        return f"{self.alive}/{len(named)}" if named else None


def judge(seen: EphemeralSeen, world: EphemeralWorld, *, in_grace: bool) -> OwnersVerdict:
    """Judge the owners.

    Args:
        seen: the resource.
        world: with its owners as they are now.
        in_grace: whether a successor may take the place of a last owner that is gone.
    """
    before = {_key(status): status.uid for status in seen.status.owners}
    observe = seen.spec.tracking == "Observe"
    found = []
    for owner, now in zip(seen.spec.owners, world.owners, strict=True):
        was = before.get(_key(owner))
        comes = observe and not now.deleting
        if was is None and now.uid is not None and (comes or now.uid in seen.references):
            was = now.uid
        found.append((owner, now, was))
    alive = sum(_lives(now, was) for _, now, was in found)
    dangling = any(
        was in seen.references and not _lives(now, was) for _, now, was in found if was is not None
    )
    successors = alive > 0 or (in_grace if observe else not dangling)
    statuses, refer = [], []
    for index, (owner, now, was) in enumerate(found):
        bound = was
        if now.uid is None or now.trouble is not None:
            pass
        elif not _lives(now, was) and (was is None or successors):
            if now.uid in seen.references or (observe and not now.deleting):
                bound = now.uid
            elif not now.deleting:
                refer.append((index, now.uid))
        elif not observe and now.uid == was not in seen.references and not now.deleting:
            # Another client removed the reference, so it is set again. Not if the owner is being
            # deleted: that is --cascade=orphan, and with a reference to the owner Kubernetes would
            # delete this resource after all.
            refer.append((index, now.uid))
        statuses.append(_status(owner, now, bound))
    # Kept in the status until the reference is gone: only this tells that Sluice set it.
    removed = [
        status.model_copy(update={"state": "Removed"})
        for status in seen.status.owners
        if status.uid in seen.references
        and _key(status) not in {_key(owner) for owner in seen.spec.owners}
    ]
    return OwnersVerdict(
        statuses=(*statuses, *removed),
        refer=tuple(refer),
        drop=frozenset(str(status.uid) for status in removed)
        - {str(status.uid) for status in statuses},
        bound=any(status.uid is not None for status in statuses),
        alive=sum(status.state in _ALIVE and status.uid is not None for status in statuses),
        working=sum(
            status.state in {"Present", "Unknown"} and status.uid is not None for status in statuses
        ),
        collected=dangling,
        trouble=next((now.trouble for now in world.owners if now.trouble is not None), None),
    )


_ALIVE = frozenset({"Present", "Finished", "Unknown"})


def _lives(now: OwnerSeen, was: str | None) -> bool:
    """Tell whether a bound owner still exists; an owner that cannot be read counts as existing."""
    return was is not None and (now.trouble is not None or now.uid == was)


def _status(owner: Owner, now: OwnerSeen, bound: str | None) -> OwnerStatus:
    state: State
    if now.trouble is not None:
        state = "Unknown"
    elif now.uid is None:
        state = "Absent" if bound is None else "Gone"
    elif bound is not None and now.uid != bound:
        state = "Gone"
    else:
        state = "Finished" if now.finished else "Present"
    return OwnerStatus(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        namespace=owner.namespace,
        uid=bound,
        state=state,
    )


def _key(owner: Owner | OwnerStatus) -> tuple[str, str, str | None, str]:
    return owner.api_version, owner.kind, owner.namespace, owner.name
