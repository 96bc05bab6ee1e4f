"""Write the parts of a copy's status that tables show: places, sizes and progress."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from sluice.api.status.common import ProgressStatus
from sluice.core.values import text

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.core.reconcile.copies.world import Reading

READ_AGAIN: Final = timedelta(seconds=30)
"""Time after which unchanged progress is written again, to show that it was read."""


class StatusPlace(Protocol):
    """A stream, a scope, or an archive: its StreamStore, and its name there."""

    @property
    def store(self) -> str:
        """The name of the StreamStore."""
        ...

    @property
    def title(self) -> str:
        """The name in the StreamStore."""
        ...


def place(one: StatusPlace) -> str:
    """Name a stream, a scope or an archive with its store, for a table."""
    return f"{one.store}/{one.title}"


def size(count: int) -> str:
    """Return a number of bytes for a table; empty while it is unknown."""
    return text.size(count) if count else ""


def says_the_same(progress: ProgressStatus, before: ProgressStatus) -> bool:
    """Tell whether progress differs from that of a moment ago in its time only."""
    if before.time is None or progress.time is None or progress.time - before.time >= READ_AGAIN:
        return False
    return progress.model_copy(update={"time": before.time}) == before


def progress(reading: Reading, before: ProgressStatus | None, now: datetime) -> ProgressStatus:
    """Write a reading of a copy's progress at `now`, after the progress `before`."""
    done, total = reading.progress.bytes, reading.progress.total
    # Below 100 until the target is complete: staged bytes cannot be read yet.
    percent = min(99, 100 * done // total) if total else 0
    rate, eta = reading.pace.rate, reading.pace.eta
    return ProgressStatus(
        bytes=done,
        total_bytes=total,
        size=size(total),
        events=before.events if before else None,
        percent=percent,
        summary=f"{percent}%",
        bytes_per_second=round(rate),
        rate=text.rate(rate),
        eta_seconds=None if eta is None else round(eta),
        time=now,
    )
