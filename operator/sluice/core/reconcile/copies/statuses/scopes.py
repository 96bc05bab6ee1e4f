"""Build the status of a ScopeCopy."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sluice.api.status.common import Failure, ObjectRef, ProgressStatus
from sluice.api.status.scope_status import (
    MOST_FAILED,
    BoundsTaken,
    FailedStream,
    LeftOutCount,
    ScopeCopyStatus,
    StreamCounts,
)
from sluice.core.reconcile.copies.actions import WriteResults
from sluice.core.reconcile.copies.statuses.base import CopyStatus
from sluice.core.reconcile.copies.statuses.results import results_hash, results_name, shards
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.scope.scope import StreamState, counts_of
from sluice.core.values import text
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import ScopeEnded
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.core.workloads.scope_log import planned_results
from sluice.core.workloads.unplanned import Unplanned, UnplannedScopeCopy
from sluice.errors import Category

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.api.kinds.scopecopy import ScopeCopySpec
    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.reconcile.copies.world import Reading, World
    from sluice.core.scope.scope import Counts, ScopePlan, StreamResult
    from sluice.core.workloads.plan import Plan

NAMED: Final = 5
"""Most streams that a message names; the status names more."""

_WHY = "status.failedStreams says why it failed, and status.resultRefs what became of each stream."


class ScopeStatus(CopyStatus):
    """Builder of the next status of a ScopeCopy.

    Args:
        copy: the copy, with its present status.
        spec: its spec.
        now: the time.

    Attributes:
        made: the participle for streams that are done.
        where: the preposition before the target's name.
    """

    made: ClassVar[str] = "copied"
    where: ClassVar[str] = "to scope"

    def __init__(self, copy: CopySeen, spec: ScopeCopySpec, now: datetime) -> None:
        self._spec = spec
        super().__init__(copy, now)

    def unpublished(self, world: World) -> Action | None:
        """Publish the results, unless the ConfigMaps already have them."""
        results = ended_in(world).results
        return None if world.results == results_hash(results) else WriteResults(results)

    def over(self, world: World) -> CopyingStatus:
        """Report the end: each stream is copied, has failed, or was stopped."""
        ended = ended_in(world)
        results = ended.results
        counts = counts_of(results)
        trouble = self._trouble(results, counts)
        attempt = self._open(world)
        if attempt is not None and trouble is not None:
            self.end(attempt, outcome="Failed", reason=trouble.reason)
        elif attempt is not None:
            self.end(attempt, outcome="Succeeded")
        job, written = world.job, world.plan
        end = job.ended if job and job.ended else self._now
        self._set(
            **self._of_scope(ended.plan.scope, results),
            plan_ref=None if written is None else ObjectRef(name=written.name),
            plan_hash=None if written is None else written.plan.hash,
            failures=0,
            retry_time=None,
            last_failure=None if trouble is None else self._failure(trouble, world),
            completion_time=end,
            duration=self._took(end),
            progress=self._end(results),
        )
        if trouble is not None:
            return self._say(conditions.stalled(Saying(trouble.reason, str(trouble))))
        return self._say(
            conditions.succeeded(
                self._ended_as(Saying("Succeeded", self._success(ended))),
                verified=self._verified() if _compared(results) else None,
            )
        )

    def _ended_as(self, said: Saying) -> Saying:
        """Return the reason of a good end."""
        return said

    def _failure(self, trouble: Trouble, world: World) -> Failure:
        return Failure(
            reason=trouble.reason,
            category=trouble.category.value,
            message=trouble.message,
            remedy=trouble.remedy,
            attempt=world.job.attempt if world.job else None,
            time=self._now,
        )

    def _end(self, results: Sequence[StreamResult]) -> ProgressStatus:
        """Give the progress at the end, from the streams that are copied."""
        copied = [one for one in results if one.state is StreamState.COPIED]
        done, total = (sum(result.bytes for result in some) for some in (copied, results))
        whole = len(copied) == len(results)
        percent = 100 if whole else min(99, 100 * done // total) if total else 0
        return ProgressStatus(
            bytes=done,
            total_bytes=total,
            size=text.size(total),
            events=_events(copied),
            percent=percent,
            summary=f"{percent}%",
            time=self._now,
        )

    def _success(self, ended: ScopeEnded) -> str:
        """Describe the result of a copy that has copied all its streams."""
        scope, results = ended.plan.scope, ended.results
        left_out = sum(one.count for one in scope.left_out)
        aside = f" {_streams(left_out)} left out." if left_out else ""
        if not results:
            what = f"No stream of {self._whence()} is to be {self.made}: nothing is selected."
        else:
            size, events = text.size(sum(result.bytes for result in results)), _events(results)
            counted = "" if events is None else f", {events:,} events"
            what = (
                f"{_streams(len(results))} {self.made} {self.where} {scope.target}: "
                f"{size}{counted}. {self._how_far(scope)}"
            )
        return f"{what}{aside}{_lost(results)}{_moved(scope, ended.kept)}{_tables(scope)}"

    def _whence(self) -> str:
        """Name the source, for a sentence."""
        source = self._spec.source
        return f"{'scope' if source.archive is None else 'the archives in'} {source.title}"

    def _how_far(self, scope: ScopePlan) -> str:
        """Tell up to where each stream is copied, in a sentence."""
        archive = self._spec.source.archive
        if archive is None:
            return f"How far each goes was read within {_seconds(scope.end - scope.begin)}."
        if scope.restored is not None:
            return f"Each is as run {scope.restored} of the scope has it."
        until = "" if archive.until is None else f" up to {archive.until:%Y-%m-%dT%H:%M:%SZ}"
        return f"Each is as the last run of its archive{until} has it."

    def _verified(self) -> Saying:
        """Give the condition for a copy whose streams were all compared."""
        return Saying(
            "DigestsMatch",
            "What is published of each stream was read again and compared before; the digests are "
            "in the ConfigMaps that status.resultRefs names.",
        )

    def _trouble(self, results: Sequence[StreamResult], counts: Counts) -> Trouble | None:
        """Tell why the copy has not succeeded; None if it has.

        The category is that of the first stream that failed.
        """
        if counts.copied == counts.total:
            return None
        failed = _failed(results)
        names = some([f"{result.stream} ({trouble.reason})" for result, trouble in failed])
        words = _words(_counts(counts, 0), self.made)
        message = f"{words}{': ' if failed else ''}{names}."
        category = failed[0][1].category if failed else Category.INFRASTRUCTURE
        remedy = f"{self._again()}; {_WHY}"
        if counts.copied:
            return Trouble(
                reason="PartiallySucceeded", category=category, message=message, remedy=remedy
            )
        return Trouble(reason="Failed", category=category, message=message, remedy=remedy)

    def _again(self) -> str:
        """Tell how streams that failed are tried again, as the beginning of a sentence."""
        return (
            f"To try the streams that are not {self.made} again, annotate the copy with "
            "sluice.dev/requestedAt"
        )

    def _of_scope(self, scope: ScopePlan, results: Sequence[StreamResult]) -> dict[str, Any]:
        """Give the fields that follow from a plan and the results of its streams."""
        left_out = tuple(
            LeftOutCount(reason=one.why.value, count=one.count) for one in scope.left_out
        )
        return {
            "run": scope.run,
            "bounds": BoundsTaken(
                begin_time=_moment(scope.begin),
                end_time=_moment(scope.end),
                spread_milliseconds=max(scope.end - scope.begin, 0),
            ),
            "streams": _counts(counts_of(results), sum(one.count for one in left_out)),
            "failed_streams": named(results),
            "left_out": left_out,
            "key_value_tables": scope.tables,
            "result_refs": self._refs(results),
        }

    def _refs(self, results: Sequence[StreamResult]) -> tuple[ObjectRef, ...]:
        """Name the ConfigMaps in which results are published."""
        name, uid = self._copy.name, self._copy.uid
        number = range(len(shards(results)))
        return tuple(ObjectRef(name=results_name(name, uid, place)) for place in number)

    def _of_run(self) -> dict[str, Any]:
        return {"failed_streams": ()}

    def _of_plan(self, plan: Plan) -> dict[str, Any]:
        if isinstance(plan, ScopeCopyPlan):
            return self._of_scope(plan.scope, planned_results(plan))
        if isinstance(plan, UnplannedScopeCopy):  # only the driver can look
            left = None
            if isinstance(self.value, ScopeCopyStatus) and self.value.streams is not None:
                left = self.value.streams.model_copy(update={"failed": 0, "stopped": 0})
            return {"run": plan.run, "bounds": None, "streams": left}
        raise TypeError(f"a {type(plan).__name__} is no plan of a ScopeCopy")

    def _work(self, plan: Plan) -> str:
        if isinstance(plan, Unplanned):
            return "what the archives hold"
        streams = len(plan.items)
        return f"{streams} stream{'' if streams == 1 else 's'} with {text.size(plan.bytes)}"

    @property
    def _standing(self) -> StreamCounts:
        """The counts of streams in the status."""
        said = self.value.streams if isinstance(self.value, ScopeCopyStatus) else None
        return said or StreamCounts()

    def _so_far(self) -> str:
        if isinstance(self.value, ScopeCopyStatus) and self.value.streams is None:
            return f"The driver looks what there is to {self.work}."
        progress = self.value.progress
        size = (
            f"; {text.size(progress.bytes)} of {text.size(progress.total_bytes)}"
            if progress
            else ""
        )
        return f"{_words(self._standing, self.made)}{size}."

    def _copied(self) -> str:
        return f" {_words(self._standing, self.made)}." if self._standing.copied else ""

    def _take(self, reading: Reading) -> dict[str, Any]:
        counts, before = reading.progress.streams, self._standing
        if counts is None:
            return {}
        counted = _counts(counts, before.left_out)
        return {} if counted == before else {"streams": counted}


def ended_in(world: World) -> ScopeEnded:
    """Return the answer of a world whose copy is over."""
    assert isinstance(world.answer, ScopeEnded)  # noqa: S101 - for the type checker
    return world.answer


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _counts(counts: Counts, left_out: int) -> StreamCounts:
    return StreamCounts(
        total=counts.total,
        copied=counts.copied,
        failed=counts.failed,
        stopped=counts.stopped,
        left_out=left_out,
        summary=f"{counts.copied}/{counts.total}",
    )


def _failed(results: Iterable[StreamResult]) -> list[tuple[StreamResult, Trouble]]:
    """List the failed streams by name, each with its failure."""
    found = [
        (result, result.trouble)
        for result in results
        if result.state is StreamState.FAILED and result.trouble is not None
    ]
    return sorted(found, key=lambda one: one[0].stream)


def named(results: Iterable[StreamResult]) -> tuple[FailedStream, ...]:
    """List the first failed streams, as the status names them."""
    return tuple(
        FailedStream(
            stream=result.stream,
            target=result.target,
            reason=trouble.reason,
            message=str(trouble),
        )
        for result, trouble in _failed(results)[:MOST_FAILED]
    )


def _events(results: Iterable[StreamResult]) -> int | None:
    """Sum up the events of all streams; None if the events of one are unknown."""
    counts = [result.events for result in results]
    return None if None in counts else sum(count for count in counts if count is not None)


def _compared(results: Sequence[StreamResult]) -> bool:
    """Tell whether there are streams, and each was compared."""
    return bool(results) and all(result.digest is not None for result in results)


def _words(counts: StreamCounts, made: str) -> str:
    """Tell how many streams are copied, have failed, and were not begun."""
    if counts.total == 1:
        said = f"The one stream is {'' if counts.copied else 'not '}{made}"
    else:
        said = f"{counts.copied or 'None'} of {counts.total} streams are {made}"
    failed = f", {counts.failed} failed" if counts.failed else ""
    were = "was" if counts.stopped == 1 else "were"
    stopped = f", {counts.stopped} {were} not begun" if counts.stopped else ""
    return f"{said}{failed}{stopped}"


def _streams(count: int) -> str:
    return "1 stream is" if count == 1 else f"{count:,} streams are"


def _seconds(milliseconds: int) -> str:
    # From a second on, in seconds.
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"  # noqa: PLR2004


def _lost(results: Iterable[StreamResult]) -> str:
    lost = sum(result.lost for result in results)
    return f" The sources had lost {text.size(lost)} before they were read." if lost else ""


def _moved(scope: ScopePlan, kept: str | None) -> str:
    """Tell what became of the source's scope after a move, in a sentence after a blank."""
    if not scope.move:
        return ""
    if kept is None:
        return f" Scope {scope.source} is deleted."
    return f" Scope {scope.source} stays: {kept.rstrip('.')}."


def _tables(scope: ScopePlan) -> str:
    """Name the key-value tables, which are not copied, in a sentence after a blank."""
    if not scope.tables:
        return ""
    return f" Key-value tables are not copied: {some(scope.tables)}."


def some(names: Sequence[str]) -> str:
    """List the first names, and count the others."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
