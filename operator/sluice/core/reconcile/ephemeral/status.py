"""Build the statuses of EphemeralStreams."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from sluice.api.status.common import ConditionType
from sluice.api.status.ephemeral_status import ReleaseStatus
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.kinds.ephemeralstream import EphemeralStreamSpec
    from sluice.api.status.ephemeral_status import EphemeralStreamStatus
    from sluice.core.claims.claim import Holding
    from sluice.core.reconcile.ephemeral.owners import OwnersVerdict
    from sluice.core.reconcile.ephemeral.world import EphemeralSeen
    from sluice.core.reconcile.shared.conditions import Tri


def config_hash(spec: EphemeralStreamSpec) -> str | None:
    """Hash the config of the spec, to notice a change; None for a prefix, which has no config."""
    if spec.stream is None:
        return None
    text = spec.config.model_dump_json() if spec.config else ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class EphemeralStatus:
    """Builder of the status to write.

    Args:
        seen: the resource.
        now: the time for conditions and fields that change.
    """

    def __init__(self, seen: EphemeralSeen, now: datetime) -> None:
        self._seen = seen
        self.now = now
        self._change: dict[str, Any] = {
            "observed_generation": seen.generation,
            "last_handled_requested_at": (
                seen.requested_at or seen.status.last_handled_requested_at
            ),
        }

    def admitted(self) -> None:
        """Write that a StreamStore of another namespace has admitted the resource."""
        self._change["admitted_time"] = self._seen.status.admitted_time or self.now

    def owned_by(self, owners: OwnersVerdict) -> None:
        """Write the owners' states."""
        self._change |= {"owners": owners.statuses, "owners_summary": owners.summary}

    def owners_gone(self, since: datetime | None) -> None:
        """Write since when no owner needs the streams; None if an owner does."""
        self._change["owners_gone_time"] = since

    def holds(self, holding: Holding) -> None:
        """Write which streams the store holds."""
        self._change |= {
            "streams": holding.streams,
            "stream_count": len(holding.streams),
        }
        if holding.created is not None and holding.streams:
            self._change["created_milliseconds"] = holding.created

    def configured(self) -> None:
        """Write that the stream has the config of the spec."""
        self._change["config_hash"] = config_hash(self._seen.spec)

    def still_asked(self) -> None:
        """Leave the annotation's request open: the action has begun, and is not done yet."""
        del self._change["last_handled_requested_at"]

    def release(self, reason: str) -> None:
        """Write that the streams are to be released, and why."""
        self._change["release"] = ReleaseStatus(reason=reason, time=self.now)

    def left_alone(self) -> None:
        """Forget the stream's creation time: without our tags it is not ours any more."""
        self._change["created_milliseconds"] = None

    def released(self) -> None:
        """Write that no stream is left, and when the release was completed."""
        before = self._seen.status.release
        if before is not None and before.completed is None:
            self._change["release"] = before.model_copy(update={"completed": self.now})
        self._change |= {"streams": (), "stream_count": 0}

    def ready(self, saying: Saying, *, drift: str = "") -> EphemeralStreamStatus:
        """Report that all is as wanted; `drift` tells what another client has changed."""
        wanted = conditions.ready(saying)
        if drift:
            wanted[ConditionType.DRIFTED] = ("True", Saying("ConfigDrifted", drift))
        return self._written(wanted)

    def working(self, saying: Saying) -> EphemeralStreamStatus:
        """Report that the operator works on the resource, or waits."""
        return self._written(conditions.working(saying, bounded=False))

    def stalled(self, saying: Saying) -> EphemeralStreamStatus:
        """Report that the resource waits for a person."""
        return self._written(conditions.stalled(saying, bounded=False))

    def suspended(self, saying: Saying) -> EphemeralStreamStatus:
        """Report that the resource is suspended."""
        return self._written(conditions.suspended(saying, bounded=False))

    def unchanged(self) -> EphemeralStreamStatus:
        """Return the status as it was."""
        return self._seen.status

    def _written(self, wanted: dict[ConditionType, tuple[Tri, Saying]]) -> EphemeralStreamStatus:
        before = self._seen.status
        merged = conditions.merge(
            before.conditions, wanted, generation=self._seen.generation, now=self.now
        )
        return before.model_copy(update=self._change | {"conditions": merged})
