"""Asking stores whether they are there, not more often than needed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sluice.api.kinds.streamstore import StreamStore
from sluice.archive.runs.shelf import Shelf
from sluice.core.reconcile.store import AWAY, interval
from sluice.core.values.model import StoreHealth
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.request import store_address
from sluice.errors import SluiceError
from sluice.kube.api.objects import parse
from sluice.kube.loop.memory import Blocking

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from sluice.engine.access.source_runs import Place
    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.connections import Connections


@dataclass(frozen=True, slots=True)
class Probed:
    """A store's answer, or why there was none, and when."""

    answer: StoreHealth | Trouble
    time: datetime
    at: float
    uid: str
    generation: int
    failures: int = 0
    """How often in a row there was no answer."""


class Probes:
    """The latest answer of each StreamStore's store.

    Args:
        connections: the stores.
        threads: where blocking calls are made.
    """

    def __init__(self, connections: Connections, threads: Executor) -> None:
        self._connections = connections
        self._blocking = Blocking(threads)
        self._latest: dict[tuple[str, str], Probed] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    async def look(
        self, body: Object, *, max_age: float | None = None, eager: bool = False
    ) -> Probed:
        """What the store of a StreamStore answers, or answered a while ago.

        Args:
            body: the StreamStore.
            max_age: seconds for which an answer counts; None for until the next look is due.
            eager: somebody new waits for the store: that it was away counts for seconds only.
        """
        meta = body["metadata"]
        key, uid, generation = _key(body), meta["uid"], meta.get("generation", 0)
        async with self._locks.setdefault(key, asyncio.Lock()):
            kept = self._latest.get(key)
            if kept is not None and (kept.uid, kept.generation) != (uid, generation):
                kept = None
            if kept is not None and time.monotonic() - kept.at < _counts(kept, max_age, eager):
                return kept
            answer = await self._ask(body)
            before = 0 if kept is None else kept.failures
            failures = 0 if isinstance(answer, StoreHealth) else before + 1
            found = Probed(answer, datetime.now(UTC), time.monotonic(), uid, generation, failures)
            self._latest[key] = found
            return found

    def forget(self, namespace: str, name: str) -> None:
        """The StreamStore is gone."""
        self._latest.pop((namespace, name), None)
        self._locks.pop((namespace, name), None)

    async def _ask(self, body: Object) -> StoreHealth | Trouble:
        try:
            address = store_address(parse(body, StreamStore))
            namespace = body["metadata"]["namespace"]
            # A driver could not be given a Secret that is gone, so such a store is not ready.
            if address.kind.mounted:
                await self._connections.check_claim(namespace, address)
                return StoreHealth()
            place = await self._connections.place(namespace, address, strict=True)
            return await self._blocking(lambda: _health(place))
        except SluiceError as error:
            return Trouble.of(error)


def _health(place: Place) -> StoreHealth:
    """What a store says of itself, or how long a place for archives took to answer."""
    if not isinstance(place, Shelf):
        return place.probe()
    begun = time.monotonic()
    place.probe()
    return StoreHealth(latency=time.monotonic() - begun)


def _counts(kept: Probed, max_age: float | None, eager: bool) -> float:  # noqa: FBT001
    """Seconds for which an answer counts."""
    due = interval(kept.answer, kept.failures) - 1 if max_age is None else max_age
    return min(due, AWAY.first - 1) if eager and kept.failures else due


def _key(body: Object) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]
