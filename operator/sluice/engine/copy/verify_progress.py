"""What a driver has verified so far of a segment that is staged whole.

It is remembered by the driver only: what lasts is the mark on the staged segment, and the number of
events in the journal, both written once all of it is done. Another driver begins again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.core.events.counting import CountedStretch, Recount, Total, add_up
from sluice.engine.copy.slices import VerifyResult, VerifySlice, verify_slices

if TYPE_CHECKING:
    from sluice.engine.rounds.slices import SliceResult


class Checking:
    """Verifies one segment, slice by slice."""

    def __init__(self) -> None:
        self._done: dict[int, CountedStretch] = {}

    def take(self, result: SliceResult) -> None:
        """Take in what came of a slice, if nothing went wrong."""
        work = result.slice
        if (
            result.error is None
            and isinstance(work, VerifySlice)
            and isinstance(result, VerifyResult)
        ):
            self._done[work.start] = CountedStretch(work.start, work.end, result.counted)

    def left(self, template: VerifySlice, most: int) -> list[VerifySlice]:
        """The slices that are still to be done, of at most `most` bytes.

        Args:
            template: the verification of the whole segment.
            most: bytes.
        """
        pieces = verify_slices(template, most)
        left = [piece for piece in pieces if piece.start not in self._done]
        again = None if left or not template.count else add_up(self._done.values())
        if isinstance(again, Recount):
            start, end, _ = again.stretch
            left = [replace(template, start=start, end=end, compare=False, first=again.first)]
        return left

    def is_done(self, template: VerifySlice) -> bool:
        """Whether every byte was verified, and every event counted."""
        size = sum(stretch.end - stretch.start for stretch in self._done.values())
        if size != template.size:
            return False
        return not (template.count and isinstance(add_up(self._done.values()), Recount))

    @property
    def events(self) -> int | None:
        """The number of events, once all is done; None where they are none, or not counted."""
        total = add_up(self._done.values())
        return total.events if self._done and isinstance(total, Total) else None
