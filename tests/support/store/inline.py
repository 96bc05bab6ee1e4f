"""Copies on a real store without Spark: runs of them, the operator's question, and a witness."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from localstore import Standalone
from segment_hash import Connection, segment_report
from sluice.api.load import load
from sluice.config import Settings
from sluice.core.copy.plan import StreamPlan
from sluice.core.copy.planner import CopyRequest
from sluice.core.copy.steps import Step, Transfer, Verify
from sluice.core.values import identity
from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.workloads.answers import Answer
from sluice.engine.copy.abort import finish_abort
from sluice.engine.copy.query import ask
from sluice.engine.copy.report import StreamReport
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.errors import SluiceError
from sluice.pipelines.programs.jobs import Job, jobs
from sluice.pipelines.programs.stores import Stores
from sluice.stores.base import Store
from sluice.stores.pravega import names
from support.command.sluice_command import Copy
from support.engine.runners import copy_runner
from support.until import PATIENT

DEFAULTS = Limits()
PATIENCE = 5.0
"""Seconds of patience of copies, some of which are expected to fail."""

SETTINGS = Settings(timeouts=PATIENT)


def job_of(copy: Copy) -> Job[CopyRequest]:
    """Return the only copy of the file."""
    (job,) = jobs(load(copy.file.read_text()), SETTINGS)
    return job


def begin(copy: Copy) -> None:
    """Run a driver that dies once its plan is recorded."""
    job = job_of(copy)
    with Stores(SETTINGS) as stores:
        planned = job.plan(stores)
        assert planned.plan is not None
        CopyJournal(stores[job.target], job.request.copy_id, job.request.target).begin(
            planned.plan.streams[0]
        )


def drive(copy: Copy, until: type[Step], *, perform: bool = False) -> StreamCopyWork:
    """Run a driver that dies right before this step, or with `perform` right after it."""
    job = job_of(copy)
    with Stores(SETTINGS) as stores:
        planned = job.plan(stores)
        assert planned.plan is not None
        (address,) = job.sources
        source, target = stores[address], stores[job.target]
        driver = StreamCopyWork(planned.plan.streams[0], 0, [source], target)
        driver.plan = driver.journal.begin(driver.plan)
        while True:
            step = driver.look()
            stop = isinstance(step, until)
            if stop and not perform:
                return driver
            if isinstance(step, Transfer | Verify):
                slices = driver.slices(step, Limits(), 1)
                driver.absorb(step, InlineExecutor([source], target).run(slices))
            else:
                driver.perform(step)
            if stop:
                return driver


def run_inline(copy: Copy, *, limits: Limits = DEFAULTS) -> StreamReport:
    """Do the work of `sluice run`, with the slices in this process."""
    (report,) = run_copies(copy.file.read_text(), limits=limits)
    return report


def run_copies(
    text: str,
    seen_as: Callable[[Store], Store] = lambda one: one,
    *,
    limits: Limits = DEFAULTS,
    settings: Settings = SETTINGS,
    patience: float = PATIENCE,
) -> list[StreamReport]:
    """Run the copies of a file.

    Args:
        text: the file's text.
        seen_as: function from a copy's target store to the store that replaces it.
        limits: limits of each copy.
        settings: settings of the process.
        patience: seconds; see Runner.
    """
    return [_run(job, seen_as, limits, settings, patience) for job in jobs(load(text), settings)]


def _run(
    job: Job[CopyRequest],
    seen_as: Callable[[Store], Store],
    limits: Limits,
    settings: Settings,
    patience: float,
) -> StreamReport:
    with Stores(settings) as stores:
        finish_abort(job.request.copy_id, job.request.target, stores[job.target])
        try:
            planned = job.plan(stores)
        except SluiceError as error:
            return StreamReport.failed(job.request, error)
        if planned.plan is None:
            assert planned.report is not None
            report: StreamReport = planned.report
            return report
        sources = [stores.source(address) for address in planned.plan.sources]
        target = seen_as(stores[job.target])
        runner = copy_runner(
            planned.plan,
            sources=sources,
            target=target,
            executor=InlineExecutor(sources, target),
            limits=lambda: limits,
            patience=patience,
        )
        (report,) = runner.run()
    return report


def leftovers(copy: Copy, server: Standalone, ids: Sequence[int] = range(4)) -> list[str]:
    """Return the existing segments that a copy may have made: target, staging and journal.

    Args:
        copy: the copy.
        server: the store.
        ids: ids of the target's segments.
    """
    request = job_of(copy).request
    target = request.target
    wanted = [names.staging_name(target, 0, identity.journal_key(request.copy_id))]
    for number in ids:
        wanted.append(names.segment_name(target, number))
        wanted += [
            names.staging_name(target, number, identity.staging_key(request.copy_id, index, part))
            for index in range(len(ids))
            for part in range(4)
        ]
    with Connection(*server.segment_store) as connection:
        return [name for name in wanted if connection.info(name) is not None]


def staging_of(copy: Copy, server: Standalone, ids: Sequence[int] = range(4)) -> list[str]:
    """Return the staging segments among the leftovers."""
    return [name for name in leftovers(copy, server, ids) if "#transaction." in name]


def assert_equal_segments(copy: Copy, server: Standalone, report: StreamReport) -> list[int]:
    """Compare each target segment with the copied range of its source segment, by the witness.

    Returns:
        The events in each target segment, as the witness counts them.
    """
    counts = []
    for segment in report.segments:
        source: dict[str, Any] = segment_report(
            *server.segment_store,
            *copy.source,
            segment.source,
            start=segment.start,
            end=segment.end,
        )
        target: dict[str, Any] = segment_report(
            *server.segment_store, *copy.target, segment.target, start=0
        )
        assert target["length"] == source["length"] == segment.end - segment.start
        assert target["sha256"] == source["sha256"]
        assert source["chunks_sha256"] == segment.digest
        assert target["broken_at"] is None
        assert target["events"] == segment.events
        counts.append(target["events"])
    assert counts_of(server, *copy.target, [s.target for s in report.segments]) == counts
    return counts


def counts_of(server: Standalone, scope: str, stream: str, ids: Iterable[int]) -> list[int]:
    """Return the events of a stream's segments by the store's own count; 0 where it has none."""
    address = StoreAddress(uri=server.controller_uri)
    with Stores(SETTINGS) as stores:
        store = stores[address]
        name = StreamName(scope=scope, stream=stream)
        asked = [(store.segment_name(name, segment), store.event_count) for segment in ids]
        return [count or 0 for count in store.attributes(asked)]


def told(copy: Copy, known: StreamPlan | None) -> Answer:
    """Return the answer that the operator gets to its question about a copy.

    Args:
        copy: the copy.
        known: the copy's plan, if the operator still has it.
    """
    job = job_of(copy)
    with Stores(SETTINGS) as stores:
        sources = [(address, stores[address]) for address in job.sources]
        target = (job.target, stores[job.target])
        return ask(job.request, sources=sources, target=target, known=known)
