"""Carry out decisions about an EphemeralStream. Every action may be done twice."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, assert_never

import structlog

from sluice.core.reconcile.ephemeral.holding import SUCCESSOR_SECONDS
from sluice.core.reconcile.ephemeral.world import (
    Adopt,
    Configure,
    LeaveBehind,
    Make,
    Protect,
    Refer,
    Release,
    Unprotect,
)
from sluice.core.reconcile.shared.conditions import Saying
from sluice.engine.claims import claims
from sluice.errors import ResourceChanged
from sluice.kube.api import finalizers
from sluice.kube.api.kinds import EPHEMERAL_STREAM
from sluice.kube.api.objects import STREAMS_FINALIZER
from sluice.kube.stores.protection import hold

if TYPE_CHECKING:
    from sluice.core.reconcile.ephemeral.world import EphemeralAction
    from sluice.kube.api.client import Api
    from sluice.kube.api.events import Recorder
    from sluice.kube.ephemeral.observer import EphemeralObserver, EphemeralSituation
    from sluice.metrics import Metrics

_log = structlog.get_logger()


class EphemeralPerformer:
    """Performer of actions on EphemeralStreams.

    Args:
        api: the API server.
        observer: connects to the store.
        recorder: writes events.
        metrics: counts deleted streams and orphaned resources.
        hold_secrets: whether the Secret of a StreamStore in use is held too.
    """

    def __init__(
        self,
        api: Api,
        observer: EphemeralObserver,
        recorder: Recorder,
        metrics: Metrics,
        *,
        hold_secrets: bool = True,
    ) -> None:
        self._api = api
        self._observer = observer
        self._recorder = recorder
        self._metrics = metrics
        self._hold_secrets = hold_secrets

    async def perform(self, situation: EphemeralSituation, action: EphemeralAction) -> None:
        """Carry out one action.

        Raises:
            SluiceError: it failed; parts of it may be done.
        """
        seen = situation.seen
        match action:
            case Protect():
                await self._protect(situation)
            case Unprotect():
                await finalizers.remove(
                    self._api,
                    EPHEMERAL_STREAM,
                    seen.namespace,
                    seen.name,
                    STREAMS_FINALIZER,
                    uid=seen.uid,
                    known=situation.body,
                )
            case Refer():
                await self._refer(situation, action)
            case LeaveBehind(why):
                await self._abandon(situation, why)
            case Make() | Adopt() | Configure() | Release():
                await self._change(situation, action)
            case _:
                assert_never(action)

    async def _change(
        self, situation: EphemeralSituation, action: Make | Adopt | Configure | Release
    ) -> None:
        """Carry out an action in the store."""
        store, claim = await self._observer.store(situation), situation.claim
        self._observer.forget_holding(situation)
        match action:
            case Make():
                now = round(self._api.time() * 1000)
                await self._observer.blocking(lambda: claims.make(claim, store, now))
            case Adopt(predecessor):
                _in_time(situation)
                await self._observer.blocking(lambda: claims.adopt(claim, store, predecessor))
            case Configure():
                await self._observer.blocking(lambda: claims.configure(claim, store))
            case Release(delete, watch):
                count = await self._observer.blocking(
                    lambda: claims.release(claim, store, delete=delete, watch=watch)
                )
                _log.info("released", streams=count, deleted=delete)
                if delete:
                    self._metrics.count("sluice_streams_deleted_total", count)
            case _:
                assert_never(action)

    async def _protect(self, situation: EphemeralSituation) -> None:
        """Set the finalizers that keep the resource and its store while it has a stream."""
        seen, store = situation.seen, situation.world.store
        if not await finalizers.add(
            self._api,
            EPHEMERAL_STREAM,
            seen.namespace,
            seen.name,
            STREAMS_FINALIZER,
            uid=seen.uid,
            known=situation.body,
        ):
            raise ResourceChanged(f"EphemeralStream {seen.name!r} was deleted meanwhile")
        if store is not None and not store.held:
            await hold(
                self._api, store, field="spec.storeRef.name", hold_secrets=self._hold_secrets
            )

    async def _refer(self, situation: EphemeralSituation, action: Refer) -> None:
        """Add and remove ownerReferences, and keep those of other clients."""
        meta, spec = situation.body["metadata"], situation.seen.spec
        before = meta.get("ownerReferences")
        wanted = [one for one in before or () if one["uid"] not in action.drop]
        there = {reference["uid"] for reference in wanted}
        for index, uid in action.owners:
            if uid not in there:
                owner = spec.owners[index]
                wanted.append(
                    {
                        "apiVersion": owner.api_version,
                        "kind": owner.kind,
                        "name": owner.name,
                        "uid": uid,
                        "blockOwnerDeletion": False,
                    }
                )
        # The version is that of the last written status. If another client has changed the
        # resource since, the next look sets the references.
        change = {"resourceVersion": meta["resourceVersion"], "ownerReferences": wanted}
        written = await self._api.patch(
            EPHEMERAL_STREAM, meta["namespace"], meta["name"], {"metadata": change}
        )
        if written is not None:
            situation.body["metadata"] = written["metadata"]

    async def _abandon(self, situation: EphemeralSituation, why: str) -> None:
        """Report by log, metric and event which streams are left behind."""
        spec, status = situation.seen.spec, situation.seen.status
        names = ", ".join(status.streams) or spec.stream or f"{spec.stream_prefix}*"
        message = (
            f"In StreamStore {spec.store_ref.title!r}, scope {spec.scope!r}, these streams are "
            f"left behind: {names}. {why}"
        )
        _log.error("orphaned", left=message)
        self._metrics.count("sluice_orphaned_total", kind="EphemeralStream")
        await self._recorder.say(situation.body, Saying("Orphaned", message), action="Delete")


def _in_time(situation: EphemeralSituation) -> None:
    """Raise ResourceChanged if the look is too old to take over a predecessor's stream.

    The predecessor deletes the stream when its grace period ends.
    """
    age = (datetime.now(UTC) - situation.world.now).total_seconds()
    if situation.world.rival is not None and age > SUCCESSOR_SECONDS / 2:
        raise ResourceChanged("the stream was left to a successor for a moment, which is over")
