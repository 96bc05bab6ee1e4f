"""Build the part of a status that is about runs: when they were, and when the next one is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.api.status.common import ConditionType
from sluice.core.reconcile.copies.statuses.base import CopyStatus
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying

if TYPE_CHECKING:
    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.scheduled.seen import ScheduledSeen
    from sluice.core.reconcile.copies.world import World
    from sluice.core.reconcile.shared.conditions import Tri

_LASTING: Final = (
    ConditionType.READY,
    ConditionType.SUCCEEDED,
    ConditionType.STALLED,
    ConditionType.VERIFIED,
)
"""Conditions of the last run, which stay until the next run begins."""


class ScheduledStatus(CopyStatus):
    """Builder of the next status of a resource with runs. A subclass knows what a run is of.

    Its constructor sets `_seen`, and then calls `_of_schedule`.
    """

    _seen: ScheduledSeen

    def at_rest(self, world: World) -> CopyingStatus:
        """Report that no run is to be made now. The last driver may be about to end."""
        wanted: dict[ConditionType, tuple[Tri, Saying]] = {
            kind: (found.status, Saying(found.reason, found.message))
            for kind in _LASTING
            if (found := self._copy.status.condition(kind)) is not None
        }
        if self._seen.resting:
            wanted = conditions.ready(Saying("Scheduled", self._first()))
        running = world.pods > 0 or any(job.active or job.deleting for job in world.jobs)
        if self._seen.spec.suspend and not running:
            said = Saying("Suspended", "spec.suspend is true: no run begins. Set it to false.")
            wanted[ConditionType.SUSPENDED] = ("True", said)
        return self._say(wanted)

    def _of_schedule(self) -> None:
        """Write the run that is made or was made last, and the time of the next one."""
        seen = self._seen
        self._set(next_run_time=None if seen.spec.suspend else seen.later)
        if not seen.asked:
            self._set(last_handled_requested_at=seen.status.last_handled_requested_at)
        if seen.run_key != seen.status.run_key:
            self._set(
                run_key=seen.run_key,
                scheduled_time=seen.due or seen.status.scheduled_time,
            )

    def _first(self) -> str:
        later = self._seen.later
        if later is None or self._seen.spec.suspend:
            return "There was no run yet."
        return f"The first run is due at {later:%Y-%m-%dT%H:%M:%SZ}."
