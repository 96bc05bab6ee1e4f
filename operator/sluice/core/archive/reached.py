"""How many bytes a run has got so far, for whoever only watches it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.core.archive.notes import Note
    from sluice.core.archive.plan import ArchivePlan


class Reached:
    """The bytes of a plan that are there, or lost, as notes of it tell.

    It remembers where these are, and no object: however long a run is, it takes little memory.

    Args:
        plan: the run.

    Attributes:
        plan: the run.
    """

    def __init__(self, plan: ArchivePlan) -> None:
        self.plan = plan
        # By segment: where stretches of such bytes begin, and where they end.
        self._starts: defaultdict[int, list[int]] = defaultdict(list)
        self._ends: defaultdict[int, list[int]] = defaultdict(list)

    @property
    def bytes(self) -> int:
        """How many there are."""
        return sum(
            sum(self._ends[place]) - sum(starts) for place, starts in [*self._starts.items()]
        )

    def take(self, note: Note) -> None:
        """Take in a note; one of another plan is left out."""
        if note.of != self.plan.hash:
            return
        for put in note.put:
            self._add(put.segment, put.start, put.end)
        for gap in note.gaps:
            self._add(gap.segment, gap.start, gap.end)

    def _add(self, place: int, start: int, end: int) -> None:
        """Take in bytes [start, end), which may be known already."""
        segment = self.plan.segments[place]
        start, end = max(start, segment.begin), min(end, segment.end)
        if start >= end:
            return
        starts, ends = self._starts[place], self._ends[place]
        first, last = bisect_left(ends, start), bisect_right(starts, end)
        start = min([start, *starts[first:last]])
        end = max([end, *ends[first:last]])
        starts[first:last], ends[first:last] = [start], [end]
