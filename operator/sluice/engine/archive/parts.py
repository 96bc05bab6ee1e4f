"""Divide the bytes of segments among tasks that put objects side by side.

In the format Segments, objects end at multiples of a fixed size. So tasks can put parts of one
segment at the same time, each from such an offset on. In the other formats an object begins with an
event, and events can only be found by reading all bytes in front of them.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from sluice.archive.formats.piece import OBJECT
from sluice.core.archive.names import Format
from sluice.engine.tasks.scheduler import WAVE_SLICES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.core.archive.standing import SegmentStanding
    from sluice.engine.tasks.limits import Limits


def share(size: int, slots: int, limits: Limits) -> int:
    """Return the most bytes of a part, so that `size` bytes give each slot a part."""
    return max(1, min(limits.slice_bytes, -(-size // slots)))


def parts(
    segments: Sequence[SegmentStanding], form: Format, limits: Limits, slots: int
) -> list[list[tuple[int, int]]]:
    """Return the next parts of each segment, at most as many as fill a wave.

    Args:
        segments: how far each segment is.
        form: the archive's format.
        limits: what a wave may use.
        slots: how many tasks run at once.

    Returns:
        For each segment, the offsets (start, end) of its parts.
    """
    if form is not Format.SEGMENTS:
        most = limits.slice_bytes
        return [[(one.at, min(one.at + most, one.plan.end))] for one in segments]
    left = sum(end - start for one in segments for start, end in one.missing)
    size = share(left, slots, limits)
    most = WAVE_SLICES * slots
    return [list(islice(_cut(one, size), 1 if one.misled else most)) for one in segments]


def _cut(segment: SegmentStanding, size: int) -> Iterator[tuple[int, int]]:
    """Yield the missing bytes in parts of about `size` bytes, which end where objects do."""
    for start, end in segment.missing:
        at = start
        while at < end:
            edge = max((at + size) // OBJECT, at // OBJECT + 1) * OBJECT
            yield at, min(edge, end)
            at = edge
