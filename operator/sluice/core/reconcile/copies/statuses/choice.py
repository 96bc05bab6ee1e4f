"""Choose the builder of a copy's status by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.api.kinds.scopecopy import ScopeCopySpec
from sluice.api.kinds.streamcopy import StreamCopySpec
from sluice.core.reconcile.copies.archive_seen import ArchiveSeen
from sluice.core.reconcile.copies.scheduled.seen import ScheduledScopeSeen
from sluice.core.reconcile.copies.statuses.archives import ArchiveStatus
from sluice.core.reconcile.copies.statuses.followed_scopes import FollowedScopeStatus
from sluice.core.reconcile.copies.statuses.followed_streams import FollowedStreamStatus
from sluice.core.reconcile.copies.statuses.scope_archives import (
    ScheduledScopeStatus,
    scope_status_of,
)
from sluice.core.reconcile.copies.statuses.streams import StreamStatus

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.statuses.base import CopyStatus


def status_of(copy: CopySeen, now: datetime) -> CopyStatus:
    """Return the builder of the status of a stream's copy, a scope's copy or an archive's run."""
    if isinstance(copy, ArchiveSeen):
        return ArchiveStatus(copy, now)
    if isinstance(copy, ScheduledScopeSeen):
        return ScheduledScopeStatus(copy, now)
    match copy.spec:
        case ScopeCopySpec(follows=True) as spec:
            return FollowedScopeStatus(copy, spec, now)
        case ScopeCopySpec() as spec:
            return scope_status_of(copy, spec, now)
        case StreamCopySpec(follows=True) as spec:
            return FollowedStreamStatus(copy, spec, now)
        case StreamCopySpec() as spec:
            return StreamStatus(copy, spec, now)
        case _:
            raise TypeError(f"a {type(copy.spec).__name__} is seen as an ArchiveSeen")
