"""Implement `sluice plan | run` for ScopeCopies, as `copying` does for StreamCopies."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sluice import console
from sluice.commands.shared import CommandResult
from sluice.core.scope.scope import StreamState
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import ScopeEnded, ScopePlanned
from sluice.engine.scope.report import ScopeReport
from sluice.errors import InfrastructureError, SluiceError
from sluice.pipelines.programs.run import Tasks, run_scope
from sluice.pipelines.programs.scope_program import abandon_scope_job, plan_scope_job
from sluice.pipelines.spark.application import SparkLost

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext

    from sluice.config import Settings
    from sluice.core.archive.plan import ArchivePlan
    from sluice.core.copy.plan import StreamPlan
    from sluice.pipelines.programs.program import Stores
    from sluice.pipelines.programs.scope_program import ScopeJob

MOST_SHOWN: Final = 20
"""How many streams of its plan a run shows: the largest ones."""

_WORDS: Final = {
    StreamState.PLANNED: "not finished",
    StreamState.COPIED: "copied",
    StreamState.FAILED: "failed",
    StreamState.STOPPED: "stopped",
}


@dataclass(frozen=True, slots=True)
class PlannedScope:
    """A ScopeCopy with its plan, or with its results if it is over."""

    job: ScopeJob
    answer: ScopePlanned | ScopeEnded


def plan(job: ScopeJob, stores: Stores) -> PlannedScope:
    """Plan a scope's copy; or find the plan that it began with, or its results if it is over."""
    return PlannedScope(job, plan_scope_job(job, stores))


def show_plan(planned: PlannedScope) -> None:
    """Print a whole plan."""
    job, answer = planned.job, planned.answer
    recorded = isinstance(answer, ScopePlanned) and answer.recorded
    shown = answer.plan if isinstance(answer, ScopePlanned) else _ended(answer).plan
    console.out.print(console.scope_plan(job.name, job.request, shown, recorded=recorded))


def run(
    job: ScopeJob,
    stores: Stores,
    spark: Callable[[], SparkContext],
    settings: Settings,
    patience: float | None,
) -> CommandResult | None:
    """Plan and run one scope's copy, and show its result; return None if it is suspended."""
    began = time.monotonic()
    try:
        report = _report(job, stores, spark, settings, patience)
        if report is None:
            return None
        if _went_well(report):
            # The log is not needed any more: each target tells that it is complete.
            abandon_scope_job(job, stores)
    except SluiceError as error:
        return _refused(job, Trouble.of(error))
    except SparkLost as error:
        return _refused(job, Trouble.of(InfrastructureError(f"Spark was lost: {error}")))
    seconds = time.monotonic() - began
    console.show_scope_report(job.name, report, seconds)
    return CommandResult(
        json=_report_json(job, report, seconds), words=_words(report), failures=_failures(report)
    )


def _report(
    job: ScopeJob,
    stores: Stores,
    spark: Callable[[], SparkContext],
    settings: Settings,
    patience: float | None,
) -> ScopeReport | None:
    """Plan and run a scope's copy, and return its report; None if it is suspended."""
    answer = plan_scope_job(job, stores)
    if isinstance(answer, ScopeEnded):
        return _ended(answer)
    if job.suspend:
        return None
    console.err.print(
        console.scope_plan(
            job.name, job.request, answer.plan, recorded=answer.recorded, most=MOST_SHOWN
        )
    )
    live = console.LiveProgress(answer.plan, settings)

    def start() -> SparkContext:
        with live.waiting("starting Spark"):
            return spark()

    with live.shown():
        return run_scope(
            answer.plan,
            stores,
            Tasks(spark=start, settings=settings),
            limits=lambda: job.limits,
            listener=live,
            patience=patience,
        )


def _ended(answer: ScopeEnded) -> ScopeReport:
    """Make the report of a copy that was over before. Its plan has no streams left to copy."""
    scope = answer.plan.scope.model_copy(update={"settled": answer.results})
    rest = answer.plan.model_copy(update={"streams": (), "scope": scope})
    return ScopeReport(plan=rest, results=answer.results, kept=answer.kept)


def _went_well(report: ScopeReport) -> bool:
    return all(result.state is StreamState.COPIED for result in report.results)


def _refused(job: ScopeJob, trouble: Trouble) -> CommandResult:
    """Show why the whole copy failed, and give its result. The store knows its streams' results."""
    console.show_trouble(trouble)
    head = {"kind": "ScopeCopy", "name": job.name, "copyId": job.request.scope_id}
    return CommandResult(
        json={**head, "error": trouble.model_dump(mode="json")},
        words=Counter(["failed"]),
        failures=[trouble],
    )


def _words(report: ScopeReport) -> Counter[str]:
    """Count the streams by how they ended. Those that an earlier run copied count as complete."""
    scope = report.plan.scope
    before = {one.stream for one in scope.settled if one.state is StreamState.COPIED}
    return Counter(
        "already complete" if result.stream in before else _WORDS[result.state]
        for result in report.results
    )


def _failures(report: ScopeReport) -> list[Trouble]:
    found = [result.trouble for result in report.results if result.trouble is not None]
    return found if report.trouble is None else [*found, report.trouble]


def plan_json(planned: PlannedScope) -> dict[str, Any]:
    """Convert a planned copy of a scope to JSON values."""
    job, answer = planned.job, planned.answer
    shown = answer.plan if isinstance(answer, ScopePlanned) else _ended(answer).plan
    scope = shown.scope
    return {
        "kind": "ScopeCopy",
        "name": job.name,
        "copyId": job.request.scope_id,
        "recorded": isinstance(answer, ScopePlanned) and answer.recorded,
        "complete": isinstance(answer, ScopeEnded),
        "source": scope.source,
        "target": scope.target,
        "run": scope.run,
        "bytes": shown.bytes,
        "streams": [_planned_json(stream) for stream in shown.items],
        "renames": [
            {
                "fromPrefix": rename.from_prefix,
                "toPrefix": rename.to_prefix,
                "streams": len(streams),
            }
            for rename, streams in console.renames_of(job.request.rename, shown)
        ],
        "leftOut": [left.model_dump(mode="json") for left in scope.left_out],
        "keyValueTables": list(scope.tables),
        "settled": [result.model_dump(mode="json") for result in scope.settled],
        "bounds": {
            "begin": scope.begin,
            "end": scope.end,
            "spreadMilliseconds": scope.end - scope.begin,
        },
        "planHash": answer.plan.hash if isinstance(answer, ScopePlanned) else None,
        "plan": answer.plan.model_dump(mode="json") if isinstance(answer, ScopePlanned) else None,
    }


def _planned_json(stream: StreamPlan | ArchivePlan) -> dict[str, Any]:
    return {
        "stream": stream.name,
        "target": stream.target_name,
        "append": stream.append,
        "bytes": stream.bytes,
        "events": stream.events,
        "segments": len(stream.segments),
        "parts": console.parts_of(stream),
    }


def _report_json(job: ScopeJob, report: ScopeReport, seconds: float) -> dict[str, Any]:
    """Convert a report to JSON values, with the same names as for one stream."""
    scope = report.plan.scope
    return {
        "kind": "ScopeCopy",
        "name": job.name,
        "copyId": job.request.scope_id,
        "source": scope.source,
        "target": scope.target,
        "run": scope.run,
        "counts": {_camel(word): count for word, count in _words(report).items()},
        "bytes": sum(r.bytes for r in report.results if r.state is StreamState.COPIED),
        "streams": [result.model_dump(mode="json") for result in report.results],
        "leftOut": [left.model_dump(mode="json") for left in scope.left_out],
        "keyValueTables": list(scope.tables),
        "kept": report.kept,
        "error": None if report.trouble is None else report.trouble.model_dump(mode="json"),
        "seconds": round(seconds, 3),
    }


def _camel(words: str) -> str:
    first, *rest = words.split()
    return first + "".join(word.capitalize() for word in rest)
