"""The parts of `copy_cluster` for a ScopeCopy: a store with many streams, and drivers of all.

The engine's guarantees are assumed here too. A driver works by the log of the scope, which decides
for all drivers. Each stream's target is whole or missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sluice.core.scope.progress import Progress
from sluice.core.scope.scope import StreamResult, StreamState, counts_of
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.core.workloads.scope_log import planned_results
from sluice.errors import (
    CopyAborted,
    DigestMismatch,
    SluiceError,
    SourceNotFound,
    StoreUnavailable,
    TargetReplaced,
)
from sluice.kube.api.kinds import SCOPE_COPY
from sluice.kube.api.names import Child
from sluice.kube.jobs import results
from support.cases import resources
from support.reconcile import copies, scope_copies
from support.simulation.copy_cluster import Cluster
from support.simulation.copy_store import located
from support.simulation.simulated import at_once

if TYPE_CHECKING:
    from sluice.core.scope.scope import Counts
    from sluice.core.workloads.plan import Plan
    from support.simulation.copy_cluster import Driver

SOURCES = {"a": 1200, "b": 500, "c": 0}
"""The streams, and their lengths in bytes."""


@dataclass
class ScopeStore:
    """The data of the scope's copy in the stores, and whether these can be reached.

    Attributes:
        source, target: whether each store answers.
        there: the streams of the source's scope, with their lengths.
        bad: names of the streams that cannot be copied.
        log: the plan of the run that drivers work on.
        ended: results of the run's streams.
        stopped: whether the run begins no further stream.
        staged: number of staged bytes, by stream.
        done: the targets that are whole, with their lengths.
        epoch: number of times that all data were dropped.
        redone: streams that were planned in a further run although they were copied.
        lost: streams of a run that are missing in the next one.
    """

    source: bool = True
    target: bool = True
    there: dict[str, int] = field(default_factory=lambda: dict(SOURCES))
    bad: set[str] = field(default_factory=set)
    log: Plan | None = None
    ended: dict[str, StreamResult] = field(default_factory=dict)
    stopped: bool = False
    staged: dict[str, int] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)
    epoch: int = 0
    redone: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)

    @property
    def holds_something(self) -> bool:
        """Tell whether the store holds data of the copy that are not published."""
        return self.log is not None or bool(self.staged)

    @property
    def is_over(self) -> bool:
        """Tell whether nothing is left to do in this run."""
        assert self.log is not None
        return self.stopped or len(self.ended) == len(self.log.streams)

    @property
    def results(self) -> tuple[StreamResult, ...]:
        """The log's result of each stream."""
        assert self.log is not None
        other = StreamState.STOPPED if self.stopped else StreamState.PLANNED
        return tuple(
            self.ended.get(one.stream, one.model_copy(update={"state": other}))
            if one.state is StreamState.PLANNED
            else one
            for one in planned_results(self.log)
        )

    @property
    def counts(self) -> Counts:
        """The number of streams in each state."""
        return counts_of(self.results)

    def ask(self, known: Plan | None, *, again: bool) -> Planned | ScopeEnded:
        """See `sluice.engine.scope.query.ask_scope`."""
        if not (self.source and self.target):
            raise StoreUnavailable("no connection")
        log = self.log
        if log is not None and not self.is_over:
            return Planned(plan=log, recorded=True)
        if known is not None and not again and (log is None or run_of(known) > run_of(log)):
            names = [stream.target.stream for stream in known.streams]
            if all(name in self.done for name in names):
                settled = known.scope.settled if known.scope else ()
                return ScopeEnded(plan=known, results=(*map(self._copied, names), *settled))
            return Planned(plan=known)
        if log is None:
            settled = tuple(self._copied(name) for name in self.there if name in self.done)
            return self._planned(set(self.there) - set(self.done), settled, run=1)
        results = tuple(self._checked(one) for one in self.results)
        failed = {one.stream for one in results if one.state is not StreamState.COPIED}
        if not (again and failed):
            return ScopeEnded(plan=log, results=results)
        settled = tuple(
            one if one.stream not in failed else self._copied(one.stream)
            for one in results
            if one.stream not in failed or one.stream in self.done
        )
        return self._planned(failed - set(self.done), settled, run=run_of(log) + 1)

    def _planned(
        self, names: set[str], settled: tuple[StreamResult, ...], *, run: int
    ) -> Planned | ScopeEnded:
        gone = [_failed(name, SourceNotFound("gone")) for name in names if name not in self.there]
        streams = [
            scope_copies.stream(name, self.there[name])
            for name in sorted(names & set(self.there), key=lambda one: (-self.there[one], one))
        ]
        settled = tuple(sorted((*settled, *gone), key=lambda one: one.stream))
        plan = located(scope_copies.scope_plan(*streams, run=run, settled=settled))
        return Planned(plan=plan) if streams else ScopeEnded(plan=plan, results=settled)

    def _copied(self, name: str) -> StreamResult:
        return scope_copies.copied(name, self.done[name])

    def _checked(self, result: StreamResult) -> StreamResult:
        """Check a copied stream's target, and return the result."""
        if result.state is StreamState.COPIED and result.stream not in self.done:
            return _failed(result.stream, TargetReplaced("not there any more"))
        return result

    def begin(self, plan: Plan) -> None:
        """Record a driver's plan in the log, if the log allows it."""
        before = self.log
        if before is not None and not (self.is_over and run_of(plan) > run_of(before)):
            return
        if run_of(plan) > 1:
            self.redone |= {one.target.stream for one in plan.streams} & set(self.done)
        if before is not None:
            self.lost |= {one.stream for one in planned_results(before)} - {
                one.stream for one in planned_results(plan)
            }
        self.log, self.ended, self.stopped = plan, {}, False

    def work(self, *, stop: bool) -> None:
        """Take the next step of the first stream that has not ended."""
        assert self.log is not None
        plan = next(one for one in self.log.streams if one.target.stream not in self.ended)
        name = plan.target.stream
        if name in self.done:
            self.ended[name] = self._copied(name)
            self.staged.pop(name, None)
        elif name not in self.there or name in self.bad:
            error = DigestMismatch("other bytes") if name in self.bad else SourceNotFound("gone")
            self.ended[name] = _failed(name, error)
            self.stopped = stop
        elif self.staged.get(name, 0) < plan.bytes:
            self.staged[name] = min(plan.bytes, self.staged.get(name, 0) + 400)
        else:
            self.done[name] = plan.bytes

    def progress(self, known: Plan) -> Progress:
        """See `sluice.engine.scope.progress.ScopeWatch`."""
        return Progress(
            bytes=min(known.bytes, sum(self.staged.values())),
            total=known.bytes,
            published=self.log is not None and self.is_over,
            streams=None if self.log is None else self.counts,
        )

    def abandon(self) -> None:
        """See `sluice.engine.scope.query.abandon_scope`."""
        if not self.target:
            raise StoreUnavailable("no connection")
        self.log, self.ended, self.stopped = None, {}, False
        self.staged.clear()
        self.epoch += 1


class ScopeCluster(Cluster):
    """The API server with a ScopeCopy, the drivers in their pods, and the stores."""

    kind = SCOPE_COPY
    resource = resources.changed(resources.SCOPE, "spec.source.storeRef.name", "from")
    store: ScopeStore

    def __init__(self, **spec: Any) -> None:
        super().__init__(**spec)
        self.store = ScopeStore()

    @property
    def results(self) -> tuple[StreamResult, ...] | None:
        """The published result of each stream."""
        child = Child(kind=self.kind, namespace="default", name=self.name, uid=copies.UID)
        return at_once(results.published(self.server.api, child))

    def advance(self, driver: Driver, mounted: Plan) -> None:
        """Take the next step of a driver that can go on: begin, stage, publish, record, end."""
        store = self.of_run(mounted)
        if driver.epoch is None:
            driver.epoch = store.epoch
            store.begin(mounted)
        elif driver.epoch != store.epoch or store.log is None:
            self.fail(driver, CopyAborted("the copy was aborted while it ran"))
        elif store.is_over:
            self.end(driver, None)
        else:
            policy = None if self.copy is None else self.copy["spec"].get("failurePolicy")
            store.work(stop=policy == "Stop")

    def of_run(self, plan: Plan) -> ScopeStore:  # noqa: ARG002 - all runs have one log
        """Return the data of the run that a plan is of."""
        return self.store

    def fail(self, driver: Driver, error: SluiceError | None) -> None:
        """End a driver badly, or as if it were done."""
        self.end(driver, error)


def run_of(plan: Plan) -> int:
    """Return the number of a plan's run."""
    assert plan.scope is not None
    return plan.scope.run


def _failed(name: str, error: SluiceError) -> StreamResult:
    return scope_copies.failed(name, error, SOURCES[name])
