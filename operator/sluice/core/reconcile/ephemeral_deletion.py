"""Deleting an EphemeralStream: its streams first, then the resource.

Nothing is asked of the store beforehand: letting go touches only what is ours, and finds out itself
what is left. A store that does not answer is waited for; one that is gone for good is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.conditions import Saying
from sluice.core.reconcile.ephemeral_status import EphemeralStatus
from sluice.core.reconcile.ephemeral_world import (
    Abandon,
    EphemeralDecision,
    Release,
    Unprotect,
)

if TYPE_CHECKING:
    from sluice.core.reconcile.ephemeral_world import EphemeralSeen, EphemeralWorld
    from sluice.core.trouble import Trouble

RETRY_SECONDS: Final = (1.0, 60.0)
"""First and longest wait before the streams are tried to be let go again."""

GONE_PATIENCE: Final = 300.0
"""Seconds for which a StreamStore or a Secret that is gone may come back."""

READERS_PATIENCE: Final = 3600.0
"""Seconds for which copies that read a stream are waited for."""

POLL_SECONDS: Final = 10.0
"""Between two looks at copies that are waited for."""

_GONE: Final = frozenset({"StoreNotFound", "SecretNotFound"})


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
        return EphemeralDecision(status=status.unchanged(), actions=(Abandon(why), Unprotect()))
    delete = seen.spec.on_release == "Delete"
    grace = _grace(seen)
    if deleted < grace:
        said = Saying("GracePeriod", f"The streams stay for {grace} s; a successor may take over.")
        return EphemeralDecision(status=status.working(said), again=grace - deleted)
    if delete and world.readers and deleted < grace + READERS_PATIENCE:
        return EphemeralDecision(status=status.working(in_use(world.readers)), again=POLL_SECONDS)
    said = Saying("Deleting", "The streams are being let go.")
    return EphemeralDecision(
        status=status.working(said), actions=(Release(delete=delete), Unprotect())
    )


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
        return EphemeralDecision(status=status.unchanged(), actions=(Abandon(why), Unprotect()))
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
