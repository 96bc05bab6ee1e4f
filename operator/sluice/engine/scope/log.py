"""The log of a scope's copy, and how it is kept in a segment of the target store."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sluice.core.claims.claim import MARKER
from sluice.core.copy import journal
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.core.values.weight import weight_of_json
from sluice.core.workloads import scope_log
from sluice.core.workloads.plan import ScopeCopyPlan, unpacked
from sluice.engine.journal.record_log import MAX_RECORD, Log, Trail
from sluice.errors import CopyAborted, NoSuchSegment, PlanTooLarge
from sluice.stores.allowance import Held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sluice.core.scope.scope import StreamResult
    from sluice.core.workloads.scope_log import ScopeState
    from sluice.stores.base import Store

BESIDE: Final = f"{MARKER}copies"
"""The stream next to which logs lie. There is none of that name: it gives them a place."""


class ScopeRecords(Trail):
    """Reads and writes the log of one scope's copy. May be used by several threads."""

    def __init__(self) -> None:
        self._state: ScopeState | None = None
        self._held = Held()
        self._run = 1
        self._lock = threading.Lock()

    @property
    def loaded(self) -> ScopeState | None:
        """What was read and written so far, without asking the store."""
        return self._state

    def load(self) -> ScopeState | None:
        """What the store holds now; None when nothing was written down or it was deleted."""
        with self._lock:
            self._held.add()
            self._read_on()
            return self._state

    def begin(self, plan: ScopeCopyPlan) -> ScopeCopyPlan:
        """Write down the plan, unless another one holds: the plan that holds is returned.

        That is the first one, or that of a later run once the one before is over.

        Raises:
            PlanTooLarge: the plan is longer than a record can be.
            StoreBusy: the copy was aborted too often within minutes.
            CopyAborted: it was aborted in this moment.
        """
        record = scope_log.plan_record(plan)
        if len(journal.frame(record)) > MAX_RECORD:
            raise PlanTooLarge(
                f"the plan of {len(plan.items)} streams is too large to be written down",
                field="spec.streams",
                remedy="Select fewer streams; nothing was made.",
            )
        with self._lock:
            self._read_on()
            if self._state is None:
                self._make()
            try:
                while scope_log.follows(plan, self._state):
                    if not self._append([record]):
                        self._follow()
                self._read_on()
                self._drop_rivals()
            except NoSuchSegment:
                raise CopyAborted("the log of the scope's copy was deleted") from None
            held = plan if self._state is None else self._state.plan
            self._run = scope_log.run_of(held)
            return held

    def ended(self, results: Mapping[int, StreamResult]) -> None:
        """Write down what came of streams, by their places in the plan that `begin` has returned.

        The first result of a stream counts, and those of a run that is not the latest do not.

        Raises:
            NoSuchSegment: the log was deleted.
            CopyAborted: it was deleted and begun anew.
        """
        with self._lock:
            while new := self._without(results):
                if self._append([scope_log.results_record(self._run, new)]):
                    return
                self._follow()

    def stopped(self) -> None:
        """Write down that no other stream is begun in the run of `begin`. Raises as `ended`."""
        with self._lock:
            self._stop(self._run)

    def call_off(self) -> None:
        """Write down that no other stream is begun, whichever run it is. Raises as `ended`."""
        with self._lock:
            self._stop(self._known().run)

    def delete(self) -> bool:
        """See Trail."""
        with self._lock:
            return super().delete()

    def _stop(self, run: int) -> None:
        while not (state := self._known()).is_over and state.run == run:
            if self._append([scope_log.stopped_record(run)]):
                return
            self._follow()

    def _without(self, results: Mapping[int, StreamResult]) -> dict[int, StreamResult]:
        """Those of the results that are to be written down still."""
        state = self._known()
        if state.run != self._run:
            return {}
        return {place: one for place, one in results.items() if place not in state.results}

    def _known(self) -> ScopeState:
        if self._state is None:
            raise NoSuchSegment("the log of the scope's copy is gone", segment=self.name)
        return self._state

    def _take(self, records: Iterable[Mapping[str, Any]]) -> None:
        self._state = scope_log.fold(self._counted(records), self._state, read=self._plan)

    def _counted(self, records: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """The same; the memory of those that are kept is counted."""
        for record in records:
            if record.get("record") != "plan":
                self._held.add(weight_of_json(journal.frame(record)))
            yield record

    def _plan(self, data: bytes) -> ScopeCopyPlan:
        """The plan that was compressed to these bytes."""
        whole = unpacked(data)
        self._held.add(weight_of_json(whole))
        return ScopeCopyPlan.model_validate_json(whole)

    def _forget(self) -> None:
        self._state, self._held = None, Held()


class ScopeLog(ScopeRecords, Log):
    """The log of one scope's copy in a segment of the target store.

    Args:
        store: the target store.
        scope_id: the identity of the whole copy.
        scope: the target's, which need not be there yet.
    """

    def __init__(self, store: Store, scope_id: str, scope: str) -> None:
        ScopeRecords.__init__(self)
        beside = StreamName(scope=scope, stream=BESIDE)
        Log.__init__(self, store, beside, partial(identity.scope_log_key, scope_id))
