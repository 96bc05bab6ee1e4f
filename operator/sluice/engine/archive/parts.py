"""How the bytes of segments are divided among tasks that put them side by side.

Of the format Segments an object begins wherever the one before it ends, and that is at a multiple
of its size. So parts of one segment are put at the same time, each from such a place on. In the
other formats an object begins with an event, and nobody knows where one does before all that is in
front of it was read.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from sluice.archive.formats.piece import OBJECT
from sluice.core.archive.names import Format
from sluice.engine.rounds.dispatch import ROUND_SLICES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.core.archive.standing import SegmentStanding
    from sluice.engine.rounds.limits import Limits


def share(size: int, slots: int, limits: Limits) -> int:
    """The most bytes of a part: few enough that each slot gets one, of so many bytes in all."""
    return max(1, min(limits.slice_bytes, -(-size // slots)))


def parts(
    segments: Sequence[SegmentStanding], form: Format, limits: Limits, slots: int
) -> list[list[tuple[int, int]]]:
    """The next parts of each segment, at most as many as fill a round: where each begins and ends.

    Args:
        segments: how far they are.
        form: how they are archived.
        limits: what a round may use.
        slots: tasks at once.
    """
    if form is not Format.SEGMENTS:
        most = limits.slice_bytes
        return [[(one.at, min(one.at + most, one.plan.end))] for one in segments]
    left = sum(end - start for one in segments for start, end in one.missing)
    size = share(left, slots, limits)
    most = ROUND_SLICES * slots
    return [list(islice(_cut(one, size), 1 if one.misled else most)) for one in segments]


def _cut(segment: SegmentStanding, size: int) -> Iterator[tuple[int, int]]:
    """What is missing, in parts of about so many bytes, at least an object each."""
    for start, end in segment.missing:
        at = start
        while at < end:
            edge = max((at + size) // OBJECT, at // OBJECT + 1) * OBJECT
            yield at, min(edge, end)
            at = edge
