"""A StreamArchive as it was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.core.reconcile.copies.scheduled.seen import ScheduledSeen

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.kinds.streamarchive import StreamArchiveSpec
    from sluice.api.status.archive_status import StreamArchiveStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSeen(ScheduledSeen):
    """A StreamArchive as the API server has it, whose current run is seen as a copy.

    Attributes:
        drill_due: the time of a restore drill that is due and has not begun.
        drill_later: the time of the next drill after now.
        drill_requested_at: the annotation by which a user asks for a drill now; None without one.
    """

    spec: StreamArchiveSpec
    status: StreamArchiveStatus
    drill_due: datetime | None = None
    drill_later: datetime | None = None
    drill_requested_at: str | None = None

    @property
    def drill_asked(self) -> bool:
        """Whether a user asks for a drill that has not begun."""
        drill = self.status.drill
        handled = None if drill is None else drill.last_handled_requested_at
        asked = self.drill_requested_at not in {None, handled}
        return asked and self.spec.verify is not None

    @property
    def keeps(self) -> bool:
        """Whether the archive is deleted with the resource, which then stays until it is gone."""
        return self.spec.on_delete == "Delete"
