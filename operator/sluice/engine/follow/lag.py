"""Measure how far a copy is that follows its source, and say so in place of its driver.

Only metadata is read, in a few pipelined questions, for any number of segments. The source's
lengths are read before the positions: bytes that come in between are not behind.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sluice.core.follow.catching_up import plan_of
from sluice.core.follow.course import Later, course_of, reach_of
from sluice.core.follow.lag import Followed, Samples
from sluice.core.follow.position import position_of
from sluice.core.follow.rows import proved, row_of
from sluice.core.scope.progress import Progress
from sluice.core.values import identity
from sluice.core.values.wish import SealClaim
from sluice.engine.copy.progress import staged_bytes
from sluice.engine.follow.observe import target_name
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.errors import StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.events.chain import Link
    from sluice.core.follow.course import Course
    from sluice.core.follow.position import Position
    from sluice.core.follow.rows import Row
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import Topology


class FollowWatch:
    """Measures the progress of a copy that follows its source.

    It has to be asked again and again: seconds follow from what it was told before.

    Args:
        plan: the plan of the stream.
        source: the store of the source.
        target: the target store.
        clock: gives seconds, from any time on.
    """

    def __init__(
        self,
        plan: StreamPlan,
        source: Source,
        target: Store,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._source = source
        self._target = target
        self._clock = clock
        self._journal = CopyJournal(target, plan.copy_id, plan.target, plan)
        self._live: str | None = None
        self._verified: dict[int, Link] = {}
        self._behind = Samples[int]()
        self._unproved = Samples[int]()

    def measure(self) -> Progress:
        """Measure the progress now.

        Raises:
            JournalDamaged: the journal cannot be read.
            BackendError: a store refused a call or did not answer it.
        """
        journal = self._journal.load()
        if journal is None:
            return self._without_journal()
        if not self._is_live(journal):
            done, _ = staged_bytes(self._plan, self._journal, self._target) or (0, False)
            return Progress(done, self._plan.bytes, published=False, follow=_begun(journal))
        follow = self._followed(journal)
        return Progress(
            follow.position, follow.position + follow.lag_bytes, published=False, follow=follow
        )

    def _without_journal(self) -> Progress:
        """Return the progress of a copy that is not begun, or done."""
        stream = self._target.describe(self._plan.target)
        tags = () if stream is None else stream.config.tags
        complete = identity.completed(tags, self._plan.copy_id) is not None
        size = self._plan.bytes
        return Progress(size if complete else 0, size, published=complete)

    def _is_live(self, journal: Journal) -> bool:
        """Tell whether all planned bytes are readable. They stay so for as long as the journal."""
        if self._live == self._journal.name:
            return True
        self._verified.clear()
        if is_live(journal, self._target):
            self._live = self._journal.name
        return self._live == self._journal.name

    def _followed(self, journal: Journal) -> Followed:
        plan, trail, now = journal.current, journal.trail, self._clock()
        course = course_of(journal, lambda index: self._proved(journal, index))
        infos = self._source.infos(source_names(plan, course, self._source))
        ended = all(info is None or info.sealed for info in infos)
        is_behind = any(info is None or info.sealed for info in infos)
        later = later_segments(plan, course, self._source) if is_behind else []
        reach = reach_of(course, infos, positions(plan, course, self._target), later)
        return Followed(
            live=True,
            position=reach.position,
            proved=reach.proved,
            lag_bytes=reach.lag,
            lag=self._behind.read(now, reach.ends, reach.has),
            unproved=self._unproved.read(now, reach.ends, reach.has_compared),
            segments=len(course.ways),
            ended=course.ended,
            sealed=ended and not later and is_sealed(plan, self._source),
            stopped=trail.stopped,
            wish=trail.wish,
            claims=_claims(journal),
            catching=self._catching(journal),
        )

    def _catching(self, journal: Journal) -> tuple[int, int] | None:
        """Return the staged bytes of the catch-up that goes on, and all of them."""
        begun = journal.trail.catch_up
        if begun is None or not journal.trail.catches_up:
            return None
        plan = plan_of(journal.plan, begun)
        log = CopyJournal(self._target, plan.copy_id, plan.target, plan)
        done, _ = staged_bytes(plan, log, self._target) or (0, False)
        return done, plan.bytes

    def _proved(self, journal: Journal, index: int) -> Link:
        """Return up to where a segment was compared. Digests of planned bytes are linked once.

        The journal may have been read before the driver recorded the last of them and published, so
        less than all of them is not remembered.
        """
        if index in journal.trail.proved:
            return proved(journal, index)
        known = self._verified.get(index)
        if known is None:
            known = proved(journal, index)
            if known.offset >= journal.current.segments[index].end:
                self._verified[index] = known
        return known


def _begun(journal: Journal) -> Followed:
    """Return what is known of a copy that is not live. A wish needs a target in the journal."""
    wish = None if journal.target is None else journal.trail.wish
    return Followed(wish=wish, claims=_claims(journal))


def _claims(journal: Journal) -> tuple[SealClaim, ...]:
    consent = journal.trail.consent
    return () if consent is None else (SealClaim(journal.plan.copy_id, *consent),)


def source_names(plan: StreamPlan, course: Course, source: Source) -> list[str]:
    """Return the full names of the segments of the source that are followed."""
    stream = plan.sources[0].stream
    return [source.segment_name(stream, way.segment.id) for way in course.ways]


def later_segments(plan: StreamPlan, course: Course, source: Source) -> list[Later]:
    """Return the segments of the source's scale events that the target does not mirror yet."""
    name = plan.sources[0].stream
    try:
        made = source.generations(name, [way.segment for way in course.ways])
    except StreamNotFound:
        return []
    ids = [one.id for some in made for one in some if one.id not in course.known]
    ids = list(dict.fromkeys(ids))
    infos = source.infos([source.segment_name(name, one) for one in ids])
    return [
        Later(one, info.start, info.length)
        for one, info in zip(ids, infos, strict=True)
        if info is not None
    ]


def is_sealed(plan: StreamPlan, source: Source) -> bool:
    """Tell whether the source takes no more events."""
    described = source.describe(plan.sources[0].stream)
    return described is not None and described.sealed


def is_live(journal: Journal, target: Source) -> bool:
    """Tell whether all planned bytes of a copy are readable in its target.

    Publishing a segment sets its position, and the latest generation is published last. Segments of
    earlier ones may be gone by the target's retention.

    Args:
        journal: the copy's journal.
        target: the target store.
    """
    if journal.target is None:
        return False
    trail, plan = journal.trail, journal.plan
    if trail.grown or trail.stopped is not None:
        return True
    rows = [row_of(journal, index) for index in plan.active[-1]]
    return None not in _places(plan, rows, target)


def _places(plan: StreamPlan, rows: Sequence[Row], target: Source) -> list[Position | None]:
    """Return the positions of segments; None for one that has none yet."""
    asked = [
        (
            target_name(plan, row, target),
            identity.position_attribute(plan.copy_id, row.segment.id),
        )
        for row in rows
    ]
    return [position_of(value) for value in target.attributes(asked)]


def positions_asked(plan: StreamPlan, course: Course, target: Topology) -> list[tuple[str, UUID]]:
    """Return the attributes that say how far the segments are followed."""
    return [
        (
            target.segment_name(plan.target, way.target),
            identity.position_attribute(plan.copy_id, way.segment.id),
        )
        for way in course.ways
    ]


def positions(plan: StreamPlan, course: Course, target: Source) -> list[int | None]:
    """Return up to which source offset each segment is followed; None while that is unset."""
    found = map(position_of, target.attributes(positions_asked(plan, course, target)))
    return [None if place is None else place.offset for place in found]
