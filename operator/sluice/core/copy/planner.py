"""Make a plan from a request and an observation of the source."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from sluice.core.copy.plan import OnTruncation, SegmentPlan, SourceStream, StreamPlan, origin, reads
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
"""Bytes above which a segment is always divided, unless the request sets another number."""

LEAST_PART_BYTES = 32 << 20
"""Bytes of the shortest part that is made for more tasks: each part costs calls to the store."""

PARTS_PER_TASK = 2
"""Parts of the work of one task. With more than one, no task waits long at the end for another
task's last part."""

MAX_PARTS = 64
"""Most parts of a segment. More would not make it faster, so parts get longer instead."""


class RangeEnd(Frozen):
    """The beginning or end of a range: a cut of the stream as text or as offsets, or its edge.

    Attributes:
        text: a cut as the store's clients write it.
        offsets: a cut as pairs of segment id and offset.
    """

    text: str | None = None
    offsets: tuple[tuple[int, int], ...] | None = None

    @property
    def is_edge(self) -> bool:
        """Whether the position is the stream's head or its tail."""
        return self.text is None and self.offsets is None


class Range(Frozen):
    """A contiguous part of a stream."""

    begin: RangeEnd = RangeEnd()
    end: RangeEnd = RangeEnd()


class ArchiveChoice(Frozen):
    """The choice of an archive's run to read.

    Attributes:
        path: the archive's path in its store.
        run: the run's number; None for the last run.
        until: a time in ms; chooses the last run that holds the stream up to this time at most.
        sha256: the SHA-256 of the run's manifest; None for any.
    """

    path: str
    run: int | None = None
    until: int | None = None
    sha256: str | None = Field(default=None, exclude_if=lambda value: value is None)


class SourceRequest(Frozen):
    """A stream to copy, or parts of it.

    Attributes:
        stream: its name; for an archive whose run is not chosen yet, its store's name and its path.
        store: the index of its store among the stores that the copy reads from; each archive counts
            as a store of its own.
        ranges: the ranges to copy, one after the other.
        field: its field in the spec, for errors.
        archive: the choice of the run, if the source is an archive.
        pinned: the archive's run, once it is chosen.
    """

    stream: StreamName
    store: int = 0
    ranges: tuple[Range, ...] = (Range(),)
    field: str = "spec.source"
    archive: ArchiveChoice | None = None
    pinned: ArchivedRun | None = None


class CopyRequest(Frozen):
    """A user's request for a copy, with names resolved and nothing observed yet.

    Attributes:
        copy_id: the copy's identity, 32 hexadecimal digits.
        sources: the streams to copy, one after the other.
        target: the stream to make, or to append to.
        append: whether to append to the target if it exists and is a user's stream.
        make_scope: whether to make the target's scope if it does not exist.
        verify, seal, on_truncation, move, follow: see StreamPlan.
        part_bytes: segments with more bytes than this are divided into parts, see `part_size`.
        stop_time: the time in ms at which a copy that follows its source is to end; None for none.
            A copy that is not begun by then is refused.
        groups: the reader groups that are to go on in the target, each with the name of the group
            to make there.
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
    make_scope: bool = Field(default=False, exclude_if=operator.not_)  # as in StreamPlan
    follow: bool = Field(default=False, exclude_if=operator.not_)  # as in StreamPlan
    stop_time: int | None = Field(default=None, exclude=True)  # users may change it
    groups: tuple[tuple[str, str], ...] = Field(default=(), exclude=True)  # and these
    tasks: int = Field(default=1, ge=1)

    @property
    def origin(self) -> str:
        """The streams that are copied, for people."""
        return origin([source.stream for source in self.sources])

    @property
    def reads(self) -> tuple[str, ...]:
        """The streams, and the paths of archives, that are copied, each with its store."""
        return reads([(one.store, one.stream, one.archive) for one in self.sources])


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
    """Return the most bytes of a part, for a copy of `total` bytes. Smaller segments stay whole.

    If several tasks run at once, each gets about PARTS_PER_TASK parts. But parts are not made
    shorter than LEAST_PART_BYTES for that, and never longer than `most`.
    """
    if tasks < 2:  # noqa: PLR2004 - one task does parts one after the other anyway
        return most
    fair = -(-total // (PARTS_PER_TASK * tasks))
    return min(most, max(LEAST_PART_BYTES, -(-fair // CHUNK) * CHUNK))


def cuts(start: int, end: int, part_bytes: int = PART_BYTES) -> tuple[int, ...]:
    """Return the offsets at which a segment's range is divided into parts.

    A range of up to `part_bytes` stays whole. A longer one is divided into equal parts of about
    that size, at most MAX_PARTS. Cuts are at chunk boundaries, so no chunk belongs to two parts.
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
    """Return the plan of a copy into a new target, or of an append to an existing one.

    Args:
        request: the request.
        config: the first source's configuration.
        seen: the sources' segments, with bounds, in the order in which the store made them.
        append: whether the target exists and is appended to.

    Raises:
        SourceUnsupported: the source has so many tags that the target could not be marked. Or the
            segments after a scale event do not take each key exactly once, so that the target
            could not be scaled in the same way.
    """
    own = marks.plain(config)
    if not append:
        _check_tags(request, own)
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
        make_scope=request.make_scope,
        seal=request.seal,
        follow=request.follow,
    )
    _check_scaling(plan)
    return plan


def _check_tags(request: CopyRequest, config: StreamConfig) -> None:
    """Raise SourceUnsupported if a new target could not be marked beside the source's tags."""
    if len(config.tags) > marks.MOST_TAGS:
        raise SourceUnsupported(
            f"{request.origin} has {len(config.tags)} tags, and with those that Sluice marks a "
            f"target with, a store takes no more than {marks.MOST_TAGS}",
            field="spec.source.stream",
            remedy="Take tags off the source; nothing was made.",
        )


def _check_scaling(plan: StreamPlan) -> None:
    """Raise SourceUnsupported if no target could be scaled like the sources."""
    for number, active in enumerate(plan.active):
        if break_in(plan.segments[i].keys for i in active) is not None:
            raise SourceUnsupported(
                f"after scale event {number} the segments of {plan.origin} have gaps or share "
                "keys, so no stream can be scaled in the same way",
                field="spec.source.stream",
                remedy="Nothing was made. Please report this with what the store says of the "
                "stream's epochs.",
            )
