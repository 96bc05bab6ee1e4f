"""Watch the objects of one kind in one namespace, and keep only the few facts that count."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from sluice.core.claims.finished import finished
from sluice.core.reconcile.ephemeral.world import OwnerSeen
from sluice.core.reconcile.shared.verdict import Backoff
from sluice.errors import ApiUnavailable
from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object

_log = structlog.get_logger()

ABSENT: Final = OwnerSeen()
RECONNECT: Final = Backoff(0.2, 30)
"""Waits in seconds between attempts to watch."""
_STEADY: Final = 5.0
"""Seconds that a watch has to last to count as one that worked."""
_RELIST: Final = 3
"""Failures in a row after which a watch begins with a list again."""
_REFUSALS: Final = frozenset({403, 404, 405})
"""HTTP: no right, no such kind, or no such verb for it."""
_GONE: Final = 410
"""HTTP: the resourceVersion is too old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTimeouts:
    """Timeouts of watches, in seconds.

    Attributes:
        server: after this time the server ends a watch, which is then opened again.
        silence: a connection without a byte for this time is taken for dead. Servers send a
            bookmark every minute; a server that does not only costs a reconnection.
        idle: a watch that is not used for this time ends.
        first: a look waits for a new watch for this time.
        refused: after a refusal, the right is not tried again for this time.
    """

    server: float = 300
    silence: float = 90
    idle: float = 600
    first: float = 5
    refused: float = 60


def seen(kind: Kind, body: Object | None) -> OwnerSeen:
    """Reduce an object to the facts that count of an owner."""
    if body is None:
        return ABSENT
    meta = body["metadata"]
    return OwnerSeen(
        uid=meta["uid"],
        finished=finished(kind.api_version, kind.name, body),
        deleting="deletionTimestamp" in meta,
    )


class Cache:
    """Cache of the objects of a kind in a namespace, by name, each reduced to an OwnerSeen.

    Args:
        kind: the kind.
    """

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._known: dict[str, OwnerSeen] = {}
        self._told: dict[str, OwnerSeen] | None = {}
        self._asked = False

    @property
    def in_sync(self) -> bool:
        """Whether the watch keeps it up to date; otherwise the API server has to be asked."""
        return self._told is None

    def get(self, name: str) -> OwnerSeen:
        """Return an object; ABSENT if there is none."""
        return self._known.get(name, ABSENT)

    def tell(self, name: str, now: OwnerSeen) -> None:
        """Remember an answer of the API server that was used while the cache was not in sync.

        The next list is compared with it, so a change since then is news.
        """
        if self._told is not None:
            self._told[name] = now

    def replace(self, known: dict[str, OwnerSeen]) -> set[str]:
        """Take in a list, and return the names of objects that differ from earlier answers."""
        before = {**self._known, **(self._told or {})}
        names = before.keys() | known.keys() if self._asked else before.keys()
        self._known, self._told, self._asked = known, None, True
        return {name for name in names if self.get(name) != before.get(name, ABSENT)}

    def take(self, event: Object) -> str | None:
        """Take in an event, and return the object's name if the facts have changed."""
        if event["type"] == "BOOKMARK":
            return None
        name = event["object"]["metadata"]["name"]
        before = self.get(name)
        if event["type"] == "DELETED":
            self._known.pop(name, None)
        else:
            self._known[name] = seen(self._kind, event["object"])
        return name if self.get(name) != before else None

    def lose(self) -> None:
        """Note that the watch has broken, so that the cache is not in sync."""
        if self._told is None:
            self._told = {}

    def resume(self) -> None:
        """Note that the watch has resumed: it delivers the events since it broke."""
        self._told = None


class OwnerWatch:
    """Watch of a kind in a namespace, which lasts while it is used.

    Args:
        api: the API server.
        kind: the kind to watch.
        namespace: the namespace to watch.
        changed: callback, called with the name of an object whose facts have changed.
        patience: timeouts.
    """

    def __init__(
        self,
        api: Api,
        kind: Kind,
        namespace: str,
        *,
        changed: Callable[[str], None],
        patience: WatchTimeouts,
    ) -> None:
        self._api = api
        self._kind = kind
        self._namespace = namespace
        self._changed = changed
        self._patience = patience
        self._version = ""
        self._used = time.monotonic()
        self._tried = asyncio.Event()
        self.cache = Cache(kind)
        self.refused: Refused | None = None
        self._task = asyncio.ensure_future(self._run())

    @property
    def ended(self) -> bool:
        """Whether the watch is over: it was not used, was refused, or failed."""
        return self._task.done()

    async def use(self) -> None:
        """Keep the watch going. Wait while it is new, until it is in sync, fails or takes long."""
        self._used = time.monotonic()
        if not self._tried.is_set():
            try:
                async with asyncio.timeout(self._patience.first):
                    await self._tried.wait()
            except TimeoutError:
                return

    async def close(self) -> None:
        """End the watch."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        failures = 0
        try:
            while self.refused is None and (left := self._left()) > 0:
                began = time.monotonic()
                broke = await self._attempt(min(left, self._patience.server))
                self._tried.set()
                steady = time.monotonic() - began >= _STEADY
                failures = int(broke) if steady else failures + 1
                if failures >= _RELIST:
                    self._version = ""
                if failures and self.refused is None:
                    await asyncio.sleep(RECONNECT.after(failures))
        except Exception:  # noqa: BLE001 - no caller awaits the task: logged here, or never
            _log.exception("a watch of owners failed", kind=self._kind.name)
        finally:
            self.cache.lose()
            self._tried.set()

    def _left(self) -> float:
        """Give the seconds until the watch is idle for too long."""
        return self._used + self._patience.idle - time.monotonic()

    async def _attempt(self, seconds: float) -> bool:
        """Watch once, and tell whether the watch broke."""
        try:
            await self._once(seconds)
        except ApiUnavailable as error:
            self.cache.lose()
            status = error.status if isinstance(error, Refused) else 0
            if isinstance(error, Refused) and status in _REFUSALS:
                self.refused = error
            elif status == _GONE:
                self._version = ""
            _log.info("a watch of owners broke", kind=self._kind.name, error=str(error))
            return True
        return False

    async def _once(self, seconds: float) -> None:
        """List the objects if needed, then watch until the server ends the watch."""
        if not self._version:
            for news in sorted(await self._list()):
                self._changed(news)
        async with self._api.watch(
            self._kind,
            self._namespace,
            self._version,
            seconds=seconds,
            silence=self._patience.silence,
        ) as events:
            self.cache.resume()
            self._tried.set()
            async for event in events:
                name = self.cache.take(event)
                self._version = event["object"]["metadata"]["resourceVersion"]
                if name is not None:
                    self._changed(name)

    async def _list(self) -> set[str]:
        """List all objects, page by page, and return the names of those that have changed."""
        small: dict[str, OwnerSeen] = {}
        page = await self._api.page(self._kind, self._namespace)
        while True:
            for body in page.items:
                small[body["metadata"]["name"]] = seen(self._kind, body)
            if not page.more:
                break
            page = await self._api.page(self._kind, self._namespace, page.more)
        self._version = page.version
        return self.cache.replace(small)
