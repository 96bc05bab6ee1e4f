"""Show plans and results of `sluice plan | run` for ScopeCopies."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from sluice import console
from sluice.commands.shared import CommandResult
from sluice.commands.views import View
from sluice.core.scope.request import ScopeRequest
from sluice.core.scope.scope import StreamState
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import ScopeEnded
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.engine.scope.report import ScopeReport
from sluice.engine.workloads.scope import record_run

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sluice.core.archive.plan import ArchivePlan
    from sluice.core.copy.plan import StreamPlan
    from sluice.engine.workloads.workload import Found
    from sluice.errors import SluiceError
    from sluice.pipelines.programs.jobs import Job
    from sluice.pipelines.programs.stores import Stores

MOST_SHOWN: Final = 20
"""How many streams of its plan a run shows: the largest ones."""

_WORDS: Final = {
    StreamState.PLANNED: "not finished",
    StreamState.COPIED: "copied",
    StreamState.FAILED: "failed",
    StreamState.STOPPED: "stopped",
}


class ScopeView(View[ScopeRequest, ScopeCopyPlan, ScopeReport]):
    """The output about a ScopeCopy."""

    kind = "ScopeCopy"

    def show_plan(self, found: Found[ScopeCopyPlan, ScopeReport]) -> None:
        """Print the plan of all streams."""
        plan = _shown(found)
        job = self.job
        console.out.print(console.scope_plan(job.name, job.request, plan, recorded=found.recorded))

    def table(self, plan: ScopeCopyPlan, *, recorded: bool) -> RenderableType:
        """Make a table of the largest streams."""
        job = self.job
        return console.scope_plan(job.name, job.request, plan, recorded=recorded, most=MOST_SHOWN)

    def after(self, stores: Stores, report: ScopeReport) -> None:
        """Delete the log if all streams are copied: each target tells that it is complete.

        Of a scope that is archived repeatedly, record the run once it is over. The next command
        begins another run, also if streams failed. Where streams were followed the log stays: the
        next command would take streams that the scope got since.
        """
        copied = all(result.state is StreamState.COPIED for result in report.results)
        whole = copied and not self.job.request.follow
        if self.job.request.series is not None and report.is_over:
            ended = ScopeEnded(plan=report.plan, results=report.results)
            if report.results:
                target = stores.place(self.job.target)
                number = record_run(self.job.workload, target, ended, self.job.retention)
                console.note.print(f"{self.job.name}: run {number} of the scope is recorded")
            whole = True
        if whole:
            self.job.abort(stores)

    def ended(self, report: ScopeReport, seconds: float) -> CommandResult:
        """Print the report."""
        console.show_scope_report(self.job.name, report, seconds)
        return CommandResult(
            json=_report_json(self.job, report, seconds),
            words=_words(report),
            failures=_failures(report),
        )

    def failed(self, error: SluiceError, _seconds: float) -> CommandResult:
        """Print why the whole copy failed. The store knows its streams' results."""
        trouble = Trouble.of(error)
        console.show_trouble(trouble)
        head = {"kind": self.kind, "name": self.job.name, "copyID": self.job.request.scope_id}
        return CommandResult(
            json={**head, "error": trouble.model_dump(mode="json")},
            words=Counter(["failed"]),
            failures=[trouble],
        )

    def details(self, found: Found[ScopeCopyPlan, ScopeReport]) -> dict[str, Any]:
        """Return the JSON values about the streams."""
        shown = _shown(found)
        scope = shown.scope
        return {
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
                for rename, streams in console.renames_of(self.job.request.rename, shown)
            ],
            "leftOut": [left.model_dump(mode="json") for left in scope.left_out],
            "keyValueTables": list(scope.tables),
            "settled": [result.model_dump(mode="json") for result in scope.settled],
            "bounds": {
                "begin": scope.begin,
                "end": scope.end,
                "spreadMilliseconds": scope.end - scope.begin,
            },
        }


def _shown(found: Found[ScopeCopyPlan, ScopeReport]) -> ScopeCopyPlan:
    """Return the plan; or the one of a copy that is over, which has nothing left to do."""
    if found.report is not None:
        return found.report.plan
    assert found.plan is not None  # noqa: S101 - for the type checker
    return found.plan


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


def _report_json(job: Job[ScopeRequest], report: ScopeReport, seconds: float) -> dict[str, Any]:
    """Convert a report to JSON values, with the same names as for one stream."""
    scope = report.plan.scope
    return {
        "kind": "ScopeCopy",
        "name": job.name,
        "copyID": job.request.scope_id,
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
