"""Decide the next step of a run of an archive from what the archive and the source hold.

As `core.copy.next_step` for copies, `next_step` is a pure function of one observation. So a driver
that starts in the middle decides the same as a driver that was there from the beginning.

    (Replan ->) Transfer (-> Amend -> Transfer) (-> Verify) -> RecordRun -> DeleteJournal -> Done
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.core.copy.plan import Part
from sluice.core.copy.steps import Amend, DeleteJournal, Done, RecordRun, Replan, Transfer, Verify
from sluice.errors import (
    CopyAborted,
    SourceNotFound,
    SourceReplaced,
    SourceTruncated,
    StoreUnavailable,
    TooManyEvents,
)

if TYPE_CHECKING:
    from sluice.core.archive.head import Head, RunEntry
    from sluice.core.archive.plan import ArchivePlan
    from sluice.core.archive.standing import RunStanding, SegmentStanding
    from sluice.core.copy.observed import SeenSource
    from sluice.core.copy.steps import Step


@dataclass(frozen=True, slots=True)
class SeenArchive:
    """The state of a run in its archive and its source.

    Attributes:
        noted: whether there are notes of the run.
        head: the last head; None if the archive has none. Read after the notes, as these are
            deleted once a head lists the run.
        standing: the run's progress, by its notes; None if another run was recorded since this one
            was planned.
        sources: the source segment of each segment of the plan, None where it does not exist. None
            as a whole if nothing depends on the source.
        there: whether a stream with the source's name exists.
        had: whether that stream has, or once had, the segments of the plan.
    """

    noted: bool
    head: Head | None
    standing: RunStanding | None = None
    sources: tuple[SeenSource | None, ...] | None = None
    there: bool = True
    had: bool = True


def recorded(plan: ArchivePlan, head: Head | None) -> RunEntry | None:
    """Return the run's entry in the head; None if the run is not recorded.

    A run is recorded under the number that it was planned with, or under a later one.
    """
    if head is None:
        return None
    mine = [one for one in head.runs if one.work == plan.copy_id and one.run >= plan.run]
    return mine[-1] if mine else None


def next_step(plan: ArchivePlan, seen: SeenArchive) -> Step:
    """Decide the next step of a run whose plan is noted, or that is recorded.

    Raises:
        SourceNotFound, SourceReplaced, SourceTruncated: the source changed under the run.
        StoreUnavailable: the observation lacks the source.
        TooManyEvents: more events than the plan allows would become objects of their own.
        CopyAborted: the notes are gone, and the run is not recorded.
    """
    entry = recorded(plan, seen.head)
    if entry is not None:
        return DeleteJournal() if seen.noted else Done(entry.sha256)
    if not seen.noted:
        raise CopyAborted(
            f"the notes of the run of {plan.path} are gone: the run was aborted while it was at "
            "work, or its objects were deleted"
        )
    if seen.standing is None:
        return Replan()
    check_events(plan, seen.standing)
    _check_sources(plan, seen)
    segments = [*enumerate(seen.standing.segments)]
    starts = tuple(
        (i, to)
        for i, one in segments
        if not one.is_put and (to := _begins(plan, seen, i, one)) > one.at
    )
    if starts:
        return Amend(starts)
    unfinished = tuple(
        (i, Part(0, one.plan.begin, one.plan.end), one.at) for i, one in segments if not one.is_put
    )
    if unfinished:
        return Transfer(unfinished)
    unchecked = tuple(i for i, one in segments if plan.verify and one.unchecked())
    return Verify(unchecked) if unchecked else RecordRun()


def check_events(plan: ArchivePlan, standing: RunStanding) -> None:
    """Raise TooManyEvents if more events than the plan allows would become objects of their own."""
    if plan.format.is_of_events and standing.events > plan.max_events:
        raise TooManyEvents(
            f"{plan.origin} has more than {plan.max_events} events, each of which would be an "
            "object",
            field="spec.maxEvents",
        )


def _check_sources(plan: ArchivePlan, seen: SeenArchive) -> None:
    """Raise an error if the source is not the planned stream.

    Segments that were put already are checked too, as they may have been read from another stream.
    A segment may be gone by now.

    Raises:
        SourceNotFound, SourceReplaced: the source is gone, or was deleted and made again.
    """
    if not seen.there:
        raise SourceNotFound(
            f"{plan.source} is gone: it was deleted before it was archived",
            field="spec.source.stream",
        )
    if seen.sources is None:
        return
    for segment, source in zip(plan.segments, seen.sources, strict=True):
        if not seen.had or (source is not None and source.created != segment.created):
            raise SourceReplaced(
                f"{plan.source} was deleted and made again: segment {segment.id} is not the one "
                "whose bounds were taken",
                remedy="Archive the new stream at another path.",
            )


def _begins(plan: ArchivePlan, seen: SeenArchive, place: int, segment: SegmentStanding) -> int:
    """Return the first offset of a segment that can be read; its planned end if it is gone.

    Raises:
        SourceTruncated: bytes are lost, and the run must not continue without them.
        StoreUnavailable: the source was not observed.
    """
    if seen.sources is None:
        raise StoreUnavailable(f"{plan.source} was not observed")
    source = seen.sources[place]
    begins = segment.plan.end if source is None else min(source.info.start, segment.plan.end)
    if begins > segment.at:
        refuse_loss(plan, f"offsets {segment.at} to {begins} of segment {segment.plan.id} are gone")
    return begins


def refuse_loss(plan: ArchivePlan, what: str) -> None:
    """Raise SourceTruncated, unless the plan allows the run to continue without lost bytes."""
    if plan.on_truncation == "Fail":
        raise SourceTruncated(
            f"{plan.source} was truncated: {what}, and they are not archived",
            remedy="Lengthen the source's retention or archive it more often. With onTruncation: "
            "Record it is archived without what is lost, which is recorded.",
        )
