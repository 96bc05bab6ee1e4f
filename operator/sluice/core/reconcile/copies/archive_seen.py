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
    """

    spec: StreamArchiveSpec
    status: StreamArchiveStatus
    drill_due: datetime | None = None
    drill_later: datetime | None = None

    @property
    def keeps(self) -> bool:
        """Whether the archive is deleted with the resource, which then stays until it is gone."""
        return self.spec.on_delete == "Delete"
