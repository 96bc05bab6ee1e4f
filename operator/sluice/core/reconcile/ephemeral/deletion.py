"""Decide how an EphemeralStream is deleted: its streams first, then the resource.

The store is not asked beforehand: a release touches only streams that the resource owns, and finds
out itself which are left. The operator waits for a store that does not answer. It does not wait
for ever for a StreamStore or a Secret that is gone.

An owner is gone before its pods are. Until they end, the pods may make streams under a prefix. So
the prefix is released only when the pods have had the time to stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.api.status.common import ConditionType
from sluice.core import catalogue
from sluice.core.reconcile.ephemeral.status import EphemeralStatus
from sluice.core.reconcile.ephemeral.world import (
    EphemeralDecision,
    LeaveBehind,
    Release,
    Unprotect,
)
from sluice.core.reconcile.shared.conditions import Saying

if TYPE_CHECKING:
    from sluice.api.status.ephemeral_status import EphemeralStreamStatus
    from sluice.core.reconcile.ephemeral.world import EphemeralSeen, EphemeralWorld
    from sluice.core.values.trouble import Trouble

RETRY_SECONDS: Final = (1.0, 60.0)
"""First and longest wait before the release is tried again."""

GONE_PATIENCE: Final = 300.0
"""Seconds for which the operator waits for a StreamStore or a Secret that is gone."""

READERS_PATIENCE: Final = 3600.0
"""Seconds for which the operator waits for copies that read a stream."""

POLL_SECONDS: Final = 10.0
"""Seconds between two looks while copies still read, or streams may still be made."""

STOPPING_SECONDS: Final = 40.0
"""Seconds for which pods may make streams under a prefix after their owner is gone. By default
Kubernetes kills them after 30, and it may be a little late."""

_GONE: Final = frozenset({"StoreNotFound", "SecretNotFound"})
_FAILURES: Final = frozenset(failure.name for failure in catalogue.failures())


LATE: Final = (
    f"The streams are deleted, and for {STOPPING_SECONDS:.0f} s after the end of their owners "
    "those that pods make while they stop."
)


def may_come(seen: EphemeralSeen, world: EphemeralWorld, waited: float) -> float:
    """Give the seconds for which pods may still make streams that are to be deleted; 0 for none.

    Once an owner is made again, new streams under the prefix may belong to it, and stay.

    Args:
        seen: the resource.
        world: with the owners as they are now.
        waited: seconds since the owners went.
    """
    if seen.spec.stream_prefix is None or seen.spec.on_release == "Retain":
        return 0.0
    bound = {owner.uid for owner in seen.status.owners}
    if seen.spec.owners and not bound - {None}:
        return 0.0  # no owner was ever there, nor its pods
    if any(owner.uid is not None and owner.uid not in bound for owner in world.owners):
        return 0.0
    return max(0.0, STOPPING_SECONDS - waited)


def in_use(readers: tuple[str, ...]) -> Saying:
    """Name the copies that still read the streams, for a condition."""
    minutes = round(READERS_PATIENCE / 60)
    return Saying(
        "StillRead",
        f"The streams are released after {', '.join(readers[:5])}, or after {minutes} minutes.",
    )


def reconcile_deletion(seen: EphemeralSeen, world: EphemeralWorld) -> EphemeralDecision:
    """Decide about a resource that is being deleted, even if it is suspended."""
    status = EphemeralStatus(seen, world.now)
    deleted = seen.deleted or 0.0
    if not seen.finalizer:
        return EphemeralDecision(status=status.unchanged())
    if seen.force_orphan:
        why = "the annotation sluice.dev/force-orphan asks for it"
        return EphemeralDecision(status=status.unchanged(), actions=(LeaveBehind(why), Unprotect()))
    delete = seen.spec.on_release == "Delete"
    grace = _grace(seen)
    if deleted < grace:
        said = Saying("GracePeriod", f"The streams stay for {grace} s; a successor may take over.")
        return EphemeralDecision(status=status.working(said), again=grace - deleted)
    if delete and world.readers and deleted < grace + READERS_PATIENCE:
        return EphemeralDecision(status=status.working(in_use(world.readers)), again=POLL_SECONDS)
    stopping = may_come(seen, world, deleted)
    limit = seen.spec.deletion_timeout_seconds
    if limit is not None:
        stopping = min(stopping, grace + limit - deleted)
    if stopping > 0:
        return EphemeralDecision(
            status=_said(seen, world, Saying("Deleting", LATE), last=False),
            actions=(Release(delete=True, watch=True),),
            again=min(POLL_SECONDS, stopping),
        )
    said = Saying("Deleting", "The streams are being let go.")
    return EphemeralDecision(
        status=_said(seen, world, said, last=True), actions=(Release(delete=delete), Unprotect())
    )


def _said(
    seen: EphemeralSeen, world: EphemeralWorld, said: Saying, *, last: bool
) -> EphemeralStreamStatus:
    """Give the status before a try. It keeps the failure of the try before while that may hold.

    A store may accept calls and answer none. Then a try takes most of the time between two
    failures, and users should see the failure meanwhile. A success of the last try removes the
    resource, so its status keeps the failure until then. Before the last try, a store that is
    ready again clears the failure.
    """
    before = seen.status.condition(ConditionType.READY)
    away = world.store is None or not world.store.ready
    if (last or away) and before is not None and before.reason in _FAILURES:
        return seen.status
    return EphemeralStatus(seen, world.now).working(said)


def deletion_failed(
    seen: EphemeralSeen, world: EphemeralWorld, trouble: Trouble
) -> EphemeralDecision:
    """Decide what to do after the streams could not be released."""
    status = EphemeralStatus(seen, world.now)
    deleted = seen.deleted or 0.0
    tried = max(0.0, deleted - _grace(seen))  # no call was made during the grace period
    limit = seen.spec.deletion_timeout_seconds
    out_of_time = limit is not None and tried >= limit
    if out_of_time or (trouble.reason in _GONE and tried > GONE_PATIENCE):
        why = f"{trouble} ({deleted:.0f} s after the deletion)"
        return EphemeralDecision(status=status.unchanged(), actions=(LeaveBehind(why), Unprotect()))
    hint = "To leave them behind, annotate the resource with sluice.dev/force-orphan=true."
    said = Saying(trouble.reason, f"The streams cannot be let go yet: {trouble} {hint}")
    first, most = RETRY_SECONDS
    again = min(max(first, tried / 4), most)
    if limit is not None:
        again = min(again, max(first, limit - tried))
    return EphemeralDecision(status=status.working(said), again=again)


def _grace(seen: EphemeralSeen) -> int:
    """Give the seconds after the deletion in which a successor may take the streams over.

    There are none for streams that stay, and for streams that were released before.
    """
    if seen.spec.on_release == "Retain" or seen.status.release is not None:
        return 0
    return seen.spec.grace_period_seconds
