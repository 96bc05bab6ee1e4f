"""Reports of an archive's runs, for people and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

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
    """The result of one run of an archive.

    Attributes:
        copy_id: the run's identity.
        source: the stream.
        path: the archive's path in its store.
        format: the archive's format.
        outcome: how the run ended.
        run: the run's number.
        digest: SHA-256 of the run's manifest, which stands for all that the run holds.
        bytes: bytes of the source that the run holds, with those of the runs before.
        events: events that the run holds; None if some of its bytes are no events.
        added: bytes that the run adds to the previous run; None if it was recorded earlier.
        new_events: events that the run adds to the previous run; None as `added` or `events`.
        lost: bytes that the run found lost.
        error: why the run failed.
        cleaned: after a failure, whether the run's notes were deleted. With its notes kept the run
            can be resumed.
    """

    copy_id: str = Field(alias="copyID")
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
        """Return the report of a recorded run. Without `added` it was recorded earlier."""
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
        """Return the report of a run that failed for good."""
        return cls(
            copy_id=plan.copy_id,
            source=plan.origin,
            path=plan.path,
            format=plan.format,
            outcome=Outcome.FAILED,
            error=Trouble.of(error),
            cleaned=cleaned,
        )
