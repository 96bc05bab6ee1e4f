"""Serve probes and metrics over HTTP."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from aiohttp import web

from sluice.kube.loop.queue import Lane

if TYPE_CHECKING:
    from sluice.handlers.by_name import ByName
    from sluice.handlers.resync import Resync
    from sluice.kube.api.fence import Fence
    from sluice.kube.loop.queue import WorkQueue
    from sluice.kube.loop.settings import OperatorSettings
    from sluice.metrics import Metrics

MOST_STILL: Final = 600.0
"""Seconds without progress of any worker, with work to do, after which the operator is stuck.

How long one resource takes tells nothing: its store may be slow, or an attacker's. All calls to
stores in one look have a deadline together (`OperatorSettings.look_seconds`), and so have those of
one change.
"""


class Health:
    """The operator's health: it fails when a restart would help.

    A restart does not help against an API server that is away or refuses calls. So that is no
    problem here; the operator waits for it.

    Args:
        queue: the queue, which must not be stuck.
        resync: the resync, which must go on, and must not find a watch that misses changes.
        metrics: the metrics to serve.
        by_name: sets the metrics of single resources before each scrape.
        settings: the operator's settings.
        fence: open while this replica works.
    """

    def __init__(
        self,
        queue: WorkQueue,
        resync: Resync,
        metrics: Metrics,
        by_name: ByName,
        settings: OperatorSettings,
        *,
        fence: Fence,
    ) -> None:
        self._queue = queue
        self._resync = resync
        self._metrics = metrics
        self._by_name = by_name
        self._settings = settings
        self._fence = fence

    def problems(self) -> list[str]:
        """Return the reasons to restart the operator; an empty list when it is well."""
        found = [f"the watch of {kind} misses changes" for kind in sorted(self._resync.behind)]
        still = self._queue.stands()
        if still > MOST_STILL:
            found.append(f"no worker has taken or finished anything for {still:.0f} s")
        silent = time.monotonic() - self._resync.last
        if silent > 3 * self._settings.resync_seconds + MOST_STILL:
            found.append(f"no resync has begun for {silent:.0f} s")
        return found

    async def serve(self) -> web.AppRunner:
        """Begin to serve. The caller has to clean up the returned runner."""
        app = web.Application()
        app.router.add_get("/livez", self._live)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._scrape)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        listen = self._settings.listen
        await web.TCPSite(runner, listen.host, listen.port).start()
        return runner

    async def _live(self, _: web.Request) -> web.Response:
        found = self.problems()
        return web.Response(text="\n".join(found or ["ok"]) + "\n", status=500 if found else 200)

    async def _ready(self, _: web.Request) -> web.Response:
        ready = self._resync.synced
        text = "ok" if ready else "not everything was looked at yet"
        return web.Response(text=text + "\n", status=200 if ready else 503)

    async def _scrape(self, _: web.Request) -> web.Response:
        for lane in Lane:
            self._metrics.set("sluice_queue_depth", self._queue.depth(lane), lane=lane.value)
        self._metrics.set("sluice_queue_oldest_age_seconds", self._queue.oldest())
        leads = self._fence.is_open
        self._metrics.set("sluice_leader", float(leads))
        if leads:
            self._by_name.update()
        return web.Response(
            body=self._metrics.text(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )
