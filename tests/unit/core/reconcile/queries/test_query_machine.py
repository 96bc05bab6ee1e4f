"""A StreamQuery, its operator and its drivers, with all possible events in between.

The operator's decisions are Sluice's own. Cluster, drivers, ledger and users are a few fields here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice import errors
from sluice.core.reconcile.queries.world import (
    ProtectQuery,
    StartDriver,
    StopDriver,
    UnprotectQuery,
)
from sluice.core.reconcile.shared.jobs import JobPhase, JobSeen, job_name
from sluice.core.values.trouble import Trouble
from sluice.kube.api.objects import QUERY_FINALIZER
from support.search import run_machine, searches
from support.situations.query_recorder import QueryRecorder
from support.situations.recorder import READY

LOST = Trouble.of(errors.DriverLost("the driver's pod is gone"))
REFUSED = Trouble.of(errors.QueryChanged("spec.query.sql was changed"))
MISSING = Trouble.of(errors.ClaimNotFound("there is no claim"))


@dataclass
class Job:
    """A Job and its pod.

    Attributes:
        attempt: its number.
        text: the SQL that its driver runs.
        phase: its phase.
        trouble: the reason of its failure.
        deleting: whether it is deleted, and its pod still ends.
        taken: the attempt in the ledger that its driver has taken.
    """

    attempt: int
    text: str
    phase: JobPhase = JobPhase.PENDING
    trouble: Trouble | None = None
    deleting: bool = False
    taken: int | None = None

    @property
    def alive(self) -> bool:
        """Tell whether its pod may run."""
        return self.phase in {JobPhase.PENDING, JobPhase.RUNNING}


@dataclass
class Cluster:
    """The Jobs by name, and whether stores and claim exist.

    Attributes:
        lingering: pods that still end, though their Job is gone.
    """

    jobs: dict[str, Job] = field(default_factory=dict)
    lingering: int = 0
    store: bool = True
    claim: bool = True


class QueryMachine(RuleBasedStateMachine):
    """One query with mode: Once or Continuous."""

    mode = "Continuous"

    def __init__(self) -> None:
        super().__init__()
        self.query = QueryRecorder("counts", mode=self.mode)
        self.cluster = Cluster()
        self.texts = 0
        self.asked = 0
        self.refused: object = None
        self.gone = False

    # -- the operator

    @rule(done=st.integers(0, 4))
    def look(self, done: int) -> None:
        """Let the operator look, write the status, and be killed after `done` actions."""
        if self.gone:
            return
        self.query.jobs = tuple(self._seen(name) for name in sorted(self.cluster.jobs))
        body = self.query.body
        before = list(body["metadata"].get("finalizers", ()))
        pods = self._pods()
        decision = self.query.look(**self._around(pods))
        body["metadata"]["finalizers"] = before  # the recorder has carried out all actions
        for action in decision.actions[:done]:
            self._perform(action, pods)
        if not body["metadata"]["finalizers"]:
            del body["metadata"]["finalizers"]
            self.gone = "deletionTimestamp" in body["metadata"]
        self._check_said()

    def _around(self, pods: int) -> dict[str, Any]:
        job = self._latest()
        resting = job is None or not job.alive or self.query.body["spec"].get("suspend")
        around: dict[str, Any] = {"pods": pods if resting or self._deleted else 0}
        if not self.cluster.store:
            around["stores"] = (None, READY)
        if not self.cluster.claim and resting:
            around["hindrance"] = MISSING
        return around

    def _perform(self, action: object, pods: int) -> None:
        meta = self.query.body["metadata"]
        match action:
            case ProtectQuery():
                meta["finalizers"] = [QUERY_FINALIZER]
            case UnprotectQuery():
                meta["finalizers"] = []
            case StopDriver(name):
                job = self.cluster.jobs.get(name)
                if job is not None and job.alive:
                    job.deleting = True
                else:
                    self.cluster.jobs.pop(name, None)
            case StartDriver(attempt):
                assert not pods, "two drivers would have one checkpoint"
                assert meta["finalizers"]
                name = job_name(meta["uid"], attempt)
                assert name not in self.cluster.jobs
                assert self._wanted != self.refused, "a driver is made in vain"
                self.cluster.jobs[name] = Job(attempt, self._text)

    def _seen(self, name: str) -> JobSeen:
        job = self.cluster.jobs[name]
        return JobSeen(
            name=name,
            attempt=job.attempt,
            phase=job.phase,
            started=self.query.now,
            pod=None if job.phase is JobPhase.PENDING else "pod",
            trouble=job.trouble,
            deleting=job.deleting,
            outdated=job.text != self._text,
        )

    def _check_said(self) -> None:
        """Check that the status reports a running query only if the present text runs."""
        if self.query.reason == "Running" and not self._stale:
            job = self._latest()
            assert job is not None
            assert job.alive
            assert not job.deleting
            assert job.text == self._text

    def _pods(self) -> int:
        return sum(job.alive for job in self.cluster.jobs.values()) + self.cluster.lingering

    @property
    def _stale(self) -> bool:
        meta = self.query.body["metadata"]
        return bool(self.query.body["status"].get("observedGeneration") != meta["generation"])

    def _latest(self) -> Job | None:
        jobs = self.cluster.jobs.values()
        return max(jobs, key=lambda job: job.attempt, default=None)

    @property
    def _wanted(self) -> object:
        """Return the facts by which a user asks for another attempt."""
        return self.query.body["metadata"]["generation"], self.asked

    @property
    def _pending(self) -> bool:
        """Whether the operator has yet to see the last request. Another attempt follows it."""
        seen = self.query.body["status"].get("lastHandledRequestedAt")
        return self.asked > 0 and seen != f"request-{self.asked}"

    @property
    def _text(self) -> str:
        return str(self.query.body["spec"]["query"]["sql"])

    @property
    def _deleted(self) -> bool:
        return "deletionTimestamp" in self.query.body["metadata"]

    # -- the drivers

    def _running(self) -> Job | None:
        return next((job for job in self.cluster.jobs.values() if job.alive), None)

    @rule()
    def start(self) -> None:
        """Let a pod start."""
        job = self._running()
        if job is not None and not job.deleting:
            job.phase = JobPhase.RUNNING

    @rule(rows=st.integers(0, 3))
    def work(self, rows: int) -> None:
        """Let a driver take the ledger, and write a batch."""
        job = self._running()
        if job is None or job.phase is not JobPhase.RUNNING:
            return
        ledger = self.query.ledger
        job.taken = job.taken or ledger.attempt + 1
        batch = 0 if ledger.last is None else ledger.last.batch + 1
        self.query.record(batch, rows, job.taken)

    @rule(trouble=st.sampled_from([LOST, REFUSED, None]))
    def end(self, trouble: Trouble | None) -> None:
        """Let a driver fail. With `mode: Once` it may also end well."""
        job = self._running()
        if job is None or (trouble is None and (self.mode != "Once" or job.deleting)):
            return
        job.phase = JobPhase.FAILED if trouble else JobPhase.SUCCEEDED
        job.trouble = trouble
        if trouble is REFUSED:
            pending = self._pending
            self.look(done=9)
            heard = self.query.reason == "QueryChanged" and not self._stale
            self.refused = self._wanted if heard and not pending else None

    @rule()
    def sweep(self) -> None:
        """Let Kubernetes remove Jobs that are deleted. Their pods may end later."""
        for name, job in list(self.cluster.jobs.items()):
            if job.deleting:
                self.cluster.lingering += job.alive
                del self.cluster.jobs[name]

    @rule()
    def finish(self) -> None:
        """End the pods whose Jobs are gone."""
        self.cluster.lingering = 0

    @rule()
    def expire(self) -> None:
        """Let Kubernetes remove ended Jobs by their age."""
        for name, job in list(self.cluster.jobs.items()):
            if not job.alive:
                del self.cluster.jobs[name]

    @rule()
    def prosper(self) -> None:
        """Let all go well for a while."""
        for _ in range(3):
            self.look(done=9)
            self.start()
            self.work(rows=1)
        self.look(done=9)

    # -- users, and time

    @rule()
    def change(self) -> None:
        """Change the text."""
        self.texts += 1
        self.query.change(query={"sql": f"SELECT {self.texts} AS n FROM clicks"})  # noqa: S608

    @rule(suspend=st.booleans())
    def suspend(self, *, suspend: bool) -> None:
        """Suspend or resume the query."""
        if self.query.body["spec"].get("suspend", False) != suspend:
            self.query.change(suspend=suspend)

    @rule()
    def ask(self) -> None:
        """Ask for another attempt."""
        self.asked += 1
        self.query.request(f"request-{self.asked}")

    @precondition(lambda self: self.query.body["metadata"].get("finalizers") and not self._deleted)
    @rule()
    def delete(self) -> None:
        """Delete the query."""
        self.query.delete()

    @rule()
    def lose_status(self) -> None:
        """Delete the status by hand."""
        self.query.body["status"] = {}
        self.refused = None

    @rule(store=st.booleans(), claim=st.booleans())
    def surroundings(self, *, store: bool, claim: bool) -> None:
        """Make the StreamStore and the claim exist or not."""
        self.cluster.store, self.cluster.claim = store, claim

    @rule(seconds=st.sampled_from([1, 30, 1000]))
    def wait(self, seconds: int) -> None:
        """Let time pass."""
        self.query.later(seconds)

    # -- invariants

    @invariant()
    def one_driver_at_most(self) -> None:
        """Check that at most one pod may run."""
        assert self._pods() <= 1

    def teardown(self) -> None:
        """Let all be well, and check that the query ends or runs."""
        self.cluster.store = self.cluster.claim = True
        if not self._deleted:
            self.suspend(suspend=False)
            self.ask()
        for _ in range(60):
            self.look(done=9)
            if self._is_well():
                return
            self.sweep()
            self.finish()
            self.start()
            if not self._deleted:
                self.work(rows=1)
                if self.mode == "Once":
                    self.end(None)
            self.query.later(400)
        raise AssertionError(f"{self.query.reason}: {self.query.body['status']}")

    def _is_well(self) -> bool:
        if self._deleted:
            return self.gone or not self.query.body["metadata"].get("finalizers")
        if self.mode == "Once":
            return self.query.reason == "Completed" and not self._stale
        job = self._latest()
        present = job is not None and job.alive and job.text == self._text
        return self.query.reason == "Running" and present


class OnceMachine(QueryMachine):
    """A query that ends by itself."""

    mode = "Once"


@searches
def test_a_query_that_goes_on_comes_to_run_whatever_happened() -> None:
    """It never has two drivers, and is never reported to run an outdated text."""
    run_machine(QueryMachine, examples=20, steps=40)


@searches
def test_a_query_with_an_end_comes_to_it_whatever_happened() -> None:
    """The same holds with drivers that end well."""
    run_machine(OnceMachine, examples=20, steps=40)
