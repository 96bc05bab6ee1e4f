"""Reconcile copies: connect the decisions of `core.reconcile` to a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluice.api.registry import DRIVEN, Lifecycle
from sluice.api.status.common import ConditionType, ProgressStatus
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.api.status.scope_status import ScopeCopyStatus, StreamCounts
from sluice.core.catalogue import NORMAL, failures
from sluice.core.reconcile.copies.actions import RemoveFinalizer
from sluice.core.reconcile.copies.archive_seen import ArchiveSeen
from sluice.core.reconcile.copies.decide import after_failure, reconcile
from sluice.core.reconcile.copies.decide_archive import reconcile_archive
from sluice.core.reconcile.copies.scheduled.decide import after_failure as after_failed_run
from sluice.core.reconcile.copies.scheduled.decide import reconcile_scheduled
from sluice.core.reconcile.copies.scheduled.seen import ScheduledSeen
from sluice.core.scope.scope import StreamState
from sluice.kube.api.objects import STAGING_FINALIZER, STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.actions import Action, Decision
    from sluice.core.values.trouble import Trouble
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.copies.observer import CopyObserver
    from sluice.kube.copies.performer import Performer
    from sluice.kube.copies.situation import Situation
    from sluice.metrics import Metrics


_REASONS: Final = {failure.name for failure in failures()} | {reason.name for reason in NORMAL}
"""The reasons that metrics count by their names."""


class CopyWorkings:
    """Part of reconciling that is particular to copies, see `reconciler.Workings`.

    Args:
        kind: the kind of copies.
        observer: looks at copies.
        performer: acts on copies.
        metrics: counts attempts, streams and copies.
    """

    finalizer: Final = STAGING_FINALIZER

    def __init__(
        self, kind: Kind, observer: CopyObserver, performer: Performer, metrics: Metrics
    ) -> None:
        self.kind: Final = kind
        self._kind = next(one for one in DRIVEN if one.name == kind.name)
        self.status: Final = STATUSES[kind]
        self._observer = observer
        self._performer = performer
        self._metrics = metrics

    def is_bounded(self, body: Object) -> bool:
        """Tell whether the work ends by itself. A copy that follows its source may never end."""
        return self._kind.lifecycle_of(body) is not Lifecycle.CONTINUOUS

    async def look(self, body: Object, *, glance: bool = False) -> Situation:
        """Look at a copy's surroundings."""
        return await self._observer.look(body, glance=glance)

    def decide(self, situation: Situation) -> Decision:
        """Decide what to do."""
        match situation.seen:
            case ArchiveSeen() as archive:
                return reconcile_archive(archive, situation.world)
            case ScheduledSeen() as scheduled:
                return reconcile_scheduled(scheduled, situation.world)
            case seen:
                return reconcile(seen, situation.world)

    def after_failure(
        self,
        situation: Situation,
        decided: Decision,
        action: Action,  # noqa: ARG002 - the failures of all actions are alike
        trouble: Trouble,
    ) -> Decision:
        """Decide what to do after an action that failed."""
        seen = replace(situation.seen, status=decided.status)
        if isinstance(seen, ScheduledSeen):
            return after_failed_run(seen, situation.world, trouble)
        return after_failure(seen, situation.world, trouble)

    async def perform(self, situation: Situation, action: Action) -> None:
        """Carry out one action."""
        await self._performer.perform(situation, action)
        if isinstance(action, RemoveFinalizer):
            self.forget(situation.namespace, situation.seen.name)

    async def refuse(self, body: Object) -> None:
        """Stop what works for a copy in other namespaces: its spec cannot be read any more."""
        await self._performer.stop_unreadable(self.kind, body)

    def forget(self, namespace: str, name: str) -> None:
        """Forget a copy that is gone, or needs nothing any more."""
        self._observer.forget(namespace, name)

    def written(self, before: CopyingStatus, after: CopyingStatus) -> None:
        """Count attempts, streams and copies that have ended, by the new status."""
        known = {entry.attempt for entry in before.history if entry.outcome}
        for entry in after.history:
            if entry.outcome and entry.attempt not in known:
                self._metrics.count(
                    "sluice_attempts_total", outcome=entry.outcome, reason=_counted(entry.reason)
                )
        for state, count in _ended(before, after):
            self._metrics.count("sluice_scope_streams_total", count, state=state.value)
        more = _restarts(after) - _restarts(before)
        if more > 0:  # a run that is asked for begins with none
            self._metrics.count("sluice_follow_restarts_total", more)
        if _succeeded(after) and not _succeeded(before):
            done = after.progress or ProgressStatus()
            self._metrics.count("sluice_copied_bytes_total", done.bytes)
            self._metrics.count("sluice_copied_events_total", done.events or 0)
            if after.start_time and after.completion_time:
                seconds = (after.completion_time - after.start_time).total_seconds()
                self._metrics.observe("sluice_copy_seconds", max(0.0, seconds))


def _counted(reason: str | None) -> str:
    """Return a reason of the catalogue as it is. A pod may make up others, without end."""
    if not reason:
        return ""
    return reason if reason in _REASONS else "Other"


def _restarts(status: CopyingStatus) -> int:
    """Return how often another pod has taken over following a source."""
    if not isinstance(status, StreamCopyStatus | ScopeCopyStatus) or status.follow is None:
        return 0
    return status.follow.restarts


def _succeeded(status: CopyingStatus) -> bool:
    said = status.condition(ConditionType.SUCCEEDED)
    return said is not None and said.status == "True"


def _ended(before: CopyingStatus, after: CopyingStatus) -> Iterator[tuple[StreamState, int]]:
    """Count the streams of a scope that ended between two statuses, by their state.

    The counts of failed and stopped streams may fall, when such streams are tried again. Only
    increases are given.
    """
    if not isinstance(after, ScopeCopyStatus) or after.streams is None:
        return
    was = before.streams if isinstance(before, ScopeCopyStatus) else None
    was = was or StreamCounts()
    for state, more in (
        (StreamState.COPIED, after.streams.copied - was.copied),
        (StreamState.FAILED, after.streams.failed - was.failed),
        (StreamState.STOPPED, after.streams.stopped - was.stopped),
    ):
        if more > 0:
            yield state, more
