"""Put the operator's parts together and run them until a signal comes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
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
from sluice.kube.api.fence import Fence
from sluice.kube.api.identity import cluster_id
from sluice.kube.api.kinds import OWN, STREAM_STORE
from sluice.kube.api.status import StatusWriter
from sluice.kube.copies.sweep import CopySweep
from sluice.kube.ephemeral.owners import Owners
from sluice.kube.loop.controller import Controller
from sluice.kube.loop.lease import LeaseKeeper, LeaseLost
from sluice.kube.loop.memory import BoundedThreads
from sluice.kube.loop.queue import Lane, WorkQueue
from sluice.kube.loop.sink import Sink
from sluice.kube.stores.connections import Connections
from sluice.kube.stores.probes import Probes
from sluice.kube.stores.storeview import StoreView
from sluice.metrics import Metrics
from sluice.stores.allowance import Allowance

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.settings import LeaseSettings, OperatorSettings

_log = structlog.get_logger()

WORKERS: Final = {Lane.NORMAL: 64, Lane.DELETION: 192}
"""Workers of each lane. One namespace gets at most half of them.

Pravega answers a sealing or a deletion only after checks 0.1, 0.3 and 0.7 s later. So many at once
take hardly longer than a few. `engine.claims.scope_lifecycle` limits how many make streams.
"""

THREADS: Final = sum(WORKERS.values())
"""Threads for blocking calls to stores: one for each worker."""

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 10.0
"""Seconds between two attempts to reach the API server at the start; they double each time."""

LEASE_LOST: Final = 7
"""Exit code of a replica that lost the Lease. Those of errors are in `errors.EXIT_CODES`."""

TIMEOUTS: Final = StoreTimeouts(connect=5, call=15, stall=15, rest=4)
"""Short deadlines: the operator makes only small calls, and must not wait for a store that is gone.
`rest` is over before a StreamStore is probed again."""


async def operate(settings: OperatorSettings) -> None:
    """Run the operator until SIGTERM or SIGINT. It waits while the API server is unavailable.

    With a Lease, it begins to work once it holds that. Before, it only reads, so that it knows the
    resources and the stores by then.

    Raises:
        ApiUnavailable: there is no configuration for an API server.
    """
    stop = asyncio.Event()
    _stop_at_signals(stop)
    async with AsyncExitStack() as stack:
        lookout = await _lookout(settings, stack)
        keeper = await _keeper(lookout, settings.lease, stack)
        by_name = ByName(lookout.mirror, lookout.metrics, settings)
        health = Health(
            lookout.queue, lookout.resync, lookout.metrics, by_name, settings, fence=lookout.fence
        )
        runner = await health.serve()
        stack.push_async_callback(runner.cleanup)
        cluster = await _known_cluster(lookout.api, settings.cluster_id, stop)
        if cluster is None:
            return
        parts = await _parts(lookout, settings, cluster, stack)
        jobs = _jobs(lookout, parts, stop)
        _log.info(
            "operator started",
            cluster=cluster,
            namespaces=settings.namespaces or "all",
            excluded=settings.excluded_namespaces,
        )
        await _until(stop, jobs, keeper)
        _log.info("operator stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lookout:
    """The parts that read, and queue resources, before the operator begins to work.

    Attributes:
        works: set once this replica works: it holds the Lease, or needs none.
        fence: keeps the replica from changing anything once another one may work.
        api: the API server.
        queue: the resources that wait for a worker.
        mirror: the objects that the watches showed.
        metrics: counters and gauges.
        sweep: clears up after copies that are gone.
        watching: feeds the queue and the mirror.
        resync: finds what the watches missed.
    """

    works: asyncio.Event
    fence: Fence
    api: Api
    queue: WorkQueue
    mirror: Mirror
    metrics: Metrics
    sweep: CopySweep
    watching: watches.Watches
    resync: Resync

    def work(self) -> None:
        """Begin to work."""
        self.queue.is_open = True
        self.works.set()
        self.resync.queue_all()


async def _lookout(settings: OperatorSettings, stack: AsyncExitStack) -> _Lookout:
    """Make the parts that read.

    Raises:
        ApiUnavailable: there is no configuration for an API server.
    """
    queue = WorkQueue(workers=WORKERS, served=settings.served)
    mirror, metrics, fence, works = Mirror(), Metrics(), Fence(), asyncio.Event()
    api = await stack.enter_async_context(await Api.connect(_counted(metrics), fence=fence))
    sweep = CopySweep(api, mirror, settings.served, seconds=settings.resync_seconds)

    def gone(kind: Kind, body: Object) -> None:
        if works.is_set():
            sweep.gone(kind, body)

    watching = watches.Watches(queue, mirror, gone)
    resync = Resync(
        api,
        queue=queue,
        mirror=mirror,
        watches=watching,
        metrics=metrics,
        namespaces=settings.namespaces,
        seconds=settings.resync_seconds,
    )
    return _Lookout(
        works=works,
        fence=fence,
        api=api,
        queue=queue,
        mirror=mirror,
        metrics=metrics,
        sweep=sweep,
        watching=watching,
        resync=resync,
    )


def _counted(metrics: Metrics) -> Callable[[str, str], None]:
    """Return a function that counts calls to the API server."""

    def called(verb: str, resource: str) -> None:
        metrics.count("sluice_api_calls_total", verb=verb, resource=resource)

    return called


async def _keeper(
    lookout: _Lookout, lease: LeaseSettings, stack: AsyncExitStack
) -> LeaseKeeper | None:
    """Return the keeper of the Lease, which begins the work; without a Lease, begin it now."""
    if not lease.name:
        lookout.works.set()
        return None
    lookout.queue.is_open = False
    api = await stack.enter_async_context(await Api.connect(_counted(lookout.metrics)))
    return LeaseKeeper(api, lease.namespace, lease.name, fence=lookout.fence, leads=lookout.work)


async def _parts(
    lookout: _Lookout, settings: OperatorSettings, cluster: str, stack: AsyncExitStack
) -> Parts:
    """Make the parts that the reconcilers share."""
    api, mirror, metrics = lookout.api, lookout.mirror, lookout.metrics

    def asked(call: str, seconds: float) -> None:
        metrics.observe("sluice_store_call_seconds", seconds, call=call)

    allowance = Allowance()
    threads, reading = (
        stack.enter_context(BoundedThreads(THREADS, settings.look_seconds, allowance, one))
        for one in (lookout.fence, None)
    )
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
    probes = Probes(connections, reading)
    owners = Owners(api, lookout.watching.owner)
    stack.push_async_callback(owners.close)
    return Parts(
        settings=settings,
        cluster=cluster,
        api=api,
        queue=lookout.queue,
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


def _jobs(lookout: _Lookout, parts: Parts, stop: asyncio.Event) -> list[Coroutine[Any, Any, None]]:
    """Return the coroutines that run side by side until the operator ends."""
    reconcilers = {name: RECONCILERS[name](parts) for name in OWN}
    controller = Controller(reconcilers, queue=parts.queue, metrics=parts.metrics)
    works, sweep = lookout.works, lookout.sweep
    return [
        lookout.resync.run(),
        _warm(works, parts.probes, parts.mirror, parts.settings),
        _after(works, sweep.run),
        _after(works, sweep.follow),
        *(controller.work(lane) for lane, count in WORKERS.items() for _ in range(count)),
        _watch(lookout.watching, parts.settings.namespaces, stop),
    ]


def _stop_at_signals(stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


async def _watch(watching: watches.Watches, namespaces: list[str], stop: asyncio.Event) -> None:
    """Run kopf's watches until `stop` is set."""
    others = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(
        registry=watches.registry(watching),
        settings=watches.settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
        stop_flag=stop,
    )
    # kopf has replaced our signal handlers, and would take seconds before it told us of a signal.
    _stop_at_signals(stop)
    await kopf.run_tasks(tasks, ignored=others)


async def _warm(
    works: asyncio.Event, probes: Probes, mirror: Mirror, settings: OperatorSettings
) -> None:
    """Probe the stores while another replica works, and wait for ever after that."""
    while not works.is_set():
        stores = (
            body
            for body in mirror.all(STREAM_STORE)
            if settings.served.include(body["metadata"]["namespace"])
        )
        await probes.warm(stores)
        with suppress(TimeoutError):
            async with asyncio.timeout(settings.resync_seconds):
                await works.wait()
    await asyncio.Event().wait()


async def _after(works: asyncio.Event, job: Callable[[], Awaitable[None]]) -> None:
    """Run a job once this replica works."""
    await works.wait()
    await job()


async def _known_cluster(api: Api, given: str, stop: asyncio.Event) -> str | None:
    """Wait for the API server and return the cluster's identity; None if `stop` is set before."""
    wait = _FIRST_WAIT
    while not stop.is_set():
        try:
            return await cluster_id(api, given)
        except ApiUnavailable as error:
            _log.warning("waiting for the API server", error=str(error))
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await stop.wait()
        wait = min(2 * wait, _LONGEST_WAIT)
    return None


async def _keep(keeper: LeaseKeeper) -> None:
    """Keep the Lease. When another replica has it, end the process at once.

    Threads that wait for a store would hold up an orderly end, and change more there.
    """
    try:
        await keeper.run()
    except LeaseLost as error:
        _log.error("another replica has the Lease, so this one ends", holder=str(error))
        sys.stderr.flush()
        os._exit(LEASE_LOST)


async def _until(
    stop: asyncio.Event, jobs: list[Coroutine[Any, Any, None]], keeper: LeaseKeeper | None
) -> None:
    """Run jobs until `stop` is set. A job that ends earlier ends the operator with its error.

    The Lease is given back first: another replica need not wait until everything has ended.
    """
    keeping = [] if keeper is None else [asyncio.ensure_future(_keep(keeper))]
    tasks = keeping + [asyncio.ensure_future(job) for job in jobs]
    waiter = asyncio.ensure_future(stop.wait())
    await asyncio.wait([waiter, *tasks], return_when=asyncio.FIRST_COMPLETED)
    ended = [task for task in tasks if task.done()]
    if keeper is not None:
        for one in keeping:
            one.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
        await keeper.release()
    for task in [waiter, *tasks]:
        task.cancel()
    await asyncio.gather(waiter, *tasks, return_exceptions=True)
    for task in ended:
        if not stop.is_set():
            task.result()
            raise RuntimeError("a part of the operator ended by itself")
