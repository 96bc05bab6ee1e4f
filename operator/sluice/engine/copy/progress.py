"""Measure a copy's progress in the target store, so that its driver need not report it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.next_staging_step import staged
from sluice.core.scope.progress import Progress
from sluice.core.values import identity
from sluice.engine.append import observing
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.staging.observe import observe_segments

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.workloads.plan import Plan
    from sluice.stores.base import Store


class ProgressWatch:
    """Measures a plan's progress.

    Args:
        plan: the plan.
        target: the target store, on connections of the watcher's own.
    """

    def __init__(self, plan: Plan, target: Store) -> None:
        self._total = plan.bytes
        self._target = target
        self._journals = [
            (stream, CopyJournal(target, stream.copy_id, stream.target, stream))
            for stream in plan.streams
        ]

    def measure(self) -> Progress:
        """Return the progress now."""
        readings = [self._stream(stream, copy_journal) for stream, copy_journal in self._journals]
        return Progress(
            bytes=sum(done for done, _ in readings),
            total=self._total,
            published=all(published for _, published in readings),
        )

    def _stream(self, plan: StreamPlan, copy_journal: CopyJournal) -> tuple[int, bool]:
        """Return a stream's bytes in the target store, and whether all are published."""
        found = staged_bytes(plan, copy_journal, self._target)
        if found is not None:
            return found
        if plan.append:
            return observing.progress(plan, copy_journal, self._target)
        stream = self._target.describe(plan.target)
        tags = () if stream is None else stream.config.tags
        complete = identity.completed(tags, plan.copy_id) is not None
        return (plan.bytes if complete else 0), complete


def staged_bytes(
    plan: StreamPlan, copy_journal: CopyJournal, target: Store
) -> tuple[int, bool] | None:
    """Return a stream's bytes that are staged or published, and whether all are published.

    None where it has no journal: the copy was not begun, or is done.
    """
    journal = copy_journal.load()
    if journal is None:
        return None
    if plan.append:
        return observing.progress(plan, copy_journal, target)
    if journal.target is None:
        return 0, False
    # Bytes that the source has lost count as done, so the total stays the one shown at first.
    # Bytes that come to the source of a move meanwhile are not in that total.
    whole, plan = plan.bytes, journal.current
    seen = observe_segments(plan, journal.target, target)
    done = sum(
        segment.lost + staged(segment, state)
        for segment, state in zip(plan.segments, seen, strict=True)
    )
    return min(done, whole), all(state.published is not None for state in seen)
