"""Read and write the journal of a copy in a segment of the target store."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sluice.core.copy import journal, record_frames
from sluice.core.values import identity
from sluice.core.values.weight import weight_of_json
from sluice.engine.journal.record_log import MAX_RECORD, Log
from sluice.errors import JournalDamaged, PlanTooLarge
from sluice.stores.allowance import Held

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Segments


_RUN: Final = 200
"""Bytes of memory that a record of digests takes besides the digests."""


class CopyJournal(Log):
    """The journal of one copy, for reading and writing. It remembers what it has read.

    Args:
        store: the target store.
        copy_id: the copy's identity.
        target: the copy's target stream, next to which the journal lies.
        work: the plan or the request of the copy, if the caller has one. A journal that reads other
            streams, deletes them, or follows them counts as damaged: any client that may write to
            the target's scope could have written it.
    """

    def __init__(
        self,
        store: Segments,
        copy_id: str,
        target: StreamName,
        work: StreamPlan | CopyRequest | None = None,
    ) -> None:
        super().__init__(store, target, partial(identity.journal_key, copy_id))
        self._of = copy_id, target
        self._work = work
        self._folding = journal.Folding()
        self._held = Held()

    @property
    def loaded(self) -> Journal | None:
        """The journal as read and written so far, without a call to the store."""
        return self._folding.journal

    def load(self) -> Journal | None:
        """Return the journal as the store holds it now; None if it is empty or was deleted."""
        self._held.add()
        self._read_on()
        return self.loaded

    def is_same(self) -> bool:
        """Read on, and tell whether this is still the journal that was read before.

        The plan alone does not tell. After an abort, a new run with the same bounds has the same
        plan. Its journal has another name.
        """
        known, name = self.loaded, self.name
        now = self.load()
        return (self.name, now and now.plan) == (name, known and known.plan)

    def begin(self, plan: StreamPlan) -> StreamPlan:
        """Record the plan, unless another driver has recorded one. Return the plan that holds.

        The journal must have been loaded directly before.

        Raises:
            PlanTooLarge: the plan is longer than a record can be.
            StoreBusy: the copy was aborted too often within minutes.
        """
        if self.loaded is None:
            record = journal.plan_record(plan)
            if len(record_frames.frame(record)) > MAX_RECORD:
                raise PlanTooLarge(
                    f"the plan for {plan.target} is too large to be written down",
                    field="spec.source.stream",
                    remedy="This version copies no stream of so many segments; nothing was made.",
                )
            self._make()
            self._append([record])
            self.load()
            self._drop_rivals()
        # If the journal is gone again, the copy was finished or aborted: the next look tells which.
        return plan if self.loaded is None else self.loaded.plan

    def write(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Append records, behind those that another driver may write at the same time.

        Raises:
            NoSuchSegment: the journal was deleted.
            CopyAborted: the journal was deleted, and another one was begun.
        """
        while not self._append(records):
            self._follow()

    def _take(self, records: Iterable[Mapping[str, Any]]) -> None:
        for record in records:
            self._folding.add(record)
            self._held.add(_weight(record))
        if self.loaded is not None:
            self._check(self.loaded)

    def _check(self, found: Journal) -> None:
        """Refuse the plan of another copy.

        Raises:
            JournalDamaged: it has another target or identity, or reads, deletes or follows other
                streams, or those of another store. Or a segment is of no source that it has.
        """
        plan = found.plan
        own = self._work or plan
        more = (plan.move and not own.move) or (plan.follow and not own.follow)
        if (plan.copy_id, plan.target, plan.reads) != (*self._of, own.reads) or more:
            raise JournalDamaged(f"the journal beside {self._of[1]} has the plan of another copy")
        sources = range(len(plan.sources))
        if not all(one.source in sources for one in found.current.segments):
            raise JournalDamaged(f"the journal beside {self._of[1]} has a segment without a source")

    def _forget(self) -> None:
        self._folding, self._held = journal.Folding(), Held()


def _weight(record: Mapping[str, Any]) -> int:
    """Return the most bytes of memory that a record takes once it is folded in."""
    match record:
        case {"record": "digests", "sha256": str(text)}:
            return len(text) // 2 + _RUN
        case _:
            return weight_of_json(record_frames.frame(record))
