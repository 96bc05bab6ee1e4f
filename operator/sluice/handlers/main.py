"""Put the operator's parts together and run them until a signal comes."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Final

import kopf
import structlog

from sluice.config import Settings, StoreTimeouts
from sluice.errors import ApiUnavailable
from sluice.handlers import watches
from sluice.handlers.by_name import ByName
from sluice.handlers.health import Health
from sluice.handlers.reconcilers import RECONCILERS, Parts
from sluice.handlers.resync import Resync
from sluice.kube.api.cache import Mirror
from sluice.kube.api.client import Api
from sluice.kube.api.events import Recorder
from sluice.kube.api.identity import cluster_id
from sluice.kube.api.kinds import OWN
from sluice.kube.api.status import StatusWriter
from sluice.kube.copies.sweep import Sweep
from sluice.kube.ephemeral.owners import Owners
from sluice.kube.loop.controller import Controller
from sluice.kube.loop.memory import BoundedThreads
from sluice.kube.loop.queue import Lane, WorkQueue
from sluice.kube.loop.sink import Sink
from sluice.kube.stores.connections import Connections
from sluice.kube.stores.probes import Probes
from sluice.kube.stores.storeview import StoreView
from sluice.metrics import Metrics
from sluice.stores.allowance import Allowance

if TYPE_CHECKING:
    from sluice.kube.loop.settings import OperatorSettings

_log = structlog.get_logger()

WORKERS: Final = {Lane.NORMAL: 64, Lane.DELETION: 192}
"""Workers of each lane. One namespace gets at most half of them.

Pravega answers a sealing or a deletion only after checks 0.1, 0.3 and 0.7 s later. So many at once
take hardly longer than a few. `engine.claims.scope_lifecycle` limits how many make streams.
"""

THREADS: Final = sum(WORKERS.values())
"""Threads for blocking calls to stores: one for each worker."""

_WAIT: Final = 5.0
"""Seconds between two attempts to reach the API server at the start."""

TIMEOUTS: Final = StoreTimeouts(connect=5, call=15, stall=15, rest=4)
"""Short deadlines: the operator makes only small calls, and must not wait for a store that is gone.
`rest` is over before a StreamStore is probed again."""


async def operate(settings: OperatorSettings) -> None:
    """Run the operator until SIGTERM or SIGINT. It waits while the API server is unavailable.

    Raises:
        ApiUnavailable: there is no configuration for an API server.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        queue = WorkQueue(workers=WORKERS, served=settings.served)
        mirror, metrics = Mirror(), Metrics()

        def called(verb: str, resource: str) -> None:
            metrics.count("sluice_api_calls_total", verb=verb, resource=resource)

        def asked(call: str, seconds: float) -> None:
            metrics.observe("sluice_store_call_seconds", seconds, call=call)

        api = await stack.enter_async_context(await Api.connect(called))
        sweep = Sweep(api, mirror, settings.served, seconds=settings.resync_seconds)
        watching = watches.Watches(queue, mirror, sweep.gone)
        resync = Resync(
            api,
            queue=queue,
            mirror=mirror,
            watches=watching,
            metrics=metrics,
            namespaces=settings.namespaces,
            seconds=settings.resync_seconds,
        )
        by_name = ByName(mirror, metrics, settings)
        runner = await Health(queue, resync, metrics, by_name, settings).serve()
        stack.push_async_callback(runner.cleanup)
        cluster = await _known_cluster(api, settings.cluster_id, stop)
        if cluster is None:
            return
        allowance = Allowance()
        threads = stack.enter_context(BoundedThreads(THREADS, settings.look_seconds, allowance))
        connections = Connections(
            api,
            Settings(cluster_id=cluster, timeouts=TIMEOUTS),
            ambient=settings.ambient_identity,
            allowed=settings.stores.allow,
            labelled=settings.stores.require_secret_label,
            told=asked,
        )
        stack.callback(connections.close)
        recorder = Recorder(api, socket.gethostname())
        sink = Sink(settings.notices, cluster=cluster, metrics=metrics)
        await stack.enter_async_context(sink.delivering())
        probes = Probes(connections, threads)
        owners = Owners(api, watching.owner)
        stack.push_async_callback(owners.close)
        parts = Parts(
            settings=settings,
            cluster=cluster,
            api=api,
            queue=queue,
            mirror=mirror,
            metrics=metrics,
            recorder=recorder,
            statuses=StatusWriter(api, recorder, sink.tell),
            connections=connections,
            threads=threads,
            allowance=allowance,
            probes=probes,
            stores=StoreView(api, mirror, probes, settings.served),
            owners=owners,
        )
        reconcilers = {name: RECONCILERS[name](parts) for name in OWN}
        controller = Controller(reconcilers, queue=queue, metrics=metrics)
        jobs = [
            resync.run(),
            sweep.run(),
            sweep.follow(),
            *(controller.work(lane) for lane, count in WORKERS.items() for _ in range(count)),
            _watch(watching, settings.namespaces, stop),
        ]
        _log.info(
            "operator started",
            cluster=cluster,
            namespaces=settings.namespaces or "all",
            excluded=settings.excluded_namespaces,
        )
        await _until(stop, jobs)
        _log.info("operator stopped")


async def _watch(watching: watches.Watches, namespaces: list[str], stop: asyncio.Event) -> None:
    """Run kopf's watches until `stop` is set, or until a signal ends kopf. Then set `stop`."""
    # kopf replaces our signal handlers, and ends without an error at a signal.
    await kopf.operator(
        registry=watches.registry(watching),
        settings=watches.settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
        stop_flag=stop,
    )
    stop.set()


async def _known_cluster(api: Api, given: str, stop: asyncio.Event) -> str | None:
    """Wait for the API server and return the cluster's identity; None if `stop` is set before."""
    while not stop.is_set():
        try:
            return await cluster_id(api, given)
        except ApiUnavailable as error:
            _log.warning("waiting for the API server", error=str(error))
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT):
                await stop.wait()
    return None


async def _until(stop: asyncio.Event, jobs: list) -> None:  # type: ignore[type-arg]
    """Run jobs until `stop` is set. A job that ends earlier ends the operator with its error."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    waiter = asyncio.ensure_future(stop.wait())
    await asyncio.wait([waiter, *tasks], return_when=asyncio.FIRST_COMPLETED)
    ended = [task for task in tasks if task.done()]
    for task in [waiter, *tasks]:
        task.cancel()
    await asyncio.gather(waiter, *tasks, return_exceptions=True)
    for task in ended:
        if not stop.is_set():
            task.result()
            raise RuntimeError("a part of the operator ended by itself")
