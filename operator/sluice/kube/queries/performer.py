"""Carry out decisions about a StreamQuery. Every action may be done twice."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

import structlog

from sluice import tracing
from sluice.core.reconcile.queries.world import (
    DropLive,
    ProtectQuery,
    StartDriver,
    StartVerifier,
    StopDriver,
    StopVerifier,
    TellVerification,
    UnprotectQuery,
)
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.values.model import StreamName
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.query.sinks import drop_live
from sluice.errors import ResourceChanged, StoreNotReady
from sluice.kube.api import finalizers
from sluice.kube.api.kinds import STREAM_QUERY
from sluice.kube.api.objects import QUERY_FINALIZER
from sluice.kube.jobs import starting
from sluice.kube.jobs.query_job import query_job, request_config_map
from sluice.kube.jobs.verify_job import verify_config_map, verify_job
from sluice.kube.stores.protection import hold

if TYPE_CHECKING:
    from sluice.core.reconcile.queries.world import QueryAction
    from sluice.kube.api.client import Api
    from sluice.kube.api.events import Recorder
    from sluice.kube.queries.observer import QueryObserver, QuerySituation

_log = structlog.get_logger()


class QueryPerformer:
    """Performer of actions on queries.

    Args:
        api: the API server.
        observer: connects to stores.
        recorder: writes events.
        hold_secrets: whether the Secret of a StreamStore in use is held too.
    """

    def __init__(
        self, api: Api, observer: QueryObserver, recorder: Recorder, *, hold_secrets: bool = True
    ) -> None:
        self._api = api
        self._observer = observer
        self._recorder = recorder
        self._hold_secrets = hold_secrets

    async def perform(self, situation: QuerySituation, action: QueryAction) -> None:
        """Carry out one action.

        Raises:
            SluiceError: it failed; parts of it may be done.
        """
        seen = situation.seen
        match action:
            case ProtectQuery():
                await self._protect(situation)
            case UnprotectQuery():
                await finalizers.remove(
                    self._api,
                    STREAM_QUERY,
                    seen.namespace,
                    seen.name,
                    QUERY_FINALIZER,
                    uid=seen.uid,
                )
            case StartDriver(attempt):
                await self._start(situation, attempt)
            case StopDriver(job) | StopVerifier(job):
                await starting.stop(self._api, situation.child, seen.namespace, job)
            case DropLive():
                await self._drop_live(situation)
            case StartVerifier(number):
                await self._verify(situation, number)
            case TellVerification(saying):
                _log.info("told", about="Verify", reason=saying.reason, message=saying.message)
                await self._recorder.say(situation.body, saying, action="Verify")
            case _:
                assert_never(action)

    async def _protect(self, situation: QuerySituation) -> None:
        """Set the finalizers that keep the query and its stores while it may append."""
        seen = situation.seen
        if not await finalizers.add(
            self._api,
            STREAM_QUERY,
            seen.namespace,
            seen.name,
            QUERY_FINALIZER,
            uid=seen.uid,
            known=situation.body,
        ):
            raise ResourceChanged(f"StreamQuery {seen.name!r} was deleted meanwhile")
        places = zip(seen.spec.places, situation.world.stores, strict=True)
        for (field, place), store in places:
            if isinstance(store, StoreSeen) and not store.held:
                named = f"{field}.{place.store_field}"
                await hold(self._api, store, field=named, hold_secrets=self._hold_secrets)

    async def _start(self, situation: QuerySituation, attempt: int) -> None:
        """Make the Job of an attempt and its ConfigMap, or adopt them.

        Raises:
            QuotaExceeded: a quota forbids the Job.
            PodRefused: the API server refuses the Job, or its name is taken.
            StoreNotReady: a StreamStore is gone.
        """
        if situation.job is None:
            raise StoreNotReady("a StreamStore is not there")
        job = replace(situation.job, attempt=attempt, trace=tracing.current())
        made = await starting.start_here(
            self._api, job.child, query_job(job), request_config_map(job)
        )
        _log.info("driver started" if made else "driver adopted", attempt=attempt)

    async def _drop_live(self, situation: QuerySituation) -> None:
        """Delete the streams of live sinks, and the ledger if it lies beside one.

        Raises:
            SluiceError: a store does not answer, refuses, or may not be used any more.
        """
        seen = situation.seen
        first = seen.spec.goals[0][1]
        for field, place in seen.spec.live:
            store = await self._observer.open_place(situation, field)
            stream = StreamName(scope=place.scope, stream=place.stream)
            drop = partial(drop_live, stream, store, seen.query_id)
            done = await self._observer.blocking(drop)
            if place is first:
                await self._observer.blocking(QueryLedger(store, seen.query_id, stream).discard)
            _log.info("live sink deleted" if done else "there is no live sink", stream=str(stream))

    async def _verify(self, situation: QuerySituation, number: int) -> None:
        """Make the Job of a verification and its ConfigMap, or adopt them.

        Raises:
            QuotaExceeded, PodRefused, StoreNotReady: see `_start`.
        """
        if situation.job is None:
            raise StoreNotReady("a StreamStore is not there")
        job = replace(situation.job, trace=tracing.current())
        made = await starting.start_here(
            self._api, job.child, verify_job(job, number), verify_config_map(job, number)
        )
        _log.info("verification started" if made else "verification adopted", number=number)
