"""Implement `sluice plan | run | abort -f FILE`: copies and archives, without Kubernetes."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sluice import console
from sluice.api.load import load
from sluice.commands import archiving, scopes
from sluice.commands.scopes import PlannedScope
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
from sluice.engine.archive.query import abandon_archive
from sluice.engine.copy.report import StreamReport
from sluice.errors import InfrastructureError, InvalidSpec, SluiceError
from sluice.pipelines.programs.archives import ArchiveJob, PlannedArchive, plan_archive_job
from sluice.pipelines.programs.program import (
    Stores,
    abort_job,
    finish_abort_job,
    plan_job,
    sweep_job,
)
from sluice.pipelines.programs.run import Tasks, run_plan
from sluice.pipelines.programs.scope_program import ScopeJob, abandon_scope_job, all_jobs
from sluice.pipelines.spark.application import SparkLost, local_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext

    from sluice.api.load import Resources
    from sluice.config import Settings
    from sluice.pipelines.programs.program import Job, PlannedCopy

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
        wanted = all_jobs(read(file), settings, tasks=tasks or os.cpu_count() or 1)
        planned = [_plan(job, stores) for job in wanted]
    if output == "json":
        print_json([_plan_json(entry) for entry in planned])
        return
    for entry in planned:
        _show_plan(entry)


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
    with Stores(settings) as stores, ExitStack() as stack:
        spark = cache(lambda: start_spark(stack, slots))
        for job in all_jobs(read(file), settings, verify=verify, tasks=slots):
            result = _run(job, stores, spark, settings, patience)
            if result is None:
                console.err.print(f"{job.name} is suspended: it is planned and not run")
            else:
                ended.append(result)
    if output == "json":
        print_json([one.json for one in ended])
    words = sum((one.words for one in ended), Counter[str]())
    console.err.print(f"{console.summary(words)} in {console.duration(time.monotonic() - began)}")
    sys.exit(exit_code(failure for one in ended for failure in one.failures))


@click.command()
@FILE
@CREDENTIALS
@VOLUMES
def abort(file: str, credentials_dir: Path | None, volumes_dir: Path | None) -> None:
    """Delete what unfinished copies and archives left: staging, unpublished targets, notes."""
    settings = settings_of(credentials_dir, volumes_dir)
    with Stores(settings) as stores:
        for job in all_jobs(read(file), settings):
            if isinstance(job, ScopeJob):
                done = abandon_scope_job(job, stores)
            elif isinstance(job, ArchiveJob):
                done = f"deleted {abandon_archive(job.request, stores.root(job.target))}"
            else:
                done = "aborted" if abort_job(job, stores) else "nothing to abort"
            console.err.print(f"{job.name}: {done}", markup=False)


def _plan(
    job: Job | ScopeJob | ArchiveJob, stores: Stores
) -> PlannedCopy | PlannedScope | PlannedArchive:
    """Plan the work for one resource."""
    if isinstance(job, ScopeJob):
        return scopes.plan(job, stores)
    return plan_archive_job(job, stores) if isinstance(job, ArchiveJob) else plan_job(job, stores)


def _run(
    job: Job | ScopeJob | ArchiveJob,
    stores: Stores,
    spark: Callable[[], SparkContext],
    settings: Settings,
    patience: float | None,
) -> CommandResult | None:
    """Plan and do the work for one resource; return None if it is suspended."""
    if isinstance(job, ScopeJob):
        return scopes.run(job, stores, spark, settings, patience)
    if isinstance(job, ArchiveJob):
        return archiving.run(job, stores, spark, settings, patience)
    return run_job(job, stores, spark, settings, patience)


def run_job(
    job: Job,
    stores: Stores,
    spark: Callable[[], SparkContext],
    settings: Settings,
    patience: float | None,
) -> CommandResult | None:
    """Plan and run one copy, and show its result; return None if it is suspended."""
    result = _report(job, stores, spark, settings, patience)
    if result is None:
        return None
    report, seconds = result
    console.show_report(report, seconds)
    return CommandResult(
        json=_report_json(job.name, report, seconds),
        words=Counter([console.outcome_word(report.outcome)]),
        failures=[] if report.error is None else [report.error],
    )


def _report(
    job: Job,
    stores: Stores,
    spark: Callable[[], SparkContext],
    settings: Settings,
    patience: float | None,
) -> tuple[StreamReport, float] | None:
    """Plan and run one copy.

    Returns:
        The report, and the seconds that the copy took without Spark's start; None if the copy is
        suspended.
    """
    began = time.monotonic()

    def start() -> SparkContext:
        nonlocal began
        with live.waiting("starting Spark"):
            context = spark()
        began = time.monotonic()
        return context

    try:
        # Before planning: a copy that was aborted takes new bounds.
        if not job.suspend and finish_abort_job(job, stores):
            console.err.print(f"{job.name}: finished an abort that was cut off")
        planned = plan_job(job, stores)
        if planned.report is not None:
            left = sweep_job(job, stores)
            if left:
                console.err.print(f"{job.name}: deleted {left} leftover staging segments")
            return planned.report, time.monotonic() - began
        if planned.plan is None or job.suspend:
            return None
        console.err.print(console.plan_table(planned.plan, recorded=planned.recorded))
        live = console.LiveProgress(planned.plan, settings)
        with live.shown():
            (report,) = run_plan(
                planned.plan,
                stores,
                Tasks(spark=start, settings=settings),
                limits=lambda: job.limits,
                listener=live,
                patience=patience,
            )
    except SluiceError as error:
        report = StreamReport.failed(job.request, error)
    except SparkLost as error:
        report = StreamReport.failed(job.request, InfrastructureError(f"Spark was lost: {error}"))
    return report, time.monotonic() - began


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


def _show_plan(planned: PlannedCopy | PlannedScope | PlannedArchive) -> None:
    """Print a planned copy, or a planned run of an archive, as a table."""
    if isinstance(planned, PlannedScope):
        scopes.show_plan(planned)
    elif isinstance(planned, PlannedArchive):
        archiving.show_plan(planned)
    elif planned.plan is not None:
        console.out.print(console.plan_table(planned.plan, recorded=planned.recorded))
    elif planned.report is not None:
        console.show_report(planned.report, 0)


def _plan_json(planned: PlannedCopy | PlannedScope | PlannedArchive) -> dict[str, Any]:
    """Convert a planned copy, or a planned run of an archive, to JSON values."""
    if isinstance(planned, PlannedScope):
        return scopes.plan_json(planned)
    if isinstance(planned, PlannedArchive):
        return archiving.plan_json(planned)
    return {
        "kind": "StreamCopy",
        "name": planned.job.name,
        "copyId": planned.job.request.copy_id,
        "recorded": planned.recorded,
        "complete": planned.report is not None,
        "planHash": None if planned.plan is None else planned.plan.hash,
        "plan": None if planned.plan is None else planned.plan.model_dump(mode="json"),
    }


def _report_json(name: str, report: StreamReport, seconds: float) -> dict[str, Any]:
    """Convert a report to JSON values: camelCase, bytes and seconds."""
    return {
        "kind": "StreamCopy",
        "name": name,
        **report.model_dump(mode="json"),
        "bytes": report.bytes,
        "events": report.events,
        "seconds": round(seconds, 3),
    }
