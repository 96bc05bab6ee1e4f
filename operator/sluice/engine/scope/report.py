"""Report the results of a scope's copy and of each of its streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.archive.plan import ArchivePlan
from sluice.core.copy.plan import StreamPlan
from sluice.core.scope.scope import StreamResult, StreamState, counts_of
from sluice.core.values.model import Frozen
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import UNVERIFIED
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.engine.archive.report import ArchiveReport
from sluice.engine.copy.report import StreamReport
from sluice.errors import AuthenticationFailed, CertificateRejected, StoreRejected, TargetLost

if TYPE_CHECKING:
    from sluice.core.scope.scope import Counts
    from sluice.core.workloads.answers import ScopeEnded

_NO_RESULTS: Final = frozenset(
    {
        error.__name__
        for error in (AuthenticationFailed, CertificateRejected, StoreRejected, TargetLost)
    }
)
"""Failures that are not retried at once and still are no result, which would be final.

A store that refuses Sluice's credentials, whose certificate does not verify, or that has lost its
data, would fail every stream. A store
with an unknown answer, as gRPC's UNKNOWN, may be in trouble itself. Another attempt may meet none
of this."""


class ScopeReport(Frozen):
    """The result of a scope's copy.

    Attributes:
        plan: the recorded plan.
        results: the results of all streams: first in the plan's order, then those without a plan.
        trouble: why the copy is not over; None once it is, with failures or without.
        kept: why the source's scope still exists after a move; None if it is gone, or if the copy
            is no move.
    """

    plan: ScopeCopyPlan
    results: tuple[StreamResult, ...]
    trouble: Trouble | None = None
    kept: str | None = None

    @classmethod
    def ended(cls, answer: ScopeEnded) -> ScopeReport:
        """Return the report of a copy that was over before. Its plan has nothing left to copy."""
        scope = answer.plan.scope.model_copy(update={"settled": answer.results})
        rest = answer.plan.model_copy(update={"streams": (), "scope": scope})
        return cls(plan=rest, results=answer.results, kept=answer.kept)

    @property
    def counts(self) -> Counts:
        """The numbers of streams by state."""
        return counts_of(self.results)

    @property
    def is_over(self) -> bool:
        """Whether each stream is complete, has failed for good, or was stopped."""
        return self.trouble is None


def result_of(plan: StreamPlan | ArchivePlan, report: StreamReport | ArchiveReport) -> StreamResult:
    """Return the result of a stream in a scope.

    Args:
        plan: the stream's plan as it stood at the end.
        report: the report of the stream. If the target was complete when the driver came, the
            report has no sizes, and those of the plan are taken.
    """
    bytes_, events, lost = plan.bytes, plan.events, 0
    if isinstance(report, ArchiveReport):
        if report.added is not None:
            bytes_, events, lost = report.added, report.new_events, report.lost
        elif isinstance(plan, ArchivePlan) and plan.parent is None:
            events = report.events
    elif report.segments:
        counts = [segment.events for segment in report.segments]
        bytes_, events = report.bytes, None if None in counts else report.events
    failed = report.error is not None
    if isinstance(plan, StreamPlan):
        lost = sum(segment.lost for segment in plan.segments)
        if plan.follow and isinstance(report, StreamReport) and report.segments:
            lost = sum(segment.lost for segment in report.segments)
    return StreamResult(
        stream=plan.name,
        target=plan.target_name,
        state=StreamState.FAILED if failed else StreamState.COPIED,
        bytes=bytes_,
        events=plan.events if failed else events,
        digest=None if report.digest == UNVERIFIED else report.digest,
        lost=0 if failed else lost,
        trouble=report.error,
        ended=report.ended if isinstance(report, StreamReport) else None,
    )


def may_pass(trouble: Trouble) -> bool:
    """Tell whether a failure may be a store's and not the stream's, so that it is no result."""
    return trouble.retryable or trouble.reason in _NO_RESULTS
