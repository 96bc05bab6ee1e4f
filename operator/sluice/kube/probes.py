"""Asking stores whether they are there, not more often than needed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sluice.core.request import store_address
from sluice.core.trouble import Trouble
from sluice.errors import SluiceError
from sluice.kube.objects import parse_store

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from sluice.core.model import Health
    from sluice.kube.client import Object
    from sluice.kube.stores import Connections


@dataclass(frozen=True, slots=True)
class Probed:
    """A store's answer, or why there was none, and when."""

    answer: Health | Trouble
    time: datetime
    at: float
    uid: str
    generation: int


class Probes:
    """The latest answer of each StreamStore's store.

    Args:
        connections: the stores.
        threads: where blocking calls are made.
    """

    def __init__(self, connections: Connections, threads: Executor) -> None:
        self._connections = connections
        self._threads = threads
        self._latest: dict[tuple[str, str], Probed] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    async def look(self, body: Object, *, max_age: float) -> Probed:
        """What the store of a StreamStore answers, or answered at most `max_age` seconds ago."""
        meta = body["metadata"]
        key, uid, generation = _key(body), meta["uid"], meta.get("generation", 0)
        async with self._locks.setdefault(key, asyncio.Lock()):
            kept = self._latest.get(key)
            if (
                kept is not None
                and (kept.uid, kept.generation) == (uid, generation)
                and time.monotonic() - kept.at < max_age
            ):
                return kept
            answer = await self._ask(body)
            found = Probed(answer, datetime.now(UTC), time.monotonic(), uid, generation)
            self._latest[key] = found
            return found

    def forget(self, namespace: str, name: str) -> None:
        """The StreamStore is gone."""
        self._latest.pop((namespace, name), None)
        self._locks.pop((namespace, name), None)

    async def _ask(self, body: Object) -> Health | Trouble:
        try:
            address = store_address(parse_store(body))
            namespace = body["metadata"]["namespace"]
            # A driver could not be given a Secret that is gone, so such a store is not ready.
            store = await self._connections.get(namespace, address, strict=True)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, store.probe)
        except SluiceError as error:
            return Trouble.of(error)


def _key(body: Object) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]
