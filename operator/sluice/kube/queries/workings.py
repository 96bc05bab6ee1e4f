"""Reconcile StreamQueries: connect the decisions of `core.reconcile` to a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluice.api.status.query_status import StreamQueryStatus
from sluice.core.reconcile.queries import verifying
from sluice.core.reconcile.queries.decide import after_query_failure, reconcile_query
from sluice.core.reconcile.queries.world import UnprotectQuery
from sluice.kube.api.kinds import STREAM_QUERY
from sluice.kube.api.objects import QUERY_FINALIZER

if TYPE_CHECKING:
    from sluice.core.reconcile.queries.world import QueryAction, QueryDecision
    from sluice.core.values.trouble import Trouble
    from sluice.kube.api.kinds import Object
    from sluice.kube.queries.observer import QueryObserver, QuerySituation
    from sluice.kube.queries.performer import QueryPerformer


class QueryWorkings:
    """Part of reconciling that is particular to StreamQueries, see `reconciler.Workings`.

    Args:
        observer: looks at queries.
        performer: acts on queries.
    """

    kind: Final = STREAM_QUERY
    status: Final = StreamQueryStatus
    finalizer: Final = QUERY_FINALIZER

    def __init__(self, observer: QueryObserver, performer: QueryPerformer) -> None:
        self._observer = observer
        self._performer = performer

    def is_bounded(self, body: Object) -> bool:
        """Tell whether the query ends by itself."""
        spec = body.get("spec")
        return isinstance(spec, dict) and spec.get("mode") == "Once"

    async def look(self, body: Object, *, glance: bool = False) -> QuerySituation:
        """Look at a query's surroundings."""
        return await self._observer.look(body, glance=glance)

    def decide(self, situation: QuerySituation) -> QueryDecision:
        """Decide what to do."""
        return reconcile_query(situation.seen, situation.world)

    def after_failure(
        self,
        situation: QuerySituation,
        decided: QueryDecision,
        action: QueryAction,
        trouble: Trouble,
    ) -> QueryDecision:
        """Decide what to do after an action that failed."""
        if isinstance(action, verifying.Action):
            return verifying.after_failure(decided, trouble)
        seen = replace(situation.seen, status=decided.status)
        return after_query_failure(seen, situation.world, trouble)

    async def perform(self, situation: QuerySituation, action: QueryAction) -> None:
        """Carry out one action."""
        await self._performer.perform(situation, action)
        if isinstance(action, UnprotectQuery):
            self.forget(situation.seen.namespace, situation.seen.name)

    async def refuse(self, body: Object) -> None:
        """Do nothing: a query has no objects in other namespaces."""

    def forget(self, namespace: str, name: str) -> None:
        """Forget a query that is gone, or needs nothing any more."""
        self._observer.forget(namespace, name)

    def written(self, before: StreamQueryStatus, after: StreamQueryStatus) -> None:
        """Count nothing: the resync counts the existing resources."""
