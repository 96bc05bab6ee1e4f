"""What came of a scope's copy, and of each of its streams."""

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
from sluice.errors import AuthenticationFailed, StoreRejected

if TYPE_CHECKING:
    from sluice.core.scope.scope import Counts
    from sluice.engine.copy.report import StreamReport

_NO_RESULTS: Final = frozenset({AuthenticationFailed.__name__, StoreRejected.__name__})
"""Failures that another attempt may not meet, though nobody tries again at once: a store that does
not know us any more would fail every stream, and one that says what nobody understands, as gRPC's
UNKNOWN, may be in trouble itself. A result would be the stream's last."""


class ScopeReport(Frozen):
    """A scope's copy.

    Attributes:
        plan: what was copied: the recorded plan.
        results: of every stream, in the plan's order; then of those that are in no plan.
        trouble: why it is not over; None once it is, with failures or without.
        kept: why the source's scope is there still after a move; None where it is gone, or stays.
    """

    plan: ScopeCopyPlan
    results: tuple[StreamResult, ...]
    trouble: Trouble | None = None
    kept: str | None = None

    @property
    def counts(self) -> Counts:
        """How many streams are how far."""
        return counts_of(self.results)

    @property
    def is_over(self) -> bool:
        """Whether each stream is whole, has failed for good, or was stopped."""
        return self.trouble is None


def result_of(plan: StreamPlan | ArchivePlan, report: StreamReport | ArchiveReport) -> StreamResult:
    """What is to be said of a stream in a scope.

    Args:
        plan: the stream's plan as it stood at the end.
        report: what came of it. One that was whole when the driver came tells no sizes: those are
            the plan's.
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
    return StreamResult(
        stream=plan.name,
        target=plan.target_name,
        state=StreamState.FAILED if failed else StreamState.COPIED,
        bytes=bytes_,
        events=plan.events if failed else events,
        digest=None if report.digest == UNVERIFIED else report.digest,
        lost=0 if failed else lost,
        trouble=report.error,
    )


def may_pass(trouble: Trouble) -> bool:
    """Whether a failure may be none of the stream's own, so that it is no result."""
    return trouble.retryable or trouble.reason in _NO_RESULTS
