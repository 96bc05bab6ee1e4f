"""Resolve the resources of a file to jobs: requests for the engine, with addresses and limits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sluice.api.kinds.scopecopy import ScopeCopySpec
from sluice.api.kinds.streamarchive import StreamArchiveSpec
from sluice.core.archive.retention import Retention
from sluice.core.scope import selection
from sluice.core.workloads import access
from sluice.core.workloads.answers import ScopeEnded
from sluice.core.workloads.request import (
    Request,
    request_of,
    retention_of,
    source_stores,
    store_address,
    wish_of,
)
from sluice.core.workloads.scope_log import planned_results
from sluice.engine.access.source_runs import choose
from sluice.engine.scope.planning import resolve_scope
from sluice.engine.scope.recorded_runs import restored_runs
from sluice.engine.tasks.limits import Limits
from sluice.engine.workloads.choice import workload_of
from sluice.engine.workloads.scope import ScopeWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.api.fields.archives import OrArchive
    from sluice.api.fields.common import InStore
    from sluice.api.fields.scopeplaces import ScopeSource
    from sluice.api.kinds.streamarchive import ArchivedStream
    from sluice.api.kinds.streamcopy import SourceSpec, StreamCopySpec
    from sluice.api.kinds.streamstore import StreamStore
    from sluice.api.load import Resources
    from sluice.api.registry import Copy
    from sluice.config import Settings
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.values.model import StoreAddress
    from sluice.core.values.wish import Wish
    from sluice.engine.workloads.workload import Found, Workload
    from sluice.pipelines.programs.stores import Stores

Q = TypeVar("Q", bound=Request)
"""The request of a kind."""


@dataclass(frozen=True, slots=True)
class Job(Generic[Q]):
    """A resolved resource.

    Attributes:
        name: the resource's name.
        request: the request for the engine.
        sources, target: the addresses of its stores.
        limits: the limits of a run.
        retention: which runs of an archive are kept.
        suspend: whether it is planned only.
        wish: how it is to end, if it follows its source; else None.
    """

    name: str
    request: Q
    sources: tuple[StoreAddress, ...]
    target: StoreAddress
    limits: Limits
    retention: Retention = field(default_factory=Retention)
    suspend: bool = False
    wish: Wish | None = None

    @property
    def workload(self) -> Workload:
        """The engine's work for the resource."""
        return workload_of(self.request)

    def plan(self, stores: Stores) -> Found[Any, Any]:
        """Plan the work as far as it is left: see `Workload.plan`."""
        sources = [(address, stores.place(address)) for address in self.sources]
        return self.workload.plan(sources, (self.target, stores.place(self.target)))

    def abort(self, stores: Stores) -> str:
        """Delete what unfinished work has left, and return in words what was done."""
        return self.workload.abort(
            lambda: [stores.place(address) for address in self.sources], stores.place(self.target)
        )


def jobs(resources: Resources, settings: Settings) -> list[Job[CopyRequest]]:
    """Return the jobs of a file's StreamCopies. Order and errors are those of `all_jobs`."""
    return [_job(copy, resources, settings) for copy in resources.copies]


def all_jobs(
    resources: Resources, settings: Settings, *, verify: bool = True, tasks: int = 1
) -> list[Job[Any]]:
    """Return the jobs of all resources of a file that drivers work for, in its order.

    Args:
        resources: the resources of the file.
        settings: the settings of this process.
        verify: whether staged bytes are compared before they are published.
        tasks: the number of tasks that will run at once.

    Raises:
        InvalidSpec: a resource names a store that is not in the file, or of the wrong kind.
        AccessDenied: a copy may not delete or seal its source.
    """
    return [_job(one, resources, settings, verify=verify, tasks=tasks) for one in resources.order]


def _job(
    resource: Copy,
    resources: Resources,
    settings: Settings,
    *,
    verify: bool = True,
    tasks: int = 1,
) -> Job[Any]:
    """Resolve a resource. Arguments and errors are those of `all_jobs`."""
    spec = resource.spec
    origins: Sequence[tuple[str, SourceSpec | ScopeSource | ArchivedStream]] = spec.origins
    named = {
        source.store: store_of(resource, resources, place, source) for place, source in origins
    }
    target = store_of(resource, resources, *spec.goal)
    job = Job(
        name=resource.metadata.name,
        request=request_of(
            resource,
            cluster=settings.cluster_id,
            part_bytes=settings.part_bytes,
            tasks=tasks,
            verify=verify,
        ),
        sources=tuple(store_address(named[name]) for name in source_stores(spec)),
        target=store_address(target),
        limits=_limits(spec),
        retention=retention_of(spec),
        suspend=spec.suspend,
        wish=wish_of(spec),
    )
    needs = access.ending(moves=job.workload.moves, seals=_seals(job))
    for place, source in origins if needs else ():
        access.check(
            named[source.store].spec.access,
            store=source.store,
            scope=source.scope,
            operations=("Read", *needs),
            field=place,
        )
    return job


def _seals(job: Job[Any]) -> bool:
    return job.wish is not None and job.wish.cutover == "SealAndDrain"


def store_of(
    copy: Copy, resources: Resources, field: str, what: InStore | OrArchive
) -> StreamStore:
    """Return the StreamStore that a source or a target of a resource names.

    Args:
        copy: the resource.
        resources: the resources of the file.
        field: the field of the source or target, for the error's message.
        what: the source or target.

    Raises:
        InvalidSpec: the store is not in the file, or is of the wrong kind.
    """
    field = f"{field}.{what.store_field}"
    found = resources.store(copy, what.ref, field=field)
    access.check_kind(found.spec, store=what.store, archives=what.holds_archives, field=field)
    return found


def _limits(spec: StreamCopySpec | ScopeCopySpec | StreamArchiveSpec) -> Limits:
    """Return the limits that a spec sets, with defaults for the rest."""
    limits = Limits(bytes_per_second=spec.limits.bytes_per_second)
    if isinstance(spec, StreamArchiveSpec):
        return limits
    limits = replace(limits, in_flight_bytes=spec.limits.in_flight_bytes or limits.in_flight_bytes)
    if isinstance(spec, ScopeCopySpec):
        parallelism = spec.parallelism or limits.parallelism
        stop = spec.failure_policy == "Stop"
        return replace(limits, parallelism=parallelism, stop_at_failure=stop)
    return limits


def with_runs(job: Job[CopyRequest], stores: Stores) -> Job[CopyRequest]:
    """Return a job that names the run of each archive, so that a restored target can be checked.

    Raises:
        ArchiveNotFound, ArchiveDamaged: a run no longer exists, or cannot be read.
    """
    if all(source.archive is None for source in job.request.sources):
        return job
    # This only looks, so bytes that a run lacks are no error.
    lenient = job.request.model_copy(update={"on_truncation": "Record"})
    chosen, _ = choose(lenient, [stores.place(address) for address in job.sources])
    runs = {source.store: source.pinned for source in chosen.sources}
    sources = [
        address.model_copy(update={"archive": runs[place]})
        for place, address in enumerate(job.sources)
    ]
    return replace(job, request=chosen, sources=tuple(sources))


def with_run_key(job: Job[Any], stores: Stores) -> Job[Any]:
    """Return a job that names its next run, if its scope is archived repeatedly; else the job.

    A run that was cut off is the next run again, until it is over.
    """
    workload = job.workload
    if not isinstance(workload, ScopeWorkload) or workload.request.series is None:
        return job
    return replace(job, request=workload.with_key(stores.place(job.target)))


def job_of_stream(job: Job[ScopeRequest], stream: str) -> Job[CopyRequest]:
    """Return a job for one stream of a scope's copy. The stores are not asked about it."""
    target = selection.renamed(stream, job.request.rename)
    return Job(
        name=f"{job.name}/{stream}",
        request=job.request.of(stream, target),
        sources=job.sources,
        target=job.target,
        limits=job.limits,
    )


def jobs_of_streams(job: Job[ScopeRequest], stores: Stores) -> list[Job[CopyRequest]]:
    """Return a job for each stream of a scope's copy, also for streams that are already copied."""
    (source,) = job.sources
    answer = resolve_scope(
        job.request,
        source=(source, stores.place(source)),
        target=(job.target, stores.place(job.target)),
    )
    streams = answer.results if isinstance(answer, ScopeEnded) else planned_results(answer.plan)
    runs = restored_runs(job.request, stores.place(source), answer.plan)
    return [
        Job(
            name=f"{job.name}/{one.stream}",
            request=job.request.of(one.stream, one.target, sha256=runs.get(one.stream)),
            sources=job.sources,
            target=job.target,
            limits=job.limits,
        )
        for one in sorted(streams, key=lambda one: one.stream)
    ]
