"""Compare the watches with lists, and queue what they missed and what is not settled.

So nothing depends on a single event, and a dead watch is noticed. A round queues

- what the watches have not shown, or not in its present state, or not that it is gone;
- StreamStores, resources that are not settled, and those with a StreamStore of another namespace,
  whose grant depends on labels that the operator does not watch;
- a part of the others, so that each is looked at once in `TURNS` rounds.
"""

from __future__ import annotations

import asyncio
import math
import time
import zlib
from typing import TYPE_CHECKING, Final

import structlog

from sluice.errors import SluiceError
from sluice.kube.api.cache import is_same
from sluice.kube.api.kinds import JOB, OWN, POD, STREAM_STORE
from sluice.kube.api.names import MANAGED
from sluice.kube.api.objects import is_deleting
from sluice.kube.api.rest import is_at_rest, is_settled
from sluice.kube.api.slim import identified
from sluice.kube.loop.queue import Key, Lane
from sluice.kube.stores.dependents import foreign_stores

if TYPE_CHECKING:
    from sluice.handlers.watches import Watches
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

TURNS: Final = 30
"""Rounds in which each settled resource is looked at once."""


def is_due(kind: Kind, body: Object, turn: int) -> bool:
    """Tell whether a round looks at a resource of which the watches have missed nothing.

    Args:
        kind: its kind.
        body: the resource as the mirror has it.
        turn: number of the round, from 0. The first one looks at all that may wait for a time: a
            new process knows none of these times.
    """
    if kind == STREAM_STORE or not is_settled(body) or foreign_stores(body):
        return True
    if turn == 0 and not is_at_rest(kind, body):
        return True
    return zlib.crc32(body["metadata"]["uid"].encode()) % TURNS == turn % TURNS


class Resync:
    """The resync: it compares the watches with lists in rounds, and queues resources.

    Args:
        api: the API server.
        queue: the queue for the resources' keys.
        mirror: the objects that the watches have shown.
        watches: takes in what the watches have missed.
        metrics: gets whether a watch misses changes.
        namespaces: the namespaces to list; empty for all.
        seconds: seconds between two rounds.

    Attributes:
        behind: the kinds whose watches miss changes.
        last: the monotonic time of the last sign of life: the end of a round, even a failed one, or
            a comparison within it. Infinite until `run` begins.
        synced: whether all resources were listed once and shown by the watches, and those queued
            that may need something.
    """

    def __init__(
        self,
        api: Api,
        *,
        queue: WorkQueue,
        mirror: Mirror,
        watches: Watches,
        metrics: Metrics,
        namespaces: list[str],
        seconds: float,
    ) -> None:
        self._api = api
        self._queue = queue
        self._mirror = mirror
        self._watches = watches
        self._turn = 0
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
            for body in self._mirror.all(kind):
                self._look_at(kind, body)

    def _look_at(self, kind: Kind, body: Object) -> None:
        meta = body["metadata"]
        self._queue.add(
            Key(kind.name, meta["namespace"], meta["name"]),
            lane=Lane.DELETION if is_deleting(body) else Lane.NORMAL,
        )

    async def _round(self) -> None:
        began = time.monotonic()
        listed = {kind: await self._list(kind) for kind in (*OWN.values(), JOB, POD)}
        for kind, bodies in listed.items():
            self._compare(kind, bodies, began)
        self._turn += 1
        await self._sync(listed, began)
        await asyncio.sleep(WATCH_GRACE)
        for kind, bodies in listed.items():
            late = await self._caught_up(kind, bodies, began)
            for body in late:
                self._missed(kind, body)
            gone = bool(late) and await self._still_there(kind, late)
            (self.behind.add if gone else self.behind.discard)(kind.name)
            self._metrics.set("sluice_watch_behind", float(gone), kind=kind.name)
            if gone:
                _log.error("a watch misses changes", kind=kind.name)

    def _compare(self, kind: Kind, bodies: list[Object], began: float) -> None:
        """Compare the mirror with a list that began at a time, and queue what has to be looked at.

        At the start the watches are still showing what there is. What they have not shown once they
        show no more is queued then.
        """
        for gone in self._mirror.keep_only(kind, bodies, began):
            if kind in OWN.values():
                self._watches.resource(kind, gone, gone=True)
            else:
                self._watches.wake(gone)
        for body in bodies:
            meta = body["metadata"]
            known = self._mirror.get(kind, meta["namespace"], meta["name"])
            if known is None or not is_same(known, body):
                if self.synced:
                    self._missed(kind, body)
            elif kind in OWN.values() and is_due(kind, known, self._turn):
                self._look_at(kind, known)

    def _missed(self, kind: Kind, body: Object) -> None:
        """Have what a list has, and the watches have not shown, looked at."""
        if kind in OWN.values():
            self._look_at(kind, body)
        else:
            self._watches.wake(body)

    async def _sync(self, listed: dict[Kind, list[Object]], began: float) -> None:
        """Wait for a while until the watches have shown what there was at the start."""
        until = time.monotonic() + WATCH_GRACE
        while not self.synced:
            late = any(self._late(kind, bodies, began) for kind, bodies in listed.items())
            self.synced = not late or time.monotonic() > until
            if not self.synced:
                await asyncio.sleep(_SYNCED)

    async def _list(self, kind: Kind) -> list[Object]:
        """List the objects of a kind that the watches should show, reduced by `identified`."""
        labels = None if kind in OWN.values() else MANAGED
        return [
            identified(body)
            for namespace in self._namespaces
            async for page in self._api.pages(kind, namespace, labels=labels, only_metadata=True)
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
            async for page in self._api.pages(
                kind, namespace, fields=name, labels=labels, only_metadata=True
            ):
                if any(one["metadata"]["uid"] in names for one in page):
                    return True
        return False
