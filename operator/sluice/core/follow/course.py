"""Tell how far a copy is that follows its source, from its journal and from a few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.core.follow.rows import row_of
from sluice.core.values.model import Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.events.chain import Link
    from sluice.core.values.model import SegmentInfo


class Way(NamedTuple):
    """A segment of the source that is followed.

    Attributes:
        segment: the segment.
        target: the id of the target's segment.
        start: the source offset at which it begins in the target.
        compared: the source offset up to which the target was compared.
        lost: bytes from there on that are left out.
    """

    segment: Segment
    target: int
    start: int
    compared: int
    lost: int


class Course(NamedTuple):
    """How far a copy is by its journal alone. How far its segments are followed is elsewhere.

    Attributes:
        ways: the segments that are followed.
        whole: bytes of the segments that have ended.
        proved: how many of those were compared.
        ended: how many segments have ended.
        known: the ids of all segments.
    """

    ways: tuple[Way, ...]
    whole: int
    proved: int
    ended: int
    known: frozenset[int]


def course_of(journal: Journal, link: Callable[[int], Link]) -> Course:
    """Return how far a copy is by its journal.

    Args:
        journal: the journal of a copy whose planned bytes are all readable.
        link: gives up to where a segment was compared, by its index.
    """
    plan, lost = journal.current, journal.trail.lost
    active = set(plan.active[-1])
    ways: list[Way] = []
    whole = proved = 0
    for index, segment in enumerate(plan.segments):
        left_out = sum(loss.end - loss.start for loss in lost.get(index, ()))
        end = link(index).offset
        if index not in active:
            whole += end - segment.start - left_out
            proved += max(0, end - segment.start - left_out)
    for index in plan.active[-1]:
        row = row_of(journal, index)
        left_out = sum(loss.end - loss.start for loss in row.lost)
        source = Segment(id=row.segment.id, keys=row.segment.keys)
        ways.append(Way(source, row.target, row.segment.start, link(index).offset, left_out))
    known = frozenset(segment.id for segment in plan.segments)
    return Course(tuple(ways), whole, proved, len(known) - len(ways), known)


class Later(NamedTuple):
    """A segment of the source that is not mirrored yet, with its bounds."""

    id: int
    start: int
    length: int


class Reach(NamedTuple):
    """How far a copy is, by one look.

    Attributes:
        course: what its journal says.
        followed: up to which source offset each segment is followed, by its id.
        compared: up to which source offset each segment was compared, by its id.
        ends: at which offset each of the source's segments ends.
        lag: bytes that the source has and the target has not.
    """

    course: Course
    followed: Mapping[int, int]
    compared: Mapping[int, int]
    ends: Mapping[int, int]
    lag: int

    @property
    def position(self) -> int:
        """Bytes of the source that the target has."""
        course = self.course
        return course.whole + sum(
            self.followed[way.segment.id] - way.start - way.lost for way in course.ways
        )

    @property
    def proved(self) -> int:
        """How many of them were compared."""
        course = self.course
        return course.proved + sum(
            max(0, way.compared - way.start - way.lost) for way in course.ways
        )

    def has(self, segment: int, end: int) -> bool:
        """Tell whether the target has a segment's bytes up to an offset."""
        at = self.followed.get(segment)
        return segment in self.course.known if at is None else at >= end

    def has_compared(self, segment: int, end: int) -> bool:
        """Tell whether the target's bytes of a segment were compared up to an offset."""
        at = self.compared.get(segment)
        return segment in self.course.known if at is None else at >= end


def reach_of(
    course: Course,
    infos: Sequence[SegmentInfo | None],
    places: Sequence[int | None],
    later: Sequence[Later],
) -> Reach:
    """Return how far a copy is.

    Args:
        course: what its journal says.
        infos: the source's segments in the order of `course.ways`; None for one that is gone.
        places: the source offsets up to which they are followed; None for one without any byte.
        later: the source's segments that the target does not mirror yet.
    """
    ways = course.ways
    followed = {
        way.segment.id: way.start if place is None else place
        for way, place in zip(ways, places, strict=True)
    }
    ends = {
        way.segment.id: info.length
        for way, info in zip(ways, infos, strict=True)
        if info is not None
    }
    lag = sum(max(0, end - followed[segment]) for segment, end in ends.items())
    lag += sum(one.length - one.start for one in later)
    ends |= {one.id: one.length for one in later if one.length > one.start}
    compared = {way.segment.id: way.compared for way in ways}
    return Reach(course, followed, compared, ends, lag)
