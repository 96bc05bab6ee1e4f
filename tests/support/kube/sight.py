"""Owners as the operator sees them, for tests that wait for what it sees."""

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
    """The API server, and how often it is called."""

    calls = 0

    async def _send(self, method: str, path: str, **how: Any) -> Any:
        self.calls += 1
        return await super()._send(method, path, **how)


class Sight:
    """Owners as the operator sees them, which a test waits for by being woken up."""

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
        """What is seen of an owner."""
        return await self.owners.look(owner, self.namespace)

    async def confirm(self, owner: Owner) -> OwnerSeen:
        """What the API server says of an owner."""
        return await self.owners.confirm(owner, self.namespace)

    async def until(self, owner: Owner, check: Callable[[OwnerSeen], object]) -> OwnerSeen:
        """Look each time when woken up, until an owner is as wanted."""
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
        """Until something is so that nobody is woken up for."""
        async with asyncio.timeout(SECONDS):
            while not await check():  # noqa: ASYNC110 - nothing of ours tells of it
                await asyncio.sleep(POLL)


@asynccontextmanager
async def sight(
    kubeconfig: Path, namespace: str, patience: WatchTimeouts | None = None
) -> AsyncIterator[Sight]:
    """The sight of somebody with a kubeconfig."""
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
    """Until no connection is left: TLS says goodbye, and the loop must not end before."""
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    async with asyncio.timeout(SECONDS):
        # One is the loop's own.
        while len(selector.get_map()) > 1:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(POLL)
    await asyncio.sleep(0)
