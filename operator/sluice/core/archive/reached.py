"""Count the bytes that a run has put so far, for processes that only watch it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.core.archive.notes import Note
    from sluice.core.archive.plan import ArchivePlan


class Reached:
    """A count of the bytes of a plan that are put or lost, by the run's notes.

    It keeps only the bounds of these bytes, and no objects. So it takes little memory even for a
    long run.

    Args:
        plan: the run's plan.

    Attributes:
        plan: the run's plan.
    """

    def __init__(self, plan: ArchivePlan) -> None:
        self.plan = plan
        # For each segment: where stretches of such bytes begin, and where they end.
        self._starts: defaultdict[int, list[int]] = defaultdict(list)
        self._ends: defaultdict[int, list[int]] = defaultdict(list)

    @property
    def bytes(self) -> int:
        """The number of bytes."""
        return sum(
            sum(self._ends[place]) - sum(starts) for place, starts in [*self._starts.items()]
        )

    def take(self, note: Note) -> None:
        """Add the bytes of a note; a note about another plan is ignored."""
        if note.of != self.plan.hash:
            return
        for put in note.put:
            self._add(put.segment, put.start, put.end)
        for gap in note.gaps:
            self._add(gap.segment, gap.start, gap.end)

    def _add(self, place: int, start: int, end: int) -> None:
        """Add bytes [start, end) of a segment, which may be known already."""
        segment = self.plan.segments[place]
        start, end = max(start, segment.begin), min(end, segment.end)
        if start >= end:
            return
        starts, ends = self._starts[place], self._ends[place]
        first, last = bisect_left(ends, start), bisect_right(starts, end)
        start = min([start, *starts[first:last]])
        end = max([end, *ends[first:last]])
        starts[first:last], ends[first:last] = [start], [end]
