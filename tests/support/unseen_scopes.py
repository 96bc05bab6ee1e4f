"""As `support.scope_machine`, where the archives are in a volume, so that drivers plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.core.progress import Progress
from sluice.core.reconcile.scope_results import results_hash
from sluice.core.reconcile.world import Planned
from sluice.core.scope import StreamState
from sluice.core.unplanned import Unplanned
from support.scope_archives import RESTORED, UNPLANNED
from support.scope_cluster import ScopeCluster, ScopeStore, run_of
from support.scope_copies import scope
from support.scope_machine import ScopeMachine, ScopeOperator

if TYPE_CHECKING:
    from sluice.core.plan import Plan
    from sluice.core.reconcile.world import ScopeEnded, World
    from sluice.core.scope import StreamResult


class UnseenStore(ScopeStore):
    """The stores, of which the source shows itself to drivers only."""

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
        names: set[str],  # noqa: ARG002 - nobody but a driver can tell
        settled: tuple[StreamResult, ...],  # noqa: ARG002
        *,
        run: int,
    ) -> Planned | ScopeEnded:
        return Planned(plan=UNPLANNED.model_copy(update={"run": run}))

    def begin(self, plan: Plan) -> None:
        """A driver plans, unless that is done, and writes it into the log."""
        if not isinstance(plan, Unplanned):
            super().begin(plan)
        elif self.log is None:
            super().begin(ScopeStore.ask(_seen(self), None, again=False).plan)
        elif self.is_over and plan.run > run_of(self.log):
            super().begin(_planned_again(self))


def _seen(store: ScopeStore) -> ScopeStore:
    """The same as a driver sees it."""
    return ScopeStore(
        there=store.there, log=store.log, ended=store.ended, stopped=store.stopped, done=store.done
    )


def _planned_again(store: ScopeStore) -> Plan:
    """The plan of what has failed; if nothing has in the end, one in which all is done."""
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


class UnseenOperator(ScopeOperator):
    """One operator, which learns the plan from the log."""

    def progress(self, known: Plan) -> Progress:
        """See Operator."""
        if self._made(known) is None and isinstance(known, Unplanned):
            return Progress(bytes=0, total=0, published=False)
        return super().progress(self._made(known) or known)

    def _asked(self, world: World) -> World:
        found = super()._asked(world)
        made = None if world.plan is None else self._made(world.plan.plan)
        if found.reading is None or made is None:
            return found
        results = self.cluster.results
        return replace(
            found,
            answer=Planned(plan=made, recorded=True),
            results=None if results is None else results_hash(results),
        )

    def _made(self, known: Plan) -> Plan | None:
        """What a driver has planned in place of what was written down."""
        log = self.cluster.store.log
        begun = isinstance(known, Unplanned) and log is not None and run_of(log) >= known.run
        return log if begun else None


class UnseenCluster(ScopeCluster):
    """The API server's objects, with a copy from a volume."""

    def __init__(self) -> None:
        super().__init__()
        self.store, self.copy = UnseenStore(), scope(**RESTORED)


class UnseenMachine(ScopeMachine):
    """See ScopeMachine."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = UnseenCluster()
        self.operators = [UnseenOperator(self.cluster)]
        self.cluster.store.bad.add("b")

    def another(self) -> UnseenOperator:
        """Another operator, which knows of no other."""
        return UnseenOperator(self.cluster)
