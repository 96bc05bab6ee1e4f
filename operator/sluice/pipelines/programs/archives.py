"""Resolve and plan runs of StreamArchives, and apply their retention policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from sluice.core.archive.retention import Retention
from sluice.core.workloads.plan import ArchiveRunPlan
from sluice.core.workloads.request import archive_request, store_address
from sluice.engine.archive.planning import resolve_archive
from sluice.engine.archive.report import ArchiveReport
from sluice.engine.archive.retention import retain
from sluice.engine.rounds.limits import Limits
from sluice.errors import SluiceError
from sluice.pipelines.programs.program import Stores, store_of

if TYPE_CHECKING:
    from sluice.api.kinds.streamarchive import StreamArchive
    from sluice.api.load import Resources
    from sluice.archive.runs.archive import Archive
    from sluice.config import Settings
    from sluice.core.archive.manifest import Maker
    from sluice.core.archive.request import ArchiveRequest
    from sluice.core.values.model import StoreAddress

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ArchiveJob:
    """A resolved StreamArchive: the request, the addresses of its stores, limits and retention."""

    name: str
    request: ArchiveRequest
    source: StoreAddress
    target: StoreAddress
    limits: Limits
    retention: Retention
    suspend: bool = False


@dataclass(frozen=True, slots=True)
class PlannedArchive:
    """A job and its plan.

    Attributes:
        job: the job.
        plan: the plan of the run; None when the run is already recorded.
        noted: whether the plan comes from the archive's notes, so an earlier process began the run.
        report: the report of a run that is already recorded.
    """

    job: ArchiveJob
    plan: ArchiveRunPlan | None
    noted: bool = False
    report: ArchiveReport | None = None


def archive_job(
    archive: StreamArchive, resources: Resources, settings: Settings, *, verify: bool
) -> ArchiveJob:
    """Resolve a StreamArchive of a file to the job of its next run.

    Raises:
        InvalidSpec: the resource names a store that is not in the file, or of the wrong kind.
    """
    spec = archive.spec
    ((field, stream),) = spec.origins
    source = store_of(archive, resources, field, stream)
    target = store_of(archive, resources, *spec.goal)
    address = store_address(source)
    kept = spec.retention
    return ArchiveJob(
        name=archive.metadata.name,
        request=archive_request(
            archive, cluster=settings.cluster_id, store=address.uri, verify=verify
        ),
        source=address,
        target=store_address(target),
        limits=Limits(bytes_per_second=spec.limits.bytes_per_second),
        retention=Retention(
            keep_last=kept.keep_last if kept else None, keep_seconds=kept.seconds if kept else None
        ),
        suspend=spec.suspend,
    )


def plan_archive_job(job: ArchiveJob, stores: Stores) -> PlannedArchive:
    """Plan a run. If the run has begun, return its noted plan; if it is recorded, its report."""
    archive = archive_of(job, stores)
    found = resolve_archive(job.request, stores[job.source], archive)
    if found.plan is None:
        entry = found.entry
        report = None if entry is None else ArchiveReport.recorded(job.request, entry)
        return PlannedArchive(job, None, report=report)
    plan = ArchiveRunPlan(sources=(job.source,), target=job.target, archive=found.plan)
    return PlannedArchive(job, plan, noted=found.noted)


def archive_of(job: ArchiveJob, stores: Stores) -> Archive:
    """Return the archive that a job writes to."""
    return stores.root(job.target).archive(job.request.path, field="spec.destination.path")


def tidy(archive: Archive, retention: Retention, *, maker: Maker | None) -> None:
    """Apply the retention policy and delete unreferenced objects.

    Failures are logged only, since the run itself is recorded. The next run tries again.

    Args:
        archive: the archive.
        retention: which runs are kept.
        maker: the resource that makes the runs, for the lease; None if there is none.
    """
    try:
        done = retain(archive, retention, maker=None if maker is None else maker.id)
    except SluiceError as error:
        _log.warning("runs are not let go yet", reason=error.reason, error=str(error))
        return
    if done.let_go or done.swept is not None:
        _log.info(
            "runs let go",
            runs=done.let_go,
            objects=done.swept.objects if done.swept else 0,
            bytes=done.swept.bytes if done.swept else 0,
        )
