"""Implement `sluice plan | run | abort -f FILE`: copies and archives, without Kubernetes."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sluice import console, tracing
from sluice.api.fields.hooks import HooksSpec
from sluice.api.kinds.streamarchive import StreamArchive
from sluice.api.load import load
from sluice.commands.scopes import ScopeView
from sluice.commands.shared import (
    CREDENTIALS,
    FILE,
    OUTPUT,
    PATIENCE,
    VOLUMES,
    CommandResult,
    exit_code,
    print_json,
    settings_of,
)
from sluice.commands.views import ArchiveView, CopyView
from sluice.core.archive.request import ArchiveRequest
from sluice.core.copy.planner import CopyRequest
from sluice.core.scope.request import ScopeRequest
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.errors import InfrastructureError, InvalidSpec, SluiceError
from sluice.pipelines.programs.jobs import all_jobs, with_run_key
from sluice.pipelines.programs.run import Tasks, run_plan
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.spark.application import local_spark
from sluice.pipelines.spark.lost import SparkLost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

    from sluice.api.load import Resources
    from sluice.commands.views import View
    from sluice.config import Settings
    from sluice.core.values.wish import Wish
    from sluice.core.workloads.request import Request
    from sluice.pipelines.programs.jobs import Job

_VIEWS: Final[dict[type[Request], type[View[Any, Any, Any]]]] = {
    CopyRequest: CopyView,
    ScopeRequest: ScopeView,
    ArchiveRequest: ArchiveView,
}
"""The output of each kind."""

_OWNER: Final = secrets.token_hex(32)
"""The key by which this process knows its own wish to seal a source: see `core.values.wish`."""

TASKS = click.option(
    "--tasks",
    type=click.IntRange(1, 256),
    default=None,
    help="Tasks at once, by which long segments are divided. [default: the number of processors]",
)


@click.command()
@FILE
@OUTPUT
@CREDENTIALS
@VOLUMES
@TASKS
def plan(
    *,
    file: str,
    output: str,
    credentials_dir: Path | None,
    volumes_dir: Path | None,
    tasks: int | None,
) -> None:
    """Show what a run would do, without moving or making anything."""
    settings = settings_of(credentials_dir, volumes_dir)
    with Stores(settings) as stores:
        wanted = [
            with_run_key(job, stores)
            for job in all_jobs(read(file), settings, tasks=tasks or os.cpu_count() or 1)
        ]
        planned = [(_VIEWS[type(job.request)](job), job.plan(stores)) for job in wanted]
    if output == "json":
        print_json([view.plan_json(found) for view, found in planned])
        return
    for view, found in planned:
        view.show_plan(found)


@click.command()
@FILE
@OUTPUT
@CREDENTIALS
@VOLUMES
@TASKS
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Read staged bytes again and compare them before they are published.",
)
@PATIENCE
def run(
    *,
    file: str,
    output: str,
    credentials_dir: Path | None,
    volumes_dir: Path | None,
    tasks: int | None,
    verify: bool,
    patience: float | None,
) -> None:
    """Copy and archive what the file asks for, or go on where an earlier run stopped."""
    settings = settings_of(credentials_dir, volumes_dir)
    slots = tasks or os.cpu_count() or 1
    began = time.monotonic()
    ended: list[CommandResult] = []
    with tracing.started("sluice"), Stores(settings) as stores, own_tasks(settings, slots) as where:
        jobs = all_jobs(_unhooked(read(file)), settings, verify=verify, tasks=slots)
        for job in in_turn(jobs):
            result = run_job(job, stores, where, patience)
            if result is None:
                console.note.print(f"{job.name} is suspended: it is planned and not run")
            else:
                ended.append(result)
    if output == "json":
        print_json([one.json for one in ended])
    words = sum((one.words for one in ended), Counter[str]())
    console.note.print(f"{console.summary(words)} in {console.duration(time.monotonic() - began)}")
    sys.exit(exit_code(failure for one in ended for failure in one.failures))


@click.command()
@FILE
@CREDENTIALS
@VOLUMES
def abort(file: str, credentials_dir: Path | None, volumes_dir: Path | None) -> None:
    """Delete what unfinished copies and archives left: staging, unpublished targets, notes.

    A copy that is live is ended: its target stays as far as it has come.
    """
    settings = settings_of(credentials_dir, volumes_dir)
    with Stores(settings) as stores:
        for job in all_jobs(read(file), settings):
            done = with_run_key(job, stores).abort(stores)
            console.note.print(f"{job.name}: {done}", markup=False)


def run_job(
    job: Job[Any], stores: Stores, tasks: Tasks, patience: float | None
) -> CommandResult | None:
    """Do the work for one resource, and show its result; return None if it is suspended."""
    with tracing.span("run", parent=tracing.inherited(), resource=job.name) as span:
        result = _run_job(job, stores, tasks, patience)
        if result is not None and result.failures:
            span.fail(result.failures[0].reason)
    return result


def _run_job(
    job: Job[Any], stores: Stores, tasks: Tasks, patience: float | None
) -> CommandResult | None:
    """Plan and do the work for one resource, and show its result; return None if it is suspended.

    The seconds of a single stream are reported without Spark's start. During that start, small
    streams of a scope are copied.
    """
    view, began = _VIEWS[type(job.request)](job), time.monotonic()

    def start() -> SparkContext:
        nonlocal began
        with live.waiting("starting Spark"):
            context = tasks.spark()
        if not isinstance(found.plan, ScopeCopyPlan):
            began = time.monotonic()
        return context

    try:
        job = with_run_key(job, stores)
        view = _VIEWS[type(job.request)](job)
        if not job.suspend:
            view.before(stores)
        with tracing.span("plan"):
            found = job.plan(stores)
        report = found.report
        if found.plan is not None:
            if job.suspend:
                return None
            console.note.print(view.table(found.plan, recorded=found.recorded))
            if job.wish is not None:
                console.note.print(console.Words(_until(job, job.wish)))
            live = console.LiveProgress(found.plan, job.workload, tasks.settings)
            with _left(job, live), live.shown():
                report = run_plan(
                    found.plan,
                    stores,
                    replace(tasks, spark=start),
                    limits=lambda: job.limits,
                    retention=lambda: job.retention,
                    listener=live,
                    patience=patience,
                    wish=job.wish,
                    key=_OWNER,
                )
        view.patience = patience
        view.after(stores, report)
    except SluiceError as error:
        return view.failed(error, time.monotonic() - began)
    except SparkLost as error:
        lost = InfrastructureError(f"Spark was lost: {error}")
        return view.failed(lost, time.monotonic() - began)
    return view.ended(report, time.monotonic() - began)


def _until(job: Job[Any], wish: Wish) -> str:
    """Say until when a copy follows its source, or the streams of its scope."""
    if isinstance(job.request, ScopeRequest):
        how = console.until(wish, of_scope=True)
        return f"{job.name} follows the streams of {job.request.source} {how}"
    return f"{job.name} follows its source {console.until(wish)}"


def in_turn(jobs: list[Job[Any]]) -> list[Job[Any]]:
    """Return jobs in the order in which they are run: one that follows its source comes last.

    Raises:
        InvalidSpec: several follow their sources. The first might never end.
    """
    following = [job for job in jobs if job.wish is not None and not job.suspend]
    if len(following) > 1:
        names = ", ".join(job.name for job in following)
        raise InvalidSpec(
            f"{len(following)} copies of the file follow their sources: {names}",
            field="spec.mode",
            remedy="Run each from a file of its own, side by side, or apply the file to a cluster.",
        )
    if following and following[0] is not jobs[-1]:
        console.note.print(
            console.Words(f"{following[0].name} follows its source, and is run last")
        )
    return [*(job for job in jobs if job not in following), *following]


@contextmanager
def _left(job: Job[Any], live: console.LiveProgress) -> Iterator[None]:
    """Say what an interrupt leaves, if the copy follows its source by then.

    Raises:
        KeyboardInterrupt: it came, with these words.
    """
    try:
        yield
    except KeyboardInterrupt:
        if not live.is_live:
            raise
        raise KeyboardInterrupt(console.left(job.name, live.followed)) from None


def _unhooked(resources: Resources) -> Resources:
    """Return resources without hooks.

    Raises:
        InvalidSpec: a copy has hooks. Without its Jobs it would miss what writers still write.
    """
    for copy in resources.order:
        if isinstance(copy, StreamArchive):
            continue
        if copy.spec.hooks != HooksSpec():
            raise InvalidSpec(
                f"{copy.kind} {copy.metadata.name!r} has hooks, which are Jobs of a cluster",
                field="spec.hooks",
                remedy="Remove the field from the file, and do by hand what the Jobs do.",
            )
    return resources


@contextmanager
def own_tasks(settings: Settings, slots: int) -> Iterator[Tasks]:
    """Run tasks in this process, and in a Spark that is started once it is needed."""
    with ExitStack() as stack:
        spark = cache(lambda: start_spark(stack, slots))
        yield Tasks(spark=spark, settings=settings, threads=slots)


def start_spark(stack: ExitStack, slots: int) -> SparkContext:
    """Start Spark, and have it end with the stack."""
    return stack.enter_context(local_spark(slots))


def read(file: str, *, copies: bool = True) -> Resources:
    """Read the resources of a file; `-` is standard input.

    Args:
        file: the path.
        copies: whether the file must have a copy or an archive.

    Raises:
        InvalidSpec: the file cannot be read, or see `load`.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSpec(
            f"{file} cannot be read: {error}", remedy="Name a YAML file that exists."
        ) from error
    return load(text, copies=copies)
