"""Show plans and results of `sluice plan | run`, in a form for each kind of resource."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from sluice import console
from sluice.commands.shared import CommandResult
from sluice.core.archive.request import ArchiveRequest
from sluice.core.copy.planner import CopyRequest
from sluice.core.pace.retry import Patience
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.plan import ArchiveRunPlan, Plan, StreamCopyPlan
from sluice.core.workloads.request import Request
from sluice.engine.archive.report import ArchiveReport
from sluice.engine.copy.abort import finish_abort, sweep
from sluice.engine.copy.report import Outcome, StreamReport
from sluice.engine.workloads.following import group_state, make_group
from sluice.errors import ReaderGroupBusy, ReaderGroupExists, SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from sluice.engine.workloads.workload import Found
    from sluice.pipelines.programs.jobs import Job
    from sluice.pipelines.programs.stores import Stores

Q = TypeVar("Q", bound=Request)
P = TypeVar("P", bound=Plan)
R = TypeVar("R")


_OF_GROUPS: Final[dict[type[SluiceError], str]] = {
    ReaderGroupBusy: "Have the group's readers read the source to its end, close them, and run the "
    "file again. Or give a position: "
    "sluice position -f FILE --reader-group GROUP --cut CUT --apply",
    ReaderGroupExists: "Give another name by `as`, or delete the group that is there. Run the file "
    "again.",
}
"""What to do about reader groups of a file, where the errors speak of a command's options."""


class View(ABC, Generic[Q, P, R]):
    """The output about one resource, for users and as JSON.

    Args:
        job: the resource.

    Attributes:
        kind: the name of its kind.
        patience: seconds without progress after which a store is given up; None for the usual ones.
    """

    kind: ClassVar[str]

    def __init__(self, job: Job[Q]) -> None:
        self.job = job
        self.patience: float | None = None

    @abstractmethod
    def table(self, plan: P, *, recorded: bool) -> RenderableType:
        """Make a table of the plan that is run.

        Args:
            plan: the plan.
            recorded: whether an earlier process has begun with it.
        """

    @abstractmethod
    def ended(self, report: R, seconds: float) -> CommandResult:
        """Print a report, and return the command's result."""

    @abstractmethod
    def failed(self, error: SluiceError, seconds: float) -> CommandResult:
        """Print why there is no report, and return the command's result."""

    def show_plan(self, found: Found[P, R]) -> None:
        """Print a whole plan."""
        if found.plan is not None:
            console.out.print(self.table(found.plan, recorded=found.recorded))

    def before(self, stores: Stores) -> None:
        """Finish what an earlier process left, before a run is planned."""

    def after(self, stores: Stores, report: R) -> None:
        """Delete what is not needed any more after a run."""

    def plan_json(self, found: Found[P, R]) -> dict[str, Any]:
        """Convert a plan to JSON values."""
        plan = found.plan
        return {
            "kind": self.kind,
            "name": self.job.name,
            "copyID": self.job.request.copy_id,
            "recorded": found.recorded,
            "complete": found.report is not None,
            **self.details(found),
            "planHash": None if plan is None else plan.hash,
            "plan": None if plan is None else plan.model_dump(mode="json"),
        }

    def details(self, _found: Found[P, R]) -> dict[str, Any]:
        """Return the JSON values of a plan that only this kind has."""
        return {}


class GroupMade(NamedTuple):
    """A reader group that goes on in the target.

    Attributes:
        name: the group of the source.
        made: the group of the target.
        waits: why it is not made yet; None if it is.
    """

    name: str
    made: str
    waits: Trouble | None

    @property
    def json(self) -> dict[str, Any]:
        """The group as JSON values, as a status has it."""
        why = {} if self.waits is None else {"why": self.waits.message}
        state = "Made" if self.waits is None else "Waiting"
        return {"name": self.name, "made": self.made, "state": state, **why}


class CopyView(View[CopyRequest, StreamCopyPlan, StreamReport]):
    """The output about a StreamCopy."""

    kind = "StreamCopy"

    def __init__(self, job: Job[CopyRequest]) -> None:
        super().__init__(job)
        self._groups: list[GroupMade] = []

    def before(self, stores: Stores) -> None:
        """Finish an interrupted abort, since a copy that was aborted takes new bounds."""
        request, target = self.job.request, stores[self.job.target]
        if finish_abort(request.copy_id, request.target, target):
            console.note.print(f"{self.job.name}: finished an abort that was cut off")

    def after(self, stores: Stores, report: StreamReport) -> None:
        """Make reader groups in a target that is whole, and delete what late drivers left."""
        if self.job.request.groups and report.outcome is not Outcome.FAILED:
            self._regroup(stores)
        if report.outcome is not Outcome.ALREADY_COMPLETE:
            return
        left = sweep(report.copy_id, report.target, stores[self.job.target])
        if left:
            console.note.print(f"{self.job.name}: deleted {left} leftover staging segments")

    def _regroup(self, stores: Stores) -> None:
        """Make each reader group in the target, and note those that are still waited for."""
        places = stores.place(self.job.sources[0]), stores.place(self.job.target)

        def regroup(name: str, into: str) -> None:
            made, _ = group_state(self.job.workload, *places, name=name, into=into)
            if not made:
                make_group(self.job.workload, *places, name=name, into=into)

        for number, (name, into) in enumerate(self.job.request.groups):
            waits = None
            try:
                _patiently(partial(regroup, name, into), self.patience)
            except SluiceError as error:
                told = {
                    "field": f"spec.readerGroups[{number}].name",
                    "remedy": _OF_GROUPS.get(type(error), error.remedy),
                }
                waits = Trouble.of(error).model_copy(update=told)
            self._groups.append(GroupMade(name, into, waits))

    def show_plan(self, found: Found[StreamCopyPlan, StreamReport]) -> None:
        """Print the plan; or the report, if the copy is complete."""
        super().show_plan(found)
        if found.report is not None:
            console.show_report(found.report, 0)

    def table(self, plan: StreamCopyPlan, *, recorded: bool) -> RenderableType:
        """Make a table of the segments."""
        return console.plan_table(plan, recorded=recorded)

    def ended(self, report: StreamReport, seconds: float) -> CommandResult:
        """Print the report."""
        console.show_report(report, seconds)
        result = _result(self, report, seconds, bytes=report.bytes, events=report.events)
        if not self._groups:
            return result
        for one in self._groups:
            if one.waits is None:
                console.note.print(
                    console.Words(f"The reader group {one.made} goes on in the target.")
                )
            else:
                console.show_trouble(one.waits)
        return CommandResult(
            json=result.json | {"readerGroups": [one.json for one in self._groups]},
            words=result.words,
            failures=[*result.failures, *(one.waits for one in self._groups if one.waits)],
        )

    def failed(self, error: SluiceError, seconds: float) -> CommandResult:
        """Print the error."""
        return self.ended(StreamReport.failed(self.job.request, error), seconds)


class ArchiveView(View[ArchiveRequest, ArchiveRunPlan, ArchiveReport]):
    """The output about a run of a StreamArchive."""

    kind = "StreamArchive"

    def table(self, plan: ArchiveRunPlan, *, recorded: bool) -> RenderableType:
        """Make a table of the segments with new bytes."""
        return console.archive_plan(plan.archive, recorded=recorded)

    def ended(self, report: ArchiveReport, seconds: float) -> CommandResult:
        """Print the report."""
        console.show_archive_report(report, seconds)
        return _result(self, report, seconds)

    def failed(self, error: SluiceError, seconds: float) -> CommandResult:
        """Print the error."""
        return self.ended(ArchiveReport.failed(self.job.request, error), seconds)


def _patiently(action: Callable[[], None], seconds: float | None) -> None:
    """Do something, and repeat it for a while if a store is away."""
    patience = Patience(seconds)
    while True:
        try:
            action()
        except SluiceError as error:
            delay = patience.delay(error, time.monotonic())
            if delay is None:
                raise
        else:
            return
        time.sleep(delay)


def _result(
    view: View[Any, Any, Any], report: StreamReport | ArchiveReport, seconds: float, **numbers: int
) -> CommandResult:
    """Return the result of the work on a single stream, with more numbers in its JSON."""
    return CommandResult(
        json={
            "kind": view.kind,
            "name": view.job.name,
            **report.model_dump(mode="json"),
            **numbers,
            "seconds": round(seconds, 3),
        },
        words=Counter([console.outcome_word(report.outcome)]),
        failures=[] if report.error is None else [report.error],
    )
