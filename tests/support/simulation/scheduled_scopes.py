"""The parts of `scope_machine` for a ScopeCopy with a schedule, each of whose runs has a log."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sluice.core.archive.request import run_id
from sluice.core.scope.scope import StreamState
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.errors import StoreUnavailable
from support.cases import resources
from support.reconcile.scheduled_scopes import HOURLY
from support.reconcile.scope_archives import BUCKET
from support.simulation.copy_machine import CopyMachine
from support.simulation.copy_promises import CopyPromises
from support.simulation.scope_cluster import SOURCES, ScopeCluster, ScopeStore
from support.simulation.scope_machine import ScopeMachine

if TYPE_CHECKING:
    from sluice.core.scope.progress import Progress
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.scope.scope import StreamResult
    from sluice.core.workloads.plan import Plan
    from sluice.kube.api.kinds import Object


_SPEC: Final = HOURLY | {
    "source": {"storeRef": {"name": "from"}, "scope": "in"},
    "target": {"archive": {"storeRef": {"name": "local"}, "path": "backup/in"}},
}


@dataclass
class RunStore(ScopeStore):
    """The data of one run.

    Attributes:
        identity: the identity of the run.
        number: the number of its record; None without a record.
        recorded: the content of its record.
    """

    identity: str = ""
    number: int | None = None
    recorded: ScopeEnded | None = None

    def ask(self, known: Plan | None, *, again: bool) -> Planned | ScopeEnded:
        """See ScopeStore. A plan of another run is not known here."""
        mine = (
            known is not None and known.scope is not None and known.scope.scope_id == self.identity
        )
        found = super().ask(known if mine else None, again=again)
        if not isinstance(found, ScopeEnded):
            return found
        same = self.recorded is not None and self.recorded.results == found.results
        return replace(found, number=self.number if same else None)

    def _planned(
        self, names: set[str], settled: tuple[StreamResult, ...], *, run: int
    ) -> Planned | ScopeEnded:
        found = super()._planned(names, settled, run=run)
        scope = found.plan.scope
        assert scope is not None
        mine = scope.model_copy(update={"scope_id": self.identity})
        return replace(found, plan=found.plan.model_copy(update={"scope": mine, "target": BUCKET}))


@dataclass
class ScheduledStore:
    """The data of all runs, and whether the stores can be reached.

    Attributes:
        source, target, there, bad: see ScopeStore.
        done: nothing: no other client deletes archives.
        runs: the data of each run.
        last: the number of the last record.
    """

    source: bool = True
    target: bool = True
    there: dict[str, int] = field(default_factory=lambda: dict(SOURCES))
    bad: set[str] = field(default_factory=set)
    done: dict[str, int] = field(default_factory=dict)
    runs: dict[str, RunStore] = field(default_factory=dict)
    last: int = 0

    @property
    def holds_something(self) -> bool:
        """Tell whether the store holds data of a run that are not recorded."""
        return any(run.holds_something for run in self.runs.values())

    @property
    def records(self) -> list[RunStore]:
        """The runs that are recorded."""
        return [run for run in self.runs.values() if run.number is not None]

    def of(self, work: str) -> RunStore:
        """Return the data of a run."""
        run = self.runs.setdefault(work, RunStore(identity=work))
        run.source, run.target, run.there, run.bad = self.source, self.target, self.there, self.bad
        return run


@dataclass(frozen=True)
class _Run:
    """The engine's answers about one run."""

    cluster: ScheduledCluster
    work: str

    def of(self, request: Any) -> _Run:
        """See Stores."""
        raise AssertionError(f"{request} is of this run already")

    def ask(self, known: Any, *, again: bool) -> Planned | ScopeEnded:
        """See Stores."""
        return self.cluster.store.of(self.work).ask(known, again=again)

    def progress(self, known: Plan) -> tuple[Progress, Plan | None]:
        """See Stores."""
        return self.cluster.progress(known)

    def abandon(self) -> None:
        """See `engine.scope.series.abandon_runs`: earlier runs that left a log end as well."""
        for work in [self.work, *self.cluster.store.runs]:
            self.cluster.store.of(work).abandon()

    def record(self, ended: ScopeEnded) -> int:
        """See Stores."""
        store = self.cluster.store
        run = store.of(self.work)
        if not run.target:
            raise StoreUnavailable("no connection")
        if run.number is None or run.recorded is None or run.recorded.results != ended.results:
            store.last += 1
            run.number, run.recorded = store.last, ended
        return run.number


class ScheduledCluster(ScopeCluster):
    """The API server with a ScopeCopy that is archived every hour."""

    resource = resources.SCOPE | {"spec": _SPEC}
    target: ClassVar[Object] = {"name": "local", "spec": {"s3": {"bucket": "archives"}}}
    store: ScheduledStore  # type: ignore[assignment]

    def __init__(self, **spec: Any) -> None:
        super().__init__(**spec)
        self.store = ScheduledStore()

    def of(self, request: ScopeRequest) -> _Run:
        """Return the answers about the run of a request."""
        return _Run(self, request.scope_id)

    def of_run(self, plan: Plan) -> ScopeStore:
        """Return the data of the run that a plan is of."""
        assert plan.scope is not None
        return self.store.of(plan.scope.scope_id)

    def progress(self, known: Plan) -> tuple[Progress, Plan | None]:
        """Return the progress of a plan."""
        if not self.store.target:
            raise StoreUnavailable("no connection")
        return self.of_run(known).progress(known), None


class ScheduledMachine(ScopeMachine):
    """See ScopeMachine. Here runs come by themselves, and each one begins anew."""

    make = ScheduledCluster
    cluster: ScheduledCluster  # type: ignore[assignment]

    def the_world_is_in_order(self) -> None:
        """Check the promises about every copy, and those about runs."""
        CopyPromises.the_world_is_in_order(self)
        if self.alone:
            self.runs_do_not_overlap()
            self.the_last_success_is_true()

    def conditions_do_not_contradict(self) -> None:
        """Check that tools that follow kstatus read the status as it is meant."""
        said = {found.type: found.status for found in self.status.conditions}
        if not said:
            assert self.status.observed_generation == -1 or self.cluster.deleted
            return
        assert not {"Reconciling", "Stalled"} <= said.keys()
        assert (said["Ready"] == "False") == ("Stalled" in said)
        if "Succeeded" in said:
            assert (said["Ready"] == "True") == (said["Succeeded"] == "True")
        else:
            assert said["Ready"] == "True"
            assert self.status.run_key is None

    def success_is_true(self) -> None:
        """Check that success is reported only if the run is recorded, with every stream."""
        if not (self.said_to_be_done() and self.alone and self.status.run_key is not None):
            return
        run = self.cluster.store.runs[run_id(self.status.copy_id, self.status.run_key)]
        assert run.number is not None
        assert self.status.run == run.number
        assert run.recorded is not None
        assert all(one.state is StreamState.COPIED for one in run.recorded.results)

    def what_is_final_stays_final(self) -> None:
        """Check nothing: the next run comes by itself."""

    def runs_do_not_overlap(self) -> None:
        """Check that nothing is left of a run when another one has begun."""
        logs = [one for one in self.cluster.store.runs.values() if one.holds_something]
        assert len(logs) <= 1

    def the_last_success_is_true(self) -> None:
        """Check that only a recorded run with every stream counts as a success."""
        whole = [
            run
            for run in self.cluster.store.records
            if run.recorded is not None
            and all(one.state is StreamState.COPIED for one in run.recorded.results)
        ]
        assert self.status.last_success_time is None or whole

    def request(self) -> None:
        """Request another run."""
        CopyMachine.request(self)
