"""What a run of an archive does next, decided from what the archive holds.

As `core.copy.next_step` for copies: a pure function of one observation, so a driver that comes in
the middle decides the same as one that was there from the beginning.

    (Replan ->) Transfer (-> Amend -> Transfer) -> Verify -> Record -> Forget -> Done
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
    from sluice.core.archive.standing import SegmentStanding, Standing
    from sluice.core.copy.observed import SeenSource
    from sluice.core.copy.steps import Step


@dataclass(frozen=True, slots=True)
class SeenArchive:
    """What the archive and the source hold of a run.

    Attributes:
        noted: whether there are notes of it.
        head: the last one. Looked at after the notes, which are deleted when it lists the run.
        standing: how far it is, by its notes; None where a run was recorded since it was planned.
        sources: the segments of the source, in the plan's order; None where nothing depends on it.
        there: whether there is a stream of the source's name.
        had: whether that one has, or had, the segments of the plan.
    """

    noted: bool
    head: Head | None
    standing: Standing | None = None
    sources: tuple[SeenSource | None, ...] | None = None
    there: bool = True
    had: bool = True


def recorded(plan: ArchivePlan, head: Head | None) -> RunEntry | None:
    """The run, where it is recorded: under the number that it was planned with, or a later one."""
    if head is None:
        return None
    mine = [one for one in head.runs if one.work == plan.copy_id and one.run >= plan.run]
    return mine[-1] if mine else None


def next_step(plan: ArchivePlan, seen: SeenArchive) -> Step:
    """The next step of a run whose plan is noted, or that is recorded.

    Raises:
        SourceNotFound, SourceReplaced, SourceTruncated: the source changed under the run.
        TooManyEvents: there are more than may become objects of their own.
        CopyAborted: the notes are gone, and the run is not recorded.
    """
    entry = recorded(plan, seen.head)
    if entry is not None:
        return DeleteJournal() if seen.noted else Done(entry.sha256)
    if not seen.noted:
        raise CopyAborted(f"the run of {plan.path} was aborted while it was at work")
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


def check_events(plan: ArchivePlan, standing: Standing) -> None:
    """Refuse more events than may become objects of their own. TooManyEvents."""
    if plan.format.is_of_events and standing.events > plan.max_events:
        raise TooManyEvents(
            f"{plan.origin} has more than {plan.max_events} events, each of which would be an "
            "object",
            field="spec.maxEvents",
        )


def _check_sources(plan: ArchivePlan, seen: SeenArchive) -> None:
    """Refuse a source that is not the one that was planned.

    Segments that are put are looked at too: perhaps they were read from another stream. One that
    is gone by then is fine.

    Raises:
        SourceNotFound, SourceReplaced: it is gone, or another one.
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
    """From where on a segment can be read; its end if it is gone.

    Raises:
        SourceTruncated: bytes are lost, and the run is not to go on without them.
    """
    if seen.sources is None:
        raise StoreUnavailable(f"{plan.source} was not observed")
    source = seen.sources[place]
    begins = segment.plan.end if source is None else min(source.info.start, segment.plan.end)
    if begins > segment.at:
        refuse_loss(plan, f"offsets {segment.at} to {begins} of segment {segment.plan.id} are gone")
    return begins


def refuse_loss(plan: ArchivePlan, what: str) -> None:
    """Refuse to go on without bytes that the source has lost, unless that is wanted."""
    if plan.on_truncation == "Fail":
        raise SourceTruncated(
            f"{plan.source} was truncated: {what}, and they are not archived",
            remedy="Lengthen the source's retention or archive it more often. With onTruncation: "
            "Record it is archived without what is lost, which is recorded.",
        )
