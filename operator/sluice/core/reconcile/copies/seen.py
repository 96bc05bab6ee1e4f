"""A copy as it was seen, and the facts that follow from that without a decision."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sluice.api.kinds.streamarchive import StreamArchiveSpec
from sluice.api.status.common import ConditionType
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.reconcile.shared.store_seen import StoreSeen, store_trouble
from sluice.core.values.trouble import Trouble
from sluice.errors import LoginNotShared

if TYPE_CHECKING:
    from sluice.api.kinds.scopecopy import ScopeCopySpec
    from sluice.api.kinds.streamcopy import StreamCopySpec
    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.world import World
    from sluice.core.reconcile.shared.jobs import JobSeen


PARTLY: Final = frozenset({"PartiallySucceeded", "Failed"})
"""Reasons of a scope's copy that is over, and in which streams have failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySeen:
    """A StreamCopy or a ScopeCopy as the API server has it, or a run of a StreamArchive.

    Attributes:
        name, uid, generation: from its metadata.
        copy_id: its identity in stores.
        spec, status: as they are written.
        requested_at: the annotation that asks for another run, if any.
        finalizer: whether the staging finalizer stands on it.
        deleted: seconds since its deletion; None if it is not being deleted.
        force_orphan: whether it may go without its staging being deleted.
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
        """Whether it succeeded, and no other run was requested since."""
        said = self.status.condition(ConditionType.SUCCEEDED)
        return said is not None and said.status == "True" and not self.asked

    @property
    def asked(self) -> bool:
        """Whether another run is requested, and the request was not handled yet."""
        return (
            self.requested_at is not None
            and self.requested_at != self.status.last_handled_requested_at
        )

    @property
    def keeps(self) -> bool:
        """Whether the finished result is deleted with the resource. A copy's target never is."""
        return False

    @property
    def time_to_live(self) -> int | None:
        """Seconds after which the resource is deleted once it has succeeded; None for ever."""
        if isinstance(self.spec, StreamArchiveSpec):
            return None
        return self.spec.ttl_seconds_after_finished

    @property
    def begins_anew(self) -> bool:
        """Whether nothing of the work is needed once it is over, also if streams failed.

        Otherwise what failed can be tried again, and goes on from there.
        """
        return False

    @property
    def waits_for_rest(self) -> bool:
        """Whether another run is to begin as soon as nothing is left of the last one."""
        return False

    @property
    def changed(self) -> bool:
        """Whether the spec was changed since the operator last looked."""
        return self.generation != self.status.observed_generation

    @property
    def gave_up(self) -> bool:
        """Whether it failed for good, without a change of the spec or a request since.

        The conditions do not count here, since they may have changed after the failure.
        """
        status = self.status
        return (
            status.last_failure is not None
            and status.retry_time is None
            and status.completion_time is not None
            and not self.asked
            and not self.changed
        )


def follows(copy: CopySeen) -> bool:
    """Tell whether a copy follows its source, or its streams."""
    return not isinstance(copy.spec, StreamArchiveSpec) and copy.spec.follows


def behind(copy: CopySeen) -> int:
    """Return the bytes that the target of a copy was behind its source, as the status has it."""
    status = copy.status
    follow = status.follow if isinstance(status, StreamCopyStatus | ScopeCopyStatus) else None
    return 0 if follow is None else follow.lag_bytes


def recorded(copy: CopySeen, job: JobSeen) -> bool:
    """Tell whether the status has the end of this attempt."""
    return any(entry.attempt == job.attempt and entry.outcome for entry in copy.status.history)


def running_job(copy: CopySeen, world: World) -> JobSeen | None:
    """Return the latest attempt's Job if its driver runs or starts, and its end is not recorded."""
    job = world.job
    return job if job is not None and job.active and not recorded(copy, job) else None


def late_jobs(copy: CopySeen, world: World) -> list[str]:
    """List the Jobs that must not run: a later attempt has begun, or their end is recorded."""
    return [
        job.name
        for job in world.jobs
        if job.active and not job.deleting and (job is not world.job or recorded(copy, job))
    ]


def is_misplaced(job: JobSeen, world: World) -> bool:
    """Tell whether a Job is in the namespace of a StreamStore where no driver has to be any more.

    It is unknown while a StreamStore is: then the grants are withdrawn, or nothing is known.
    """
    known = all(isinstance(store, StoreSeen) for store in world.stores)
    return known and job.away not in {None, world.host}


def waits(copy: CopySeen, world: World) -> bool:
    """Tell whether the backoff after a failure still lasts."""
    at = copy.status.retry_time
    # A request or a change by the user ends the backoff.
    heard = copy.asked or copy.changed or copy.status.last_failure is None
    return not heard and at is not None and world.now < at


def seconds_left(copy: CopySeen, world: World) -> float | None:
    """Give the seconds until the next attempt; None if none is due."""
    at = copy.status.retry_time
    return None if at is None else max((at - world.now).total_seconds(), 0.05)


def too_late(copy: CopySeen, world: World) -> bool:
    """Tell whether the deadline has passed. A request to run again lifts it.

    A driver that reports success is checked first, however late the operator looks.
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
    """Tell whether to plan another run of a scope's copy, for the streams that failed.

    True if another run is requested. Also true if the status does not name the present plan: the
    request was handled, but a store was away or the operator ended before a new plan was written.
    That is true as well for a copy that has not begun, where it does not matter. The end of an
    attempt is recorded before another run is planned.
    """
    if world.job is not None and not recorded(copy, world.job):
        return False
    return copy.asked or world.plan is None or world.plan.plan.hash != copy.status.plan_hash


def stores_trouble(copy: CopySeen, world: World) -> Trouble | None:
    """Tell why a store cannot be used; None if all can."""
    refused = host_trouble(copy, world)
    if refused is not None:
        return refused
    places = (*copy.spec.origins, copy.spec.goal)
    named = [(f"{field}.{one.store_field}", one.store) for field, one in places]
    for (field, name), store in zip(named, world.stores, strict=True):
        found = store_trouble(field, name, store, begun=copy.finalizer)
        if found is not None:
            return found
    return None


def host_trouble(copy: CopySeen, world: World) -> Trouble | None:
    """Tell why no driver may run in the namespace of a StreamStore; None if it may, or need not.

    A driver there has the login of the StreamStore. So it opens StreamStores of that namespace
    only: their addresses are written by users of that namespace.
    """
    host = world.host
    if host is None:
        return None
    places = (*copy.spec.origins, copy.spec.goal)
    for (path, one), store in zip(places, world.stores, strict=True):
        if isinstance(store, StoreSeen) and store.namespace != host:
            return Trouble.of(
                LoginNotShared(
                    f"drivers of the copy have to run in namespace {host!r}, where they open no "
                    f"StreamStore of another namespace, as {one.store!r} is",
                    field=f"{path}.{one.store_field}",
                    remedy=f"Have a StreamStore for it made and shared in namespace {host!r}, or "
                    "copy in two steps.",
                )
            )
    before = copy.status.driver_namespace
    if copy.finalizer and before not in {None, host}:
        return Trouble.of(
            LoginNotShared(
                f"drivers of the copy ran in namespace {before!r}, and would have to run in "
                f"namespace {host!r} now",
                remedy="Delete the copy, which clears away what it has staged, and make it anew.",
            )
        )
    return None
