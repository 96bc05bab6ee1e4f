"""Hold the Lease by which one replica of the operator works, while others wait for it."""

from __future__ import annotations

import asyncio
import math
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import structlog

from sluice.core.reconcile.lease import RELEASED, LeaseSeen, LeaseStep, Replica
from sluice.errors import ApiUnavailable
from sluice.kube.api.kinds import LEASE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import NoReturn, TypeVar

    from sluice.kube.api.client import Api
    from sluice.kube.api.fence import Fence
    from sluice.kube.api.kinds import Object

    _T = TypeVar("_T")

_log = structlog.get_logger()

RENEWED: Final = 2.0
"""Seconds between two renewals."""

LOOKED: Final = 1.0
"""Seconds between two looks of a replica that waits, and between two tries after a failure."""

ANSWER: Final = 2.0
"""Deadline of a call, in seconds. So a connection that hangs leaves time for others.

It doubles with each failure, up to four times as much: the API server may be slow.
"""


class LeaseLost(Exception):
    """Another replica has the Lease of this one, or may have had it."""


class LeaseKeeper:
    """The keeper of one replica's part in the Lease.

    Args:
        api: a client of its own, without a fence. Its connections wait for no other calls.
        namespace: the Lease's namespace.
        name: the Lease's name.
        fence: opened while this replica holds the Lease.
        leads: callback when the replica begins to act, and when it goes on after a pause.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        name: str,
        *,
        fence: Fence,
        leads: Callable[[], None],
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._fence = fence
        self._leads = leads
        self._clock = fence.clock
        self._replica = Replica(f"{socket.gethostname()}_{uuid4()}")
        self._version = ""
        """The Lease's version as this replica wrote it; empty if that is unknown."""
        self._failures = 0
        fence.until = -math.inf

    async def run(self) -> NoReturn:
        """Take the Lease when it is free, and renew it, for ever.

        Raises:
            LeaseLost: another replica may act, so this process has to end.
        """
        while True:
            try:
                pause = await self._turn()
                self._failures = 0
            except ApiUnavailable as error:
                if not self._failures:
                    _log.warning("cannot look at the Lease, or renew it", error=str(error))
                self._failures += 1
                pause = LOOKED
            await asyncio.sleep(pause)

    async def release(self) -> None:
        """Close the fence for ever, and give the Lease back if it is held. Call it after `run`."""
        self._fence.until = -math.inf
        if not self._replica.has_led:
            return
        try:
            for _ in range(2):  # a renewal that was interrupted may still arrive
                seen = await self._look()
                if seen is None or seen.holder != self._replica.name:
                    return
                if await self._patch(seen.version, RELEASED) is not None:
                    _log.info("gave the Lease back")
                    return
        except ApiUnavailable as error:
            _log.warning("the Lease was not given back", error=str(error))

    async def _turn(self) -> float:
        """Renew the Lease, or look at it and do what follows. Return the seconds until the next.

        Raises:
            ApiUnavailable: the API server did not answer, or refused.
            LeaseLost: see `run`.
        """
        if self._version:
            began, version = self._clock(), self._version
            self._version = ""  # unknown, until the call has an answer
            if self._wrote(began, await self._patch(version, self._spec(began))):
                return self._until_next(began)
        seen = await self._look()
        now = self._clock()
        self._replica, step = self._replica.look(seen, now)
        if step is LeaseStep.END:
            self._fence.until = -math.inf
            raise LeaseLost("no replica" if seen is None else seen.holder or "no replica")
        self._act()
        if step is LeaseStep.WAIT:
            return min(LOOKED, max(0.0, self._replica.free - now))
        began = self._clock()
        if seen is None:
            meta = {"name": self._name, "namespace": self._namespace}
            made: Object = {
                "apiVersion": LEASE.api_version,
                "kind": LEASE.name,
                "metadata": meta,
                "spec": self._spec(began),
            }
            written = await self._within(self._api.create(LEASE, self._namespace, made))
        else:
            written = await self._patch(seen.version, self._spec(began))
        return self._until_next(began) if self._wrote(began, written) else 0.0

    def _wrote(self, began: float, written: Object | None) -> bool:
        """Take in the answer to a call that wrote the Lease: None if it was changed meanwhile."""
        if written is None:
            return False
        seen = LeaseSeen.of(written)
        self._version = seen.version
        self._replica, _ = self._replica.look(seen, self._clock())
        self._replica = self._replica.held(began)
        self._act()
        return True

    def _act(self) -> None:
        """Open the fence for as long as this replica acts."""
        paused = not self._fence.is_open
        self._fence.until = self._replica.until
        if paused and self._fence.is_open:
            _log.info("holds the Lease", name=self._replica.name)
            self._leads()

    def _until_next(self, began: float) -> float:
        return max(0.0, began + RENEWED - self._clock())

    def _spec(self, began: float) -> Object:
        self._replica, spec = self._replica.trying(began, datetime.now(UTC))
        return spec

    async def _look(self) -> LeaseSeen | None:
        body = await self._within(self._api.get(LEASE, self._namespace, self._name))
        return None if body is None else LeaseSeen.of(body)

    async def _patch(self, version: str, spec: Object) -> Object | None:
        """Write the Lease's spec if the Lease still has a version."""
        change = {"metadata": {"resourceVersion": version}, "spec": spec}
        return await self._within(self._api.patch(LEASE, self._namespace, self._name, change))

    async def _within(self, call: Awaitable[_T]) -> _T:
        """Wait for a call until its deadline.

        Raises:
            ApiUnavailable: also if there was no answer in time.
        """
        seconds = ANSWER * 2 ** min(self._failures, 2)
        try:
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError as error:
            raise ApiUnavailable(f"no answer within {seconds:g} s") from error
