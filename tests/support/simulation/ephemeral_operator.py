"""An operator of EphemeralStreams: the real one, call by call, at a simulated cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from sluice.core.reconcile.ephemeral.world import OwnerSeen, Refer
from sluice.core.values.model import StoreHealth
from sluice.core.values.trouble import Trouble
from sluice.errors import StoreUnavailable
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import EPHEMERAL_STREAM, STREAM_STORE
from sluice.kube.api.status import StatusWriter
from sluice.kube.ephemeral.observer import EphemeralObserver
from sluice.kube.ephemeral.performer import EphemeralPerformer
from sluice.kube.ephemeral.workings import EphemeralWorkings
from sluice.kube.loop.queue import FIRST_DELAY, Key
from sluice.kube.loop.reconciler import Reconciler
from sluice.kube.stores.probes import Probed
from sluice.kube.stores.storeview import StoreView
from sluice.metrics import Metrics
from support.simulation.simulated import Calls, Stepped, SteppedApi

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from sluice.api.kinds.ephemeralstream import Owner
    from sluice.core.reconcile.ephemeral.world import EphemeralDecision
    from sluice.core.reconcile.shared.conditions import Saying
    from sluice.kube.api.events import Recorder
    from sluice.kube.api.kinds import Object
    from sluice.kube.ephemeral.observer import EphemeralSituation
    from sluice.kube.ephemeral.owners import Owners
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.probes import Probes
    from support.simulation.ephemeral_cluster import Cluster

MOST_HASTE = 12
"""Number of looks in a row without a pause from which on they count as an endless loop."""

_METRICS = Metrics()
_WATCHED = (EPHEMERAL_STREAM, STREAM_STORE)
_NO_THREADS = cast("Executor", None)


class _Workings(EphemeralWorkings):
    """The workings, with a check of each decision."""

    def decide(self, situation: EphemeralSituation) -> EphemeralDecision:
        """Decide, and check that no reference is added to an owner in deletion."""
        found = super().decide(situation)
        going = {owner.uid for owner in situation.world.owners if owner.deleting}
        for action in found.actions:
            if isinstance(action, Refer):
                assert going.isdisjoint(uid for _, uid in action.owners), "it would be collected"
        return found


class Operator:
    """One operator, which works on one resource at a time.

    Args:
        cluster: the cluster.

    Attributes:
        again: seconds until the next look by uid; None if the operator waits for an event.
        lost: fate of the next call: see Calls; `half` if a change of the store is cut off in the
            middle.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.again: dict[str, float | None] = {}
        self.rows: dict[str, int] = {}
        self.lost = ""
        self._work: Stepped[float | None] | None = None
        self._uid = ""
        self._begin()

    def _begin(self) -> None:
        """Start the operator without any knowledge."""
        self._calls = Calls()
        api = SteppedApi(self.cluster.server, self._calls).api
        self._mirror = Mirror()
        self._owners: dict[str, OwnerSeen] = {}
        owners = SimpleNamespace(look=self._look_at_owner, confirm=self._confirm_owner)
        observer = EphemeralObserver(
            api,
            self._mirror,
            cast("Owners", owners),
            StoreView(api, self._mirror, cast("Probes", SimpleNamespace(look=self._probe))),
            cast("Connections", SimpleNamespace(get=self._store)),
            cluster="c",
            threads=_NO_THREADS,
        )
        observer.blocking = cast("Any", self._calls.blocking)
        recorder = cast("Recorder", SimpleNamespace(mention=_nothing, say=self._say))
        performer = EphemeralPerformer(api, observer, recorder, _METRICS)
        workings = _Workings(observer, performer)
        self._reconciler = Reconciler(api, workings, StatusWriter(api, recorder), self._mirror)

    @property
    def busy(self) -> bool:
        """Tell whether there is work to carry out."""
        return self._work is not None

    def crash(self) -> None:
        """End the operator. Another one takes its place."""
        if self._work is not None:
            self._work.close()
        self._work, self.lost = None, ""
        self.again.clear()
        self._begin()

    def sync(self) -> None:
        """Give the watches all objects."""
        self._mirror.__init__()  # type: ignore[misc]
        for kind in _WATCHED:
            for body in self.cluster.server.all(kind):
                self._mirror.see(kind, body, gone=False)
        self._owners = {name: self._owner(name) for name in self.cluster.owners}

    def begin(self, name: str, *, stale: bool = False) -> None:
        """Begin a look at a resource, and go on to the first call.

        Args:
            name: the resource's name.
            stale: whether its watches have had no news since their last sync.
        """
        self.finish()
        if not stale:
            self.sync()
        body = self.cluster.server.body(EPHEMERAL_STREAM, name)
        self._uid = "" if body is None else body["metadata"]["uid"]
        key = Key(EPHEMERAL_STREAM.name, "default", name)
        self._work = Stepped(self._reconciler.reconcile(key), self._calls)
        self.step()

    def step(self) -> None:
        """Make the next call."""
        if self._work is None:
            return
        lost, self.lost = self.lost, ""
        self.cluster.half = lost == "half"
        if self._work.step("" if lost == "half" else lost):
            return
        again = self._work.result if self._work.error is None else FIRST_DELAY
        self._work, self.again[self._uid] = None, again
        self.rows[self._uid] = self.rows.get(self._uid, 0) + 1 if again == 0.0 else 0
        assert self.rows[self._uid] < MOST_HASTE, "an endless loop without a pause"

    def finish(self) -> None:
        """Go on until nothing is left to do."""
        while self._work is not None:
            self.step()

    # -- the operator's view

    def _owner(self, name: str) -> OwnerSeen:
        found = self.cluster.owners.get(name)
        if found is None:
            return OwnerSeen()
        return OwnerSeen(uid=found.uid, finished=found.finished, deleting=bool(found.deleting))

    async def _look_at_owner(self, owner: Owner, _: str) -> OwnerSeen:
        """See Owners.look. The watch may lag."""
        return self._owners.get(owner.name, OwnerSeen())

    async def _confirm_owner(self, owner: Owner, _: str) -> OwnerSeen:
        """See Owners.confirm."""
        return self._owner(owner.name)

    async def _store(self, *_: object) -> object:
        """See Connections.get."""
        return self.cluster

    async def _probe(self, body: Object, **_: object) -> Probed:
        """See Probes.look."""
        up = self.cluster.up
        answer = StoreHealth(latency=0.0) if up else Trouble.of(StoreUnavailable("no answer"))
        return Probed(answer, datetime.now(UTC), 0.0, body["metadata"]["uid"], 1)

    async def _say(self, body: Object, saying: Saying, **_: object) -> None:
        """See Recorder.say."""
        if saying.reason == "Orphaned":
            self.cluster.orphaned.add(body["metadata"]["uid"])


def _nothing(*_: object) -> None:
    """See Recorder.mention."""
