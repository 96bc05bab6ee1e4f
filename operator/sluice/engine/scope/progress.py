"""Measure the progress of a scope's copy, by what the target holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.copy.plan import StreamPlan
from sluice.core.scope.progress import Progress
from sluice.core.scope.scope import StreamState
from sluice.core.workloads.scope_log import ScopeState, run_of
from sluice.engine.access import parallel
from sluice.engine.access.source_runs import live, root
from sluice.engine.archive.query import ArchiveWatch
from sluice.engine.copy.progress import staged_bytes
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.scope.object_log import log_of

if TYPE_CHECKING:
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.core.workloads.unplanned import UnplannedScopeCopy
    from sluice.engine.access.source_runs import Place
    from sluice.engine.scope.planners.base import Item

LOOKED_AT: Final = 128
"""How many streams are measured one by one. It is twice as many as drivers work on at once, since
some may have ended without a recorded result yet."""


class ScopeWatch:
    """A meter of the progress of a scope's copy.

    The log tells which streams have ended. Of the others only the first are measured, in the order
    in which they are begun.

    Args:
        plan: the plan of a scope.
        target: the place that is written to, on connections of its own.
    """

    def __init__(self, plan: ScopeCopyPlan, target: Place) -> None:
        self._plan = plan
        self._target = target
        self._log = log_of(target, plan.scope.scope_id, plan.scope)
        self._readers: dict[str, CopyJournal | ArchiveWatch] = {}
        self._begun: set[str] = set()

    def measure(self) -> Progress:
        """Return the present progress. Failed streams do not count: nothing of them stays."""
        state = self._log.load()
        if state is None or state.run < run_of(self._plan):  # no driver has begun this run
            state = ScopeState(self._plan)
        streams = state.plan.items
        done = sum(
            streams[place].bytes
            for place, result in state.results.items()
            if result.state is StreamState.COPIED
        )
        left = [stream for place, stream in enumerate(streams) if place not in state.results]
        looked_at = [] if state.stopped else left[:LOOKED_AT]
        self._forget_others(looked_at)
        done += sum(parallel.each(self._bytes, looked_at))
        counts = state.counts
        return Progress(
            bytes=done,
            total=state.plan.bytes,
            published=counts.copied == counts.total,
            streams=counts,
        )

    def _bytes(self, plan: Item) -> int:
        """Return one stream's bytes in the target: all, if it was begun and has no journal now."""
        reader = self._readers[plan.copy_id]
        if isinstance(reader, ArchiveWatch):
            return reader.measure().bytes
        found = None
        if isinstance(plan, StreamPlan):
            found = staged_bytes(plan, reader, live(self._target))
        if found is None:
            return plan.bytes if plan.copy_id in self._begun else 0
        self._begun.add(plan.copy_id)
        return found[0]

    def _forget_others(self, looked_at: list[Item]) -> None:
        """Keep only the readers of these streams, to bound the memory that readers take."""
        self._begun &= {plan.copy_id for plan in looked_at}
        self._readers = {
            plan.copy_id: self._readers.get(plan.copy_id) or self._reader(plan)
            for plan in looked_at
        }

    def _reader(self, plan: Item) -> CopyJournal | ArchiveWatch:
        if isinstance(plan, StreamPlan):
            return CopyJournal(live(self._target), plan.copy_id, plan.target, plan)
        return ArchiveWatch(plan, root(self._target))


class UnplannedScopeWatch:
    """A meter of a scope's run that its driver plans. It shows nothing until the plan is recorded.

    Args:
        request: the copy.
        wanted: the request to the driver, which stands in place of a plan.
        target: the place that is written to, on connections of its own.

    Attributes:
        plan: the plan that the driver recorded; None before that.
    """

    def __init__(self, request: ScopeRequest, wanted: UnplannedScopeCopy, target: Place) -> None:
        self.plan: ScopeCopyPlan | None = None
        self._wanted = wanted
        self._target = target
        self._log = log_of(target, request.scope_id, request)
        self._watch: ScopeWatch | None = None

    def measure(self) -> Progress:
        """Return the present progress."""
        if self._watch is None:
            state = self._log.load()
            if state is None or state.run < self._wanted.run:
                return Progress(bytes=0, total=0, published=False)
            self.plan = state.plan.placed(self._wanted)
            self._watch = ScopeWatch(self.plan, self._target)
        return self._watch.measure()
