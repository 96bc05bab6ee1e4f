"""Decide about a StreamStore: whether its store can be reached, and whether it is in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.reconcile.shared.verdict import Backoff
from sluice.core.values.model import StoreHealth
from sluice.errors import ClaimNotFound, SecretNotFound

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.status.common import StreamStoreStatus
    from sluice.core.values.trouble import Trouble

PROBE_SECONDS: Final = 30.0
"""Seconds between two probes of a store that is ready."""

AWAY: Final = Backoff(5, 60)
"""Waits between two probes of a store that is not ready, by failures in a row."""

APPLIED_LATER: Final = frozenset({ClaimNotFound.__name__, SecretNotFound.__name__})
"""Reasons that name objects which may be applied a moment after their StreamStore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreWorld:
    """The surroundings of a StreamStore, as they were seen.

    Attributes:
        now: the time of the look.
        probed: when the store was last probed.
        probe: its answer, or the failure.
        failures: failed probes in a row.
        users: resources that need the store: they have data in it, or a schedule.
        shared: how many of them are in other namespaces.
        held: whether the in-use finalizer stands on it.
    """

    now: datetime
    probed: datetime
    probe: StoreHealth | Trouble
    failures: int = 1
    users: tuple[str, ...] = ()
    shared: int = 0
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreDecision:
    """Decision about a StreamStore.

    Attributes:
        status: the status to write.
        hold: whether the in-use finalizer has to stand on it and its Secret.
        again: seconds until the next look.
    """

    status: StreamStoreStatus
    hold: bool
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
    again = max(1.0, interval(probe, world.failures) - since)
    return StoreDecision(status=new, hold=bool(world.users), again=again)


def interval(probe: StoreHealth | Trouble, failures: int) -> float:
    """Give the seconds from a probe to the next one.

    Args:
        probe: the answer, or the failure.
        failures: failed probes in a row.
    """
    return PROBE_SECONDS if isinstance(probe, StoreHealth) else AWAY.after(failures)


def _some(names: tuple[str, ...], most: int = 5) -> str:
    """List the first `most` names, and count the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
