"""A copy as it was seen, and what follows from that without any decision."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice.api.status.common import ConditionType
from sluice.core.reconcile.copies.world import JobPhase

if TYPE_CHECKING:
    from sluice.api.kinds.scopecopy import ScopeCopySpec
    from sluice.api.kinds.streamarchive import StreamArchiveSpec
    from sluice.api.kinds.streamcopy import StreamCopySpec
    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.world import JobSeen, World


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySeen:
    """A StreamCopy or a ScopeCopy as the API server has it, or a run of a StreamArchive.

    Attributes:
        name, uid, generation: from its metadata.
        copy_id: its identity in stores.
        spec, status: as they are written.
        requested_at: the annotation that asks for another run, if any.
        finalizer: whether the staging finalizer stands on it.
        deleted: since when it is being deleted, in seconds; None if it is not.
        force_orphan: whether it may go without its staging being dropped.
    """

    name: str
    uid: str
    generation: int
    copy_id: str
    spec: StreamCopySpec | ScopeCopySpec | StreamArchiveSpec
    status: CopyingStatus
    requested_at: str | None = None
    finalizer: bool = False
    deleted: float | None = None
    force_orphan: bool = False

    @property
    def done(self) -> bool:
        """Whether it succeeded, and nobody asked for another run since."""
        said = self.status.condition(ConditionType.SUCCEEDED)
        return said is not None and said.status == "True" and not self.asked

    @property
    def asked(self) -> bool:
        """Whether somebody asked for another run and was not heard yet."""
        return (
            self.requested_at is not None
            and self.requested_at != self.status.last_handled_requested_at
        )

    @property
    def keeps(self) -> bool:
        """Whether something of it stays in a store that goes with the resource."""
        return False

    @property
    def changed(self) -> bool:
        """Whether the spec was changed since the operator last looked."""
        return self.generation != self.status.observed_generation

    @property
    def gave_up(self) -> bool:
        """Whether it failed for good, and nobody changed it or asked for another run since.

        By the facts and not by the conditions, which tell of whatever is the matter at a time.
        """
        status = self.status
        return (
            status.last_failure is not None
            and status.retry_time is None
            and status.completion_time is not None
            and not self.asked
            and not self.changed
        )


def recorded(copy: CopySeen, job: JobSeen) -> bool:
    """Whether the end of this attempt was written down."""
    return any(entry.attempt == job.attempt and entry.outcome for entry in copy.status.history)


def running_job(copy: CopySeen, world: World) -> JobSeen | None:
    """The latest attempt's Job while its driver runs or is about to, and is to."""
    job = world.job
    return job if job is not None and job.active and not recorded(copy, job) else None


def late_jobs(copy: CopySeen, world: World) -> list[JobSeen]:
    """Jobs that must not run: another attempt has begun since, or their end was written down."""
    return [
        job
        for job in world.jobs
        if job.active and not job.deleting and (job is not world.job or recorded(copy, job))
    ]


def waits(copy: CopySeen, world: World) -> bool:
    """Whether a failure of before asks to wait still."""
    at = copy.status.retry_time
    heard = copy.asked or copy.changed or copy.status.last_failure is None
    return not heard and at is not None and world.now < at


def seconds_left(copy: CopySeen, world: World) -> float | None:
    """Seconds until the next attempt."""
    at = copy.status.retry_time
    return None if at is None else max((at - world.now).total_seconds(), 0.05)


def too_late(copy: CopySeen, world: World) -> bool:
    """Whether the deadline has passed, and nobody asked to go on nevertheless.

    A driver that says that it is done is heard first, however late anybody looks.
    """
    limit, begun, job = copy.spec.active_deadline_seconds, copy.status.start_time, world.job
    return (
        limit is not None
        and begun is not None
        and not copy.asked
        and not copy.spec.suspend
        and not (job and job.phase is JobPhase.SUCCEEDED and not recorded(copy, job))
        and world.now - begun > timedelta(seconds=limit)
    )


def asks_again(copy: CopySeen, world: World) -> bool:
    """Whether a scope's copy that is over is to be planned anew for what has failed.

    It is where somebody asks for another run; or was heard, and no plan was written for it, since
    a store was away or the operator ended: there is none that the status speaks of. So it is with
    a copy that was not begun, where it does not matter. What became of an attempt is said before
    another run is planned.
    """
    if world.job is not None and not recorded(copy, world.job):
        return False
    return copy.asked or world.plan is None or world.plan.plan.hash != copy.status.plan_hash
