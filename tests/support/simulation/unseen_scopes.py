"""The parts of `scope_machine` for archives in a volume, so that drivers plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice.core.scope.progress import Progress
from sluice.core.scope.scope import StreamState
from sluice.core.workloads.answers import Planned
from sluice.core.workloads.unplanned import Unplanned
from support.cases import resources
from support.reconcile.scope_archives import RESTORED, UNPLANNED
from support.simulation.copy_store import TO
from support.simulation.scope_cluster import ScopeCluster, ScopeStore, run_of
from support.simulation.scope_machine import ScopeMachine

if TYPE_CHECKING:
    from sluice.core.scope.scope import StreamResult
    from sluice.core.workloads.answers import ScopeEnded
    from sluice.core.workloads.plan import Plan


class UnseenStore(ScopeStore):
    """The stores, of which only drivers can see the source."""

    def ask(self, known: Plan | None, *, again: bool) -> Planned | ScopeEnded:
        """See ScopeStore."""
        if not isinstance(known, Unplanned):
            return super().ask(known, again=again)
        found = super().ask(None, again=again)
        holds = not again and (self.log is None or self.is_over) and known.run == self._following
        return Planned(plan=known) if holds else found

    @property
    def _following(self) -> int:
        return 1 if self.log is None else run_of(self.log) + 1

    def _planned(
        self,
        names: set[str],  # noqa: ARG002 - only a driver can tell
        settled: tuple[StreamResult, ...],  # noqa: ARG002
        *,
        run: int,
    ) -> Planned | ScopeEnded:
        return Planned(plan=UNPLANNED.model_copy(update={"run": run, "target": TO}))

    def begin(self, plan: Plan) -> None:
        """Plan as a driver, unless a plan exists, and record it in the log."""
        if not isinstance(plan, Unplanned):
            super().begin(plan)
        elif self.log is None:
            super().begin(ScopeStore.ask(_seen(self), None, again=False).plan)
        elif self.is_over and plan.run > run_of(self.log):
            super().begin(_planned_again(self))


def _seen(store: ScopeStore) -> ScopeStore:
    """Return the store as a driver sees it."""
    return ScopeStore(
        there=store.there, log=store.log, ended=store.ended, stopped=store.stopped, done=store.done
    )


def _planned_again(store: ScopeStore) -> Plan:
    """Return the plan of the failed streams. If none failed in the end, all of it is settled."""
    found = _seen(store).ask(None, again=True)
    before = store.log
    assert before is not None
    if run_of(found.plan) > run_of(before):
        return found.plan
    assert all(one.state is StreamState.COPIED for one in store.results)
    assert before.scope is not None
    settled = before.scope.model_copy(
        update={"run": before.scope.run + 1, "settled": store.results}
    )
    return before.model_copy(update={"streams": (), "scope": settled})


class UnseenCluster(ScopeCluster):
    """The API server with a copy from a volume."""

    resource = resources.SCOPE | {"spec": resources.SCOPE["spec"] | RESTORED}
    sources = ({"name": "archives", "spec": {"volume": {"claimName": "archives"}}},)

    def __init__(self, **spec: Any) -> None:
        super().__init__(**spec)
        self.store = UnseenStore()

    def progress(self, known: Plan) -> tuple[Progress, Plan | None]:
        """Return a plan's progress, and the plan that a driver has made in its place."""
        if not isinstance(known, Unplanned):
            return super().progress(known)
        log = self.store.log
        if log is None or run_of(log) < known.run:
            return Progress(bytes=0, total=0, published=False), None
        return super().progress(log)[0], log


class UnseenMachine(ScopeMachine):
    """See ScopeMachine."""

    make = UnseenCluster
