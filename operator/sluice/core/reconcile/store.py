"""Decide about a StreamStore: whether its store can be reached, and whether it is in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.verdict import Backoff
from sluice.core.values.model import StoreHealth
from sluice.errors import AccessDenied, ClaimNotFound, SecretNotFound

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.status.store_status import StreamStoreStatus
    from sluice.core.values.trouble import Trouble

PROBE_SECONDS: Final = 30.0
"""Seconds between two probes of a store that is ready."""

REFUSING: Final = Backoff(5, 60)
"""Waits between two probes of a store that a person has to mend, by failures in a row."""

AWAY: Final = Backoff(5, 8)
"""Waits between two probes of a store that may come back by itself, by failures in a row. With the
time of a probe, it is found again within 15 seconds, however long it was away."""

TRY_SECONDS: Final = 6.0
"""The most seconds of a probe of a store that was away: a call that met a starting server may never
be answered. A store that is ready has longer."""

TRIES_AT_ONCE: Final = 8
"""Probes of stores that are away that one namespace has under way at a time, on average. With more
such stores, each is asked less often, down to once a minute."""

_SPREAD: Final = 0.2
"""The part of a wait that chance may take off, so that stores that went away together are not asked
together for ever."""

APPLIED_LATER: Final = frozenset({ClaimNotFound.__name__, SecretNotFound.__name__})
"""Reasons that name objects which may be applied a moment after their StreamStore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreWorld:
    """The surroundings of a StreamStore, as they were seen.

    Attributes:
        now: the time of the look.
        probed: when the store was last probed.
        probe: its answer, or the failure.
        due: seconds from that probe to the next one.
        users: resources that need the store: they have data in it, or a schedule.
        shared: how many of them are in other namespaces.
        held: whether the in-use finalizer stands on it.
    """

    now: datetime
    probed: datetime
    probe: StoreHealth | Trouble
    due: float = PROBE_SECONDS
    users: tuple[str, ...] = ()
    shared: int = 0
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreDecision:
    """Decision about a StreamStore.

    Attributes:
        status: the status to write.
        hold: whether the in-use finalizer has to stand on it and its Secrets.
        hold_new: whether Secrets may get the finalizer that do not have it yet. A Secret that does
            not consent, or is for an address that is not allowed, is not changed.
        again: seconds until the next look.
    """

    status: StreamStoreStatus
    hold: bool
    hold_new: bool
    again: float


def reconcile_store(
    status: StreamStoreStatus, world: StoreWorld, *, generation: int, deleting: bool
) -> StoreDecision:
    """Decide which status to write, and whether to keep the StreamStore from deletion."""
    probe = world.probe
    new = status.model_copy(
        update={
            "observed_generation": generation,
            "in_use_by": len(world.users),
            "shared_users": world.shared or None,
            "last_probe_time": world.probed,
        }
    )
    if isinstance(probe, StoreHealth):
        said = Saying("Reachable", "The store answers.")
        if probe.latency is None:
            said = Saying(
                "Mountable", "The claim is there. Only pods that mount it can look into it."
            )
        wanted = conditions.ready(said)
        new = new.model_copy(
            update={
                "latency_milliseconds": (
                    None if probe.latency is None else round(probe.latency * 1000)
                ),
                "protocol_version": probe.protocol,
            }
        )
    else:
        said = Saying(probe.reason, str(probe))
        # A store that is away may come back, a Secret may be applied a moment after its store; a
        # wrong password does not get right by itself.
        passing = probe.retryable or probe.reason in APPLIED_LATER
        wanted = (conditions.working if passing else conditions.stalled)(said, bounded=False)
        new = new.model_copy(update={"latency_milliseconds": None})
    if deleting and world.users:
        said = Saying(
            "InUse",
            f"It was deleted and goes when these are done or deleted: {_some(world.users)}.",
        )
        wanted = conditions.working(said, bounded=False)
    new = new.model_copy(
        update={
            "conditions": conditions.merge(
                status.conditions, wanted, generation=generation, now=world.now
            )
        }
    )
    since = (world.now - world.probed).total_seconds()
    again = max(1.0, world.due - since)
    denied = not isinstance(probe, StoreHealth) and probe.reason == AccessDenied.__name__
    return StoreDecision(status=new, hold=bool(world.users), hold_new=not denied, again=again)


def interval(
    probe: StoreHealth | Trouble, failures: int, *, away: int = 1, chance: float = 0.0
) -> float:
    """Give the seconds from a probe to the next one.

    Args:
        probe: the answer, or the failure.
        failures: failed probes in a row.
        away: stores of the namespace that are away, with this one.
        chance: random number from 0 to 1.
    """
    if isinstance(probe, StoreHealth):
        return PROBE_SECONDS
    if not probe.retryable:
        return REFUSING.after(failures)
    crowded = min(away * TRY_SECONDS / TRIES_AT_ONCE, REFUSING.most)
    return max(AWAY.after(failures), crowded) * (1 - _SPREAD * chance)


def _some(names: tuple[str, ...], most: int = 5) -> str:
    """List the first `most` names, and count the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
