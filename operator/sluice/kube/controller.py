"""The loop around the pure core: take a key, look, decide, write the status, act."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from sluice.api.status import StreamCopyStatus
from sluice.core.reconcile.copy import after_failure, reconcile
from sluice.core.reconcile.world import RemoveFinalizer
from sluice.core.trouble import Trouble
from sluice.errors import InvalidSpec, SluiceError
from sluice.kube import finalizers
from sluice.kube.client import STREAM_COPY, STREAM_STORE
from sluice.kube.objects import STAGING_FINALIZER, is_deleting, wants_orphan
from sluice.kube.status import of_invalid

if TYPE_CHECKING:
    from sluice.core.reconcile.world import Decision
    from sluice.kube.client import Api
    from sluice.kube.copies import CopyObserver, Situation
    from sluice.kube.performer import Performer
    from sluice.kube.queue import Key, Lane, WorkQueue
    from sluice.kube.status import StatusWriter
    from sluice.kube.storekeeper import StoreKeeper
    from sluice.metrics import Metrics

_log = structlog.get_logger()

CONFLICT_DELAY: Final = 0.1
"""Seconds before a resource is looked at again that changed while it was looked at."""


class Controller:
    """Works keys off the queue.

    Args:
        api: the API server.
        queue: where keys come from, and go back to.
        observer: looks at copies.
        performer: acts on them.
        keeper: looks after stores.
        statuses: writes them.
        metrics: what happened.
    """

    def __init__(
        self,
        api: Api,
        *,
        queue: WorkQueue,
        observer: CopyObserver,
        performer: Performer,
        keeper: StoreKeeper,
        statuses: StatusWriter,
        metrics: Metrics,
    ) -> None:
        self._api = api
        self._queue = queue
        self._observer = observer
        self._performer = performer
        self._keeper = keeper
        self._statuses = statuses
        self._metrics = metrics

    async def work(self, lane: Lane) -> None:
        """Work off one lane, for ever. An error of one resource concerns that one alone."""
        while True:
            key = await self._queue.take(lane)
            begun, again, result = time.monotonic(), None, "error"
            with structlog.contextvars.bound_contextvars(resource=str(key)):
                try:
                    again = await self._handle(key)
                    result = "ok"
                except SluiceError as error:
                    _log.warning("to be tried again", error=str(error))
                except Exception:  # noqa: BLE001 - a bug met at one resource must not stop all
                    _log.exception("unexpected")
                finally:
                    self._queue.done(key, again=again, failed=result == "error")
            self._metrics.observe(
                "sluice_reconcile_seconds", time.monotonic() - begun, kind=key.kind
            )
            self._metrics.count("sluice_reconcile_total", kind=key.kind, result=result)

    async def _handle(self, key: Key) -> float | None:
        """Look at a resource; seconds until it is to be looked at again."""
        if key.kind == STREAM_STORE.name:
            body = await self._api.get(STREAM_STORE, key.namespace, key.name)
            return await self._keeper.keep(key, body)
        body = await self._api.get(STREAM_COPY, key.namespace, key.name)
        if body is None:
            self._observer.forget(key.namespace, key.name)
            return None
        try:
            situation = await self._observer.look(body)
        except InvalidSpec as error:
            before = StreamCopyStatus.read(body.get("status"))
            after = of_invalid(before, body, error)
            await self._statuses.write(STREAM_COPY, body, before, after)
            if is_deleting(body) and wants_orphan(body):
                _log.error("orphaned", left=f"whatever the copy had staged: {error}")
                await finalizers.remove(
                    self._api, STREAM_COPY, key.namespace, key.name, STAGING_FINALIZER
                )
            return None
        decision = reconcile(situation.seen, situation.world)
        with structlog.contextvars.bound_contextvars(attempt=situation.seen.status.attempts):
            return await self._carry_out(situation, decision)

    async def _carry_out(self, situation: Situation, decision: Decision) -> float | None:
        """Write the status, then act; seconds until the copy is looked at again."""
        if not await self._write(situation, decision):
            return CONFLICT_DELAY
        for action in decision.actions:
            try:
                await self._performer.perform(situation, action)
            except SluiceError as error:
                _log.warning("not done", action=type(action).__name__, error=str(error))
                written = replace(situation.seen, status=decision.status)
                return await self._after_failure(
                    replace(situation, seen=written), Trouble.of(error)
                )
        if any(isinstance(action, RemoveFinalizer) for action in decision.actions):
            self._observer.forget(situation.namespace, situation.seen.name)
        return decision.again

    async def _after_failure(self, situation: Situation, trouble: Trouble) -> float | None:
        """Say why something could not be done, and what follows from that."""
        decision = after_failure(situation.seen, situation.world, trouble)
        # What was done before may have changed the object, so its version is not insisted on.
        if not await self._write(situation, decision, insist=False):
            return CONFLICT_DELAY
        for action in decision.actions:
            await self._performer.perform(situation, action)
        return decision.again

    async def _write(
        self, situation: Situation, decision: Decision, *, insist: bool = True
    ) -> bool:
        """Write a copy's status and count what it means; False if the copy changed meanwhile."""
        before, after = situation.seen.status, decision.status
        written = await self._statuses.write(
            STREAM_COPY, situation.body, before, after, insist=insist
        )
        if written:
            self._count(before, after)
        return written

    def _count(self, before: StreamCopyStatus, after: StreamCopyStatus) -> None:
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
