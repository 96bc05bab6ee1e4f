"""An operator in memory: it looks after EphemeralStreams on a simulated cluster, call by call."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice.api.ephemeral_status import EphemeralStreamStatus
from sluice.api.status import ConditionType
from sluice.core.reconcile.ephemeral import after_ephemeral_failure, asks_store, reconcile_ephemeral
from sluice.core.reconcile.ephemeral_holding import SUCCESSOR_SECONDS
from sluice.core.reconcile.ephemeral_world import (
    Abandon,
    Adopt,
    Configure,
    EphemeralSeen,
    EphemeralWorld,
    Make,
    OwnerSeen,
    Protect,
    Refer,
    Release,
    Rival,
    Unprotect,
)
from sluice.core.trouble import Trouble
from sluice.errors import (
    ApiUnavailable,
    InfrastructureError,
    SluiceError,
    StoreUnavailable,
    StreamExists,
)
from support.copies import NOW
from support.ephemeral_cluster import Cluster, Stream
from support.ephemerals import AWAY, STORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.core.claim import Holding
    from sluice.core.reconcile.ephemeral_world import EphemeralAction, EphemeralDecision


MOST_HASTE = 12
"""Looks in a row without a pause that are no endless loop yet."""


@dataclass
class Operator:
    """One operator, which works on one resource at a time.

    Attributes:
        cluster: where.
        work: what it is at, one call a step.
        again: by uid, when it looks again; None where it waits for an event.
        lost: the next call fails: `request` before, `reply` after it was done.
        stale: what it remembers of the store and of the owners, by the resource's uid.
    """

    cluster: Cluster
    work: Iterator[None] | None = None
    again: dict[str, float | None] = field(default_factory=dict)
    lost: str = ""
    stale: dict[str, tuple[Holding | None, tuple[OwnerSeen, ...]]] = field(default_factory=dict)
    looked: float = 0.0

    def crash(self) -> None:
        """It ends; another begins in its place."""
        self.work, self.lost = None, ""
        self.stale.clear()
        self.again.clear()

    def step(self) -> None:
        """Make the next call."""
        if self.work is not None and next(self.work, self) is self:
            self.work = None

    def finish(self) -> None:
        """Go on until nothing is left to do."""
        while self.work is not None:
            self.step()

    def begin(self, name: str, *, stale: bool = False) -> None:
        """Begin to look at a resource."""
        self.finish()
        self.work = self._cycle(name, stale=stale)
        self.step()

    def _call(self, do: Callable[[], None], *, store: bool = False) -> None:
        """One call, which may be lost."""
        lost, self.lost = self.lost, ""
        error = StoreUnavailable("no answer") if store else ApiUnavailable("no answer")
        if lost == "request" or (store and not (self.cluster.up and self.cluster.there)):
            raise error
        do()
        if lost == "reply":
            raise error

    def _cycle(self, name: str, *, stale: bool) -> Iterator[None]:
        cluster = self.cluster
        if name not in cluster.seen:
            return
        version, self.looked = cluster.versions[name], cluster.clock
        seen = cluster.seen[name]
        if name in cluster.deleted:
            seen = replace(seen, deleted=cluster.clock - cluster.deleted[name])
        world = self._world(seen, stale=stale)
        decision = reconcile_ephemeral(seen, world)
        going = {owner.uid for owner in world.owners if owner.deleting}
        for action in decision.actions:
            if isinstance(action, Refer):
                assert going.isdisjoint(uid for _, uid in action.owners), "it would be collected"
        yield
        if not self._write(name, seen.uid, decision, version=version):
            self.again[seen.uid] = 0.1
            return
        yield
        again = decision.again
        for action in decision.actions:
            try:
                yield from self._perform(seen, action)
            except SluiceError as error:
                written = replace(seen, status=decision.status)
                after = after_ephemeral_failure(written, world, Trouble.of(error))
                again = after.again
                if self._write(name, seen.uid, after):
                    for more in after.actions:
                        yield from self._perform(seen, more)
                break
        self.again[seen.uid] = again
        rows = cluster.rows
        rows[seen.uid] = rows.get(seen.uid, 0) + 1 if again == 0.0 else 0
        assert rows[seen.uid] < MOST_HASTE, "an endless loop without a pause"

    def _world(self, seen: EphemeralSeen, *, stale: bool) -> EphemeralWorld:
        cluster = self.cluster
        now = NOW + timedelta(seconds=cluster.clock)
        owners = tuple(self._owner(seen, index) for index in range(len(seen.spec.owners)))
        known = self.stale.get(seen.uid)
        if stale and known is not None:
            # What is not there, or is finished, is looked for once more; what is there is not.
            owners = tuple(
                now_seen
                if was.uid is None or was.finished
                else replace(was, deleting=now_seen.deleting)
                for was, now_seen in zip(known[1], owners, strict=True)
            )
        ready = STORE if cluster.up else AWAY
        world = EphemeralWorld(
            now=now,
            store=ready if cluster.there else None,
            owners=() if seen.deleted is not None and seen.spec.stream is not None else owners,
            rival=None if seen.deleted is not None else self._rival(seen),
        )
        holding = None
        if asks_store(seen, world):
            fresh = not stale or seen.status.release is not None
            if not fresh and known is not None and known[0] is not None:
                holding = known[0]
            elif cluster.up and cluster.there:
                holding = cluster.ask(seen)
            trouble = None if holding else Trouble.of(StoreUnavailable("no answer"))
            world = replace(world, holding=holding, trouble=trouble)
        self.stale[seen.uid] = (holding, owners)
        return world

    def _owner(self, seen: EphemeralSeen, index: int) -> OwnerSeen:
        found = self.cluster.owners.get(seen.spec.owners[index].name)
        if found is None:
            return OwnerSeen()
        return OwnerSeen(uid=found.uid, finished=found.finished, deleting=bool(found.deleting))

    def _rival(self, seen: EphemeralSeen) -> Rival | None:
        cluster = self.cluster
        older = [
            one
            for one in cluster.seen.values()
            if (one.created, one.uid) < (seen.created, seen.uid)
            and one.status.release is None
            and one.finalizer
            and _has_claimed(one.status)
        ]
        if not older:
            return None
        found = min(older, key=lambda one: (one.created, one.uid))
        grace = None
        if found.name in cluster.deleted:
            gone = cluster.clock - cluster.deleted[found.name]
            grace = max(0.0, found.spec.grace_period_seconds - gone)
        return Rival(name=found.name, uid=found.uid, grace=grace)

    def _write(
        self, name: str, uid: str, decision: EphemeralDecision, *, version: int | None = None
    ) -> bool:
        """Write the status; False where the object is another by now."""
        cluster = self.cluster
        there = cluster.seen.get(name)
        if there is None or there.uid != uid or version not in {None, cluster.versions[name]}:
            return False
        status = EphemeralStreamStatus.read(decision.status.dump())
        assert status == decision.status, "a status reads back as it was written"
        if status.release is not None and there.status.release is None:
            assert cluster.aged(there) or not cluster.needed(there), "released while it is needed"
        if status != there.status:
            cluster.edit(name, status=status)
        return True

    def _perform(  # noqa: C901 - one case an action
        self, seen: EphemeralSeen, action: EphemeralAction
    ) -> Iterator[None]:
        """As the performer does it, one call a step."""
        cluster, name = self.cluster, seen.name
        live = cluster.of(seen.uid)
        match action:
            case Protect():
                if live is None or (name in cluster.deleted and not live.finalizer):
                    raise InfrastructureError("it was deleted meanwhile")
                self._call(lambda: cluster.edit(name, finalizer=True))
            case Unprotect():
                if live is not None:
                    self._call(lambda: cluster.edit(name, finalizer=False))
            case Refer(owners):
                uids = {uid for _, uid in owners}
                if live is not None and live.references == seen.references:
                    self._call(lambda: cluster.edit(name, references=seen.references | uids))
            case Abandon():
                cluster.orphaned.add(seen.uid)
            case Make():
                self.stale.pop(seen.uid, None)
                self._call(lambda: self._make(seen), store=True)
            case Adopt(predecessor):
                self.stale.pop(seen.uid, None)
                self._call(lambda: self._adopt(seen, predecessor), store=True)
            case Configure():
                self.stale.pop(seen.uid, None)
                found = cluster.streams.get(str(seen.spec.stream))
                if found is not None and found.holder == seen.uid and not found.sealed:
                    self._call(lambda: setattr(found, "drifted", False), store=True)
            case Release(delete, watch):
                self.stale.pop(seen.uid, None)
                yield from self._release(seen, delete=delete, watch=watch)
        yield

    def _make(self, seen: EphemeralSeen) -> None:
        cluster, name = self.cluster, seen.spec.stream
        if name is None:
            cluster.markers.setdefault(seen.uid, cluster.tick())
        elif name not in cluster.streams:
            cluster.streams[name] = Stream(cluster.tick(), holder=seen.uid)
        elif cluster.streams[name].holder != seen.uid:
            raise StreamExists("somebody else was faster")

    def _adopt(self, seen: EphemeralSeen, predecessor: str | None) -> None:
        assert seen.spec.adopt == "IfUnowned"
        found = self.cluster.streams.get(str(seen.spec.stream))
        late = self.cluster.clock - self.looked > SUCCESSOR_SECONDS
        if found is None or found.holder not in {predecessor, seen.uid} or (predecessor and late):
            raise StreamExists("it is not there for us any more")
        if found.sealed:
            raise StreamExists("it is sealed")
        found.holder, found.foreign, found.drifted = seen.uid, False, True

    def _release(self, seen: EphemeralSeen, *, delete: bool, watch: bool) -> Iterator[None]:
        """Seal and delete what is ours, or take our tags away; then the marker."""
        cluster = self.cluster
        for name in cluster.ours(seen) if delete or seen.spec.stream is not None else ():
            stream = cluster.streams[name]
            if delete:
                self._call(lambda stream=stream: setattr(stream, "sealed", True), store=True)
                yield
                self._call(lambda name=name, it=stream: self._delete(seen, name, it), store=True)
            elif stream.sealed:
                stream.retained = True
            else:
                self._call(lambda stream=stream: setattr(stream, "holder", None), store=True)
            yield
        if not watch:
            self._call(lambda: cluster.markers.pop(seen.uid, None) and None, store=True)

    def _delete(self, seen: EphemeralSeen, name: str, stream: Stream) -> None:
        cluster, live = self.cluster, self.cluster.of(seen.uid)
        if cluster.streams.get(name) is not stream:
            return
        assert stream.holder in {None, seen.uid}, "the stream was given to another"
        assert not (stream.foreign and seen.spec.stream is not None), "the stream is not ours"
        if live is not None and live.name not in cluster.deleted:
            assert live.status.release is not None, "deleted while the resource is there"
        del cluster.streams[name]


def _has_claimed(status: EphemeralStreamStatus) -> bool:
    """Whether a resource has proved itself in the store; see `kube.rivals`."""
    ready = status.condition(ConditionType.READY)
    known = status.streams or status.created_milliseconds is not None
    return bool(known) or (ready is not None and ready.status == "True")
