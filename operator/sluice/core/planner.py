"""From a request and what was seen of the source to a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from sluice.core.digest import CHUNK
from sluice.core.model import Frozen, KeyRange, StreamConfig, StreamName, break_in
from sluice.core.plan import SegmentPlan, StreamPlan
from sluice.errors import SourceUnsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

PART_BYTES = 256 << 20
"""Segments longer than this are divided, unless a request says otherwise."""

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


class CopyRequest(Frozen):
    """What somebody wants copied, with names resolved and nothing observed yet.

    Attributes:
        copy_id: the copy's identity, 32 hexadecimal digits.
        source: the stream to copy.
        target: the stream to make.
        ranges: what of the source, one after the other.
        verify: see StreamPlan.
        part_bytes: segments longer than this are divided into parts.
    """

    copy_id: str
    source: StreamName
    target: StreamName
    ranges: tuple[Range, ...] = (Range(),)
    verify: bool = True
    part_bytes: int = Field(default=PART_BYTES, ge=CHUNK)


class SeenSegment(NamedTuple):
    """A source segment at the moment the bounds are taken; see SegmentPlan for the fields."""

    id: int
    keys: KeyRange
    generation: int
    range: int | None
    start: int
    end: int
    created: int
    events: int | None


def cuts(start: int, end: int, part_bytes: int = PART_BYTES) -> tuple[int, ...]:
    """Where a segment's range is divided into parts.

    Up to `part_bytes` stay whole. Longer ranges are divided into equal parts of about that size, at
    most MAX_PARTS, at chunk boundaries, so that no chunk belongs to two parts.
    """
    parts = min(-(-(end - start) // part_bytes), MAX_PARTS)
    edges = {round((start + (end - start) * i / parts) / CHUNK) * CHUNK for i in range(1, parts)}
    return tuple(sorted(edge for edge in edges if start < edge < end))


def plan_stream(
    request: CopyRequest, *, config: StreamConfig, seen: Sequence[SeenSegment]
) -> StreamPlan:
    """The plan for a new target.

    Args:
        request: what is wanted.
        config: the source's configuration.
        seen: the source's segments, with bounds, in the order in which the store made them.

    Raises:
        SourceUnsupported: a generation does not take the keys of those that it follows on, so that
            the target could not be scaled in the same way.
    """
    segments = sorted(seen, key=lambda segment: segment.keys.low)
    segments.sort(key=lambda segment: (segment.generation, segment.generation and segment.id))
    plan = StreamPlan(
        copy_id=request.copy_id,
        source=request.source,
        target=request.target,
        segments=tuple(
            SegmentPlan(
                **segment._asdict(), cuts=cuts(segment.start, segment.end, request.part_bytes)
            )
            for segment in segments
        ),
        config=config,
        verify=request.verify,
    )
    for number, active in enumerate(plan.active):
        if break_in(plan.segments[i].keys for i in active) is not None:
            raise SourceUnsupported(
                f"the segments of {request.source} after its scale event {number} have gaps or "
                "share keys, so no stream can be scaled in the same way",
                field="spec.source.stream",
                remedy="Nothing was made. Please report this with what the store says of the "
                "stream's epochs.",
            )
    return plan
