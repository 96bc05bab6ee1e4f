"""Build the status of a StreamArchive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sluice.api.status.archive_status import ArchiveSummary, RunStatus
from sluice.api.status.common import ConditionType, GapStatus, ProgressStatus
from sluice.core.archive.recorded import Recorded
from sluice.core.reconcile.copies.scheduled.status import ScheduledStatus
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.values import text
from sluice.core.workloads.plan import ArchiveRunPlan

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.archive_seen import ArchiveSeen
    from sluice.core.reconcile.copies.world import Reading, World
    from sluice.core.reconcile.shared.conditions import Tri
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.reconcile.shared.verdict import Verdict
    from sluice.core.values.trouble import Trouble
    from sluice.core.workloads.plan import Plan


class ArchiveStatus(ScheduledStatus):
    """Builder of the next status of a StreamArchive.

    Args:
        seen: the archive, with its present status.
        now: the time.
    """

    work: ClassVar[str] = "archive"
    there: ClassVar[str] = "written"
    comparing: ClassVar[str] = "All bytes are written; they are read back, and the run is recorded."
    dropping: ClassVar[str] = "What a run has written that is not recorded is let go."
    undropped: ClassVar[str] = "What is to be deleted of the archive cannot be deleted yet."

    _seen: ArchiveSeen

    def __init__(self, seen: ArchiveSeen, now: datetime) -> None:
        self._seen = seen
        super().__init__(seen, now)
        if seen.status.last_success_time is None:  # as earlier versions wrote it
            runs = seen.status.archive.last_runs if seen.status.archive else ()
            self._set(last_success_time=runs[0].time if runs else None)
        self._of_schedule()

    def unpublished(self, world: World) -> Action | None:  # noqa: ARG002 - a head publishes it
        """Return None: a recorded run can be found without further action."""
        return None

    def over(self, world: World) -> CopyingStatus:
        """Report that the run is in the archive."""
        recorded = _recorded(world)
        job, attempt = world.job, self._open(world)
        if attempt is not None:
            self.end(attempt, outcome="Succeeded")
        ended = job.ended if job and job.ended else self._now
        size = recorded.added
        self._set(
            failures=0,
            retry_time=None,
            last_failure=None,
            completion_time=ended,
            duration=self._took(ended),
            last_run_time=ended,
            last_success_time=self._succeeded(recorded, job),
            run=recorded.run,
            archive=self._summary(recorded),
            progress=ProgressStatus(
                bytes=size,
                total_bytes=size,
                size=text.size(size),
                percent=100,
                summary="100%",
                time=self._now,
            ),
            gaps=tuple(
                GapStatus(segment_id=gap.segment, from_=gap.begin, to=gap.end)
                for gap in recorded.gaps
            )
            or None,
        )
        runs = recorded.count
        many = "1 run" if runs == 1 else f"{runs} runs"
        whole = (
            f"Run {recorded.run} is recorded: {text.size(size)} are new. {many} can be restored."
        )
        said = Saying("Archived", whole)
        if recorded.lost:
            lost = text.size(recorded.lost)
            said = Saying("ArchivedWithGaps", f"{whole} The source had lost {lost} before.")
        elif recorded.gaps:
            first = text.lost_behind(recorded.gaps[0].segment, recorded.gaps[0].begin)
            said = Saying("ArchivedWithGaps", f"{whole} {first}")
        verified = Saying("ReadBack", "What the run added was read back and is the source's.")
        return self._say(
            conditions.succeeded(said, verified=verified if recorded.verified else None)
        )

    def fail(self, trouble: Trouble, job: JobSeen | None) -> Verdict:
        """Write a failure, as for any copy. One that ends the run sets the end of the last run."""
        verdict = super().fail(trouble, job)
        if verdict.final:
            self._set(last_run_time=self._now)
        return verdict

    def _succeeded(self, recorded: Recorded, job: JobSeen | None) -> datetime | None:
        """Give the time of the last success. It may be early, but never late.

        Without the Job, its end is unknown. Then the time counts up to which the run holds the
        stream: an operator that was away must not take an old run for a new one.
        """
        held = (one.time for one in recorded.runs if one.run == recorded.run)
        ended = job.ended if job is not None and job.ended else next(held, None)
        known = [] if ended is None else [min(ended, self._now)]
        before = self._seen.status.last_success_time
        # A time in the future is that of a wrong clock. It would hide for long that runs fail.
        if before is not None and before <= self._now:
            known.append(before)
        return max(known, default=None)

    def _summary(self, recorded: Recorded) -> ArchiveSummary:
        runs = recorded.runs
        return ArchiveSummary(
            last_head=recorded.head,
            sha256=recorded.sha256,
            runs=recorded.count,
            bytes=runs[-1].bytes if runs else 0,
            size=text.size(runs[-1].bytes) if runs else "",
            events=runs[-1].events if runs else None,
            last_runs=tuple(
                RunStatus(
                    run=one.run,
                    time=one.time,
                    bytes=one.bytes,
                    events=one.events,
                    verified=one.verified,
                )
                for one in reversed(runs)
            ),
            time=self._now,
        )

    def _say(self, wanted: dict[ConditionType, tuple[Tri, Saying]]) -> CopyingStatus:
        """Write the conditions of the runs. That of drills stays, as long as there are any."""
        kind = ConditionType.RESTORE_VERIFIED
        drilled = self._seen.status.condition(kind)
        if drilled is not None and self._seen.spec.verify is not None:
            said = Saying(drilled.reason, drilled.message)
            return super()._say(wanted | {kind: (drilled.status, said)})
        return super()._say({one: said for one, said in wanted.items() if one is not kind})

    def _of_run(self) -> dict[str, Any]:
        return {"run": None, "gaps": None, "start_cut": None, "end_cut": None}

    def _of_plan(self, plan: Plan) -> dict[str, Any]:
        if not isinstance(plan, ArchiveRunPlan):  # only the driver can look
            return {}
        run = plan.archive
        begin = ",".join(f"{one.id}={one.begin}" for one in run.segments)
        end = ",".join(f"{one.segment}={one.offset}" for one in run.end.offsets)
        return {"run": run.run, "start_cut": begin, "end_cut": end}

    def _work(self, plan: Plan) -> str:
        return text.size(plan.bytes) if isinstance(plan, ArchiveRunPlan) else "what is new"

    def _so_far(self) -> str:
        progress = self.value.progress
        if progress is None or not progress.total_bytes:
            return "The driver looks for what is new, and writes it."
        done = text.size(progress.bytes)
        total = text.size(progress.total_bytes)
        return f"{done} of {total} are written."

    def _copied(self) -> str:
        archive = self._seen.status.archive
        runs = archive.runs if archive else 0
        if not runs:
            return ""
        many = "1 earlier run" if runs == 1 else f"{runs} earlier runs"
        return f" {many} can be restored."

    def _moving(self, message: str) -> Saying:
        return Saying("Archiving", message)

    def _take(self, reading: Reading) -> dict[str, Any]:  # noqa: ARG002 - bytes are all there is
        return {}


def _recorded(world: World) -> Recorded:
    assert isinstance(world.answer, Recorded)  # noqa: S101 - for the type checker
    return world.answer
