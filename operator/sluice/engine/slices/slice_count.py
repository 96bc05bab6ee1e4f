"""Count the events of a slice that verifies, and say which error bytes that are no events are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.events.counting import Counted, StretchCounter
from sluice.errors import (
    CutInsideEvent,
    EventsDamaged,
    IntegrityError,
    SluiceError,
    SourceTruncated,
)

if TYPE_CHECKING:
    from sluice.engine.slices.slices import VerifySlice


class Counting:
    """A counter of a slice's events. Bytes that are no events are an error if `strict` is set."""

    def __init__(self, work: VerifySlice) -> None:
        self._work = work
        self._counter = StretchCounter(work.start, work.end, work.limit, work.first)
        self._error: SluiceError | None = None

    @property
    def bounds(self) -> tuple[int, int]:
        """The bytes to read: none where an event of the slice before covers the whole slice."""
        return min(self._counter.begin, self._counter.reach), self._counter.reach

    def feed(self, block: memoryview) -> None:
        """Count events in the next bytes. Keep an error until `finish`."""
        if self._error is None:
            try:
                self._counter.feed(block)
            except EventsDamaged as error:
                self._error = _damaged(self._work, error.message)

    def finish(self) -> Counted | None:
        """Return the count; without a number where the bytes are no events and that is no error.

        Raises:
            EventsDamaged, CutInsideEvent, SourceTruncated, IntegrityError: the bytes are no events,
                and the slice is strict.
        """
        if self._error is None:
            try:
                return self._counter.finish()
            except EventsDamaged as error:
                self._error = _inside(self._work, error.message)
        if self._work.strict:
            raise self._error
        return Counted(self._counter.begin, None, self._work.limit)


def _damaged(work: VerifySlice, what: str) -> SluiceError:
    """Return the error for bytes that are no events: a bound inside an event, or damage."""
    if work.range is not None or work.truncated:
        return _inside(work, what)
    return EventsDamaged(f"in {work.source}, {what}")


def _inside(work: VerifySlice, what: str) -> SluiceError:
    """Return the error for a bound that lies inside an event."""
    what = f"in {work.source}, {what}"
    if work.truncated:
        return SourceTruncated(
            f"{what}; it was truncated to {work.origin} while it was copied, inside an event",
            remedy="Truncate the source at the end of an event, then run the copy again.",
        )
    if work.range is not None:
        bounds = f"of offsets {work.origin} and {work.limit} one is inside an event"
        return CutInsideEvent(f"{what}; {bounds}", field=f"spec.source.ranges[{work.range}]")
    remedy = "Abort the copy and run it again: the bounds are taken anew."
    return IntegrityError(what, remedy=remedy)
