"""Progress of a scope's copy, read from the target store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.progress import Progress
from sluice.core.scope import StreamState
from sluice.core.scope_log import ScopeState, run_of
from sluice.engine import pool
from sluice.engine.ledger import Ledger
from sluice.engine.progress import staged_bytes
from sluice.engine.scope_log import ScopeLog

if TYPE_CHECKING:
    from sluice.core.plan import Plan, StreamPlan
    from sluice.stores.base import Store

LOOKED_AT: Final = 128
"""Streams that are looked at by themselves: twice as many as can be worked on at once, since some
have ended and it is not written down yet."""


class ScopeWatch:
    """Measures the progress of a scope's copy.

    The log tells of the streams that have ended. Of the others only the first ones are looked at,
    in the order in which they are begun.

    Args:
        plan: the plan, of a scope.
        target: the target store, on connections of the watcher's own.
    """

    def __init__(self, plan: Plan, target: Store) -> None:
        if plan.scope is None:
            raise ValueError("a plan of single streams is none of a scope")
        self._plan = plan
        self._target = target
        self._log = ScopeLog(target, plan.scope.scope_id, plan.scope.target)
        self._ledgers: dict[str, Ledger] = {}
        self._begun: set[str] = set()

    def measure(self) -> Progress:
        """The progress now. Of what failed nothing counts, since nothing of it stays."""
        state = self._log.load()
        if state is None or state.run < run_of(self._plan):  # no driver has begun this run
            state = ScopeState(self._plan)
        streams = state.plan.streams
        done = sum(
            streams[place].bytes
            for place, result in state.results.items()
            if result.state is StreamState.COPIED
        )
        left = [stream for place, stream in enumerate(streams) if place not in state.results]
        looked_at = [] if state.stopped else left[:LOOKED_AT]
        self._forget_others(looked_at)
        done += sum(pool.each(self._bytes, looked_at))
        counts = state.counts
        return Progress(
            bytes=done,
            total=state.plan.bytes,
            published=counts.copied == counts.total,
            streams=counts,
        )

    def _bytes(self, plan: StreamPlan) -> int:
        """Bytes of one stream in the target store: all, if it was begun and has no journal now."""
        found = staged_bytes(plan, self._ledgers[plan.copy_id], self._target)
        if found is None:
            return plan.bytes if plan.copy_id in self._begun else 0
        self._begun.add(plan.copy_id)
        return found[0]

    def _forget_others(self, looked_at: list[StreamPlan]) -> None:
        """Keep the journals of these streams only; those of all would not stay small."""
        ids = {plan.copy_id for plan in looked_at}
        self._begun &= ids
        self._ledgers = {
            plan.copy_id: self._ledgers.get(plan.copy_id)
            or Ledger(self._target, plan.copy_id, plan.target)
            for plan in looked_at
        }
