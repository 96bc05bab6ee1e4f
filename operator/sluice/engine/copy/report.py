"""The report of a copy, for people and programs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import Field

from sluice.core.values.model import Frozen, StreamName
from sluice.core.values.trouble import Trouble

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.planner import CopyRequest
    from sluice.errors import SluiceError


class Outcome(StrEnum):
    """How a copy ended."""

    COPIED = "Copied"
    ARCHIVED = "Archived"
    ALREADY_COMPLETE = "AlreadyComplete"
    FAILED = "Failed"


class SegmentReport(Frozen):
    """The report of one segment.

    Attributes:
        source, target: ids of the source's and the target's segment.
        start, end: bounds of the copied bytes, as offsets in the source.
        events: number of events; None if it is not known.
        digest: SHA-256 over the digests of its chunks; `unverified` if some are not known.
        lost: bytes before `start` that were to be copied, and that the source had lost before they
            were read.
        torn: whether an unknown number of bytes after `end` was lost before it could be archived.
        plain: whether a copy that follows its source found no events in it, and cut it anywhere.
    """

    source: int
    target: int
    start: int
    end: int
    events: int | None
    digest: str
    lost: int = 0
    torn: bool = False
    plain: bool = False


class StreamReport(Frozen):
    """The report of one stream's copy.

    Attributes:
        copy_id: the copy's identity.
        source: the stream read, or the first of several and how many follow.
        target: the stream made, or appended to.
        outcome: how it ended.
        digest: SHA-256 over the segments' digests; `unverified` without verification.
        segments: in the plan's order; empty when the copy was complete before, or failed.
        error: why it failed.
        cleaned: after a failure, whether staging and the unpublished target were deleted. If not,
            the copy goes on from there when it is run again.
        ended: why a copy that follows its source ended (`core.follow.ending`).
    """

    copy_id: str = Field(alias="copyID")
    source: str
    target: StreamName
    outcome: Outcome
    digest: str | None = None
    segments: tuple[SegmentReport, ...] = ()
    error: Trouble | None = None
    cleaned: bool = False
    ended: str | None = Field(default=None, exclude_if=lambda why: why is None)

    @classmethod
    def failed(
        cls, plan: StreamPlan | CopyRequest, error: SluiceError, *, cleaned: bool = False
    ) -> StreamReport:
        """Return the report of a copy that failed for good."""
        return cls(
            copy_id=plan.copy_id,
            source=plan.origin,
            target=plan.target,
            outcome=Outcome.FAILED,
            error=Trouble.of(error),
            cleaned=cleaned,
        )

    @property
    def gaps(self) -> list[SegmentReport]:
        """Segments of which the source had lost bytes before they were read."""
        return [segment for segment in self.segments if segment.lost]

    @property
    def bytes(self) -> int:
        """Bytes copied."""
        return sum(segment.end - segment.start for segment in self.segments)

    @property
    def events(self) -> int:
        """Events copied."""
        return sum(segment.events or 0 for segment in self.segments)
