"""Measure how far a copy is that follows its source, and say so in place of its driver.

Only metadata is read, in a few pipelined questions, for any number of segments. The source's
lengths are read before the positions: bytes that come in between are not behind.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from sluice.core.follow.lag import Followed, Samples
from sluice.core.follow.position import position_of
from sluice.core.follow.rows import proved, row_of
from sluice.core.scope.progress import Progress
from sluice.core.values import identity
from sluice.core.values.model import Segment
from sluice.engine.copy.progress import staged_bytes
from sluice.engine.follow.observe import source_name, target_name
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.errors import StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.events.chain import Link
    from sluice.core.follow.position import Position
    from sluice.core.follow.rows import Row
    from sluice.stores.base import Source, Store


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
        self._behind = Samples()
        self._unproved = Samples()

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
        tail = plan.active[-1]
        rows = [row_of(journal, index) for index in tail]
        infos = self._source.infos([source_name(plan, row, self._source) for row in rows])
        ended = all(info is None or info.sealed for info in infos)
        later = self._later(plan) if any(info is None or info.sealed for info in infos) else []
        places = _positions(plan, rows, self._target)
        followed = {row.segment.id: place for row, place in zip(rows, places, strict=True)}
        links = [self._proved(journal, index) for index in range(len(plan.segments))]
        compared = {row.segment.id: links[row.index].offset for row in rows}
        closed = {plan.segments[index].id for index in range(len(plan.segments))} - set(followed)
        ends = {
            row.segment.id: info.length
            for row, info in zip(rows, infos, strict=True)
            if info is not None
        }
        ends |= {one.id: one.length for one in later if one.length > one.start}
        missing = sum(
            max(0, ends[segment] - place) for segment, place in followed.items() if segment in ends
        )
        lost = {
            place: sum(end - start for start, end in all_) for place, all_ in trail.lost.items()
        }
        return Followed(
            live=True,
            position=sum(
                followed.get(one.id, links[index].offset) - one.start - lost.get(index, 0)
                for index, one in enumerate(plan.segments)
            ),
            proved=sum(
                max(0, links[index].offset - one.start - lost.get(index, 0))
                for index, one in enumerate(plan.segments)
            ),
            lag_bytes=missing + sum(one.length - one.start for one in later),
            lag=self._behind.read(
                now, ends, lambda one, end: one in closed or followed.get(one, -1) >= end
            ),
            unproved=self._unproved.read(
                now, ends, lambda one, end: one in closed or compared.get(one, -1) >= end
            ),
            segments=len(rows),
            ended=len(closed),
            sealed=ended and not later and self._is_sealed(),
            stopped=trail.stopped,
            wish=trail.wish,
        )

    def _proved(self, journal: Journal, index: int) -> Link:
        """Return up to where a segment was compared. Digests of planned bytes are linked once."""
        if index in journal.trail.proved:
            return proved(journal, index)
        if index not in self._verified:
            self._verified[index] = proved(journal, index)
        return self._verified[index]

    def _later(self, plan: StreamPlan) -> list[_Later]:
        """Return the segments of the source's scale events that the target does not mirror yet."""
        name, known = self._plan.sources[0].stream, {segment.id for segment in plan.segments}
        tail = (plan.segments[index] for index in plan.active[-1])
        since = [Segment(id=segment.id, keys=segment.keys) for segment in tail]
        try:
            made = self._source.generations(name, since)
        except StreamNotFound:
            return []
        ids = list(dict.fromkeys(one.id for some in made for one in some if one.id not in known))
        infos = self._source.infos([self._source.segment_name(name, one) for one in ids])
        return [
            _Later(one, info.start, info.length)
            for one, info in zip(ids, infos, strict=True)
            if info is not None
        ]

    def _is_sealed(self) -> bool:
        described = self._source.describe(self._plan.sources[0].stream)
        return described is not None and described.sealed


def _begun(journal: Journal) -> Followed:
    """Return what is known of a copy that is not live. A wish needs a target in the journal."""
    return Followed(wish=None if journal.target is None else journal.trail.wish)


class _Later(NamedTuple):
    """A segment of the source that is not mirrored yet, with its bounds."""

    id: int
    start: int
    length: int


def is_live(journal: Journal, target: Store) -> bool:
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


def _places(plan: StreamPlan, rows: Sequence[Row], target: Store) -> list[Position | None]:
    """Return the positions of segments; None for one that has none yet."""
    asked = [
        (
            target_name(plan, row, target),
            identity.position_attribute(plan.copy_id, row.segment.id),
        )
        for row in rows
    ]
    return [position_of(value) for value in target.attributes(asked)]


def _positions(plan: StreamPlan, rows: Sequence[Row], target: Store) -> list[int]:
    """Return up to which source offset each segment is followed: its start, while that is unset."""
    return [
        row.segment.start if place is None else place.offset
        for row, place in zip(rows, _places(plan, rows, target), strict=True)
    ]
