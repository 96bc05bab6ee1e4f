"""Read and write the log of a scope's copy, and keep it in a segment of the target store."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sluice.core.claims.claim import MARKER
from sluice.core.copy import record_frames
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.core.values.weight import weight_of_json
from sluice.core.values.wish import consent
from sluice.core.workloads import scope_log
from sluice.core.workloads.plan import ScopeCopyPlan, unpacked
from sluice.core.workloads.scope_work import ScopeWork
from sluice.engine.journal.record_log import MAX_RECORD, Log, RecordTrail
from sluice.errors import (
    CopyAborted,
    JournalDamaged,
    NoSuchSegment,
    PlanTooLarge,
    StoreBusy,
)
from sluice.stores.allowance import Held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sluice.core.scope.request import ScopeRequest
    from sluice.core.scope.scope import StreamResult
    from sluice.core.values.wish import Wish
    from sluice.core.workloads.scope_log import ScopeState
    from sluice.stores.base import Segments

_TRIES: Final = 100
"""Tries to write a wish beside drivers that write results, and other clients."""

BESIDE: Final = f"{MARKER}copies"
"""The stream next to which logs lie. It does not exist: its name only gives the logs a place."""


class ScopeRecords(RecordTrail):
    """The log of one scope's copy, for reading and writing. Several threads may use it.

    Args:
        work: the identity of the copy.
    """

    def __init__(self, work: ScopeWork) -> None:
        self._work = work
        self._state: ScopeState | None = None
        self._held = Held()
        self._run = 1
        self._lock = threading.Lock()

    @property
    def loaded(self) -> ScopeState | None:
        """The log as read and written so far, without a call to the store."""
        return self._state

    def load(self) -> ScopeState | None:
        """Return the log as the store holds it now; None if it is empty or was deleted."""
        with self._lock:
            self._held.add()
            self._read_on()
            return self._state

    def begin(self, plan: ScopeCopyPlan) -> ScopeCopyPlan:
        """Record the plan, unless another plan holds. Return the plan that holds.

        The first recorded plan holds. A plan of a later run holds if the run before is over.

        Raises:
            PlanTooLarge: the plan is longer than a record can be.
            StoreBusy: the copy was aborted too often within minutes.
            CopyAborted: the copy was aborted during this call.
        """
        record = scope_log.plan_record(plan)
        if len(record_frames.frame(record)) > MAX_RECORD:
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
        """Record results of streams, by the streams' places in the plan that `begin` returned.

        The first result of a stream counts. Results of a run that is not the latest are dropped.

        Raises:
            NoSuchSegment: the log was deleted.
            CopyAborted: the log was deleted, and another one was begun.
        """
        with self._lock:
            while new := self._without(results):
                if self._append([scope_log.results_record(self._run, new)]):
                    return
                self._follow()

    def stopped(self) -> None:
        """Record that no other stream is begun in the run of `begin`. Raise as `ended`."""
        with self._lock:
            self._stop(self._run)

    def join(self, plan: ScopeCopyPlan, known: int) -> ScopeCopyPlan:
        """Record that streams join the run of `begin`, unless others have joined meanwhile.

        Args:
            plan: the plan of these streams alone.
            known: how many streams have a plan or a result without one (`ScopeState.known`), as the
                caller has seen it.

        Returns:
            The plan that holds for the whole.

        Raises:
            PlanTooLarge: the record is longer than a record can be.
            NoSuchSegment, CopyAborted: as `ended`.
        """
        record = scope_log.join_record(plan, known)
        if len(record_frames.frame(record)) > MAX_RECORD:
            raise PlanTooLarge(f"the plan of {len(plan.items)} streams is too large for a record")
        with self._lock:
            while self._known().known == known and not self._known().is_over:
                if not self._append([record]):
                    self._follow()
            return self._known().plan

    def live(self) -> bool:
        """Record that the streams of the run of `begin` are followed, once. Raise as `ended`.

        Returns:
            False if the run was called off before.
        """
        with self._lock:
            while (state := self._known()).run == self._run and not (state.live or state.is_over):
                if not self._append([scope_log.live_record(self._run)]):
                    self._follow()
            return state.run != self._run or state.live or not state.stopped

    def wish(self, wish: Wish, key: str = "") -> bool:
        """Record how a copy is to end that follows its streams, unless it is the present wish.

        Args:
            wish: the wish.
            key: the key by which followers know that the copy's owner wishes the sources to be
                sealed; see `core.values.wish.consent`. Without it, no follower seals any.

        Returns:
            Whether the copy goes by this wish. It does not once it is over.

        Raises:
            StoreBusy: other clients write into the log, again and again.
            NoSuchSegment, CopyAborted: as `ended`.
        """
        seals = wish.cutover == "SealAndDrain"
        with self._lock:
            for _ in range(_TRIES):
                state = self._known()
                if state.is_over:
                    return False
                if state.wish == wish and (not (seals and key) or state.may_seal(key)):
                    return True
                scope_id = state.plan.scope.scope_id
                proof = consent(key, scope_id, state.wishes) if seals else ""
                record = scope_log.wish_record(state.run, state.wishes, wish, proof)
                if not self._append([record]):
                    self._follow()
        raise StoreBusy(f"other clients write into {self.name}, again and again")

    def call_off(self) -> None:
        """Record that no other stream is begun in the latest run. Raise as `ended`."""
        with self._lock:
            self._stop(self._known().run)

    def delete(self) -> bool:
        """Delete the log if it is as it was last read. Return False if it is gone or changed."""
        with self._lock:
            return super().delete()

    def _stop(self, run: int) -> None:
        while not (state := self._known()).is_over and state.run == run:
            if self._append([scope_log.stopped_record(run)]):
                return
            self._follow()

    def _without(self, results: Mapping[int, StreamResult]) -> dict[int, StreamResult]:
        """Return the results that are not recorded yet; none if a later run has begun."""
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
        """Yield the records, and count the memory of those that are kept."""
        for record in records:
            if record.get("record") not in {"plan", "join"}:
                self._held.add(weight_of_json(record_frames.frame(record)))
            yield record

    def _plan(self, data: bytes) -> ScopeCopyPlan:
        """Return the plan that was compressed to these bytes, and count its memory."""
        whole = unpacked(data)
        self._held.add(weight_of_json(whole))
        plan = ScopeCopyPlan.model_validate_json(whole)
        if not self._work.has(plan):
            raise JournalDamaged(f"the log of {self._work.target!r} has the plan of another copy")
        return plan

    def _forget(self) -> None:
        self._state, self._held = None, Held()


class ScopeLog(ScopeRecords, Log):
    """The log of one scope's copy in a segment of the target store.

    Args:
        store: the target store.
        scope_id: the identity of the whole copy.
        scope: the target's scope, which need not exist yet.
        source, move, following: see ScopeWork.
    """

    def __init__(
        self,
        store: Segments,
        scope_id: str,
        scope: str,
        *,
        source: str | None = None,
        move: bool | None = None,
        following: ScopeRequest | None = None,
    ) -> None:
        ScopeRecords.__init__(self, ScopeWork(scope_id, scope, source, move, following))
        beside = StreamName(scope=scope, stream=BESIDE)
        Log.__init__(self, store, beside, partial(identity.scope_log_key, scope_id))
