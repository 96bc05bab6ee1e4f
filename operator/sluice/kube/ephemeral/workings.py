"""Reconcile EphemeralStreams: connect the decisions of `core.reconcile` to a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluice.api.status.ephemeral_status import EphemeralStreamStatus
from sluice.core.reconcile.ephemeral.decide import after_ephemeral_failure, reconcile_ephemeral
from sluice.core.reconcile.ephemeral.world import Unprotect
from sluice.kube.api.kinds import EPHEMERAL_STREAM
from sluice.kube.api.objects import STREAMS_FINALIZER

if TYPE_CHECKING:
    from sluice.core.reconcile.ephemeral.world import EphemeralAction, EphemeralDecision
    from sluice.core.values.trouble import Trouble
    from sluice.kube.api.kinds import Object
    from sluice.kube.ephemeral.observer import EphemeralObserver, EphemeralSituation
    from sluice.kube.ephemeral.performer import EphemeralPerformer


class EphemeralWorkings:
    """Part of reconciling that is particular to EphemeralStreams, see `reconciler.Workings`.

    Args:
        observer: looks at EphemeralStreams.
        performer: acts on EphemeralStreams.
    """

    kind: Final = EPHEMERAL_STREAM
    status: Final = EphemeralStreamStatus
    finalizer: Final = STREAMS_FINALIZER

    def __init__(self, observer: EphemeralObserver, performer: EphemeralPerformer) -> None:
        self._observer = observer
        self._performer = performer

    def is_bounded(self, body: Object) -> bool:  # noqa: ARG002 - none of the kind ends
        """Return False: the work goes on as long as the resource exists."""
        return False

    async def look(
        self,
        body: Object,
        *,
        glance: bool = False,  # noqa: ARG002 - a look costs no more
    ) -> EphemeralSituation:
        """Look at a resource's surroundings."""
        return await self._observer.look(body)

    def decide(self, situation: EphemeralSituation) -> EphemeralDecision:
        """Decide what to do."""
        return reconcile_ephemeral(situation.seen, situation.world)

    def after_failure(
        self,
        situation: EphemeralSituation,
        decided: EphemeralDecision,
        action: EphemeralAction,  # noqa: ARG002 - the failures of all actions are alike
        trouble: Trouble,
    ) -> EphemeralDecision:
        """Decide what to do after an action that failed."""
        return after_ephemeral_failure(
            replace(situation.seen, status=decided.status), situation.world, trouble
        )

    async def perform(self, situation: EphemeralSituation, action: EphemeralAction) -> None:
        """Carry out one action."""
        await self._performer.perform(situation, action)
        if isinstance(action, Unprotect):
            self.forget(situation.seen.namespace, situation.seen.name)

    async def refuse(self, body: Object) -> None:
        """Do nothing: an EphemeralStream has no objects in other namespaces."""

    def forget(self, namespace: str, name: str) -> None:
        """Forget a resource that is gone, or has nothing in a store any more."""
        self._observer.forget(namespace, name)

    def written(self, before: EphemeralStreamStatus, after: EphemeralStreamStatus) -> None:
        """Count nothing: the resync counts the existing resources."""
