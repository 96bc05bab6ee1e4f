"""The operator's view of owners, for tests that wait for a change in this view."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config

from sluice.errors import ApiUnavailable
from sluice.kube.api.client import Api
from sluice.kube.ephemeral.owner_watch import WatchTimeouts
from sluice.kube.ephemeral.owners import Owners

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

    from sluice.api.kinds.ephemeralstream import Owner
    from sluice.core.reconcile.ephemeral.world import OwnerSeen

SECONDS = 120.0
POLL = 0.1


class CountingApi(Api):
    """A client of the API server that counts its calls."""

    calls = 0

    async def _send(self, method: str, path: str, **how: Any) -> Any:
        self.calls += 1
        return await super()._send(method, path, **how)


class Sight:
    """The operator's view of owners. Its watches wake up a test that waits for a change."""

    def __init__(self, api: CountingApi, namespace: str, patience: WatchTimeouts) -> None:
        self.api = api
        self.namespace = namespace
        self._woken: dict[tuple[str, ...], asyncio.Event] = {}
        self.owners = Owners(api, self._wake, patience)

    def _wake(self, *whom: str) -> None:
        self._event(*whom).set()

    def _event(self, *whom: str) -> asyncio.Event:
        return self._woken.setdefault(whom, asyncio.Event())

    async def look(self, owner: Owner) -> OwnerSeen:
        """Return the operator's view of an owner."""
        return await self.owners.look(owner, self.namespace)

    async def confirm(self, owner: Owner) -> OwnerSeen:
        """Return the API server's answer about an owner."""
        return await self.owners.confirm(owner, self.namespace)

    async def until(self, owner: Owner, check: Callable[[OwnerSeen], object]) -> OwnerSeen:
        """Look after each wake-up until an owner passes a check, and return the last look."""
        woken = self._event(owner.api_version, owner.kind, self.namespace, owner.name)
        async with asyncio.timeout(SECONDS):
            while True:
                woken.clear()
                try:
                    if check(found := await self.look(owner)):
                        return found
                except ApiUnavailable:  # the operator's queue looks again, too
                    await asyncio.sleep(POLL)
                    continue
                await woken.wait()

    async def wait(self, check: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Poll a check of a state for which no watch wakes up the test."""
        async with asyncio.timeout(SECONDS):
            while not await check():  # noqa: ASYNC110 - nothing of ours tells of it
                await asyncio.sleep(POLL)


@asynccontextmanager
async def sight(
    kubeconfig: Path, namespace: str, patience: WatchTimeouts | None = None
) -> AsyncIterator[Sight]:
    """Yield the view of a client that uses a kubeconfig."""
    configuration = kubernetes_client.Configuration()
    await kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
        config_file=str(kubeconfig), client_configuration=configuration
    )
    async with CountingApi(kubernetes_client.ApiClient(configuration)) as api:
        one = Sight(api, namespace, patience or WatchTimeouts())
        try:
            yield one
        finally:
            await one.owners.close()
    await _hung_up()


async def _hung_up() -> None:
    """Wait until all connections are closed. The loop must not end before TLS has closed them."""
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    async with asyncio.timeout(SECONDS):
        # One file descriptor is the loop's own.
        while len(selector.get_map()) > 1:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(POLL)
    await asyncio.sleep(0)
