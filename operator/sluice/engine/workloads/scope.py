"""The workload of a ScopeCopy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.core.workloads.answers import ScopeEnded
from sluice.core.workloads.plan import ScopeCopyPlan, refusal
from sluice.core.workloads.unplanned import UnplannedScopeCopy
from sluice.engine.access.source_runs import live, root
from sluice.engine.archive.erase import Erased
from sluice.engine.scope.following.measuring import FollowedScopeWatch
from sluice.engine.scope.planning import resolve_scope
from sluice.engine.scope.progress import ScopeWatch, UnplannedScopeWatch
from sluice.engine.scope.query import ask_scope, plan_run
from sluice.engine.scope.recorded_runs import records_of
from sluice.engine.scope.report import ScopeReport
from sluice.engine.scope.series import abandon_runs, record_scope_run
from sluice.engine.workloads.workload import Found, in_volumes, is_volume

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.archive.recorded import Recorded
    from sluice.core.archive.retention import Retention
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.workloads.answers import Answer
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.workloads.workload import Located, Measures, Workload


@dataclass(frozen=True, slots=True)
class ScopeWorkload:
    """The workload of a ScopeCopy. It reads one store; source or target may hold archives."""

    request: ScopeRequest

    def with_key(self, target: Place) -> ScopeRequest:
        """Return the request with a key of its run, for a client that has none.

        A run that was cut off is resumed. Only for a scope that is archived repeatedly.
        """
        return self.request.as_run(records_of(self.request, target).next_key())

    @property
    def moves(self) -> bool:
        """Whether the source is deleted at the end."""
        return self.request.move

    def ask(
        self,
        sources: Sequence[Located],
        target: Located,
        *,
        known: Plan | None,
        again: bool,
        told: Recorded | None = None,  # noqa: ARG002 - the target's store says more
    ) -> Answer:
        """Ask the stores about the copy. Nothing is changed."""
        (source,) = sources
        return ask_scope(
            self.request,
            source=(source[0], self._source(source[1])),
            target=(target[0], self._target(target[1])),
            known=known,
            again=again,
            unseen=in_volumes(sources),
        )

    def plan(
        self, sources: Sequence[Located], target: Located, *, run: int | None = None
    ) -> Found[ScopeCopyPlan, ScopeReport]:
        """Plan a run.

        Raises:
            PlanTooLarge: the plan of a driver does not fit where the operator stores it.
        """
        (source,) = sources
        if run is None:
            answer = resolve_scope(self.request, source=source, target=target, again=True)
            if isinstance(answer, ScopeEnded):
                return Found(report=ScopeReport.ended(answer))
            return Found(answer.plan, recorded=answer.recorded)
        plan = plan_run(self.request, run, source=source, target=target)
        too_large = refusal(plan)
        if too_large is not None:
            raise too_large
        return Found(plan)

    def tell(self, target: Place) -> Recorded | None:  # noqa: ARG002 - the target's log tells all
        """Return None: the operator can see all results itself."""
        return None

    def watch(
        self,
        plan: Plan,
        target: Place,
        sources: Sequence[Place] = (),
    ) -> Measures:
        """Return what measures the progress of a plan."""
        if isinstance(plan, ScopeCopyPlan):
            if plan.follows and sources:
                return FollowedScopeWatch(plan, live(sources[0]), live(target))
            return ScopeWatch(plan, self._target(target))
        if isinstance(plan, UnplannedScopeCopy):
            return UnplannedScopeWatch(self.request, plan, self._target(target))
        raise TypeError(f"a {type(plan).__name__} is no plan of a ScopeCopy")

    def abort(self, sources: Callable[[], Sequence[Place]], target: Place) -> str:
        """Delete the log and all unpublished streams, and return in words what was done."""
        (source,) = sources()
        return abandon_runs(self.request, source=source, target=target, known=None)

    def abandon(self, sources: Sequence[Place] | None, target: Place, *, known: Plan | None) -> str:
        """End the copy, so that nothing unpublished stays, and return in words what was done."""
        seen = sources is not None and not is_volume(sources[0])
        source = self._source(sources[0]) if sources is not None and seen else None
        return abandon_runs(self.request, source=source, target=self._target(target), known=known)

    def erase(self, target: Place) -> Erased:  # noqa: ARG002 - nothing is deleted
        """Delete nothing: copied streams and archives do not belong to the resource."""
        return Erased()

    def _source(self, place: Place) -> Place:
        return live(place) if self.request.restore is None else root(place)

    def _target(self, place: Place) -> Place:
        return live(place) if self.request.archive is None else root(place)


def record_run(workload: Workload, target: Place, ended: ScopeEnded, retention: Retention) -> int:
    """Record a run of a scope that is archived repeatedly, once it is over.

    Args:
        workload: the work for the run.
        target: the place with the folder of archives.
        ended: the result of the run.
        retention: which runs are kept.

    Returns:
        The run's number. Recording it again changes nothing.
    """
    if not isinstance(workload, ScopeWorkload):
        raise TypeError(f"a {type(workload).__name__} has no runs of a scope")
    return record_scope_run(workload.request, ended, target, retention)


def made_by_driver(watch: Measures) -> Plan | None:
    """Return the plan that a driver has recorded for a scope left to it; None if there is none."""
    return watch.plan if isinstance(watch, UnplannedScopeWatch) else None
