"""Keep track of what a driver has verified of a staged segment.

Bytes are verified by the task that stages them, or by a task later on. Only this driver knows it.
When a whole segment is verified, the number of events goes into the journal, and the mark onto the
staged segment. Until then, another driver begins again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.core.events.counting import CountedStretch, StretchToRecount, Total, add_up
from sluice.engine.slices.slices import CopyResult, VerifyResult, VerifySlice, verify_slices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.engine.tasks.slices import SliceResult


class Checking:
    """The verification of one segment, slice by slice."""

    def __init__(self) -> None:
        self._done: dict[int, CountedStretch] = {}

    def take(self, result: SliceResult) -> None:
        """Add the stretches that a slice has verified. An error of the slice is not about these."""
        work = result.slice
        if isinstance(result, CopyResult):
            for stretch in result.verified:
                self._done[stretch.start] = stretch
        elif (
            result.error is None
            and isinstance(work, VerifySlice)
            and isinstance(result, VerifyResult)
        ):
            self._done[work.start] = CountedStretch(work.start, work.end, result.counted)

    def left(self, template: VerifySlice, most: int) -> list[VerifySlice]:
        """Return the slices that are left to do, then those whose events are to be counted again.

        Args:
            template: the verification of the whole segment.
            most: most bytes of a slice.
        """
        left = [
            piece
            for start, end in self._gaps(template.start, template.end)
            for piece in verify_slices(
                replace(
                    template,
                    start=start,
                    end=end,
                    first=template.first if start == template.start else None,
                ),
                most,
            )
        ]
        again = None if left or not template.count else add_up(self._done.values())
        if isinstance(again, StretchToRecount):
            start, end, _ = again.stretch
            left = [replace(template, start=start, end=end, compare=False, first=again.first)]
        return left

    def _gaps(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Return the stretches of [start, end) that are not verified."""
        for stretch in sorted(self._done.values()):
            if start < stretch.start:
                yield start, stretch.start
            start = max(start, stretch.end)
        if start < end:
            yield start, end

    def is_done(self, template: VerifySlice) -> bool:
        """Tell whether every byte is verified and every event counted."""
        return not self.left(template, template.size)

    @property
    def events(self) -> int | None:
        """The number of events once all is done; None if not counted, or bytes are no events."""
        total = add_up(self._done.values())
        return total.events if self._done and isinstance(total, Total) else None
