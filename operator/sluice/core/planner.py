"""From a request and what was seen of the source to a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from sluice.core.digest import CHUNK
from sluice.core.model import Frozen, KeyRange, StreamConfig, StreamName
from sluice.core.plan import SegmentPlan, StreamPlan
from sluice.errors import SourceUnsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

PART_BYTES = 256 << 20
"""Segments longer than this are divided, unless a request says otherwise."""

MAX_PARTS = 64
"""More parts than this do not make a segment faster; a part just gets longer."""

_UNIFORM = 1e-9


class CopyRequest(Frozen):
    """What somebody wants copied, with names resolved and nothing observed yet.

    Attributes:
        copy_id: the copy's identity, 32 hexadecimal digits.
        source: the stream to copy.
        target: the stream to make.
        verify: see StreamPlan.
        part_bytes: segments longer than this are divided into parts.
    """

    copy_id: str
    source: StreamName
    target: StreamName
    verify: bool = True
    part_bytes: int = Field(default=PART_BYTES, ge=CHUNK)


class SeenSegment(NamedTuple):
    """A source segment at the moment the bounds are taken; see SegmentPlan for the fields."""

    id: int
    keys: KeyRange
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
    request: CopyRequest, *, config: StreamConfig, scaled: bool, seen: Sequence[SeenSegment]
) -> StreamPlan:
    """The plan for a new target.

    Args:
        request: what is wanted.
        config: the source's configuration.
        scaled: whether the readable part of the source spans scale events.
        seen: the source's segments, with bounds.

    Raises:
        SourceUnsupported: the source was scaled, or its key ranges are not uniform.
    """
    segments = sorted(seen, key=lambda segment: segment.keys.low)
    if scaled or not _uniform([segment.keys for segment in segments]):
        raise SourceUnsupported(
            f"{request.source} was scaled: its readable data span several epochs or its segments "
            "have unequal key ranges, and this version copies streams of one epoch",
            field="spec.source.stream",
            remedy="Copy a stream that was not scaled; nothing was made.",
        )
    return StreamPlan(
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


def _uniform(ranges: Sequence[KeyRange]) -> bool:
    """Whether the ranges are those a store gives a new stream: equal parts of [0, 1)."""
    count = len(ranges)
    return all(
        abs(keys.low - i / count) < _UNIFORM and abs(keys.high - (i + 1) / count) < _UNIFORM
        for i, keys in enumerate(ranges)
    )
