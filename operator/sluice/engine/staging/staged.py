"""What is staged of a copy: its names, and the steps from parts to a segment of the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy import journal
from sluice.core.copy.next_step import seams
from sluice.core.values import identity
from sluice.errors import NoSuchSegment, StoreUnavailable
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.copy.plan import Part, StreamPlan
    from sluice.engine.journal.ledger import Ledger
    from sluice.stores.base import Store


class Staged:
    """The staging segments of one stream's copy.

    Args:
        plan: what is copied.
        ledger: its journal, loaded.
        target: the target store.
        salt: gives what tells staging of this attempt at a segment from that of another one.
    """

    def __init__(
        self, plan: StreamPlan, ledger: Ledger, target: Store, salt: Callable[[int], str]
    ) -> None:
        self._plan = plan
        self._ledger = ledger
        self._target = target
        self._salt = salt

    @property
    def journal(self) -> journal.Journal:
        """The journal as it was read last. NoSuchSegment if it is gone."""
        loaded = self._ledger.loaded
        if loaded is None:
            raise NoSuchSegment("the copy's journal is gone", segment=self._ledger.name)
        return loaded

    @property
    def bound(self) -> tuple[int, ...]:
        """Ids of the target's segments, in the plan's order. StoreUnavailable before that."""
        bound = self.journal.target
        if bound is None:
            raise StoreUnavailable(f"{self._plan.target} is not bound yet")
        return bound

    def name(self, index: int, part: int) -> str:
        """The full name of a part's staging segment."""
        key = self.key(index, part)
        return self._target.staging_name(self._plan.target, self.bound[index], key)

    def key(self, index: int, part: int) -> str:
        """The key of a part's staging segment."""
        return identity.staging_key(self._plan.copy_id, index, part, self._salt(index))

    def stitch(self, parts: Sequence[tuple[int, Part]]) -> None:
        """Merge parts in order, each on the condition that the one before it is in."""
        attribute = identity.stitch_attribute(self._plan.copy_id)
        for index, part in parts:
            edges = seams(self._plan.segments[index])
            expected = None if part.number == 1 else edges[part.number - 1]
            condition = CompareAndSet(attribute, expected, edges[part.number])
            name = self.name(index, part.number)
            self._target.seal(name)
            self._target.merge(self.name(index, 0), name, condition)

    def amend(self, index: int, to: int) -> None:
        """Begin a segment anew, without what its source has lost before `to`.

        What is staged of it is given up first: the mark that would let it be published is taken.
        So nobody publishes it who has not seen the record, and a driver that dies in between
        leaves the mark to be found. Where the mark is there already, nothing is lost.
        """
        name = self.name(index, 0)
        self._target.create(name)
        mark = identity.verified_attribute(self._plan.copy_id)
        given_up = self._target.set_attribute(name, CompareAndSet(mark, None, identity.ABORTED))
        if not given_up and self._target.attributes([(name, mark)]) != [identity.ABORTED]:
            return
        # A name that was merged may be given back after a while: then it was published.
        target = self._target.segment_name(self._plan.target, self.bound[index])
        published = identity.publish_attribute(self._plan.copy_id)
        if self._target.attributes([(target, published)]) == [None]:
            self._ledger.write(
                [journal.amend_record(index, self._plan.segments[index].edition, to)]
            )

    def mark_verified(self, index: int) -> None:
        """Set the mark that lets a staged segment be published, unless another driver has."""
        length = self._plan.segments[index].length
        self._target.set_attribute(
            self.name(index, 0),
            CompareAndSet(identity.verified_attribute(self._plan.copy_id), None, length),
        )

    def publish(self, index: int, events: int) -> None:
        """Merge a staged segment into the target's, or mark an empty one as done.

        The condition on the publish attribute makes it happen once, and is what an abort has to
        win to keep the target empty.
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
        if segment.length == 0:
            for attribute, value in notes:
                self._target.set_attribute(target, CompareAndSet(attribute, None, value))
            self._target.set_attribute(target, condition)
            return
        name = self.name(index, 0)
        self._target.seal(name)
        self._target.merge(target, name, condition, events=events, notes=notes)
