"""`sluice plan | run` for ScopeCopies: what `copying` does for one stream, for a whole scope."""

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
"""Streams that a run shows of its plan: the biggest ones."""

_WORDS: Final = {
    StreamState.PLANNED: "not finished",
    StreamState.COPIED: "copied",
    StreamState.FAILED: "failed",
    StreamState.STOPPED: "stopped",
}


@dataclass(frozen=True, slots=True)
class PlannedScope:
    """A ScopeCopy, and what is to be done for it."""

    job: ScopeJob
    answer: ScopePlanned | ScopeEnded


def plan(job: ScopeJob, stores: Stores) -> PlannedScope:
    """Plan a scope's copy, or find the plan under which it was begun, or that it is over."""
    return PlannedScope(job, plan_scope_job(job, stores))


def show_plan(planned: PlannedScope) -> None:
    """A plan for people, all of it."""
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
    """Plan and run one scope's copy, and show what came of it; None when it is suspended."""
    began = time.monotonic()
    try:
        report = _report(job, stores, spark, settings, patience)
        if report is None:
            return None
        if _went_well(report):
            # Nothing has to be remembered of it: each target tells itself that it is whole.
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
    """What came of a scope's copy; None when it is suspended."""
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
    """The report of a copy that was over before: its plan has nothing left to do."""
    scope = answer.plan.scope.model_copy(update={"settled": answer.results})
    rest = answer.plan.model_copy(update={"streams": (), "scope": scope})
    return ScopeReport(plan=rest, results=answer.results, kept=answer.kept)


def _went_well(report: ScopeReport) -> bool:
    return all(result.state is StreamState.COPIED for result in report.results)


def _refused(job: ScopeJob, trouble: Trouble) -> CommandResult:
    """The whole copy failed; what became of its streams is in the store."""
    console.show_trouble(trouble)
    head = {"kind": "ScopeCopy", "name": job.name, "copyId": job.request.scope_id}
    return CommandResult(
        json={**head, "error": trouble.model_dump(mode="json")},
        words=Counter(["failed"]),
        failures=[trouble],
    )


def _words(report: ScopeReport) -> Counter[str]:
    """The streams by what became of them; what an earlier run copied was complete already."""
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
    """A planned scope's copy for programs."""
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
    """A report for programs, as that of one stream is."""
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
