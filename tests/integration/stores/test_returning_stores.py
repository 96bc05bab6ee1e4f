"""The operator's probes find a store that returns, over the connections from before."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.config import Settings
from sluice.core.reconcile.store import AWAY
from sluice.core.values.model import StoreAddress, StoreHealth
from sluice.core.values.trouble import Trouble
from sluice.handlers.main import TIMEOUTS
from sluice.kube.stores.probes import Probes
from sluice.stores.connect import connect
from support.cases.resources import STORE, changed
from support.until import until

if TYPE_CHECKING:
    from localstore import Cluster
    from localstore.cluster_config import Name
    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.connections import Connections
    from sluice.stores.base import Store

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

RESOURCE: Object = changed(STORE, "metadata", {"name": "local", "namespace": "team", "uid": "u"})


class OneStore:
    """A stand-in for connections: every StreamStore leads to the same store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def place(self, *_: Any, **__: Any) -> Store:
        """Return the store, as `Connections.place` does."""
        return self._store


@pytest.mark.exhaustive
@pytest.mark.parametrize("server", ["segmentstore", "controller"])
def test_a_store_that_is_back_is_found_by_the_next_probes(cluster: Cluster, server: Name) -> None:
    """The next probes find the store, however many failed before.

    A failed probe is soon repeated.
    """
    settings = Settings(timeouts=TIMEOUTS)
    address = StoreAddress(uri=cluster.controller_uri)
    with ThreadPoolExecutor(1) as threads, closing(connect(address, settings)) as store:
        probes = Probes(cast("Connections", OneStore(store)), threads)

        def probed() -> StoreHealth | Trouble:
            found = asyncio.run(probes.look(RESOURCE, max_age=0))
            if found.is_away:
                assert found.due <= AWAY.most
            return found.answer

        assert isinstance(probed(), StoreHealth)
        cluster.kill(server)
        for _ in range(4):
            answer = probed()
            assert isinstance(answer, Trouble)
            assert answer.reason in {"StoreUnavailable", "StoreTimeout", "StoreBusy"}
        cluster.restart(server)
        cluster.wait_ready()
        until("the store is found", lambda: isinstance(probed(), StoreHealth))
