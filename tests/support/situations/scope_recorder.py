"""A ScopeCopy whose status the operator's own pure functions write: see `recorder`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from sluice.api.kinds.scopecopy import ScopeCopy
from sluice.core.reconcile.copies.actions import RecordScopeRun, RemoveFinalizer, WriteResults
from sluice.core.reconcile.copies.decide import questions
from sluice.core.reconcile.copies.scheduled.decide import after_failure, reconcile_scheduled
from sluice.core.reconcile.copies.scheduled.seen import ScheduledScopeSeen, times
from sluice.core.reconcile.copies.statuses.results import results_hash
from sluice.core.reconcile.copies.world import Reading
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.scope.progress import Progress
from sluice.core.scope.scope import Counts, LeftOut, ScopePlan, StreamResult, StreamState, Why
from sluice.core.values.model import StreamName
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.core.workloads.scope_log import planned_results
from sluice.errors import SourceTruncated
from sluice.kube.api.objects import copy_seen, parse
from support.cases import resources
from support.engine.plans import ADDRESS, segment_plan, stream_plan
from support.reconcile.scope_archives import BUCKET, run_plan
from support.situations.recorder import BYTES, DIGEST, EVENTS, NOON, CopyingRecorder

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.actions import Decision
    from sluice.errors import SluiceError

STREAMS: Final = 30
BEGIN: Final = int(NOON.timestamp() * 1000)
SPREAD: Final = 84
"""Milliseconds during which all bounds were taken."""

LEFT_OUT: Final = (
    LeftOut(why=Why.INTERNAL, count=2, streams=("_RGbilling", "_RGreports")),
    LeftOut(why=Why.EPHEMERAL, count=1, streams=("shuffle",)),
)


class ScopeRecorder(CopyingRecorder):
    """A recorder of one ScopeCopy of 30 streams.

    Args:
        name: the resource's name.
        spec: fields of its spec besides source and target.
    """

    plan: ScopeCopyPlan

    def __init__(self, name: str, **spec: Any) -> None:
        super().__init__(resources.SCOPE, name, **spec)
        # The API server sets these defaults.
        target = self.body["spec"]["target"] | {"scopePolicy": "MustExist"}
        frozen = {"onExists": "Fail", "onTruncation": "Fail", "sourceOnComplete": "Retain"}
        self.body["spec"] = frozen | self.body["spec"] | {"target": target}
        self.plan = self._plan(STREAMS)

    def copy(self, streams: int, *, staged: float, failed: int = 0) -> None:
        """Let the driver run until `streams` are copied and a fraction of the bytes is staged."""
        self.later(20)
        reading = self.reading(staged)
        counts = Counts(total=STREAMS, copied=streams, failed=failed)
        progress = Progress(
            bytes=reading.progress.bytes, total=BYTES, published=False, streams=counts
        )
        running = (self.job(JobPhase.RUNNING),)
        self.look(jobs=running, reading=Reading(progress=progress, pace=reading.pace))

    def finish(self, *, failed: int = 0, stopped: int = 0, kept: str | None = None) -> None:
        """End the driver with each target whole, except for failed and stopped streams."""
        self.later(20)
        jobs = (self.job(JobPhase.SUCCEEDED),)
        results = self.results(failed, stopped)
        ended = ScopeEnded(plan=self.plan, results=results, kept=kept)
        assert self.look(jobs=jobs, answer=ended).actions == (WriteResults(results),)
        decision = self.look(jobs=jobs, answer=ended, results=results_hash(results))
        assert (RemoveFinalizer() in decision.actions) is not bool(failed or stopped)

    def start_again(self, *, failed: int) -> None:
        """Plan the failed streams once more and begin an attempt."""
        results = self.results(failed, 0)
        again = [
            stream
            for stream, result in zip(self.plan.streams, results, strict=True)
            if result.trouble is not None
        ]
        assert self.plan.scope is not None
        whole = tuple(result for result in results if result.trouble is None)
        scope = self.plan.scope.model_copy(update={"run": 2, "settled": whole})
        plan = self.plan.model_copy(update={"streams": tuple(again), "scope": scope})
        self.look(answer=Planned(plan=plan))

    def select_nothing(self) -> ScopeEnded:
        """Return the stores' answer for a spec that selects no stream."""
        self.plan = self._plan(0)
        return ScopeEnded(plan=self.plan, results=())

    def results(self, failed: int, stopped: int) -> tuple[StreamResult, ...]:
        """Return the result of each stream."""
        whole = STREAMS - failed - stopped
        found = []
        for number, planned in enumerate(planned_results(self.plan)):
            if number < whole:
                change: dict[str, Any] = {"state": StreamState.COPIED, "digest": DIGEST}
            elif number < whole + failed:
                error = SourceTruncated(
                    f"in/{planned.stream} has lost [0, 1080) of segment 0, which was to be copied"
                )
                change = {"state": StreamState.FAILED, "trouble": Trouble.of(error)}
            else:
                change = {"state": StreamState.STOPPED}
            found.append(planned.model_copy(update=change))
        return tuple(found)

    def _plan(self, streams: int) -> ScopeCopyPlan:
        move = self.body["spec"]["sourceOnComplete"] == "Delete"
        source, target = (self.body["spec"][side] for side in ("source", "target"))
        archives = "archive" in target
        return ScopeCopyPlan(
            sources=(BUCKET if "archive" in source else ADDRESS,),
            target=BUCKET if archives else ADDRESS,
            streams=() if archives else tuple(map(self._stream, range(streams))),
            runs=tuple(map(self._run, range(streams))) if archives else (),
            scope=ScopePlan(
                scope_id=self.copy_id,
                source=source.get("archive", {}).get("path", "in"),
                target=target.get("archive", {}).get("path", "out"),
                begin=BEGIN,
                end=BEGIN + SPREAD,
                left_out=() if move or "archive" in source else LEFT_OUT,
                tables=() if move or "archive" in source else ("prices",),
                move=move,
            ),
        )

    def _run(self, number: int) -> Any:
        return run_plan(f"stream-{number:02}", BYTES // STREAMS)

    def _stream(self, number: int) -> Any:
        name = f"stream-{number:02}"
        return stream_plan(
            segment_plan(BYTES // STREAMS, events=EVENTS // STREAMS),
            copy=f"{number:032x}",
            source=StreamName(scope="in", stream=name),
            target=StreamName(scope="out", stream=name),
        )


class ScheduledScopeRecorder(ScopeRecorder):
    """A recorder of one ScopeCopy with a schedule, which archives 30 streams again and again.

    Args:
        name: the resource's name.
        spec: fields of its spec besides the source.
    """

    def __init__(self, name: str, **spec: Any) -> None:
        super().__init__(name, onExists="Append", **spec)
        self._runs = 0

    def look(self, **world: Any) -> Decision:
        """Let the operator look at the copy and write its status. See CopyingRecorder."""
        seen, around = self._seen(), self._world(**world)
        asked = questions(seen, replace(around, answer=None, reading=None))
        assert around.answer is None or asked, "no question was asked"
        return self._write(reconcile_scheduled(seen, around))

    def fail(self, error: SluiceError, **world: Any) -> Decision:
        """Let an action of the last look fail."""
        return self._write(after_failure(self._seen(), self._world(**world), Trouble.of(error)))

    def finish(self, *, failed: int = 0, stopped: int = 0, kept: str | None = None) -> None:
        """End the driver, and record the run of the scope before the end is told."""
        self.later(20)
        self._runs += 1
        jobs, results = (self.job(JobPhase.SUCCEEDED),), self.results(failed, stopped)
        ended = ScopeEnded(plan=self.plan, results=results, kept=kept)
        written = results_hash(results)
        decision = self.look(jobs=jobs, answer=ended, results=written)
        assert decision.actions == (RecordScopeRun(ended),)
        recorded = replace(ended, number=self._runs)
        decision = self.look(jobs=jobs, answer=recorded, results=written)
        assert RemoveFinalizer() in decision.actions

    def _seen(self) -> ScheduledScopeSeen:
        resource = parse(self.body, ScopeCopy)
        seen = copy_seen(self.body, resource, self.copy_id)
        assert isinstance(seen, ScheduledScopeSeen)
        created = datetime.fromisoformat(self.body["metadata"]["creationTimestamp"])
        due, later = times(resource.spec, seen.status, created=created, now=self.now)
        return replace(seen, deleted=self.deleted, due=due, later=later)
