"""A StreamArchive as it was seen, and the run that it asks for.

The key of a run names what asked for it: the first run, a request or the schedule. The archive
keeps the key of each recorded run. So no run is made twice, even if the status is lost. Keys of
first and requested runs contain the resource's uid. So a later resource of the same name gets runs
of its own.
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
    """A StreamArchive as the API server has it, whose current run is seen as a copy.

    Attributes:
        due: the time of a scheduled run that is due and has not begun.
        later: the time of the next scheduled run after now.
    """

    spec: StreamArchiveSpec
    status: StreamArchiveStatus
    due: datetime | None = None
    later: datetime | None = None

    @property
    def done(self) -> bool:
        """Whether no run is to be made now: the last run succeeded, or none was due yet."""
        return not self.asked and (self.succeeded or self.resting)

    @property
    def asked(self) -> bool:
        """Whether another run is to be made, or the failed run is to be tried at once.

        A request waits while an attempt goes on. That attempt's run would not have the events
        which were written after its bounds were taken.
        """
        if self._at_work:
            return False
        return self._wished or (self.over and self.due is not None)

    @property
    def over(self) -> bool:
        """Whether the run of the status has ended, or there was no run yet."""
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
        """The key of the run to make or to go on with; None if no run was ever due."""
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
        """Whether the archive is deleted with the resource, which then stays until it is gone."""
        return self.spec.on_delete == "Delete"

    @property
    def _wished(self) -> bool:
        return (
            self.requested_at is not None
            and self.requested_at != self.status.last_handled_requested_at
        )

    @property
    def _at_work(self) -> bool:
        """Whether an attempt has begun whose end is not in the history.

        After the end of a run none is at work, though the history may lack the end of an attempt
        whose Job was refused or is gone.
        """
        return not self.over and any(not entry.outcome for entry in self.status.history)


def times(
    spec: StreamArchiveSpec, status: StreamArchiveStatus, *, created: datetime, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Give the time of a scheduled run that is due and has not begun, and of the next run.

    The schedule counts from the resource's creation, and each of its times makes one run. If the
    time of the last scheduled run lies in the future, the clock was wrong. Then the end of the
    last run counts instead.

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
