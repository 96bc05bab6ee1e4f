"""Decide what to do next about an EphemeralStream, from its spec, its status and its surroundings.

The functions are called again and again; each call starts from nothing but its arguments. The store
records which resource owns a stream. The status and the ownerReferences record which object an
owner is.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sluice.core.claims.claim import Ownership
from sluice.core.reconcile.ephemeral import deletion
from sluice.core.reconcile.ephemeral.failure import (
    NOT_ASKED,
    STALLED_SECONDS,
    WAIT_SECONDS,
    failed,
    stalled,
)
from sluice.core.reconcile.ephemeral.holding import hold
from sluice.core.reconcile.ephemeral.owners import judge
from sluice.core.reconcile.ephemeral.status import EphemeralStatus
from sluice.core.reconcile.ephemeral.world import (
    EphemeralDecision,
    Make,
    Protect,
    Refer,
    Release,
    Unprotect,
)
from sluice.core.reconcile.shared.conditions import Saying

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.core.reconcile.ephemeral.owners import OwnersVerdict
    from sluice.core.reconcile.ephemeral.world import (
        EphemeralAction,
        EphemeralSeen,
        EphemeralWorld,
    )
    from sluice.core.values.trouble import Trouble

REFER_SECONDS: Final = 0.5
"""Seconds between setting a reference to an owner and checking that it is there."""

CLAIM_SECONDS: Final = 1.0
"""Seconds between claiming a prefix before an owner is there and checking that it is claimed."""


def asks_store(seen: EphemeralSeen, world: EphemeralWorld) -> bool:
    """Tell whether `reconcile_ephemeral` needs the store's answer."""
    if seen.deleted is not None or seen.spec.suspend:
        return False
    if seen.status.release is not None:
        return seen.finalizer
    if world.refused is not None or world.store is None or not world.store.ready:
        return False
    return _claims_early(seen) or judge(seen, world, in_grace=True).bound


def reconcile_ephemeral(seen: EphemeralSeen, world: EphemeralWorld) -> EphemeralDecision:
    """Decide what to do now. If `asks_store`, `world` has the store's answer or its failure."""
    if seen.deleted is not None:
        return deletion.reconcile_deletion(seen, world)
    status = EphemeralStatus(seen, world.now)
    if world.store is not None and world.store.namespace != seen.namespace and not world.refused:
        status.admitted()
    owners = judge(seen, world, in_grace=_in_grace(seen, world.now))
    status.owned_by(owners)
    released = seen.status.release is not None
    if seen.spec.suspend and not (released and not seen.finalizer):
        said = Saying("Suspended", "Nothing is made, changed or released.")
        return EphemeralDecision(status=status.suspended(said))
    if released:
        return _released(seen, world, status)
    if world.refused is not None:
        return stalled(status, world.refused)
    decision = _alive(seen, world, status, owners)
    if not owners.refer and not owners.drop:
        return decision
    # The next look sees the references, and with them the owners. It waits a moment, in case
    # another client removes the references each time.
    refer = Refer(owners.refer, owners.drop)
    return replace(decision, actions=(refer, *decision.actions), again=REFER_SECONDS)


def after_ephemeral_failure(
    seen: EphemeralSeen, world: EphemeralWorld, trouble: Trouble
) -> EphemeralDecision:
    """Decide what to do after an action that failed."""
    if seen.deleted is not None:
        return deletion.deletion_failed(seen, world, trouble)
    status = EphemeralStatus(seen, world.now)
    return failed(status, trouble)


def _in_grace(seen: EphemeralSeen, now: datetime) -> bool:
    """Tell whether a successor may still take the place of an owner that is gone."""
    since = seen.status.owners_gone_time or now
    return now < since + timedelta(seconds=seen.spec.grace_period_seconds)


def _alive(
    seen: EphemeralSeen, world: EphemeralWorld, status: EphemeralStatus, owners: OwnersVerdict
) -> EphemeralDecision:
    """Make the streams if an owner needs them; otherwise release them, or wait."""
    spec, now = seen.spec, world.now
    age = (now - seen.created).total_seconds()
    if spec.max_age_seconds is not None and age >= spec.max_age_seconds:
        return _release(status, "MaxAgeReached")
    if spec.owners and not owners.bound:
        return _unowned(seen, world, status, owners)
    finished = spec.release_when == "OwnersFinished" and owners.alive > 0 and not owners.working
    if not spec.owners or (owners.alive and not finished):
        status.owners_gone(None)
        return hold(seen, world, status)
    if spec.tracking == "OwnerReference" and not finished:
        return _left(status, owners)
    return _unneeded(seen, status, now, "OwnersFinished" if finished else "OwnersDeleted")


def _unowned(
    seen: EphemeralSeen, world: EphemeralWorld, status: EphemeralStatus, owners: OwnersVerdict
) -> EphemeralDecision:
    """Wait for the first owner, with a prefix claimed meanwhile."""
    found = world.holding if _claims_early(seen) else None
    claimed = found is not None and found.ownership is Ownership.OURS
    if found is not None and claimed:
        status.holds(found)
    free = found is not None and found.scope and found.ownership is Ownership.ABSENT
    # Trouble with the claim is reported once there is an owner.
    claim = (Protect(), Make()) if free and world.rival is None else ()
    if owners.refer:
        said = Saying("Making", "The owners are there; the stream is made when they own this.")
        return EphemeralDecision(status=status.working(said), actions=claim)
    if owners.trouble is not None:
        return replace(failed(status, owners.trouble), actions=claim)
    names = ", ".join(f"{owner.kind} {owner.name}" for owner in owners.statuses)
    text = f"No stream is made before an owner is there: {names}."
    if claimed:
        text = f"New streams under {seen.spec.stream_prefix!r} are claimed for {names}."
    said = Saying("WaitingForOwner", text)
    return EphemeralDecision(
        status=status.working(said), actions=claim, again=CLAIM_SECONDS if claim else WAIT_SECONDS
    )


def _claims_early(seen: EphemeralSeen) -> bool:
    """Tell whether the resource makes its claim without waiting for an owner.

    A resource without owners does. So does one that claims the new streams under a prefix: streams
    are new if they come after the claim, and an application may make them as soon as it starts.
    """
    by_age = seen.spec.stream_prefix is not None and seen.spec.claim != "ExistingAndNew"
    return by_age or not seen.spec.owners


def _left(status: EphemeralStatus, owners: OwnersVerdict) -> EphemeralDecision:
    """Leave the resource, whose owners are all gone, to Kubernetes' garbage collector."""
    if owners.collected:
        said = Saying(
            "OwnersDeleted", "The owners are gone; Kubernetes' garbage collector deletes this next."
        )
        return EphemeralDecision(status=status.working(said), again=WAIT_SECONDS)
    said = Saying(
        "OwnerOrphaned",
        "The owners were deleted with --cascade=orphan, so the streams stay. An owner that is made "
        "again takes them over; otherwise delete this resource.",
    )
    return EphemeralDecision(status=status.ready(said), again=STALLED_SECONDS)


def _unneeded(
    seen: EphemeralSeen, status: EphemeralStatus, now: datetime, reason: str
) -> EphemeralDecision:
    """Release streams that no owner needs any more, after the grace period."""
    since = seen.status.owners_gone_time or now
    status.owners_gone(since)
    end = since + timedelta(seconds=seen.spec.grace_period_seconds)
    if now >= end:
        return _release(status, reason)
    said = Saying(
        "GracePeriod",
        "No owner needs the streams any more; they are released at "
        f"{end:%Y-%m-%dT%H:%M:%SZ} unless a successor comes.",
    )
    return EphemeralDecision(status=status.working(said), again=(end - now).total_seconds())


def _release(status: EphemeralStatus, reason: str) -> EphemeralDecision:
    """Record in the status that the streams are to be released. The next look releases them."""
    status.release(reason)
    said = Saying("Releasing", f"The streams are released: {reason}.")
    return EphemeralDecision(status=status.working(said), again=0.0)


def _released(
    seen: EphemeralSeen, world: EphemeralWorld, status: EphemeralStatus
) -> EphemeralDecision:
    """Go on with a release. Streams may be left as long as the finalizer stands."""
    release = seen.status.release
    assert release is not None  # noqa: S101 - for the type checker: the caller looked
    delete = seen.spec.on_release == "Delete"
    actions: tuple[EphemeralAction, ...] = ()
    if seen.finalizer:
        waited = (world.now - release.time).total_seconds()
        if delete and world.readers and waited < deletion.READERS_PATIENCE:
            said = deletion.in_use(world.readers)
            return EphemeralDecision(status=status.working(said), again=WAIT_SECONDS)
        if world.trouble is not None or world.holding is None:
            return failed(status, world.trouble or NOT_ASKED)
        gone = world.now - (seen.status.owners_gone_time or release.time)
        stopping = deletion.may_come(seen, world, gone.total_seconds())
        if stopping and world.holding.marked:
            said = Saying("Releasing", f"{release.reason}. {deletion.LATE}")
            return EphemeralDecision(
                status=status.working(said),
                actions=(Release(delete=True, watch=True),),
                again=min(deletion.POLL_SECONDS, stopping),
            )
        if delete and not world.holding.empty:
            said = Saying("Releasing", f"The streams are released: {release.reason}.")
            again = min(max(0.0, waited / 4), STALLED_SECONDS)
            return EphemeralDecision(
                status=status.working(said), actions=(Release(delete=True),), again=again
            )
        # With Retain, one call is enough: a store keeps our tags on a sealed stream for good.
        actions = (Unprotect(),) if delete else (Release(delete=False), Unprotect())
    if not delete:
        status.left_alone()
    status.released()
    how = "were deleted" if delete else "were left to you"
    said = Saying("Released", f"The streams {how}: {release.reason}. This resource can be deleted.")
    return EphemeralDecision(status=status.ready(said), actions=actions)
