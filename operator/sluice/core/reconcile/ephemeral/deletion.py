"""Deleting an EphemeralStream: its streams first, then the resource.

Nothing is asked of the store beforehand: letting go touches only what is ours, and finds out itself
what is left. A store that does not answer is waited for; one that is gone for good is not.

An owner is gone before its pods are. Until they are, they may make streams under a prefix, so that
is let go only when they have had the time to stop.
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
"""First and longest wait before the streams are tried to be let go again."""

GONE_PATIENCE: Final = 300.0
"""Seconds for which a StreamStore or a Secret that is gone may come back."""

READERS_PATIENCE: Final = 3600.0
"""Seconds for which copies that read a stream are waited for."""

POLL_SECONDS: Final = 10.0
"""Between two looks at what is waited for: copies, and streams that are made late."""

STOPPING_SECONDS: Final = 40.0
"""For which pods may make streams under a prefix after their owner is gone: unless they say
otherwise, Kubernetes kills them after 30, and it may be a little late."""

_GONE: Final = frozenset({"StoreNotFound", "SecretNotFound"})
_FAILURES: Final = frozenset(failure.name for failure in catalogue.failures())


LATE: Final = (
    f"The streams are deleted, and for {STOPPING_SECONDS:.0f} s after the end of their owners "
    "those that pods make while they stop."
)


def may_come(seen: EphemeralSeen, world: EphemeralWorld, waited: float) -> float:
    """Seconds for which streams that are to be deleted may still be made; 0 if none may.

    Once an owner was made again, what is made under the prefix may be that one's, and stays.

    Args:
        seen: the resource.
        world: with the owners as they are now.
        waited: seconds since they went.
    """
    if seen.spec.stream_prefix is None or seen.spec.on_release == "Retain":
        return 0.0
    bound = {owner.uid for owner in seen.status.owners}
    if any(owner.uid is not None and owner.uid not in bound for owner in world.owners):
        return 0.0
    return max(0.0, STOPPING_SECONDS - waited)


def in_use(readers: tuple[str, ...]) -> Saying:
    """What is said while copies still read the streams."""
    minutes = round(READERS_PATIENCE / 60)
    return Saying(
        "StillRead",
        f"The streams are released after {', '.join(readers[:5])}, or after {minutes} minutes.",
    )


def reconcile_deletion(seen: EphemeralSeen, world: EphemeralWorld) -> EphemeralDecision:
    """What to do for a resource that is being deleted. Suspending does not hold it up."""
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
    """What is said before a try: what the one before failed by, as long as that may hold.

    A store may take calls and answer none, so a try is most of the time between two failures.
    After the last try the resource goes; before that, the store's return shows that others succeed.
    """
    before = seen.status.condition(ConditionType.READY)
    away = world.store is None or not world.store.ready
    if (last or away) and before is not None and before.reason in _FAILURES:
        return seen.status
    return EphemeralStatus(seen, world.now).working(said)


def deletion_failed(
    seen: EphemeralSeen, world: EphemeralWorld, trouble: Trouble
) -> EphemeralDecision:
    """What to do when the streams could not be let go."""
    status = EphemeralStatus(seen, world.now)
    deleted = seen.deleted or 0.0
    tried = max(0.0, deleted - _grace(seen))  # before, nobody asked the store
    limit = seen.spec.deletion_timeout_seconds
    out_of_time = limit is not None and tried >= limit
    if out_of_time or (trouble.reason in _GONE and tried > GONE_PATIENCE):
        why = f"{trouble} ({deleted:.0f} s after the deletion)"
        return EphemeralDecision(status=status.unchanged(), actions=(LeaveBehind(why), Unprotect()))
    hint = "To leave them behind, annotate the resource with sluice.dev/force-orphan=true."
    said = Saying(trouble.reason, f"The streams cannot be let go yet. {trouble} {hint}")
    first, most = RETRY_SECONDS
    again = min(max(first, tried / 4), most)
    if limit is not None:
        again = min(again, max(first, limit - tried))
    return EphemeralDecision(status=status.working(said), again=again)


def _grace(seen: EphemeralSeen) -> int:
    """Seconds after the deletion in which a successor may take the streams over.

    Streams that stay, and those that were released before, have no need of them.
    """
    if seen.spec.on_release == "Retain" or seen.status.release is not None:
        return 0
    return seen.spec.grace_period_seconds
