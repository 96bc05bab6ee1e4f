"""What came of a run of an archive, for people and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.archive.names import Format
from sluice.core.values.model import Frozen
from sluice.core.values.trouble import Trouble
from sluice.engine.copy.report import Outcome

if TYPE_CHECKING:
    from sluice.core.archive.head import RunEntry
    from sluice.core.archive.plan import ArchivePlan
    from sluice.core.archive.request import ArchiveRequest
    from sluice.errors import SluiceError


class ArchiveReport(Frozen):
    """One run of an archive.

    Attributes:
        copy_id: the run's identity.
        source: the stream.
        path: of the archive in its store.
        format: how it holds events.
        outcome: how it ended.
        run: its number.
        digest: SHA-256 of its manifest, which stands for all that it holds.
        bytes: of the source that it holds.
        events: that it holds; None where some bytes are none.
        added: bytes that it has besides those of the run before; None where it was recorded before.
        new_events: that it has besides those of the run before; None likewise, and as `events`.
        lost: bytes that it found lost.
        error: why it failed.
        cleaned: after a failure, whether its notes were deleted; what is kept lets it go on.
    """

    copy_id: str
    source: str
    path: str
    format: Format
    outcome: Outcome
    run: int | None = None
    digest: str | None = None
    bytes: int | None = None
    events: int | None = None
    added: int | None = None
    new_events: int | None = None
    lost: int = 0
    error: Trouble | None = None
    cleaned: bool = False

    @classmethod
    def recorded(
        cls,
        plan: ArchivePlan | ArchiveRequest,
        entry: RunEntry,
        *,
        added: int | None = None,
        new_events: int | None = None,
        lost: int = 0,
    ) -> ArchiveReport:
        """The report of a run that is recorded; without `added` if it was when somebody came."""
        return cls(
            copy_id=plan.copy_id,
            source=plan.origin,
            path=plan.path,
            format=plan.format,
            outcome=Outcome.ALREADY_COMPLETE if added is None else Outcome.ARCHIVED,
            run=entry.run,
            digest=entry.sha256,
            bytes=entry.bytes,
            events=entry.events,
            added=added,
            new_events=new_events,
            lost=lost,
        )

    @classmethod
    def failed(
        cls, plan: ArchivePlan | ArchiveRequest, error: SluiceError, *, cleaned: bool = False
    ) -> ArchiveReport:
        """The report of a run that failed for good."""
        return cls(
            copy_id=plan.copy_id,
            source=plan.origin,
            path=plan.path,
            format=plan.format,
            outcome=Outcome.FAILED,
            error=Trouble.of(error),
            cleaned=cleaned,
        )
