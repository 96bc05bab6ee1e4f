"""StreamQueries whose statuses the operator's own pure functions write: see `recorder`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluice.api.kinds.streamquery import StreamQuery
from sluice.api.status.query_status import StreamQueryStatus
from sluice.core.query.ledger import BatchRecord, LedgerState, QueryReading, VersionRecord
from sluice.core.query.request import query_id
from sluice.core.reconcile.queries.decide import (
    after_query_failure,
    asks_stores,
    reconcile_query,
)
from sluice.core.reconcile.queries.verifying import times as verify_times
from sluice.core.reconcile.queries.world import (
    ProtectQuery,
    QueryWorld,
    StartDriver,
    UnprotectQuery,
)
from sluice.core.reconcile.shared.jobs import JobPhase, JobSeen, job_name, verifier_name
from sluice.core.values.trouble import Trouble
from sluice.kube.api.objects import QUERY_FINALIZER, parse, query_seen
from support.cases import resources
from support.engine.queries import position, query_plan
from support.situations.recorder import READY, Recorder

if TYPE_CHECKING:
    from sluice.core.reconcile.queries.world import QueryDecision, QuerySeen
    from sluice.errors import SluiceError


class QueryRecorder(Recorder):
    """A recorder of one StreamQuery.

    Args:
        name: the resource's name.
        spec: fields of its spec that differ from the default.

    Attributes:
        ledger: the content of the ledger.
        jobs: the attempts whose Jobs exist.
        verifiers: the Jobs of verifications that exist.
        lag: bytes that the sources have behind the last batch.
    """

    def __init__(self, name: str, **spec: Any) -> None:
        super().__init__(resources.QUERY, name)
        self.body["spec"] |= spec
        self.ledger = LedgerState()
        self.jobs: tuple[JobSeen, ...] = ()
        self.verifiers: tuple[JobSeen, ...] = ()
        self.lag: int | None = 0

    def look(self, **world: Any) -> QueryDecision:
        """Let the operator look at the query, write its status, and act on its decision.

        Args:
            world: the operator's surroundings, as fields of QueryWorld. Stores are ready by
                default, and tell the ledger if they are asked.
        """
        seen, around = self._seen(), self._world(**world)
        if asks_stores(seen, around) and around.trouble is None:
            around = replace(around, reading=QueryReading(self.ledger, self.lag))
        decision = reconcile_query(seen, around)
        self._write(decision)
        return decision

    def fail(self, error: SluiceError, **world: Any) -> QueryDecision:
        """Let an action of the last look fail."""
        decision = after_query_failure(self._seen(), self._world(**world), Trouble.of(error))
        self._write(decision)
        return decision

    def put(self, decision: QueryDecision) -> None:
        """Write the status of a decision that follows from another one."""
        self._write(decision)

    def start(self) -> None:
        """Let an attempt begin. Its pod does not exist yet."""
        self.look()
        self.becomes(JobPhase.PENDING)
        self.look()

    def becomes(self, phase: JobPhase, **more: Any) -> None:
        """Put the Job of the latest attempt into a phase."""
        number = self.body["status"]["attempts"]
        pod = None if phase is JobPhase.PENDING else "pod"
        about = {"attempt": number, "phase": phase, "started": self.now, "pod": pod, **more}
        job = JobSeen(name=job_name(self.body["metadata"]["uid"], number), **about)
        self.jobs = (*(one for one in self.jobs if one.attempt < number), job)

    def verifies(self, phase: JobPhase, number: int = 1, **more: Any) -> None:
        """Put the Job of a verification into a phase."""
        pod = None if phase is JobPhase.PENDING else "pod"
        about = {"attempt": number, "phase": phase, "started": self.now, "pod": pod, **more}
        job = JobSeen(name=verifier_name(self.body["metadata"]["uid"], number), **about)
        self.verifiers = (*(one for one in self.verifiers if one.attempt != number), job)

    def write(self, batch: int = 0, rows: int = 3) -> None:
        """Let the driver take the ledger and write a batch, and the operator see it."""
        self.becomes(JobPhase.RUNNING)
        self.record(batch, rows)
        self.look()

    def record(self, batch: int, rows: int, attempt: int | None = None) -> None:
        """Let a driver take the ledger and write a batch.

        Args:
            batch: the batch's number.
            rows: the number of its rows.
            attempt: that of the ledger; by default that of the status.
        """
        version = self.ledger.version or VersionRecord(
            number=1, plan=query_plan(), begins=(position(0),)
        )
        attempt = attempt or max(self.ledger.attempt, self.body["status"]["attempts"])
        last = BatchRecord(
            batch=batch,
            ends=(position(100 * (batch + 1)),),
            rows=rows,
            sha256="0" * 64,
            watermark=round(self.now.timestamp() * 1000),
            attempt=attempt,
        )
        self.ledger = LedgerState(version, attempt, last, None, self.ledger.rows + rows)

    def end(self, error: SluiceError) -> QueryDecision:
        """Let the driver fail, and the operator see it."""
        self.becomes(JobPhase.FAILED, trouble=Trouble.of(error))
        return self.look()

    @property
    def reason(self) -> str:
        """The reason of the condition Ready."""
        conditions = self.body["status"].get("conditions", [])
        return next((str(one["reason"]) for one in conditions if one["type"] == "Ready"), "")

    def _seen(self) -> QuerySeen:
        resource = parse(self.body, StreamQuery)
        seen = query_seen(self.body, resource, query_id(resource, cluster="c"))
        seen = replace(seen, deleted=self.deleted)
        if seen.verify_trouble is not None:
            return seen
        due, later = verify_times(seen.spec.verify, seen.status.verification, now=self.now)
        return replace(seen, verify_due=due, verify_later=later)

    def _world(self, **world: Any) -> QueryWorld:
        usual: dict[str, Any] = {
            "now": self.now,
            "stores": (READY, READY),
            "jobs": self.jobs,
            "verifiers": self.verifiers,
        }
        return QueryWorld(**usual | world)

    def _write(self, decision: QueryDecision) -> None:
        self.body["status"] = StreamQueryStatus.read(decision.status.dump()).dump()
        meta = self.body["metadata"]
        for action in decision.actions:
            match action:
                case ProtectQuery():
                    meta["finalizers"] = [QUERY_FINALIZER]
                case UnprotectQuery():
                    meta.pop("finalizers", None)
                case StartDriver(attempt):
                    assert attempt == self.body["status"]["attempts"]
