"""The workload of a ScopeCopy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.core.workloads.plan import ScopeCopyPlan, refusal
from sluice.core.workloads.unplanned import UnplannedScopeCopy
from sluice.engine.access.source_runs import live, shelf
from sluice.engine.archive.erase import Erased
from sluice.engine.scope.progress import ScopeWatch, UnplannedScopeWatch
from sluice.engine.scope.query import abandon_scope, ask_scope, plan_run
from sluice.engine.workloads.workload import in_volumes, is_volume

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.archive.recorded import Recorded
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.workloads.answers import Answer
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.workloads.workload import Located, Measures


@dataclass(frozen=True, slots=True)
class ScopeWorkload:
    """What a ScopeCopy has the engine do. One store is read; either one may be of archives."""

    request: ScopeRequest

    @property
    def moves(self) -> bool:
        """See Workload."""
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
        """See Workload."""
        (source,) = sources
        return ask_scope(
            self.request,
            source=(source[0], self._source(source[1])),
            target=(target[0], self._target(target[1])),
            known=known,
            again=again,
            unseen=in_volumes(sources),
        )

    def plan(self, sources: Sequence[Located], target: Located, *, run: int) -> Plan | None:
        """See Workload. Raises PlanTooLarge where the operator could not write the plan down."""
        (source,) = sources
        plan = plan_run(self.request, run, source=source, target=target)
        too_large = refusal(plan)
        if too_large is not None:
            raise too_large
        return plan

    def tell(self, target: Place) -> Recorded | None:  # noqa: ARG002 - the target's log tells all
        """See Workload."""
        return None

    def watch(self, plan: Plan, target: Place) -> Measures:
        """See Workload."""
        if isinstance(plan, ScopeCopyPlan):
            return ScopeWatch(plan, self._target(target))
        if isinstance(plan, UnplannedScopeCopy):
            return UnplannedScopeWatch(self.request, plan, self._target(target))
        raise TypeError(f"a {type(plan).__name__} is no plan of a ScopeCopy")

    def abandon(self, sources: Sequence[Place] | None, target: Place, *, known: Plan | None) -> str:
        """See Workload."""
        seen = sources is not None and not is_volume(sources[0])
        source = self._source(sources[0]) if sources is not None and seen else None
        return abandon_scope(self.request, source=source, target=self._target(target), known=known)

    def erase(self, target: Place) -> Erased:  # noqa: ARG002 - nothing is deleted
        """See Workload: what was copied is no part of the resource, and neither are archives."""
        return Erased()

    def _source(self, place: Place) -> Place:
        return live(place) if self.request.restore is None else shelf(place)

    def _target(self, place: Place) -> Place:
        return live(place) if self.request.archive is None else shelf(place)


def made_by_driver(watch: Measures) -> Plan | None:
    """The plan of a scope that was left to its driver, which has written it down by now."""
    return watch.plan if isinstance(watch, UnplannedScopeWatch) else None
