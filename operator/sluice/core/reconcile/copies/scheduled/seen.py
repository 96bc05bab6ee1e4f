"""A resource with runs as it was seen, and the run that it asks for.

The key of a run names what asked for it: the first run, a request or the schedule. The archive, or
the folder of archives, keeps the key of each recorded run. So no run is made twice, even if the
status is lost. Keys of first and requested runs contain the resource's uid. So a later resource of
the same name gets runs of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.api.status.common import ConditionType
from sluice.core.reconcile.copies.seen import PARTLY, CopySeen
from sluice.core.values import schedule, text

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.kinds.scopecopy import ScopeCopySpec
    from sluice.api.kinds.streamarchive import StreamArchiveSpec
    from sluice.api.status.archive_status import StreamArchiveStatus
    from sluice.api.status.scope_status import ScopeCopyStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledSeen(CopySeen):
    """A resource with runs as the API server has it, whose current run is seen as a copy.

    Attributes:
        due: the time of a scheduled run that is due and has not begun.
        later: the time of the next scheduled run after now.
    """

    spec: StreamArchiveSpec | ScopeCopySpec
    status: StreamArchiveStatus | ScopeCopyStatus
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
        """Whether all that the run of the status was to archive is recorded."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledScopeSeen(ScheduledSeen):
    """A ScopeCopy with a schedule.

    A run may end with some streams archived and others failed. The next run begins anew, and has a
    log of its own. So nothing is left of a run before the next one begins.
    """

    spec: ScopeCopySpec
    status: ScopeCopyStatus

    @property
    def done(self) -> bool:
        """Whether no run is to be made now. Streams that failed wait for the next run."""
        return not self.asked and (self.succeeded or self.resting or self._has_results)

    @property
    def asked(self) -> bool:
        """Whether another run is to be made, or the failed run is to be tried at once."""
        return not self.lingers and self._asks

    @property
    def lingers(self) -> bool:
        """Whether something of a run that is over is still to be deleted, before the next one.

        If the status was lost, it is the rest of a run whose key is lost, too.
        """
        return self.finalizer and self.over

    @property
    def waits_for_rest(self) -> bool:
        """Whether another run is to begin as soon as nothing is left of the last one."""
        return self.lingers and self._asks

    @property
    def time_to_live(self) -> int | None:
        """Return None: the schedule goes on for ever."""
        return None

    @property
    def begins_anew(self) -> bool:
        """Whether nothing of a run is needed once it is over: always."""
        return True

    @property
    def _asks(self) -> bool:
        return not self._at_work and (self._wished or (self.over and self.due is not None))

    @property
    def _has_results(self) -> bool:
        """Whether the run ended with a result of each stream, of which some failed."""
        failure = self.status.last_failure
        return self.over and failure is not None and failure.reason in PARTLY


def times(
    spec: StreamArchiveSpec | ScopeCopySpec,
    status: StreamArchiveStatus | ScopeCopyStatus,
    *,
    created: datetime,
    now: datetime,
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
