"""Decide about an EphemeralStream that is needed, from what the store says of its streams.

The store records which resource owns a stream, see `core.claims.claim`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sluice.api.status.common import ConditionType
from sluice.core.claims.claim import Ownership
from sluice.core.reconcile.ephemeral.failure import (
    NOT_ASKED,
    STALLED_SECONDS,
    STORE_SECONDS,
    WAIT_SECONDS,
    failed,
)
from sluice.core.reconcile.ephemeral.status import config_hash
from sluice.core.reconcile.ephemeral.world import (
    Adopt,
    Configure,
    EphemeralDecision,
    Make,
    Protect,
    Release,
)
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.values.trouble import Trouble
from sluice.core.workloads import access
from sluice.errors import StoreNotReady

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.core.claims.claim import Holding
    from sluice.core.reconcile.ephemeral.status import EphemeralStatus
    from sluice.core.reconcile.ephemeral.world import EphemeralSeen, EphemeralWorld, Rival
    from sluice.errors import SluiceError

DRIFT_SECONDS: Final = 300.0
"""Seconds between two checks that a stream is still as the spec has it."""

NEWS_SECONDS: Final = 30.0
"""Seconds between two looks for streams that an application has made under a prefix."""

UNWATCHED_SECONDS: Final = 60.0
"""Seconds between two looks at owners of which no watch tells."""

SUCCESSOR_SECONDS: Final = 5.0
"""Seconds of grace that a predecessor must have left for its stream to be taken over."""


def hold(seen: EphemeralSeen, world: EphemeralWorld, status: EphemeralStatus) -> EphemeralDecision:
    """Make, adopt or keep the streams, by what the store says of them."""
    holding = world.holding
    away = _store_trouble(seen, world)
    if away is not None:
        said = Saying(away.reason, str(Trouble.of(away)))
        return EphemeralDecision(status=status.working(said), again=STORE_SECONDS)
    if world.trouble is not None or holding is None:
        return failed(status, world.trouble or NOT_ASKED)
    status.holds(holding)
    match holding.ownership:
        case Ownership.OURS:
            return _there(seen, holding, world, status)
        case Ownership.ABSENT:
            return _absent(seen, holding, world.rival, status)
        case Ownership.UNOWNED:
            return _found(seen, world.rival, status)
        case Ownership.OTHERS:
            return _taken(seen, holding, world, status)


def _store_trouble(seen: EphemeralSeen, world: EphemeralWorld) -> SluiceError | None:
    """Tell why the store cannot be used now; None if it can."""
    name, field = seen.spec.store_ref.title, "spec.storeRef.name"
    if world.store is None:
        return access.not_found(seen.spec.store_ref, namespace=seen.namespace, field=field)
    if not world.store.ready:
        remedy = "It is waited for."
        return StoreNotReady(f"StreamStore {name!r}: {world.store.why}", field=field, remedy=remedy)
    return None


def _there(
    seen: EphemeralSeen, holding: Holding, world: EphemeralWorld, status: EphemeralStatus
) -> EphemeralDecision:
    """Keep streams that the resource owns; configure the stream if the spec has changed."""
    rival, owners = world.rival, world.owners
    if seen.spec.stream is None and rival is not None and rival.grace is None:
        # An older resource was seen only now. A stream has one holder, but a prefix could have two.
        decision = _conflict(status, rival.name)
        return replace(decision, actions=(Release(delete=False),))
    actions = () if seen.finalizer else (Protect(),)
    drift = ""
    adopted_as_it_is = seen.spec.config is None and seen.status.config_hash is None
    if not holding.drift:
        status.configured()
    elif adopted_as_it_is:
        pass
    elif seen.asked or seen.status.config_hash != config_hash(seen.spec):
        if seen.asked:
            status.still_asked()
        said = Saying("Configuring", "The stream is given the configuration of the spec.")
        return EphemeralDecision(
            status=status.working(said),
            actions=(*actions, Configure()),
            again=_soon(seen, said, status.now),
        )
    else:
        drift = (
            f"Another program changed {seen.spec.scope}/{seen.spec.stream}: "
            f"{'; '.join(holding.drift)}. Change spec.config, or annotate this resource with "
            "sluice.dev/requestedAt to have the stream changed back."
        )
    said = Saying("Claimed", _what_there_is(seen, holding))
    again = DRIFT_SECONDS if seen.spec.stream is not None else NEWS_SECONDS
    if not all(owner.watched for owner in owners):
        again = min(again, UNWATCHED_SECONDS)
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
    """Make a stream or a marker that is not there, unless another resource claims it."""
    if rival is not None:
        return _conflict(status, rival.name)
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
        text = "Another program deleted the stream with its events. It is made again."
        said = Saying("StreamMissing", text)
    return EphemeralDecision(
        status=status.working(said),
        actions=(Protect(), Make()),
        again=_soon(seen, said, status.now),
    )


def _soon(seen: EphemeralSeen, said: Saying, now: datetime) -> float:
    """Give the seconds until the operator checks the result of an action.

    The first check is at once. An action that is repeated without success is repeated ever more
    seldom.
    """
    before = seen.status.condition(ConditionType.READY)
    if before is None or before.reason != said.reason:
        return 0.0
    return min(max(0.0, (now - before.last_transition_time).total_seconds() / 4), DRIFT_SECONDS)


def _found(seen: EphemeralSeen, rival: Rival | None, status: EphemeralStatus) -> EphemeralDecision:
    """Adopt an existing stream that no resource owns, if the spec allows it."""
    if rival is not None:
        return _conflict(status, rival.name)
    if seen.spec.adopt == "IfUnowned":
        return _adopt(seen, status, Adopt())
    said = Saying(
        "StreamExists",
        f"spec.stream: {seen.spec.scope}/{seen.spec.stream} exists, and Sluice did not make it. "
        "Name another stream, or set spec.adopt to IfUnowned to have it deleted with its owners.",
    )
    return EphemeralDecision(status=status.stalled(said), again=STALLED_SECONDS)


def _taken(
    seen: EphemeralSeen, holding: Holding, world: EphemeralWorld, status: EphemeralStatus
) -> EphemeralDecision:
    """Take over a stream of another resource that leaves it or is gone; otherwise refuse."""
    rival = world.rival
    leaves = (
        rival is not None
        and rival.uid == holding.holder_uid
        and (rival.grace or 0.0) > SUCCESSOR_SECONDS
    )
    left = world.left and rival is None
    if seen.spec.adopt == "IfUnowned" and (leaves or left):
        return _adopt(seen, status, Adopt(holding.holder_uid))
    if left:
        said = Saying(
            "StreamExists",
            f"spec.stream: {holding.holder}, which is gone, left {seen.spec.scope}/"
            f"{seen.spec.stream} behind. Set spec.adopt to IfUnowned to take it over with what is "
            "in it, or delete it with sluice streams stale --delete.",
        )
        return EphemeralDecision(status=status.stalled(said), again=STALLED_SECONDS)
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
