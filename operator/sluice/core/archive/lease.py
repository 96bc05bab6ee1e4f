"""Leases: objects that say which processes are at work in an archive.

A process at work writes its lease again and again. The lease counts for a grace time after the last
write, by the store's clock. So a process that was killed does not block others for ever.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from sluice.core.archive.documents import Document
from sluice.core.archive.head import RunEntry
from sluice.core.archive.manifest import WorkId as Id

GRACE: Final = 24 * 3600.0
"""Seconds for which a lease counts, and for which a sweep spares objects that no run lists.

It is longer than any process is ever held up between two calls.
"""

LEAST_GRACE: Final = 3600.0
"""Seconds of the shortest grace time that is accepted."""

SWEEPING: Final = LEAST_GRACE
"""Seconds for which the lease of a sweep counts.

No run begins to write meanwhile, so a lease left behind must not delay all runs for a day.
"""

RENEW: Final = 300.0
"""Seconds after which a lease is written again."""


class LeaseWork(StrEnum):
    """The work that a lease announces, and what it forbids others."""

    WRITE = "Write"
    """The owner puts objects that no head lists yet: others must not sweep."""
    READ = "Read"
    """The owner reads a run: others must not sweep its objects, even if the run is dropped."""
    SWEEP = "Sweep"
    """The owner deletes objects that no run lists: others must not begin to write."""

    def counts(self, grace: float) -> float:
        """Return the seconds for which a lease of this work counts.

        Args:
            grace: the grace time in seconds, for which all leases but those of sweeps count.
        """
        return min(grace, SWEEPING) if self is LeaseWork.SWEEP else grace


class LeaseNote(Document):
    """The content of a lease.

    Attributes:
        work: the work of its owner.
        run: the run that is read, as the head listed it.
        maker: the identity of the resource that the work is done for; see `Maker`.
    """

    kind: Literal["sluice.dev/archive-lease"] = "sluice.dev/archive-lease"
    work: LeaseWork
    run: RunEntry | None = None
    maker: Id | None = None
