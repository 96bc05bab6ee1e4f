"""Leases: who is at work in an archive.

A lease is an object that whoever is at work writes again and again. It counts for a grace time
after it was written last, by the store's clock; so one who was killed keeps nobody for ever.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from sluice.core.archive.documents import Document
from sluice.core.archive.head import RunEntry
from sluice.core.archive.manifest import WorkId as Id

GRACE: Final = 24 * 3600.0
"""Seconds for which a lease counts, and for which no object is swept that no run lists.

More than any process is ever held up between two calls.
"""

LEAST_GRACE: Final = 3600.0
"""A shorter grace time is refused."""

SWEEPING: Final = LEAST_GRACE
"""Seconds for which the lease of whoever sweeps counts.

Nobody begins to write meanwhile, so one that was left behind must not keep all runs for a day.
"""

RENEW: Final = 300.0
"""Seconds after which a lease is written again."""


class LeaseWork(StrEnum):
    """What somebody does in an archive."""

    WRITE = "Write"
    """Puts objects that no head lists yet: nobody sweeps meanwhile."""
    READ = "Read"
    """Reads a run: its objects are not swept, though it may be let go meanwhile."""
    SWEEP = "Sweep"
    """Deletes what no run needs: nobody begins to write meanwhile."""

    def counts(self, grace: float) -> float:
        """Seconds for which a lease of this work counts, where others count for the grace time."""
        return min(grace, SWEEPING) if self is LeaseWork.SWEEP else grace


class LeaseNote(Document):
    """What stands in a lease.

    Attributes:
        work: what its owner does.
        run: which run is read, as the head had it.
        maker: the identity of the resource that the work is done for; see `Maker`.
    """

    kind: Literal["sluice.dev/archive-lease"] = "sluice.dev/archive-lease"
    work: LeaseWork
    run: RunEntry | None = None
    maker: Id | None = None
