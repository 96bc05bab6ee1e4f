"""A StreamArchive as it was seen, and which of its runs that asks for.

A run is known by what asked for it, its key; the archive remembers under which key each run was
recorded. So a run is not made twice, whatever becomes of the status. What a resource asks for names
the resource: another one of its name, applied later, asks for a run of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.api.status.common import ConditionType
from sluice.core.reconcile.copies.seen import CopySeen
from sluice.core.values import schedule, text

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.kinds.streamarchive import StreamArchiveSpec
    from sluice.api.status.archive_status import StreamArchiveStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSeen(CopySeen):
    """A StreamArchive as the API server has it. What concerns a run is seen as of a copy.

    Attributes:
        due: when a run was due, by the schedule, that was not begun yet.
        later: when the next one is due after now.
    """

    spec: StreamArchiveSpec
    status: StreamArchiveStatus
    due: datetime | None = None
    later: datetime | None = None

    @property
    def done(self) -> bool:
        """Whether no run is to be made now: the last one succeeded, or none was due yet."""
        return not self.asked and (self.succeeded or self.resting)

    @property
    def asked(self) -> bool:
        """Whether another run is to be made, or the one that failed is to be tried at once.

        While an attempt goes on that is not heard: what was written since its bounds were taken
        would not be in it.
        """
        if self._at_work:
            return False
        return self._wished or (self.over and self.due is not None)

    @property
    def over(self) -> bool:
        """Whether the run of the status is at its end, or there was none yet."""
        status = self.status
        gave_up = (
            status.last_failure is not None
            and status.retry_time is None
            and status.completion_time is not None
        )
        return status.run_key is None or self.succeeded or gave_up

    @property
    def resting(self) -> bool:
        """Whether no run was ever due."""
        return self.spec.schedule is not None and self.status.run_key is None

    @property
    def succeeded(self) -> bool:
        """Whether the run of the status is in the archive."""
        said = self.status.condition(ConditionType.SUCCEEDED)
        return said is not None and said.status == "True"

    @property
    def run_key(self) -> str | None:
        """The run to look after; None where none was ever due."""
        if self.over and self.asked:
            if self._wished:
                return f"requested:{text.short_hash(f'{self.uid} {self.requested_at}')}"
            if self.due is not None:
                return f"scheduled:{self.due:%Y-%m-%dT%H:%M:%SZ}"
        if self.status.run_key is None and self.spec.schedule is None:
            return f"first:{self.uid}"
        return self.status.run_key

    @property
    def keeps(self) -> bool:
        """Whether the archive is deleted with the resource, which is then kept until it is."""
        return self.spec.on_delete == "Delete"

    @property
    def _wished(self) -> bool:
        return (
            self.requested_at is not None
            and self.requested_at != self.status.last_handled_requested_at
        )

    @property
    def _at_work(self) -> bool:
        """Whether an attempt has begun whose end is not written down.

        A run at its end has none, though an end may be missing: of an attempt whose Job was
        refused, or is gone.
        """
        return not self.over and any(not entry.outcome for entry in self.status.history)


def times(
    spec: StreamArchiveSpec, status: StreamArchiveStatus, *, created: datetime, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """When a run was due that was not begun yet, and when the next one is.

    A time of the schedule counts from when the resource was made, and is heeded once. One that was
    heeded and is to come tells of a clock that was wrong: then the last run's end counts instead.

    Raises:
        InvalidSpec: the schedule has no such time.
    """
    if spec.schedule is None:
        return None, None
    later = schedule.following(spec.schedule, now)
    if spec.suspend:
        return None, later
    heeded = (status.scheduled_time, status.last_run_time)
    past = next((time for time in heeded if time is not None and time <= now), created)
    return schedule.due(spec.schedule, since=max(created, past), now=now), later
