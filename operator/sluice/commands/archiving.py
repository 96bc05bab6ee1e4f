"""Implement `sluice plan | run` for StreamArchives, as `copying` does for StreamCopies."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from sluice import console
from sluice.commands.shared import CommandResult
from sluice.engine.archive.report import ArchiveReport
from sluice.errors import InfrastructureError, SluiceError
from sluice.pipelines.programs.archives import plan_archive_job
from sluice.pipelines.programs.run import Tasks, run_archive
from sluice.pipelines.spark.application import SparkLost

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext

    from sluice.config import Settings
    from sluice.pipelines.programs.archives import ArchiveJob, PlannedArchive
    from sluice.pipelines.programs.program import Stores


def show_plan(planned: PlannedArchive) -> None:
    """Print a planned run as a table."""
    if planned.plan is not None:
        table = console.archive_plan(planned.plan.archive, recorded=planned.noted)
        console.out.print(table)


def plan_json(planned: PlannedArchive) -> dict[str, Any]:
    """Convert a planned run to JSON values."""
    plan = planned.plan
    return {
        "kind": "StreamArchive",
        "name": planned.job.name,
        "copyId": planned.job.request.copy_id,
        "recorded": planned.noted,
        "complete": planned.report is not None,
        "planHash": None if plan is None else plan.hash,
        "plan": None if plan is None else plan.model_dump(mode="json"),
    }


def run(
    job: ArchiveJob,
    stores: Stores,
    spark: Callable[[], SparkContext],
    settings: Settings,
    patience: float | None,
) -> CommandResult | None:
    """Plan and make one run, and show its result; return None if it is suspended."""
    began = time.monotonic()

    def start() -> SparkContext:
        nonlocal began
        context = spark()
        began = time.monotonic()  # the seconds that are reported are without Spark's start
        return context

    try:
        report = _report(job, stores, start, settings, patience)
    except SluiceError as error:
        report = ArchiveReport.failed(job.request, error)
    except SparkLost as error:
        lost = InfrastructureError(f"Spark was lost: {error}")
        report = ArchiveReport.failed(job.request, lost)
    if report is None:
        return None
    seconds = time.monotonic() - began
    console.show_archive_report(report, seconds)
    return CommandResult(
        json={
            "kind": "StreamArchive",
            "name": job.name,
            **report.model_dump(mode="json"),
            "seconds": round(seconds, 3),
        },
        words=Counter([console.outcome_word(report.outcome)]),
        failures=[] if report.error is None else [report.error],
    )


def _report(
    job: ArchiveJob,
    stores: Stores,
    spark: Callable[[], SparkContext],
    settings: Settings,
    patience: float | None,
) -> ArchiveReport | None:
    """Plan and make one run, and return its report; None if it is suspended."""
    planned = plan_archive_job(job, stores)
    plan = planned.plan
    if plan is None:
        return planned.report
    if job.suspend:
        return None
    console.err.print(console.archive_plan(plan.archive, recorded=planned.noted))
    live = console.LiveProgress(plan, settings)

    def start() -> SparkContext:
        with live.waiting("starting Spark"):
            return spark()

    with live.shown():
        return run_archive(
            plan,
            stores,
            Tasks(spark=start, settings=settings),
            limits=lambda: job.limits,
            retention=lambda: job.retention,
            listener=live,
            patience=patience,
        )
