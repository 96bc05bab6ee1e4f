"""Probe stores, not more often than needed, and keep their answers."""

from __future__ import annotations

import asyncio
import math
import random
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sluice.api.kinds.streamstore import StreamStore
from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.reconcile.store import AWAY, PROBE_SECONDS, TRY_SECONDS, interval
from sluice.core.values.model import StoreHealth
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.request import store_address
from sluice.errors import SluiceError
from sluice.kube.api.objects import parse
from sluice.kube.loop.memory import Blocking
from sluice.stores.deadline import within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor

    from sluice.engine.access.source_runs import Place
    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.connections import Connections

_WARM: Final = 8
"""Stores that a replica which waits asks at a time."""


@dataclass(frozen=True, slots=True)
class Probed:
    """The result of a probe.

    Attributes:
        answer: the store's answer, or why there was none.
        time: when the store was asked.
        at: the same moment on the monotonic clock, in seconds.
        uid, generation: those of the StreamStore that was asked.
    """

    answer: StoreHealth | Trouble
    time: datetime
    at: float
    uid: str
    generation: int
    failures: int = 0
    """Probes in a row that failed."""
    due: float = PROBE_SECONDS
    """Seconds from this probe to the next one."""

    @property
    def is_away(self) -> bool:
        """Whether the store may come back by itself."""
        return isinstance(self.answer, Trouble) and self.answer.retryable


class Probes:
    """The latest answer of each StreamStore's store.

    Args:
        connections: the connections to stores.
        threads: the threads that make blocking calls.
        chance: gives a random number from 0 to 1.
    """

    def __init__(
        self,
        connections: Connections,
        threads: Executor,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._connections = connections
        self._blocking = Blocking(threads)
        self._chance = chance
        self._latest: dict[tuple[str, str], Probed] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    async def look(
        self, body: Object, *, max_age: float | None = None, eager: bool = False
    ) -> Probed:
        """Return the answer of a StreamStore's store. Ask it only if the last answer is too old.

        Args:
            body: the StreamStore.
            max_age: seconds for which an answer counts; None to keep it until the next probe is
                due.
            eager: whether a new or changed resource waits for the store. Then a failed probe counts
                only for seconds.
        """
        meta = body["metadata"]
        key, uid, generation = _key(body), meta["uid"], meta.get("generation", 0)
        async with self._locks.setdefault(key, asyncio.Lock()):
            kept = self._latest.get(key)
            if kept is not None and (kept.uid, kept.generation) != (uid, generation):
                kept = None
            if kept is not None and time.monotonic() - kept.at < _life(kept, max_age, eager=eager):
                return kept
            away = kept is not None and kept.is_away
            answer = await self._ask(body, TRY_SECONDS if away else math.inf)
            before = 0 if kept is None else kept.failures
            failures = 0 if isinstance(answer, StoreHealth) else before + 1
            others = sum(
                probed.is_away
                for (namespace, name), probed in self._latest.items()
                if namespace == key[0] and name != key[1]
            )
            due = interval(answer, failures, away=others + 1, chance=self._chance())
            found = Probed(
                answer, datetime.now(UTC), time.monotonic(), uid, generation, failures, due
            )
            self._latest[key] = found
            return found

    async def warm(self, bodies: Iterable[Object]) -> None:
        """Ask the stores of all StreamStores, a few at a time, as far as that is due.

        Args:
            bodies: the StreamStores that there are. The answers of others are forgotten.
        """
        there = {_key(body): body for body in bodies}
        for key in self._latest.keys() - there.keys():
            self.forget(*key)
        few = asyncio.Semaphore(_WARM)

        async def look(body: Object) -> None:
            async with few:
                with suppress(SluiceError):
                    await self.look(body)

        await asyncio.gather(*map(look, there.values()))

    def forget(self, namespace: str, name: str) -> None:
        """Forget the answer of a StreamStore that is gone."""
        self._latest.pop((namespace, name), None)
        self._locks.pop((namespace, name), None)

    async def _ask(self, body: Object, seconds: float) -> StoreHealth | Trouble:
        try:
            address = store_address(parse(body, StreamStore))
            namespace = body["metadata"]["namespace"]
            # strict: a driver's pod cannot start without the Secret, so a store whose Secret is
            # gone is not ready, even if a connection is still open.
            if address.kind.mounted:  # the operator cannot look into a volume
                await self._connections.check_claim(namespace, address)
                return StoreHealth()
            place = await self._connections.place(namespace, address, strict=True)
            return await self._blocking(lambda: _health(place, seconds))
        except SluiceError as error:
            return Trouble.of(error)


def _health(place: Place, seconds: float) -> StoreHealth:
    """Probe a live store, or measure how long a place for archives takes to answer.

    Raises:
        BackendError: it does not answer, or not within so many seconds.
    """
    begun = time.monotonic()
    with within(seconds):
        if not isinstance(place, ArchiveRoot):
            return place.probe()
        place.probe()
    return StoreHealth(latency=time.monotonic() - begun)


def _life(kept: Probed, max_age: float | None, *, eager: bool) -> float:
    """Return the seconds for which an answer counts."""
    due = kept.due - 1 if max_age is None else max_age
    return min(due, AWAY.first - 1) if eager and kept.failures else due


def _key(body: Object) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]
