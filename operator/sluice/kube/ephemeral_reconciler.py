"""EphemeralStreams: look, decide, write the status, act."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from sluice.api.ephemeral_status import EphemeralStreamStatus
from sluice.core.reconcile.ephemeral import after_ephemeral_failure, reconcile_ephemeral
from sluice.core.reconcile.ephemeral_world import Unprotect
from sluice.core.trouble import Trouble
from sluice.errors import InvalidSpec, SluiceError
from sluice.kube import finalizers
from sluice.kube.client import EPHEMERAL_STREAM
from sluice.kube.objects import STREAMS_FINALIZER, is_deleting, wants_orphan
from sluice.kube.queue import CONFLICT_DELAY
from sluice.kube.status import of_invalid

if TYPE_CHECKING:
    from sluice.core.reconcile.ephemeral_world import EphemeralDecision
    from sluice.kube.client import Api, Object
    from sluice.kube.ephemeral_actions import EphemeralPerformer
    from sluice.kube.ephemerals import EphemeralObserver, EphemeralSituation
    from sluice.kube.queue import Key
    from sluice.kube.status import StatusWriter

_log = structlog.get_logger()


class EphemeralReconciler:
    """Reconciles EphemeralStreams.

    Args:
        api: the API server.
        observer: looks at them.
        performer: acts on them.
        statuses: writes them.
    """

    def __init__(
        self,
        api: Api,
        *,
        observer: EphemeralObserver,
        performer: EphemeralPerformer,
        statuses: StatusWriter,
    ) -> None:
        self._api = api
        self._observer = observer
        self._performer = performer
        self._statuses = statuses

    async def reconcile(self, key: Key) -> float | None:
        """Look after one resource; seconds until it is looked at again."""
        body = await self._api.get(EPHEMERAL_STREAM, key.namespace, key.name)
        if body is None:
            self._observer.forget(key.namespace, key.name)
            return None
        try:
            situation = await self._observer.look(body)
        except InvalidSpec as error:
            return await self._invalid(body, error)
        return await self._carry_out(situation, reconcile_ephemeral(situation.seen, situation.world))

    async def _invalid(self, body: Object, error: InvalidSpec) -> float | None:
        """Say that this version cannot read the resource, and let it go if somebody insists."""
        before = EphemeralStreamStatus.read(body.get("status"))
        await self._statuses.write(
            EPHEMERAL_STREAM, body, before, of_invalid(before, body, error, bounded=False)
        )
        if is_deleting(body) and wants_orphan(body):
            _log.error("orphaned", left=f"whatever streams the resource had: {error}")
            meta = body["metadata"]
            await finalizers.remove(
                self._api, EPHEMERAL_STREAM, meta["namespace"], meta["name"], STREAMS_FINALIZER
            )
        return None

    async def _carry_out(
        self, situation: EphemeralSituation, decision: EphemeralDecision
    ) -> float | None:
        """Write the status, then act; seconds until the resource is looked at again."""
        if not await self._write(situation, decision):
            return CONFLICT_DELAY
        for action in decision.actions:
            try:
                await self._performer.perform(situation, action)
            except SluiceError as error:
                _log.warning("not done", action=type(action).__name__, error=str(error))
                return await self._after_failure(situation, decision, Trouble.of(error))
        if any(isinstance(action, Unprotect) for action in decision.actions):
            self._observer.forget(situation.seen.namespace, situation.seen.name)
        return decision.again

    async def _after_failure(
        self, situation: EphemeralSituation, done: EphemeralDecision, trouble: Trouble
    ) -> float | None:
        """Say why something could not be done, and what follows from that."""
        situation = replace(situation, seen=replace(situation.seen, status=done.status))
        decision = after_ephemeral_failure(situation.seen, situation.world, trouble)
        # What was done before may have changed the object, so its version is not insisted on.
        if not await self._write(situation, decision, insist=False):
            return CONFLICT_DELAY
        for action in decision.actions:
            await self._performer.perform(situation, action)
        return decision.again

    async def _write(
        self, situation: EphemeralSituation, decision: EphemeralDecision, *, insist: bool = True
    ) -> bool:
        return await self._statuses.write(
            EPHEMERAL_STREAM,
            situation.body,
            situation.seen.status,
            decision.status,
            insist=insist,
        )
