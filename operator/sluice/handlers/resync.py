"""Queue all resources now and then, and compare the watches with lists.

So nothing depends on a single event, and a dead watch is noticed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

import structlog

from sluice.errors import SluiceError
from sluice.handlers.states import copy_state, ephemeral_state, store_state
from sluice.kube.api.kinds import (
    COPIES,
    EPHEMERAL_STREAM,
    JOB,
    OWN,
    POD,
    STREAM_STORE,
)
from sluice.kube.api.names import MANAGED
from sluice.kube.api.objects import is_deleting
from sluice.kube.api.slim import counted
from sluice.kube.loop.queue import Key, Lane

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.queue import WorkQueue
    from sluice.metrics import Metrics

_log = structlog.get_logger()

WATCH_GRACE: Final = 10.0
"""Seconds without progress after which a watch that is behind a list counts as dead."""

_SYNCED: Final = 0.2
"""Seconds between two looks whether the watches have shown all."""

AGAIN: Final = 10.0
"""Most seconds until the next round after one that failed: the API server may be back."""


class Resync:
    """The resync: it queues all resources in rounds, and compares the watches with lists.

    Args:
        api: the API server.
        queue: the queue for the resources' keys.
        mirror: the objects that the watches have shown.
        metrics: gets the numbers of resources.
        namespaces: the namespaces to list; empty for all.
        seconds: seconds between two rounds.

    Attributes:
        behind: the kinds whose watches miss changes.
        last: the monotonic time of the last sign of life: the end of a round, even a failed one, or
            a comparison within it. Infinite until `run` begins.
        synced: whether all resources were queued at least once, and shown by the watches.
    """

    def __init__(
        self,
        api: Api,
        *,
        queue: WorkQueue,
        mirror: Mirror,
        metrics: Metrics,
        namespaces: list[str],
        seconds: float,
    ) -> None:
        self._api = api
        self._queue = queue
        self._mirror = mirror
        self._metrics = metrics
        self._namespaces: list[str | None] = [*namespaces] or [None]
        self._seconds = seconds
        self.behind: set[str] = set()
        self.last = math.inf
        self.synced = False

    async def run(self) -> None:
        """Make rounds for ever."""
        self.last = time.monotonic()
        while True:
            pause = self._seconds
            try:
                await self._round()
            except SluiceError as error:
                _log.warning("resync failed", error=str(error))
                pause = min(pause, AGAIN)
            self.last = time.monotonic()
            await asyncio.sleep(pause)

    def queue_all(self) -> None:
        """Queue all resources that the watches have shown."""
        for kind in OWN.values():
            self._queue_each(kind, self._mirror.all(kind))

    def _queue_each(self, kind: Kind, bodies: Iterable[Object]) -> None:
        for body in bodies:
            meta = body["metadata"]
            self._queue.add(
                Key(kind.name, meta["namespace"], meta["name"]),
                lane=Lane.DELETION if is_deleting(body) else Lane.NORMAL,
            )

    async def _round(self) -> None:
        began = time.monotonic()
        listed = {kind: await self._list(kind) for kind in (*OWN.values(), JOB, POD)}
        for kind, bodies in listed.items():
            self._mirror.keep_only(kind, bodies, began)
        for kind in OWN.values():
            self._queue_each(kind, listed[kind])
        if self._queue.is_open:  # replicas that wait tell nothing, or sums would be too high
            self._count(listed)
        await self._sync(listed, began)
        await asyncio.sleep(WATCH_GRACE)
        for kind, bodies in listed.items():
            late = await self._caught_up(kind, bodies, began)
            gone = bool(late) and await self._still_there(kind, late)
            (self.behind.add if gone else self.behind.discard)(kind.name)
            self._metrics.set("sluice_watch_behind", float(gone), kind=kind.name)
            if gone:
                _log.error("a watch misses changes", kind=kind.name)

    async def _sync(self, listed: dict[Kind, list[Object]], began: float) -> None:
        """Wait for a while until the watches have shown what there was at the start."""
        until = time.monotonic() + WATCH_GRACE
        while not self.synced:
            late = any(self._late(kind, bodies, began) for kind, bodies in listed.items())
            self.synced = not late or time.monotonic() > until
            if not self.synced:
                await asyncio.sleep(_SYNCED)

    async def _list(self, kind: Kind) -> list[Object]:
        """List the objects of a kind that the watches should show, reduced by `counted`."""
        labels = None if kind in OWN.values() else MANAGED
        return [
            counted(body)
            for namespace in self._namespaces
            async for page in self._api.pages(kind, namespace, labels=labels)
            for body in page
        ]

    async def _caught_up(self, kind: Kind, bodies: list[Object], began: float) -> list[Object]:
        """Wait while a watch still catches up with a list. Return the objects that it lacks.

        With thousands of resources, catching up takes a while, although the watch is alive.
        """
        late = self._late(kind, bodies, began)
        while late:
            await asyncio.sleep(WATCH_GRACE)
            self.last = time.monotonic()
            still = self._late(kind, late, began)
            if len(still) == len(late):
                break
            late = still
        return late

    def _late(self, kind: Kind, bodies: list[Object], began: float) -> list[Object]:
        return [body for body in bodies if self._mirror.is_behind(kind, body, began)]

    async def _still_there(self, kind: Kind, bodies: list[Object]) -> bool:
        """Tell whether any object that a watch has not shown still exists.

        A watch never shows an object that was deleted since the list was made.
        """
        late: dict[str, dict[str, str]] = {}
        for body in bodies:
            meta = body["metadata"]
            late.setdefault(meta["namespace"], {})[meta["uid"]] = meta["name"]
        for namespace, names in late.items():
            # The operator may list Jobs and pods, but not get single ones. A single object is
            # listed by its name; for several, which may be hundreds, all objects are listed.
            name = f"metadata.name={next(iter(names.values()))}" if len(names) == 1 else None
            labels = None if kind in OWN.values() else MANAGED
            async for page in self._api.pages(kind, namespace, fields=name, labels=labels):
                if any(one["metadata"]["uid"] in names for one in page):
                    return True
        return False

    def _count(self, listed: dict[Kind, list[Object]]) -> None:
        for kind in COPIES.values():
            copies = Counter(copy_state(body) for body in listed[kind])
            for state in ("Succeeded", "Failed", "Suspended", "Active"):
                self._metrics.set("sluice_copies", copies[state], kind=kind.name, state=state)
        streams = Counter(ephemeral_state(body) for body in listed[EPHEMERAL_STREAM])
        for state in ("Ready", "Released", "Waiting", "Failed", "Suspended", "Deleting"):
            self._metrics.set("sluice_ephemeral_streams", streams[state], state=state)
        stores = Counter(store_state(body) for body in listed[STREAM_STORE])
        self._metrics.set("sluice_stores", stores["Ready"], ready="true")
        self._metrics.set("sluice_stores", stores["NotReady"], ready="false")
