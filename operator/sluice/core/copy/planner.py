"""From a request and what was seen of the source to a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from sluice.core.copy.plan import OnTruncation, SegmentPlan, SourceStream, StreamPlan, origin
from sluice.core.events.digest import CHUNK
from sluice.core.values import marks
from sluice.core.values.model import (
    ArchivedRun,
    Frozen,
    KeyRange,
    StreamConfig,
    StreamName,
    break_in,
)
from sluice.errors import SourceUnsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

PART_BYTES = 256 << 20
"""Segments longer than this are divided always, unless a request says otherwise."""

LEAST_PART_BYTES = 32 << 20
"""Shorter parts are not made for the sake of more tasks: each has its price at the store."""

PARTS_PER_TASK = 2
"""Into how many parts the work of a task is divided, so that at the end no task has to wait long
for another's last part."""

MAX_PARTS = 64
"""More parts than this do not make a segment faster; a part just gets longer."""


class Position(Frozen):
    """Where a range begins or ends: a cut of the stream in one form or the other, or its edge.

    Attributes:
        text: a cut as the store's clients write it.
        offsets: by segment id.
    """

    text: str | None = None
    offsets: tuple[tuple[int, int], ...] | None = None

    @property
    def is_edge(self) -> bool:
        """Whether it is the stream's head or its tail."""
        return self.text is None and self.offsets is None


class Range(Frozen):
    """A part of a stream without gaps."""

    begin: Position = Position()
    end: Position = Position()


class ArchiveChoice(Frozen):
    """Which run of an archive to read.

    Attributes:
        path: of the archive in its store.
        run: its number; None for the last one.
        until: the last one of those that hold the stream up to this time, in ms, or an earlier one.
    """

    path: str
    run: int | None = None
    until: int | None = None


class SourceRequest(Frozen):
    """A stream to copy, or parts of it.

    Attributes:
        stream: its name; of an archive whose run is not chosen yet, its store's and its path.
        store: the store's place among those that the copy reads from; each archive has its own.
        ranges: what of the stream, one after the other.
        field: of the spec, for errors.
        archive: what of an archive, if it is one.
        pinned: the run of it, once that is chosen.
    """

    stream: StreamName
    store: int = 0
    ranges: tuple[Range, ...] = (Range(),)
    field: str = "spec.source"
    archive: ArchiveChoice | None = None
    pinned: ArchivedRun | None = None


class CopyRequest(Frozen):
    """What somebody wants copied, with names resolved and nothing observed yet.

    Attributes:
        copy_id: the copy's identity, 32 hexadecimal digits.
        sources: what to copy, one after the other.
        target: the stream to make.
        append: whether it is appended to where it is there and somebody's.
        verify, seal, on_truncation, move: see StreamPlan.
        part_bytes: segments longer than this are divided into parts, see `part_size`.
        tasks: how many tasks will run at once, as far as that is known beforehand. It shapes a new
            plan only: once a plan is recorded, its parts stay as they are.
    """

    copy_id: str
    sources: tuple[SourceRequest, ...]
    target: StreamName
    verify: bool = True
    seal: bool = False
    on_truncation: OnTruncation = "Fail"
    move: bool = False
    part_bytes: int = Field(default=PART_BYTES, ge=CHUNK)
    append: bool = False
    tasks: int = Field(default=1, ge=1)

    @property
    def origin(self) -> str:
        """What is copied, for people."""
        return origin([source.stream for source in self.sources])


class SeenSegment(NamedTuple):
    """A source segment at the moment the bounds are taken; see SegmentPlan for the fields."""

    source: int
    id: int
    keys: KeyRange
    generation: int
    range: int | None
    start: int
    end: int
    created: int
    events: int | None
    torn: bool = False


def part_size(total: int, tasks: int, most: int = PART_BYTES) -> int:
    """The bytes up to which a segment stays whole, for a copy of `total` bytes.

    Where several tasks run at once, each is to have about PARTS_PER_TASK parts to do, but none
    shorter than LEAST_PART_BYTES on that account, and none longer than `most`.
    """
    if tasks < 2:  # noqa: PLR2004 - one task does parts one after the other anyway
        return most
    fair = -(-total // (PARTS_PER_TASK * tasks))
    return min(most, max(LEAST_PART_BYTES, -(-fair // CHUNK) * CHUNK))


def cuts(start: int, end: int, part_bytes: int = PART_BYTES) -> tuple[int, ...]:
    """Where a segment's range is divided into parts.

    Up to `part_bytes` stay whole. Longer ranges are divided into equal parts of about that size, at
    most MAX_PARTS, at chunk boundaries, so that no chunk belongs to two parts.
    """
    parts = min(-(-(end - start) // part_bytes), MAX_PARTS)
    edges = {round((start + (end - start) * i / parts) / CHUNK) * CHUNK for i in range(1, parts)}
    return tuple(sorted(edge for edge in edges if start < edge < end))


def plan_stream(
    request: CopyRequest,
    *,
    config: StreamConfig,
    seen: Sequence[SeenSegment],
    append: bool = False,
) -> StreamPlan:
    """The plan for a new target, or for one that is there and is appended to.

    Args:
        request: what is wanted.
        config: the first source's configuration.
        seen: the sources' segments, with bounds, in the order in which the store made them.
        append: whether the target is there.

    Raises:
        SourceUnsupported: the source has so many tags that the target could not be marked, or
            a generation does not take the keys of those that it follows on, so that
            the target could not be scaled in the same way.
    """
    own = marks.plain(config)
    if len(own.tags) > marks.MOST_TAGS and not append:
        raise SourceUnsupported(
            f"{request.origin} has {len(own.tags)} tags, and with those that Sluice marks a target "
            f"with, a store takes no more than {marks.MOST_TAGS}",
            field="spec.source.stream",
            remedy="Take tags off the source; nothing was made.",
        )
    segments = sorted(seen, key=lambda segment: segment.keys.low)
    segments.sort(key=lambda segment: (segment.generation, segment.generation and segment.id))
    total = sum(segment.end - segment.start for segment in segments)
    part_bytes = part_size(total, request.tasks, request.part_bytes)
    plan = StreamPlan(
        copy_id=request.copy_id,
        sources=tuple(
            SourceStream(stream=source.stream, store=source.store, archive=source.pinned)
            for source in request.sources
        ),
        target=request.target,
        segments=tuple(
            SegmentPlan(**segment._asdict(), cuts=cuts(segment.start, segment.end, part_bytes))
            for segment in segments
        ),
        config=own,
        verify=request.verify,
        on_truncation=request.on_truncation,
        move=request.move,
        append=append,
        seal=request.seal,
    )
    for number, active in enumerate(plan.active):
        if break_in(plan.segments[i].keys for i in active) is not None:
            raise SourceUnsupported(
                f"after scale event {number} the segments of {plan.origin} have gaps or share "
                "keys, so no stream can be scaled in the same way",
                field="spec.source.stream",
                remedy="Nothing was made. Please report this with what the store says of the "
                "stream's epochs.",
            )
    return plan
