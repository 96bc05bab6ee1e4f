"""Build the reconciler of each kind: here a kind meets the code that looks after it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from sluice.kube.api.kinds import COPIES, EPHEMERAL_STREAM, STREAM_QUERY, STREAM_STORE
from sluice.kube.copies.observer import CopyObserver
from sluice.kube.copies.performer import Performer
from sluice.kube.copies.workings import CopyWorkings
from sluice.kube.ephemeral.observer import EphemeralObserver
from sluice.kube.ephemeral.performer import EphemeralPerformer
from sluice.kube.ephemeral.workings import EphemeralWorkings
from sluice.kube.loop.reconciler import Reconciler
from sluice.kube.queries.observer import QueryObserver
from sluice.kube.queries.performer import QueryPerformer
from sluice.kube.queries.workings import QueryWorkings
from sluice.kube.stores.storekeeper import StoreKeeper

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.events import Recorder
    from sluice.kube.api.kinds import Kind
    from sluice.kube.api.status import StatusWriter
    from sluice.kube.ephemeral.owners import Owners
    from sluice.kube.loop.controller import Reconciles
    from sluice.kube.loop.memory import BoundedThreads
    from sluice.kube.loop.queue import WorkQueue
    from sluice.kube.loop.settings import OperatorSettings
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.probes import Probes
    from sluice.kube.stores.storeview import StoreView
    from sluice.metrics import Metrics
    from sluice.stores.allowance import Allowance


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of the operator's process, which the reconcilers of all kinds share.

    Attributes:
        settings: of the operator.
        cluster: the cluster's identity.
        api: the API server.
        queue: the resources that wait for a worker.
        mirror: the objects that the watches showed.
        metrics: counters and gauges.
        recorder: writes events.
        statuses: writes statuses.
        connections: to stores.
        threads: run blocking calls to stores.
        allowance: the memory that answers of stores may take.
        probes: whether stores answer.
        stores: StreamStores, as resources name them.
        owners: watches of the owners of EphemeralStreams.
    """

    settings: OperatorSettings
    cluster: str
    api: Api
    queue: WorkQueue
    mirror: Mirror
    metrics: Metrics
    recorder: Recorder
    statuses: StatusWriter
    connections: Connections
    threads: BoundedThreads
    allowance: Allowance
    probes: Probes
    stores: StoreView
    owners: Owners


def _stores(parts: Parts) -> Reconciles:
    return StoreKeeper(
        parts.api,
        queue=parts.queue,
        mirror=parts.mirror,
        probes=parts.probes,
        statuses=parts.statuses,
        namespaces=parts.settings.namespaces,
        hold_secrets=parts.settings.stores.hold_secrets,
    )


def _ephemeral_streams(parts: Parts) -> Reconciles:
    observer = EphemeralObserver(
        parts.api,
        parts.mirror,
        parts.owners,
        parts.stores,
        parts.connections,
        cluster=parts.cluster,
        threads=parts.threads,
    )
    performer = EphemeralPerformer(
        parts.api,
        observer,
        parts.recorder,
        parts.metrics,
        hold_secrets=parts.settings.stores.hold_secrets,
    )
    workings = EphemeralWorkings(observer, performer)
    return Reconciler(parts.api, workings, parts.statuses, parts.mirror)


def _queries(parts: Parts) -> Reconciles:
    observer = QueryObserver(
        parts.api,
        parts.mirror,
        parts.connections,
        parts.stores,
        settings=parts.settings,
        cluster=parts.cluster,
        threads=parts.threads,
    )
    performer = QueryPerformer(
        parts.api, observer, parts.recorder, hold_secrets=parts.settings.stores.hold_secrets
    )
    return Reconciler(parts.api, QueryWorkings(observer, performer), parts.statuses, parts.mirror)


def _driven(kind: Kind, parts: Parts) -> Reconciles:
    observer = CopyObserver(
        parts.api,
        parts.mirror,
        parts.connections,
        parts.stores,
        settings=parts.settings,
        cluster=parts.cluster,
        threads=parts.threads,
        allowance=parts.allowance,
    )
    performer = Performer(parts.api, observer, parts.recorder, parts.metrics, parts.settings)
    workings = CopyWorkings(kind, observer, performer, parts.metrics)
    return Reconciler(parts.api, workings, parts.statuses, parts.mirror)


RECONCILERS: Final[dict[str, Callable[[Parts], Reconciles]]] = {
    STREAM_STORE.name: _stores,
    EPHEMERAL_STREAM.name: _ephemeral_streams,
    STREAM_QUERY.name: _queries,
    **{name: partial(_driven, kind) for name, kind in COPIES.items()},
}
"""The reconciler of each kind, by its name. A kind that drivers work for needs no entry."""
