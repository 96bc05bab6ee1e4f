"""Where the bytes of a followed segment lie in the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sluice.core.events.chain import Link, linked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.core.copy.follow_progress import Loss
    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import SegmentPlan


class Stretch(NamedTuple):
    """Bytes [start, end) of a source's segment, which lie at start + shift in the target's."""

    start: int
    end: int
    shift: int


@dataclass(frozen=True, slots=True)
class Row:
    """A source's segment and the target's segment for it.

    Attributes:
        index: the index of the segment in the plan.
        segment: its plan.
        target: the id of the target's segment.
        lost: the bytes that are left out behind the plan, in order.
        plain: whether it has plain bytes in place of events.
    """

    index: int
    segment: SegmentPlan
    target: int
    lost: tuple[Loss, ...] = ()
    plain: bool = False

    def shift(self, offset: int) -> int:
        """Return the difference between target and source offsets, from a source offset on."""
        left_out = sum(loss.end - loss.start for loss in self.lost if loss.end <= offset)
        return -self.segment.start - left_out

    def before(self, offset: int, count: int) -> int | None:
        """Return where the `count` bytes before a source offset begin.

        None if bytes among them are left out in the target.
        """
        begin = offset - count
        apart = any(loss.end > begin and loss.start < offset for loss in self.lost)
        return None if apart or begin < self.segment.start else begin

    def stretches(self, start: int, end: int) -> Iterator[Stretch]:
        """Yield the stretches of [start, end) that the target has. `start` is not lost."""
        at = start
        for loss in self.lost:
            if at <= loss.start < end:
                if at < loss.start:
                    yield Stretch(at, loss.start, self.shift(at))
                at = loss.end
        if at < end:
            yield Stretch(at, end, self.shift(at))


def row_of(journal: Journal, index: int) -> Row:
    """Return the row of a segment of the plan, whose target's segments are recorded."""
    bound = journal.target or ()
    lost = journal.trail.lost.get(index, ())
    segments = journal.current.segments
    return Row(index, segments[index], bound[index], lost, _is_plain(journal, segments, index))


def _is_plain(journal: Journal, segments: Sequence[SegmentPlan], index: int) -> bool:
    """Tell whether a segment has plain bytes in place of events.

    When planned bytes are verified, their events are counted, and recorded if the bytes are events.
    A segment without planned bytes has what all segments with planned bytes have; events, if there
    are none, or if these differ.
    """
    if segments[index].length:
        return index not in journal.events
    planned = (i for i in range(len(journal.plan.segments)) if segments[i].length)
    first = next(planned, None)
    return (
        first is not None
        and first not in journal.events
        and all(i not in journal.events for i in planned)
    )


def proved(journal: Journal, index: int) -> Link:
    """Return up to where the target's segment was compared with the source's.

    For the planned bytes, this is their verification.
    """
    recorded = journal.trail.proved.get(index)
    if recorded is not None:
        return recorded
    segment = journal.current.segments[index]
    link = linked(segment.start, segment.end, journal.known(index))
    return Link(segment.start) if link is None else link
