"""Decide which replica of the operator works: the one whose name is in the Lease.

Replicas compare no clocks. Each one measures, by its own clock, for how long the Lease has not
changed, and may take one that stayed the same for as long as its holder counts on it. A holder
counts from before the call that renewed the Lease, so its time is over before another's begins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

LASTS: Final = 10.0
"""Seconds for which other replicas leave an unchanged Lease to its holder."""

ACTS: Final = 9.0
"""Seconds for which the holder acts, a second less: calls take time to arrive, and clocks differ.
"""

_LONGEST: Final = 60.0
"""The most seconds that a Lease is left to its holder, whatever is written in it."""

_GAP: Final = 5.0
"""Seconds between two looks, after which a replica measures anew.

In between the API server was away, or this process stood still. So the holder, which could not
renew the Lease either, gets its time.
"""

_MOST_TRANSITIONS: Final = 2**31
_MOST_NAME: Final = 256


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """A Lease as it was read. Any client with the right may have written anything into it.

    Attributes:
        version: its resource version, which each change changes.
        holder: the name of the replica that holds it; empty for none.
        seconds: for how long others leave it unchanged. 0 for one that was released.
        transitions: how often it went from one replica to another.
        renewed: the time that its holder wrote with the last renewal.
    """

    version: str
    holder: str
    seconds: float
    transitions: int
    renewed: str = ""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> LeaseSeen:
        """Read an object of the API."""
        spec = body.get("spec") or {}
        holder, seconds = str(spec.get("holderIdentity") or ""), spec.get("leaseDurationSeconds")
        if isinstance(seconds, int):
            lasts = min(max(LASTS, seconds), _LONGEST)
        else:
            lasts = LASTS if holder else 0.0
        found = spec.get("leaseTransitions")
        return cls(
            version=str(body["metadata"]["resourceVersion"]),
            holder=holder[:_MOST_NAME],
            seconds=lasts,
            transitions=found if isinstance(found, int) else 0,
            renewed=str(spec.get("renewTime") or ""),
        )


class LeaseStep(Enum):
    """What a replica does after a look at the Lease."""

    WAIT = auto()
    """Leave the Lease as it is, and look again."""
    TAKE = auto()
    """Write its own name into the Lease."""
    END = auto()
    """End: another replica works, or may have worked."""


@dataclass(frozen=True, slots=True)
class Replica:
    """What a replica of the operator knows. Times are of its own clock, in seconds.

    Attributes:
        name: differs from that of every other process, also of an earlier one in the same pod.
        until: until when it acts.
        has_led: whether it has ever held the Lease.
        has_tried: whether it has ever tried to take the Lease. An answer may have been lost.
        attempt: the time that its last try wrote, and when that began.
        seen: the Lease as of the last look; None if there was none.
        since: the first look of those that saw the Lease like this.
        looked: the last look.
    """

    name: str
    until: float = -math.inf
    has_led: bool = False
    has_tried: bool = False
    attempt: tuple[str, float] = ("", -math.inf)
    seen: LeaseSeen | None = None
    since: float = -math.inf
    looked: float = -math.inf

    def look(self, seen: LeaseSeen | None, now: float) -> tuple[Replica, LeaseStep]:
        """Take in a look at the Lease.

        Args:
            seen: the Lease; None if there is none.
            now: the time after the look.
        """
        same = seen == self.seen and now - self.looked <= _GAP
        since = self.since if same else now
        after = replace(self, seen=seen, since=since, looked=now)
        wrote, began = self.attempt
        if wrote and seen is not None and (seen.holder, seen.renewed) == (self.name, wrote):
            after = after.held(began)  # a try whose answer was lost, or came too late
        step = after.next(now)
        return replace(after, has_tried=self.has_tried or step is LeaseStep.TAKE), step

    def next(self, now: float) -> LeaseStep:
        """Return what follows from the last look."""
        holder = "" if self.seen is None else self.seen.holder
        if holder == self.name and self.has_tried:
            return LeaseStep.TAKE
        if self.has_led:
            # A Lease that was deleted, or whose name was, is no other replica's yet.
            return LeaseStep.TAKE if not holder and now < self.until else LeaseStep.END
        return LeaseStep.TAKE if now >= self.free else LeaseStep.WAIT

    @property
    def free(self) -> float:
        """From when on this replica may take the Lease, if it does not change."""
        # A Lease that is not there may have been deleted while a replica acted by it.
        return self.since + (LASTS if self.seen is None else self.seen.seconds)

    def held(self, began: float) -> Replica:
        """Take in that the Lease was written.

        Args:
            began: the time before the call that wrote it.
        """
        return replace(self, has_led=True, until=max(self.until, began + ACTS))

    def trying(self, began: float, now: datetime) -> tuple[Replica, dict[str, Any]]:
        """Return the spec with which this replica takes or renews the Lease it has seen.

        Args:
            began: the time before the call that writes it.
            now: the time of day, for people, and to tell this call's result from others.
        """
        time = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, Any] = {
            "holderIdentity": self.name,
            "leaseDurationSeconds": round(LASTS),
            "renewTime": time,
        }
        if self.seen is None or self.seen.holder != self.name:
            before = -1 if self.seen is None else self.seen.transitions
            spec |= {"acquireTime": time, "leaseTransitions": (before + 1) % _MOST_TRANSITIONS}
        return replace(self, attempt=(time, began)), spec


RELEASED: Final[dict[str, Any]] = {
    "holderIdentity": None,
    "leaseDurationSeconds": None,
    "acquireTime": None,
    "renewTime": None,
}
"""The spec of a Lease that its holder has given back: others need not wait."""
