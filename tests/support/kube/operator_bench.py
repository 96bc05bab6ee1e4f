"""An operator of one resource that copies: an API server in memory, a model store."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from sluice.core.values.model import StoreHealth
from sluice.kube.api.cache import Mirror
from sluice.kube.copies.observer import CopyObserver
from sluice.kube.copies.performer import Performer
from sluice.kube.loop.settings import OperatorSettings
from sluice.kube.stores.probes import Probed
from sluice.kube.stores.storeview import StoreView
from sluice.metrics import Metrics
from sluice.stores.allowance import Allowance
from support.kube.finalizing import FinalizingServer
from support.model import World

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from sluice.core.reconcile.shared.conditions import Saying
    from sluice.kube.api.events import Recorder
    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.probes import Probes


class OperatorBench:
    """An observer and a performer for one resource. The bench stands in for connections and events.

    Args:
        threads: threads for calls to stores.

    Attributes:
        server: the API server.
        world: the store's contents.
        said: events.
        metrics: the operator's metrics.
        observer, performer: the operator's.
    """

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self.server, self.world = FinalizingServer(), World()
        self.said: list[tuple[str, str]] = []
        self.metrics = Metrics()
        self._threads = threads
        self._probes = SimpleNamespace(look=self._probed)

    def begin(self) -> None:
        """Replace the operator with a new one, which remembers nothing."""
        settings, mirror = OperatorSettings(image="i"), Mirror()
        self.observer = CopyObserver(
            self.server.api,
            mirror,
            cast("Connections", self),
            StoreView(self.server.api, mirror, cast("Probes", self._probes)),
            settings=settings,
            cluster="c",
            threads=self._threads,
            allowance=Allowance(),
        )
        self.performer = Performer(
            self.server.api, self.observer, cast("Recorder", self), self.metrics, settings
        )

    async def say(self, _: Object, saying: Saying, **__: object) -> None:
        """See Recorder.say."""
        self.said.append((saying.reason, saying.message))

    async def _probed(self, *_: object, **__: object) -> Probed:
        return Probed(StoreHealth(latency=0.0, protocol=1), datetime.now(UTC), 0.0, "u", 1)
