"""Extend a run's segments by the bytes or gaps that the next run adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.archive.manifest import Gap, ObjectStretch
from sluice.core.events.digest import chunks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.archive.manifest import ArchivedSegment, StoredObject


def grown(
    segment: ArchivedSegment,
    *,
    end: int,
    objects: Sequence[StoredObject],
    digests: Mapping[int, bytes],
    events: int | None,
    sealed: bool,
) -> ArchivedSegment:
    """Return a segment extended by the bytes that follow its end.

    Args:
        segment: the segment as the run before has it; empty if it is new.
        end: offset after the new bytes; the segment's own end if there are none.
        objects: the objects that hold the new bytes.
        digests: SHA-256 of the chunks that are new or longer than before, by number. If the run
            before ended within a chunk, its digest is over the whole chunk.
        events: number of events in the new bytes; None if they are not events.
        sealed: whether the segment takes no more bytes.
    """
    if end == segment.end:
        return segment.model_copy(update={"sealed": sealed})
    before = segment.stretches[-1] if segment.stretches else None
    if before is not None and before.end < segment.end:
        before = None  # a gap lies between the two
    start = before.start if before else segment.end
    known = {**(before.chunk_digests if before else {}), **digests}
    stretch = ObjectStretch(
        start=start,
        end=end,
        events=_sum(before, events),
        digests=b"".join(known[chunk] for chunk in chunks(start, end)).hex(),
        objects=(*(before.objects if before else ()), *objects),
    )
    kept = segment.stretches[:-1] if before else segment.stretches
    return segment.model_copy(update={"end": end, "sealed": sealed, "stretches": (*kept, stretch)})


def without(segment: ArchivedSegment, *, to: int, reason: str, run: int) -> ArchivedSegment:
    """Return a segment extended by a gap: bytes that cannot be archived any more.

    Args:
        segment: the segment as the run before has it; the gap begins at its end.
        to: offset after the gap.
        reason: the gap's reason, one CamelCase word.
        run: the number of the run that found the gap.
    """
    gap = Gap(start=segment.end, end=to, reason=reason, run=run)
    return segment.model_copy(update={"end": to, "gaps": (*segment.gaps, gap)})


def _sum(before: ObjectStretch | None, events: int | None) -> int | None:
    if before is None:
        return events
    return None if before.events is None or events is None else before.events + events
