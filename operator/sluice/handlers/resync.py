"""A slow look at everything: nothing depends on an event, and watches that died are noticed."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

import structlog

from sluice.errors import SluiceError
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
    from sluice.kube.api.cache import Mirror
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.queue import WorkQueue
    from sluice.metrics import Metrics

_log = structlog.get_logger()

WATCH_GRACE: Final = 10.0
"""Seconds that a watch may take to show more of what a list has shown."""


class Resync:
    """Puts every resource into the queue now and then, and compares the watches with lists.

    Args:
        api: the API server.
        queue: where keys go.
        mirror: what the watches told.
        metrics: numbers of resources.
        namespaces: looked at; none for all.
        seconds: between two rounds.

    Attributes:
        behind: the kinds whose watches miss changes.
        last: when a round last ended, well or not; never before the first one begins.
        synced: whether one has ended well.
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
        """For ever."""
        self.last = time.monotonic()
        while True:
            try:
                await self._round()
            except SluiceError as error:
                _log.warning("resync failed", error=str(error))
            self.last = time.monotonic()
            await asyncio.sleep(self._seconds)

    async def _round(self) -> None:
        began = time.monotonic()
        listed = {kind: await self._list(kind) for kind in (*OWN.values(), JOB, POD)}
        for kind, bodies in listed.items():
            self._mirror.keep_only(kind, bodies, began)
        for kind in OWN.values():
            for body in listed[kind]:
                meta = body["metadata"]
                self._queue.add(
                    Key(kind.name, meta["namespace"], meta["name"]),
                    lane=Lane.DELETION if is_deleting(body) else Lane.NORMAL,
                )
        self._count(listed)
        self.synced = True
        await asyncio.sleep(WATCH_GRACE)
        for kind, bodies in listed.items():
            late = await self._caught_up(kind, bodies, began)
            gone = bool(late) and await self._still_there(kind, late)
            (self.behind.add if gone else self.behind.discard)(kind.name)
            self._metrics.set("sluice_watch_behind", float(gone), kind=kind.name)
            if gone:
                _log.error("a watch misses changes", kind=kind.name)

    async def _list(self, kind: Kind) -> list[Object]:
        """All objects of a kind that the watches are to show, as much as is asked for of each."""
        labels = None if kind in OWN.values() else MANAGED
        return [
            counted(body)
            for namespace in self._namespaces
            async for page in self._api.pages(kind, namespace, labels=labels)
            for body in page
        ]

    async def _caught_up(self, kind: Kind, bodies: list[Object], began: float) -> list[Object]:
        """Wait as long as a watch goes on showing what was listed; what it does not show.

        Where there are thousands of resources it takes a while, and is not dead.
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
        """Whether what a watch has not shown exists still: what was deleted is shown no more."""
        late: dict[str, dict[str, str]] = {}
        for body in bodies:
            meta = body["metadata"]
            late.setdefault(meta["namespace"], {})[meta["uid"]] = meta["name"]
        for namespace, names in late.items():
            # Lists, since the operator has no right to get Jobs and pods one by one. Of all, where
            # hundreds were deleted at once.
            name = f"metadata.name={next(iter(names.values()))}" if len(names) == 1 else None
            labels = None if kind in OWN.values() else MANAGED
            async for page in self._api.pages(kind, namespace, fields=name, labels=labels):
                if any(one["metadata"]["uid"] in names for one in page):
                    return True
        return False

    def _count(self, listed: dict[Kind, list[Object]]) -> None:
        for kind in COPIES.values():
            copies = Counter(_state(body) for body in listed[kind])
            for state in ("Succeeded", "Failed", "Suspended", "Active"):
                self._metrics.set("sluice_copies", copies[state], kind=kind.name, state=state)
        streams = Counter(_state_of_ephemeral(body) for body in listed[EPHEMERAL_STREAM])
        for state in ("Ready", "Released", "Waiting", "Failed", "Suspended", "Deleting"):
            self._metrics.set("sluice_ephemeral_streams", streams[state], state=state)
        stores = Counter(_is(body, "Ready") for body in listed[STREAM_STORE])
        self._metrics.set("sluice_stores", stores[True], ready="true")
        self._metrics.set("sluice_stores", stores[False], ready="false")


def _is(body: Object, condition: str) -> bool:
    conditions = body.get("status", {}).get("conditions") or []
    return any(c["type"] == condition and c["status"] == "True" for c in conditions)


def _state_of_ephemeral(body: Object) -> str:
    """An EphemeralStream's state, for counting."""
    if is_deleting(body):
        return "Deleting"
    if "completed" in body.get("status", {}).get("release", {}):
        return "Released"
    if _is(body, "Stalled"):
        return "Failed"
    if _is(body, "Suspended"):
        return "Suspended"
    return "Ready" if _is(body, "Ready") else "Waiting"


def _state(body: Object) -> str:
    """A copy's state, for counting."""
    if _is(body, "Succeeded"):
        return "Succeeded"
    if _is(body, "Stalled"):
        return "Failed"
    return "Suspended" if _is(body, "Suspended") else "Active"
