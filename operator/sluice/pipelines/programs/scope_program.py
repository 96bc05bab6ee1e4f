"""Resolve, plan and abandon ScopeCopies, as `program` does for StreamCopies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sluice.api.kinds.scopecopy import ScopeCopy
from sluice.api.kinds.streamarchive import StreamArchive
from sluice.core.workloads import access
from sluice.core.workloads.answers import ScopeEnded
from sluice.core.workloads.request import scope_request, store_address
from sluice.core.workloads.scope_log import planned_results
from sluice.engine.scope.planning import resolve_scope
from sluice.engine.scope.query import abandon_scope
from sluice.pipelines.programs.archives import ArchiveJob, archive_job
from sluice.pipelines.programs.program import Job, limits_of, store_of, stream_job

if TYPE_CHECKING:
    from sluice.api.load import Resources
    from sluice.config import Settings
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.values.model import StoreAddress
    from sluice.core.workloads.answers import ScopePlanned
    from sluice.engine.rounds.limits import Limits
    from sluice.pipelines.programs.program import Stores


@dataclass(frozen=True, slots=True)
class ScopeJob:
    """A resolved ScopeCopy: the request, the addresses of its stores, and its limits."""

    name: str
    request: ScopeRequest
    source: StoreAddress
    target: StoreAddress
    limits: Limits
    suspend: bool = False


def all_jobs(
    resources: Resources, settings: Settings, *, verify: bool = True, tasks: int = 1
) -> list[Job | ScopeJob | ArchiveJob]:
    """Return the jobs of all StreamCopies, ScopeCopies and StreamArchives of a file, in its order.

    Args:
        resources: the resources of the file.
        settings: the settings of this process.
        verify: whether staged bytes are compared before they are published.
        tasks: the number of tasks that will run at once.

    Raises:
        InvalidSpec: a copy names a store that is not in the file, or that is of the wrong kind.
        AccessDenied: a move may not delete its source.
    """
    found: list[Job | ScopeJob | ArchiveJob] = []
    for one in resources.order:
        match one:
            case StreamArchive():
                found.append(archive_job(one, resources, settings, verify=verify))
            case ScopeCopy():
                found.append(_scope_job(one, resources, settings, verify=verify, tasks=tasks))
            case _:
                found.append(stream_job(one, resources, settings, verify=verify, tasks=tasks))
    return found


def _scope_job(
    copy: ScopeCopy, resources: Resources, settings: Settings, *, verify: bool, tasks: int
) -> ScopeJob:
    spec = copy.spec
    ((field, streams),) = spec.origins
    source = store_of(copy, resources, field, streams)
    target = store_of(copy, resources, *spec.goal)
    if spec.source_on_complete == "Delete":
        access.check(
            source.spec.access,
            store=source.metadata.name,
            scope=spec.source.scope,
            operations=("Read", "Delete"),
            field="spec.source",
        )
    limits = limits_of(spec.limits)
    return ScopeJob(
        name=copy.metadata.name,
        request=scope_request(
            copy,
            cluster=settings.cluster_id,
            part_bytes=settings.part_bytes,
            tasks=tasks,
            verify=verify,
        ),
        source=store_address(source),
        target=store_address(target),
        limits=replace(
            limits,
            parallelism=spec.parallelism or limits.parallelism,
            stop_at_failure=spec.failure_policy == "Stop",
        ),
        suspend=spec.suspend,
    )


def plan_scope_job(job: ScopeJob, stores: Stores) -> ScopePlanned | ScopeEnded:
    """Plan a run of a scope's copy. An unfinished run goes on; failed streams are tried again.

    Returns:
        The plan; or the results, when there is nothing left to do.
    """
    return resolve_scope(
        job.request,
        source=(job.source, stores.place(job.source)),
        target=(job.target, stores.place(job.target)),
        again=True,
    )


def abandon_scope_job(job: ScopeJob, stores: Stores) -> str:
    """Delete the copy's log and its unpublished streams. Copied streams stay.

    Returns:
        A text for the user about the deletions.
    """
    return abandon_scope(
        job.request,
        source=stores.place(job.source),
        target=stores.place(job.target),
        known=None,
    )


def jobs_of_streams(job: ScopeJob, stores: Stores) -> list[Job]:
    """Return a job for each stream of a scope's copy, also for streams that are already copied."""
    answer = resolve_scope(
        job.request,
        source=(job.source, stores.place(job.source)),
        target=(job.target, stores.place(job.target)),
    )
    streams = answer.results if isinstance(answer, ScopeEnded) else planned_results(answer.plan)
    return [
        Job(
            name=f"{job.name}/{one.stream}",
            request=job.request.of(one.stream, one.target),
            sources=(job.source,),
            target=job.target,
            limits=job.limits,
        )
        for one in sorted(streams, key=lambda one: one.stream)
    ]
