"""Resolve StreamCopies to jobs, plan and abort them, and open their stores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from sluice.api.fields.backends import Holds
from sluice.core.copy.plan import pinned
from sluice.core.workloads import access
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.core.workloads.request import copy_request, source_stores, store_address
from sluice.engine.access.connect import archives, open_source
from sluice.engine.access.source_runs import choose
from sluice.engine.copy.abort import abort, finish_abort, sweep
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.read_leases import release
from sluice.engine.copy.report import Outcome, StreamReport
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.rounds.limits import Limits
from sluice.stores.connect import connect

if TYPE_CHECKING:
    from sluice.api.fields.archives import OrArchive
    from sluice.api.fields.common import InStore
    from sluice.api.fields.running import LimitsSpec
    from sluice.api.kinds.scopecopy import ScopeCopy
    from sluice.api.kinds.streamarchive import StreamArchive
    from sluice.api.kinds.streamcopy import StreamCopy
    from sluice.api.kinds.streamstore import StreamStore
    from sluice.api.load import Resources
    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.config import Settings
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.values.model import StoreAddress
    from sluice.engine.access.source_runs import Place
    from sluice.stores.base import Source, Store


@dataclass(frozen=True, slots=True)
class Job:
    """A resolved StreamCopy: the request, the addresses of its stores, and its limits."""

    name: str
    request: CopyRequest
    sources: tuple[StoreAddress, ...]
    target: StoreAddress
    limits: Limits
    suspend: bool = False


class Stores:
    """The stores of this process, with one connection each. The end of the block closes them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: dict[StoreAddress, Store] = {}
        self._runs: dict[StoreAddress, Source] = {}
        self._roots: dict[StoreAddress, ArchiveRoot] = {}

    def __enter__(self) -> Self:
        """Enter the block. Each store is opened when it is first used."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the stores that were opened."""
        for store in self._open.values():
            store.close()

    def __getitem__(self, address: StoreAddress) -> Store:
        """Return the live store at an address."""
        if address not in self._open:
            self._open[address] = connect(address, self._settings)
        return self._open[address]

    def source(self, address: StoreAddress) -> Source:
        """Return the store to read from at an address: a live store, or a run of an archive."""
        if address.archive is None:
            return self[address]
        if address not in self._runs:
            self._runs[address] = open_source(address, self._settings)
        return self._runs[address]

    def root(self, address: StoreAddress) -> ArchiveRoot:
        """Return the place for archives at an address."""
        if address not in self._roots:
            self._roots[address] = archives(address, self._settings)
        return self._roots[address]

    def place(self, address: StoreAddress) -> Place:
        """Return the place at a StreamStore's address: a live store, or a place for archives."""
        return self.root(address) if address.kind.holds is Holds.ARCHIVES else self[address]


def jobs(
    resources: Resources, settings: Settings, *, verify: bool = True, tasks: int = 1
) -> list[Job]:
    """Return the jobs of a file's StreamCopies, in its order.

    Args:
        resources: the resources of the file.
        settings: the settings of this process.
        verify: whether staged bytes are compared before they are published.
        tasks: the number of tasks that will run at once.

    Raises:
        InvalidSpec: a copy names a store that is not in the file, or of the wrong kind.
        AccessDenied: a move may not delete its source.
    """
    return [
        stream_job(copy, resources, settings, verify=verify, tasks=tasks)
        for copy in resources.copies
    ]


def stream_job(
    copy: StreamCopy, resources: Resources, settings: Settings, *, verify: bool, tasks: int
) -> Job:
    """Resolve a StreamCopy of a file to a job. Arguments and errors are those of `jobs`."""
    named = {
        source.store: store_of(copy, resources, field, source)
        for field, source in copy.spec.origins
    }
    sources = [named[name] for name in source_stores(copy.spec)]
    target = store_of(copy, resources, *copy.spec.goal)
    if copy.spec.source_on_complete == "Delete":
        for field, source in copy.spec.origins:
            access.check(
                named[source.store].spec.access,
                store=source.store,
                scope=source.scope,
                operations=("Read", "Delete"),
                field=field,
            )
    return Job(
        name=copy.metadata.name,
        request=copy_request(
            copy,
            cluster=settings.cluster_id,
            part_bytes=settings.part_bytes,
            tasks=tasks,
            verify=verify,
        ),
        sources=tuple(map(store_address, sources)),
        target=store_address(target),
        limits=limits_of(copy.spec.limits),
        suspend=copy.spec.suspend,
    )


def store_of(
    copy: StreamCopy | ScopeCopy | StreamArchive,
    resources: Resources,
    field: str,
    what: InStore | OrArchive,
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
    found = resources.store(copy, what.store, field=field)
    access.check_kind(found.spec, store=what.store, archives=what.holds_archives, field=field)
    return found


def limits_of(spec: LimitsSpec) -> Limits:
    """Return the limits that a copy's spec sets, with defaults for the rest."""
    default = Limits()
    return Limits(
        in_flight_bytes=spec.in_flight_bytes or default.in_flight_bytes,
        bytes_per_second=spec.bytes_per_second,
    )


@dataclass(frozen=True, slots=True)
class PlannedCopy:
    """A job and its plan.

    Attributes:
        job: the job.
        plan: the plan; None when the copy is complete.
        recorded: whether the plan is recorded in the target store, so that a run goes on with it.
        report: the report of a copy that is already complete.
    """

    job: Job
    plan: StreamCopyPlan | None
    recorded: bool = False
    report: StreamReport | None = None


def plan_job(job: Job, stores: Stores) -> PlannedCopy:
    """Plan a copy. If the copy has begun, return its recorded plan; if it is complete, a report."""
    request = job.request
    found = resolve(request, [stores.place(source) for source in job.sources], stores[job.target])
    if found.plan is None:
        report = StreamReport(
            copy_id=request.copy_id,
            source=request.origin,
            target=request.target,
            outcome=Outcome.ALREADY_COMPLETE,
            digest=found.digest,
        )
        return PlannedCopy(job, None, report=report)
    sources = pinned(found.plan, job.sources)
    plan = StreamCopyPlan(sources=sources, target=job.target, streams=(found.plan,))
    return PlannedCopy(job, plan, recorded=found.recorded)


def with_runs(job: Job, stores: Stores) -> Job:
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


def finish_abort_job(job: Job, stores: Stores) -> bool:
    """Finish an interrupted abort. Return whether there was one."""
    return finish_abort(job.request.copy_id, job.request.target, stores[job.target])


def sweep_job(job: Job, stores: Stores) -> int:
    """Delete segments that late drivers left of a complete copy. Return their number."""
    return sweep(job.request.copy_id, job.request.target, stores[job.target])


def abort_job(job: Job, stores: Stores) -> bool:
    """Abort a copy: delete its staging, its unpublished target and its journal.

    Returns:
        Whether there was anything to delete.

    Raises:
        AbortRefused: publishing has begun.
    """
    request, target = job.request, stores[job.target]
    journal = CopyJournal(target, request.copy_id, request.target).load()
    done = abort(request.copy_id, request.target, target)
    if done and journal is not None and any(one.archive for one in journal.plan.sources):
        release(journal.plan, [stores.place(address) for address in job.sources])
    return done
