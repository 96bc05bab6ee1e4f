"""Name the staging segments of a copy, and carry out the steps from parts to a target segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy import journal
from sluice.core.copy.next_staging_step import seams
from sluice.core.values import identity
from sluice.errors import NoSuchSegment, StoreUnavailable
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.copy.plan import Part, StreamPlan
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Store


class Staged:
    """The staging segments of one stream's copy.

    Args:
        plan: what is copied.
        copy_journal: its journal, loaded.
        target: the target store.
        salt: returns a segment's salt of staging names, which differs between attempts.
    """

    def __init__(
        self, plan: StreamPlan, copy_journal: CopyJournal, target: Store, salt: Callable[[int], str]
    ) -> None:
        self._plan = plan
        self._journal = copy_journal
        self._target = target
        self._salt = salt

    @property
    def journal(self) -> journal.Journal:
        """The journal as it was read last. Raises NoSuchSegment if it is gone."""
        loaded = self._journal.loaded
        if loaded is None:
            raise NoSuchSegment("the copy's journal is gone", segment=self._journal.name)
        return loaded

    @property
    def bound(self) -> tuple[int, ...]:
        """Ids of the target's segments, in the plan's order. Raises StoreUnavailable if unknown."""
        bound = self.journal.target
        if bound is None:
            raise StoreUnavailable(f"{self._plan.target} is not bound yet")
        return bound

    def name(self, index: int, part: int) -> str:
        """Return the full name of a part's staging segment."""
        key = self.key(index, part)
        return self._target.staging_name(self._plan.target, self.bound[index], key)

    def key(self, index: int, part: int) -> str:
        """Return the key of a part's staging segment."""
        return identity.staging_key(self._plan.copy_id, index, part, self._salt(index))

    def stitch(self, parts: Sequence[tuple[int, Part]]) -> None:
        """Merge parts in order, each on the condition that the part before it is merged."""
        attribute = identity.stitch_attribute(self._plan.copy_id)
        for index, part in parts:
            edges = seams(self._plan.segments[index])
            expected = None if part.number == 1 else edges[part.number - 1]
            condition = CompareAndSet(attribute, expected, edges[part.number])
            name = self.name(index, part.number)
            self._target.seal(name)
            self._target.merge(self.name(index, 0), name, condition)

    def amend(self, index: int, to: int) -> None:
        """Restart a segment without the bytes before `to`, which its source has lost.

        First the present staging is invalidated: the verification mark is set to ABORTED. So no
        driver that has not seen the new record publishes it. If this driver dies in between,
        another one finds ABORTED and goes on. If the segment is already marked as verified, nothing
        is lost, and nothing is done.

        Args:
            index: the segment's place in the plan.
            to: the first offset that the source still has.
        """
        name = self.name(index, 0)
        self._target.create(name)
        mark = identity.verified_attribute(self._plan.copy_id)
        given_up = self._target.set_attribute(name, CompareAndSet(mark, None, identity.ABORTED))
        if not given_up and self._target.attributes([(name, mark)]) != [identity.ABORTED]:
            return
        # A store frees the name of a merged segment after a while. So `create` may have succeeded
        # for a segment that is published already. Then do not restart it.
        target = self._target.segment_name(self._plan.target, self.bound[index])
        published = identity.publish_attribute(self._plan.copy_id)
        if self._target.attributes([(target, published)]) == [None]:
            self._journal.write(
                [journal.amend_record(index, self._plan.segments[index].edition, to)]
            )

    def mark_verified(self, index: int) -> None:
        """Mark a staged segment as verified, so that it may be published, unless it is marked."""
        length = self._plan.segments[index].length
        self._target.set_attribute(
            self.name(index, 0),
            CompareAndSet(identity.verified_attribute(self._plan.copy_id), None, length),
        )

    def publish(self, index: int, events: int) -> bool:
        """Merge a staged segment into the target's segment, or mark one without bytes as done.

        The condition on the publish attribute lets this happen only once. An abort sets the same
        attribute, so only one of the two succeeds.

        Returns:
            Whether this call did it. False only for a segment without bytes.
        """
        plan = self._plan
        segment = plan.segments[index]
        condition = CompareAndSet(identity.publish_attribute(plan.copy_id), None, segment.length)
        target = self._target.segment_name(plan.target, self.bound[index])
        attributes = identity.origin_attributes(plan.copy_id)
        notes = (
            *zip(attributes, (segment.source, segment.id, segment.start), strict=True),
            (identity.events_attribute(plan.copy_id), events),
        )
        if segment.attempt:
            gap = identity.gap_attributes(plan.copy_id)
            notes += tuple(zip(gap, (segment.lost, segment.attempt), strict=True))
        if plan.follow:
            notes += ((identity.position_attribute(plan.copy_id, segment.id), segment.end),)
        if segment.length == 0:
            for attribute, value in notes:
                self._target.set_attribute(target, CompareAndSet(attribute, None, value))
            return self._target.set_attribute(target, condition)
        name = self.name(index, 0)
        self._target.seal(name)
        self._target.merge(target, name, condition, events=events, notes=notes)
        return True
