"""The journal of a copy, kept in a segment of the target store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice.core import identity, journal
from sluice.errors import (
    CopyAborted,
    NoSuchSegment,
    PlanTooLarge,
    StoreBusy,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.journal import Journal
    from sluice.core.model import StreamName
    from sluice.core.plan import StreamPlan
    from sluice.stores.base import Store

GENERATIONS = 16
"""Names a journal can have. A store keeps a deleted name for minutes, so a copy that is aborted and
run again takes the next one; what is there under any of them is the journal."""

MAX_RECORD = 7 << 20
"""Bytes of the longest record: stores take appends of up to 8 MiB."""


class Ledger:
    """Reads and writes one copy's journal; remembers what it has read.

    Args:
        store: the target store.
        copy_id: the copy.
        target: the copy's target stream, next to which the journal lies.
    """

    def __init__(self, store: Store, copy_id: str, target: StreamName) -> None:
        self._names = [
            store.staging_name(target, 0, identity.journal_key(copy_id, generation))
            for generation in range(GENERATIONS)
        ]
        self.name = self._names[0]
        self._store = store
        self._records: list[dict[str, Any]] = []
        self._length = 0
        self._folded: tuple[int, Journal | None] = (0, None)

    @property
    def loaded(self) -> Journal | None:
        """What was read and written so far, without asking the store."""
        if self._folded[0] != len(self._records):
            self._folded = (len(self._records), journal.fold(self._records))
        return self._folded[1]

    def is_there(self) -> bool:
        """Whether there is a journal, though nothing may be in it yet."""
        return any(self._store.infos(self._names))

    def load(self) -> Journal | None:
        """What the store holds now; None when nothing was written down or it was deleted."""
        infos = self._store.infos(self._names)
        there = [(name, found) for name, found in zip(self._names, infos, strict=True) if found]
        name, info = there[0] if there else (self.name, None)
        if info is None or name != self.name or info.length < self._length:
            self._reset()
        self.name = name
        if info is not None and info.length > self._length:
            try:
                data = b"".join(
                    bytes(block.data)
                    for block in self._store.read(self.name, self._length, info.length)
                )
            except NoSuchSegment:  # deleted between the two calls
                self._reset()
            else:
                self._records += journal.unframe(data)
                self._length = info.length
        return self.loaded

    def is_same(self) -> bool:
        """Read on, and tell whether it is the journal still that was read before.

        A run that began meanwhile, after an abort, has the same plan if its bounds are the same;
        its journal has another name.
        """
        known, name = self.loaded, self.name
        now = self.load()
        return (self.name, now and now.plan) == (name, known and known.plan)

    def begin(self, plan: StreamPlan) -> StreamPlan:
        """Write down the plan, unless another driver has: the plan that holds is returned.

        Raises:
            PlanTooLarge: the plan is longer than a record can be.
            StoreBusy: the copy was aborted too often within minutes.
        """
        if self.load() is None:
            self._make()
        record = journal.frame(journal.plan_record(plan))
        if len(record) > MAX_RECORD:
            raise PlanTooLarge(
                f"the plan for {plan.target} is too large to be written down",
                field="spec.source.stream",
                remedy="This version copies no stream of so many segments; nothing was made.",
            )
        self._store.append_at(self.name, 0, record)
        recorded = self.load()
        # Gone again: the copy was finished or aborted meanwhile, which the next look tells apart.
        return plan if recorded is None else recorded.plan

    def write(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Append records. Where another driver writes too, each goes on behind the other.

        Raises:
            NoSuchSegment: the journal was deleted.
            CopyAborted: it was deleted and begun anew.
        """
        data = b"".join(journal.frame(record) for record in records)
        while not self._store.append_at(self.name, self._length, data):
            before, plan, name = self._length, self._records[:1], self.name
            self.load()
            if not self._records:  # deleted: whether the copy was finished or aborted is seen next
                raise NoSuchSegment("the copy's journal is gone", segment=self.name)
            if self.name != name or self._length < before or self._records[:1] != plan:
                raise CopyAborted(f"the copy that {self.name} belongs to was aborted")
            if self._length == before:
                raise StoreUnavailable(f"{self.name} is {before} bytes long, and yet it is not")
        self._records += [dict(record) for record in records]
        self._length += len(data)

    def delete(self) -> bool:
        """Delete the journal if it is as it was last read; False when it is gone or is not."""
        deleted = self._store.delete(self.name, length=self._length)
        self._reset()
        return deleted

    def _make(self) -> None:
        """Make the journal's segment under the first name that the store gives."""
        for name in self._names:
            if self._store.create(name) or self._store.infos([name]) != [None]:
                self.name = name
                return
        raise StoreBusy(f"the store has not let go of the names of {GENERATIONS} deleted journals")

    def _reset(self) -> None:
        self._records, self._length, self._folded = [], 0, (0, None)
