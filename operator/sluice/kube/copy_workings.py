"""How StreamCopies are reconciled: the decisions of `core.reconcile`, bound to a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluice.api.status import StreamCopyStatus
from sluice.core.reconcile.copy import after_failure, reconcile
from sluice.core.reconcile.world import RemoveFinalizer
from sluice.kube.kinds import STREAM_COPY
from sluice.kube.objects import STAGING_FINALIZER

if TYPE_CHECKING:
    from sluice.core.reconcile.world import Action, Decision
    from sluice.core.trouble import Trouble
    from sluice.kube.copies import CopyObserver, Situation
    from sluice.kube.kinds import Object
    from sluice.kube.performer import Performer
    from sluice.metrics import Metrics


class CopyWorkings:
    """What is particular to StreamCopies: see `reconciler.Workings`.

    Args:
        observer: looks at them.
        performer: acts on them.
        metrics: what became of them.
    """

    kind: Final = STREAM_COPY
    status: Final = StreamCopyStatus
    finalizer: Final = STAGING_FINALIZER
    bounded: Final = True

    def __init__(self, observer: CopyObserver, performer: Performer, metrics: Metrics) -> None:
        self._observer = observer
        self._performer = performer
        self._metrics = metrics

    async def look(self, body: Object) -> Situation:
        """Look at a copy's surroundings."""
        return await self._observer.look(body)

    def decide(self, situation: Situation) -> Decision:
        """What to do."""
        return reconcile(situation.seen, situation.world)

    def after_failure(self, situation: Situation, decided: Decision, trouble: Trouble) -> Decision:
        """What to do when something could not be done."""
        return after_failure(
            replace(situation.seen, status=decided.status), situation.world, trouble
        )

    async def perform(self, situation: Situation, action: Action) -> None:
        """Do one thing."""
        await self._performer.perform(situation, action)
        if isinstance(action, RemoveFinalizer):
            self.forget(situation.namespace, situation.seen.name)

    def forget(self, namespace: str, name: str) -> None:
        """A copy is gone, or needs nothing any more."""
        self._observer.forget(namespace, name)

    def written(self, before: StreamCopyStatus, after: StreamCopyStatus) -> None:
        """Count what a new status means."""
        known = {entry.attempt for entry in before.history if entry.outcome}
        for entry in after.history:
            if entry.outcome and entry.attempt not in known:
                self._metrics.count(
                    "sluice_attempts_total", outcome=entry.outcome, reason=entry.reason or ""
                )
        done = after.verification
        if done is not None and before.verification is None:
            self._metrics.count("sluice_copied_bytes_total", done.bytes)
            self._metrics.count("sluice_copied_events_total", done.events or 0)
            if after.start_time and after.completion_time:
                seconds = (after.completion_time - after.start_time).total_seconds()
                self._metrics.observe("sluice_copy_seconds", max(0.0, seconds))
