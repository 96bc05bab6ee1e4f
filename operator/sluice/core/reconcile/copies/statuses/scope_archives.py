"""Build the status of a ScopeCopy that puts its streams into archives, once or on a schedule."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from sluice.core.reconcile.copies.actions import RecordScopeRun
from sluice.core.reconcile.copies.scheduled.status import ScheduledStatus
from sluice.core.reconcile.copies.statuses.archives import ArchiveStatus
from sluice.core.reconcile.copies.statuses.scopes import ScopeStatus, ended_in, some
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.scope.scope import StreamState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.api.kinds.scopecopy import ScopeCopySpec
    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.scheduled.seen import ScheduledScopeSeen
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import World
    from sluice.core.reconcile.shared.jobs import JobSeen
    from sluice.core.reconcile.shared.verdict import Verdict
    from sluice.core.scope.scope import ScopePlan, StreamResult
    from sluice.core.values.trouble import Trouble
    from sluice.core.workloads.answers import ScopeEnded


class ScopeArchiveStatus(ScopeStatus):
    """Builder of the next status of a ScopeCopy whose targets are archives."""

    work: ClassVar[str] = ArchiveStatus.work
    there: ClassVar[str] = ArchiveStatus.there
    comparing: ClassVar[str] = "All bytes are written; they are read back, and runs are recorded."
    published: ClassVar[str] = "All runs are recorded; the driver tidies."
    dropping: ClassVar[str] = ArchiveStatus.dropping
    undropped: ClassVar[str] = "What runs have left cannot be deleted yet."
    made: ClassVar[str] = "archived"
    where: ClassVar[str] = "in"

    def _verified(self) -> Saying:
        return Saying(
            "ReadBack",
            "What was put of each stream was read back and compared before its run was recorded; "
            "the SHA-256 of each run's manifest is in the ConfigMaps that status.resultRefs names.",
        )

    def _moving(self, message: str) -> Saying:
        return Saying("Archiving", message)


class ScheduledScopeStatus(ScheduledStatus, ScopeArchiveStatus):
    """Builder of the next status of a ScopeCopy with a schedule.

    Args:
        seen: the copy, with its present status.
        now: the time.
    """

    _seen: ScheduledScopeSeen

    def __init__(self, seen: ScheduledScopeSeen, now: datetime) -> None:
        self._seen = seen
        super().__init__(seen, seen.spec, now)
        self._of_schedule()

    def unpublished(self, world: World) -> Action | None:
        """Publish the results, and record the run in the folder of the archives.

        A run without streams is not recorded: a restore of the last run would restore nothing.
        """
        ended = ended_in(world)
        missing = super().unpublished(world)
        if missing is not None or ended.number is not None or not ended.results:
            return missing
        return RecordScopeRun(ended)

    def over(self, world: World) -> CopyingStatus:
        """Report the end of a run: each stream has got a run, has failed, or was not begun."""
        ended = ended_in(world)
        super().over(world)
        self._set(last_run_time=self.value.completion_time)
        if ended.number is not None:
            self._set(run=ended.number)
            if all(one.state is StreamState.COPIED for one in ended.results):
                self._set(last_success_time=self._succeeded(ended, world))
        return self.value

    def fail(self, trouble: Trouble, job: JobSeen | None) -> Verdict:
        """Write a failure, as for any copy. A failure that ends the run ends the last run."""
        verdict = super().fail(trouble, job)
        if verdict.final:
            self._set(last_run_time=self._now)
        return verdict

    def _succeeded(self, ended: ScopeEnded, world: World) -> datetime | None:
        """Give the time of the last success. It may be early, but never late.

        Without the Job, its end is unknown. Then the time counts up to which the run holds the
        streams: an operator that was away must not take an old run for a new one.
        """
        job = world.job
        held = datetime.fromtimestamp(ended.plan.scope.end / 1000, UTC)
        at = job.ended if job is not None and job.ended else held
        # A time in the future is that of a wrong clock. It would hide for long that runs fail.
        known = [one for one in (at, self._seen.status.last_success_time) if one is not None]
        return max((one for one in known if one <= self._now), default=None)

    def _success(self, ended: ScopeEnded) -> str:
        number = ended.number
        recorded = "" if number is None else f" Run {number} of the scope is recorded."
        return f"{super()._success(ended)}{recorded}{_gone(ended)}"

    def _again(self) -> str:
        later = self._seen.later
        due = "" if later is None else f" at {later:%Y-%m-%dT%H:%M:%SZ}"
        return (
            f"The next run{due} archives all streams again; to begin it now, annotate the copy "
            "with sluice.dev/requestedAt"
        )

    def _of_scope(self, scope: ScopePlan, results: Sequence[StreamResult]) -> dict[str, Any]:
        found = super()._of_scope(scope, results)
        del found["run"]  # it has a number once it is recorded
        return found


def _gone(ended: ScopeEnded) -> str:
    """Name the streams that the run has not any more, in a sentence after a blank."""
    if not ended.gone:
        return ""
    were = "1 stream is" if len(ended.gone) == 1 else f"{len(ended.gone):,} streams are"
    what = f"{were} gone, or not selected any more, since the last complete run"
    return f" {what}; the archives stay: {some(ended.gone)}."


def scope_status_of(copy: CopySeen, spec: ScopeCopySpec, now: datetime) -> ScopeStatus:
    """Return the builder of a ScopeCopy's status, to a scope or to archives."""
    kind = ScopeStatus if spec.target.archive is None else ScopeArchiveStatus
    return kind(copy, spec, now)
