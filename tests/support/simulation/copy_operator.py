"""An operator of one copy: the real one, call by call, at a simulated cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from sluice.core.values.model import StoreHealth
from sluice.core.values.trouble import Trouble
from sluice.errors import StoreUnavailable
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import JOB, POD, STREAM_STORE
from sluice.kube.api.status import StatusWriter
from sluice.kube.copies.observer import CopyObserver
from sluice.kube.copies.performer import Performer
from sluice.kube.copies.workings import CopyWorkings
from sluice.kube.loop.queue import FIRST_DELAY, Key
from sluice.kube.loop.reconciler import Reconciler
from sluice.kube.stores.probes import Probed
from sluice.kube.stores.storeview import StoreView
from sluice.metrics import Metrics
from sluice.stores.allowance import Allowance
from support.kube.api_server import Change
from support.simulation.simulated import Calls, Place, Stepped, SteppedApi

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from sluice.core.reconcile.shared.conditions import Saying
    from sluice.core.values.model import StoreAddress
    from sluice.kube.api.events import Recorder
    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.probes import Probes
    from support.simulation.copy_cluster import Cluster

_METRICS = Metrics()
_WATCHED = {kind.name: kind for kind in (JOB, POD, STREAM_STORE)}
_NO_THREADS = cast("Executor", None)


class Operator:
    """One operator, which works on the copy one call at a time.

    Args:
        cluster: the cluster.

    Attributes:
        again: seconds until its next look.
        hopeful: whether it takes the stores for ready, as a minute-old answer may say.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.again: float | None = 0.0
        self.hopeful = False
        self._heard: int | None = None
        self._work: Stepped[float | None] | None = None
        self._begin()

    def _begin(self) -> None:
        """Start the operator without any knowledge or news."""
        cluster, settings = self.cluster, self.cluster.settings
        self._calls = Calls()
        api = SteppedApi(cluster.server, self._calls).api
        self._mirror, self._heard = Mirror(), None
        observer = CopyObserver(
            api,
            self._mirror,
            cast("Connections", SimpleNamespace(place=self._place)),
            StoreView(api, self._mirror, cast("Probes", SimpleNamespace(look=self._probe))),
            settings=settings,
            cluster="c",
            threads=_NO_THREADS,
            allowance=Allowance(),
        )
        observer.blocking = cast("Any", self._calls.blocking)
        recorder = cast("Recorder", SimpleNamespace(mention=_nothing, say=self._say))
        performer = Performer(api, observer, recorder, _METRICS, settings)
        workings = CopyWorkings(cluster.kind, observer, performer, _METRICS)
        self._reconciler = Reconciler(api, workings, StatusWriter(api, recorder), self._mirror)

    @property
    def busy(self) -> bool:
        """Tell whether there is work to carry out."""
        return self._work is not None

    def crash(self) -> None:
        """End the operator. Another one takes its place, with the present settings."""
        if self._work is not None:
            self._work.close()
        self._work, self.again = None, 0.0
        self._begin()

    def sync(self, most: int | None = None) -> None:
        """Give the watches all objects at first, later the next `most` news, or all."""
        server = self.cluster.server
        if self._heard is None:
            news = [Change(kind, body, gone=False) for (kind, *_), body in server.objects.items()]
            self._heard = len(server.news)
        else:
            news = server.news[self._heard :][:most]
            self._heard += len(news)
        for change in news:
            if change.kind in _WATCHED:
                self._mirror.see(_WATCHED[change.kind], change.body, gone=change.gone)

    def look(self, *, ready: bool = False) -> None:
        """Begin a look at the copy, and go on to the first call.

        Args:
            ready: whether it takes the stores for ready, as a minute-old answer may say.
        """
        self.again, self.hopeful = None, ready
        key = Key(self.cluster.kind.name, "default", self.cluster.name)
        self._work = Stepped(self._reconciler.reconcile(key), self._calls)
        self.step()

    def step(self, *, lost: str = "") -> None:
        """Make the next call.

        Args:
            lost: the call's fate; see Calls.
        """
        assert self._work is not None
        if self._work.step(lost):
            return
        self.again = self._work.result if self._work.error is None else FIRST_DELAY
        self._work = None

    async def _place(self, namespace: str, address: StoreAddress) -> Place:
        """See Connections.place."""
        known = {_uri(one) for one in (self.cluster.target, *self.cluster.sources)}
        assert namespace == self.cluster.space
        assert address.uri in known, "it connects to a stranger"
        return self.cluster.place

    async def _probe(self, body: Object, **_: object) -> Probed:
        """See Probes.look."""
        store = self.cluster.store
        up = store.target if body["metadata"]["name"] == "local" else store.source
        there = StoreHealth(latency=0.0, protocol=1)
        answer = there if up or self.hopeful else Trouble.of(StoreUnavailable("no answer"))
        return Probed(answer, datetime.now(UTC), 0.0, body["metadata"]["uid"], 1)

    async def _say(self, _: Object, saying: Saying, **__: object) -> None:
        """See Recorder.say."""
        self.cluster.orphaned |= saying.reason == "Orphaned"


def _nothing(*_: object) -> None:
    """See Recorder.mention."""


def _uri(source: Object) -> str:
    spec = source["spec"]
    if "s3" in spec:
        return f"s3://{spec['s3']['bucket']}"
    if "volume" in spec:
        return f"volume://{spec['volume']['claimName']}"
    uri: str = spec["pravega"]["controllerURI"]
    return uri
