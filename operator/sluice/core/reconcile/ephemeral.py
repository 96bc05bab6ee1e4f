"""EphemeralStream: what to do next, from its spec, its status and what was seen.

Called again and again; each call starts from nothing but its arguments. Whose a stream is stands in
the store; which object an owner is stands in the status, and in the resource's ownerReferences.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sluice.api.status import ConditionType
from sluice.core.claim import Ownership
from sluice.core.reconcile import ephemeral_deletion
from sluice.core.reconcile.conditions import Saying
from sluice.core.reconcile.ephemeral_owners import judge
from sluice.core.reconcile.ephemeral_status import EphemeralStatus, config_hash
from sluice.core.reconcile.ephemeral_world import (
    Adopt,
    Configure,
    EphemeralDecision,
    Make,
    Protect,
    Refer,
    Release,
    Unprotect,
)
from sluice.core.trouble import Trouble
from sluice.errors import StoreNotFound, StoreNotReady, StoreUnavailable

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.core.claim import Holding
    from sluice.core.reconcile.ephemeral_owners import Owners
    from sluice.core.reconcile.ephemeral_world import (
        EphemeralAction,
        EphemeralSeen,
        EphemeralWorld,
        Rival,
    )
    from sluice.errors import SluiceError

WAIT_SECONDS: Final = 30.0
"""Between two looks at what is waited for; events usually come first."""

RETRY_SECONDS: Final = 5.0
"""Before something is tried again that a store has failed to do."""

STALLED_SECONDS: Final = 60.0
"""Between two looks at a resource that waits for a person."""

REFER_SECONDS: Final = 0.5
"""Between setting a reference to an owner and looking whether it stands."""

DRIFT_SECONDS: Final = 300.0
"""Between two looks whether a stream is still as the spec has it."""

NEWS_SECONDS: Final = 30.0
"""Between two looks which streams an application has made under a prefix."""

SUCCESSOR_SECONDS: Final = 5.0
"""A predecessor's stream is taken over only if it is left to us for so long still."""


_NOT_ASKED: Final = Trouble.of(StoreUnavailable("the store was not asked yet"))


def asks_store(seen: EphemeralSeen, world: EphemeralWorld) -> bool:
    """Whether `reconcile_ephemeral` can decide only when the store was asked."""
    if seen.deleted is not None or seen.spec.suspend:
        return False
    if seen.status.release is not None:
        return seen.finalizer
    if world.refused is not None or world.store is None or not world.store.ready:
        return False
    return not seen.spec.owners or judge(seen, world, in_grace=True).bound


def reconcile_ephemeral(seen: EphemeralSeen, world: EphemeralWorld) -> EphemeralDecision:
    """What to do now. `world` has the store's answer if `asks_store`, or why there is none."""
    if seen.deleted is not None:
        return ephemeral_deletion.reconcile_deletion(seen, world)
    status = EphemeralStatus(seen, world.now)
    owners = judge(seen, world, in_grace=_in_grace(seen, world.now))
    status.owned_by(owners)
    released = seen.status.release is not None
    if seen.spec.suspend and not (released and not seen.finalizer):
        said = Saying("Suspended", "Nothing is made, changed or released.")
        return EphemeralDecision(status=status.suspended(said))
    if released:
        return _released(seen, world, status)
    if world.refused is not None:
        return _stalled(status, world.refused)
    decision = _alive(seen, world, status, owners)
    if not owners.refer and not owners.drop:
        return decision
    # The next look has the references, and with them the owners; a moment later, in case somebody
    # takes them away each time.
    refer = Refer(owners.refer, owners.drop)
    return replace(decision, actions=(refer, *decision.actions), again=REFER_SECONDS)


def after_ephemeral_failure(
    seen: EphemeralSeen, world: EphemeralWorld, trouble: Trouble
) -> EphemeralDecision:
    """What to do when something that was decided could not be done."""
    if seen.deleted is not None:
        return ephemeral_deletion.deletion_failed(seen, world, trouble)
    status = EphemeralStatus(seen, world.now)
    return _failed(status, trouble)


def _failed(status: EphemeralStatus, trouble: Trouble) -> EphemeralDecision:
    if not trouble.retryable:
        return _stalled(status, trouble)
    said = Saying(trouble.reason, str(trouble))
    return EphemeralDecision(status=status.working(said), again=RETRY_SECONDS)


def _stalled(status: EphemeralStatus, trouble: Trouble) -> EphemeralDecision:
    said = Saying(trouble.reason, str(trouble))
    return EphemeralDecision(status=status.stalled(said), again=STALLED_SECONDS)


def _in_grace(seen: EphemeralSeen, now: datetime) -> bool:
    """Whether owners that are gone may be followed by successors."""
    since = seen.status.owners_gone_time or now
    return now < since + timedelta(seconds=seen.spec.grace_period_seconds)


def _alive(
    seen: EphemeralSeen, world: EphemeralWorld, status: EphemeralStatus, owners: Owners
) -> EphemeralDecision:
    """Whether anybody needs the streams; then they are made, otherwise released or waited with."""
    spec, now = seen.spec, world.now
    age = (now - seen.created).total_seconds()
    if spec.max_age_seconds is not None and age >= spec.max_age_seconds:
        return _release(status, "MaxAgeReached")
    if spec.owners and not owners.bound:
        return _unowned(status, owners)
    finished = spec.release_when == "OwnersFinished" and owners.alive > 0 and not owners.working
    if not spec.owners or (owners.alive and not finished):
        status.owners_gone(None)
        return _needed(seen, world, status)
    if spec.tracking == "OwnerReference" and not finished:
        return _left(status, owners)
    return _unneeded(seen, status, now, "OwnersFinished" if finished else "OwnersDeleted")


def _unowned(status: EphemeralStatus, owners: Owners) -> EphemeralDecision:
    """No owner was ever there."""
    if owners.trouble is not None and not owners.refer:
        return _failed(status, owners.trouble)
    names = ", ".join(f"{owner.kind} {owner.name}" for owner in owners.statuses)
    said = Saying("WaitingForOwner", f"No stream is made before an owner is there: {names}.")
    return EphemeralDecision(status=status.working(said), again=WAIT_SECONDS)


def _left(status: EphemeralStatus, owners: Owners) -> EphemeralDecision:
    """All owners are gone, and deleting the resource is Kubernetes' part."""
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
    """No owner needs the streams any more: they are released after the grace period."""
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
    """Let the streams go and keep the resource. That it was decided is written down first."""
    status.release(reason)
    said = Saying("Releasing", f"The streams are released: {reason}.")
    return EphemeralDecision(status=status.working(said), again=0.0)


def _released(
    seen: EphemeralSeen, world: EphemeralWorld, status: EphemeralStatus
) -> EphemeralDecision:
    """The streams were let go, or are being: as long as the finalizer stands, some may be left."""
    release = seen.status.release
    assert release is not None  # noqa: S101 - for the type checker: the caller looked
    delete = seen.spec.on_release == "Delete"
    actions: tuple[EphemeralAction, ...] = ()
    if seen.finalizer:
        waited = (world.now - release.time).total_seconds()
        if delete and world.readers and waited < ephemeral_deletion.READERS_PATIENCE:
            said = ephemeral_deletion.in_use(world.readers)
            return EphemeralDecision(status=status.working(said), again=WAIT_SECONDS)
        if world.trouble is not None or world.holding is None:
            return _failed(status, world.trouble or _NOT_ASKED)
        if delete and not world.holding.empty:
            said = Saying("Releasing", f"The streams are released: {release.reason}.")
            again = min(max(0.0, waited / 4), STALLED_SECONDS)
            return EphemeralDecision(
                status=status.working(said), actions=(Release(delete=True),), again=again
            )
        # A store may keep our tags on a stream that somebody has sealed: no need to look again.
        actions = (Unprotect(),) if delete else (Release(delete=False), Unprotect())
    if not delete:
        status.left_alone()
    status.released()
    how = "were deleted" if delete else "were left to you"
    said = Saying("Released", f"The streams {how}: {release.reason}. This resource can be deleted.")
    return EphemeralDecision(status=status.ready(said), actions=actions)


def _needed(
    seen: EphemeralSeen, world: EphemeralWorld, status: EphemeralStatus
) -> EphemeralDecision:
    """The streams are needed: what does the store say about them?"""
    holding = world.holding
    away = _store_trouble(seen, world)
    if away is not None:
        said = Saying(away.reason, str(Trouble.of(away)))
        return EphemeralDecision(status=status.working(said), again=WAIT_SECONDS)
    if world.trouble is not None or holding is None:
        return _failed(status, world.trouble or _NOT_ASKED)
    status.holds(holding)
    match holding.ownership:
        case Ownership.OURS:
            return _there(seen, holding, world.rival, status)
        case Ownership.ABSENT:
            return _absent(seen, holding, world.rival, status)
        case Ownership.UNOWNED:
            return _found(seen, world.rival, status)
        case Ownership.OTHERS:
            return _taken(seen, holding, world.rival, status)


def _store_trouble(seen: EphemeralSeen, world: EphemeralWorld) -> SluiceError | None:
    """Why the store cannot be used now."""
    name, field = seen.spec.store_ref.name, "spec.storeRef.name"
    if world.store is None:
        remedy = "Apply the StreamStore, or correct the name; it is waited for."
        return StoreNotFound(f"there is no StreamStore {name!r}", field=field, remedy=remedy)
    if not world.store.ready:
        remedy = "It is waited for."
        return StoreNotReady(f"StreamStore {name!r}: {world.store.why}", field=field, remedy=remedy)
    return None


def _there(
    seen: EphemeralSeen, holding: Holding, rival: Rival | None, status: EphemeralStatus
) -> EphemeralDecision:
    """The streams are there and ours."""
    if seen.spec.stream is None and rival is not None and rival.grace is None:
        # An older one was seen only now. A stream has one holder, a prefix could have two.
        decision = _conflict(status, f"EphemeralStream {rival.name}")
        return replace(decision, actions=(Release(delete=False),))
    actions = () if seen.finalizer else (Protect(),)
    drift = ""
    adopted_as_it_is = seen.spec.config is None and seen.status.config_hash is None
    if not holding.drift:
        status.configured()
    elif adopted_as_it_is:
        pass
    elif seen.status.config_hash != config_hash(seen.spec):
        said = Saying("Configuring", "The stream is given the configuration of the spec.")
        return EphemeralDecision(
            status=status.working(said),
            actions=(*actions, Configure()),
            again=_soon(seen, said, status.now),
        )
    else:
        drift = (
            f"Somebody else changed {seen.spec.scope}/{seen.spec.stream}: "
            f"{'; '.join(holding.drift)}. Change spec.config, or the stream back."
        )
    said = Saying("Claimed", _what_there_is(seen, holding))
    again = DRIFT_SECONDS if seen.spec.stream is not None else NEWS_SECONDS
    if seen.spec.max_age_seconds is not None:
        end = seen.created + timedelta(seconds=seen.spec.max_age_seconds)
        again = min(again, max(0.0, (end - status.now).total_seconds()))
    return EphemeralDecision(status=status.ready(said, drift=drift), actions=actions, again=again)


def _what_there_is(seen: EphemeralSeen, holding: Holding) -> str:
    if seen.spec.stream is not None:
        return f"{seen.spec.scope}/{seen.spec.stream} is there."
    text = f"{len(holding.streams)} streams under {seen.spec.stream_prefix!r} are owned."
    if holding.left_alone:
        text += f" {holding.left_alone} that are older, or others', are left alone."
    return text


def _absent(
    seen: EphemeralSeen, holding: Holding, rival: Rival | None, status: EphemeralStatus
) -> EphemeralDecision:
    """Nothing is there yet, or not any more."""
    if rival is not None:
        return _conflict(status, f"EphemeralStream {rival.name}")
    if not holding.scope and seen.spec.scope_policy == "MustExist":
        said = Saying(
            "ScopeNotFound",
            f"spec.scope: there is no scope {seen.spec.scope!r}. Create it, or set "
            "spec.scopePolicy to CreateIfAbsent.",
        )
        return EphemeralDecision(status=status.working(said), again=WAIT_SECONDS)
    if seen.status.created_milliseconds is None:
        said = Saying("Making", "The stream is made.")
    else:
        text = "The stream was deleted by somebody else, with what was in it. It is made again."
        said = Saying("StreamMissing", text)
    return EphemeralDecision(
        status=status.working(said),
        actions=(Protect(), Make()),
        again=_soon(seen, said, status.now),
    )


def _soon(seen: EphemeralSeen, said: Saying, now: datetime) -> float:
    """Seconds until it shows whether something that is done now has come about.

    At once, but not for ever: what is done again and again without avail is done more and more
    seldom.
    """
    before = seen.status.condition(ConditionType.READY)
    if before is None or before.reason != said.reason:
        return 0.0
    return min(max(0.0, (now - before.last_transition_time).total_seconds() / 4), DRIFT_SECONDS)


def _found(seen: EphemeralSeen, rival: Rival | None, status: EphemeralStatus) -> EphemeralDecision:
    """A stream of the name is there, and no resource has it."""
    if rival is not None:
        return _conflict(status, f"EphemeralStream {rival.name}")
    if seen.spec.adopt == "IfUnowned":
        return _adopt(seen, status, Adopt())
    said = Saying(
        "StreamExists",
        f"spec.stream: {seen.spec.scope}/{seen.spec.stream} exists, and Sluice did not make it. "
        "Name another stream, or set spec.adopt to IfUnowned to have it deleted with its owners.",
    )
    return EphemeralDecision(status=status.stalled(said), again=STALLED_SECONDS)


def _taken(
    seen: EphemeralSeen, holding: Holding, rival: Rival | None, status: EphemeralStatus
) -> EphemeralDecision:
    """Another resource has the stream; one that is going may leave it to us."""
    if (
        seen.spec.adopt == "IfUnowned"
        and rival is not None
        and rival.uid == holding.holder_uid
        and (rival.grace or 0.0) > SUCCESSOR_SECONDS
    ):
        return _adopt(seen, status, Adopt(holding.holder_uid))
    return _conflict(status, holding.holder)


def _adopt(seen: EphemeralSeen, status: EphemeralStatus, adopt: Adopt) -> EphemeralDecision:
    said = Saying("Making", "The stream that is there is adopted.")
    return EphemeralDecision(
        status=status.working(said),
        actions=(Protect(), adopt),
        again=_soon(seen, said, status.now),
    )


def _conflict(status: EphemeralStatus, holder: str) -> EphemeralDecision:
    said = Saying(
        "Conflict",
        f"{holder} has these streams. Delete one of the two resources, or name other streams.",
    )
    return EphemeralDecision(status=status.stalled(said), again=WAIT_SECONDS)
