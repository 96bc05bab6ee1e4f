"""What a run adds to the segments of the run before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.archive.manifest import Gap, Stretch
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
    """A segment with the bytes that follow its end.

    Args:
        segment: as the run before has it; one that is new is empty.
        end: offset after the last one of the new bytes; the segment's own where there are none.
        objects: that hold them.
        digests: SHA-256 of the chunks that are new or longer than before, by number. A chunk of
            which the run before has a beginning is hashed as a whole.
        events: in the new bytes; None where they are none.
        sealed: whether the segment takes no more bytes.
    """
    if end == segment.end:
        return segment.model_copy(update={"sealed": sealed})
    before = segment.stretches[-1] if segment.stretches else None
    if before is not None and before.end < segment.end:
        before = None  # a gap lies between the two
    start = before.start if before else segment.end
    known = {**(before.chunk_digests if before else {}), **digests}
    stretch = Stretch(
        start=start,
        end=end,
        events=_sum(before, events),
        digests=b"".join(known[chunk] for chunk in chunks(start, end)).hex(),
        objects=(*(before.objects if before else ()), *objects),
    )
    kept = segment.stretches[:-1] if before else segment.stretches
    return segment.model_copy(update={"end": end, "sealed": sealed, "stretches": (*kept, stretch)})


def without(segment: ArchivedSegment, *, to: int, reason: str, run: int) -> ArchivedSegment:
    """A segment of which the bytes from its end up to an offset cannot be archived any more.

    Args:
        segment: as the run before has it.
        to: offset of the first byte that is there.
        reason: why, one CamelCase word.
        run: that found it.
    """
    gap = Gap(start=segment.end, end=to, reason=reason, run=run)
    return segment.model_copy(update={"end": to, "gaps": (*segment.gaps, gap)})


def _sum(before: Stretch | None, events: int | None) -> int | None:
    if before is None:
        return events
    return None if before.events is None or events is None else before.events + events
