"""A cluster and a store in memory, in which operators handle EphemeralStreams step by step.

It has EphemeralStreams `a` and `b` that may claim the same streams, owners that come and go,
Kubernetes' garbage collector, and streams with tags and creation times. A claim acts in the store
by the contract of `sluice.core.claims.claim`; `engine.claims.claims` has its own tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice.api.kinds.ephemeralstream import EphemeralStream
from sluice.core.claims.claim import Holding, Ownership
from sluice.errors import StoreUnavailable, StreamExists
from sluice.kube.api.kinds import EPHEMERAL_STREAM, STREAM_STORE
from sluice.kube.api.objects import FORCE_ORPHAN, ephemeral_seen, parse
from support.cases import resources
from support.kube.api_server import ApiServer
from support.reconcile.copies import NOW
from support.simulation.simulated import CLOCK

if TYPE_CHECKING:
    from sluice.api.kinds.ephemeralstream import EphemeralStreamSpec
    from sluice.core.claims.claim import Claim
    from sluice.core.reconcile.ephemeral.world import EphemeralSeen
    from sluice.kube.api.kinds import Object


PREFIX = "app-"
HELPER = "app-helper"


@dataclass
class Stream:
    """A stream: its creation time by a counter, its holder, and its state.

    A stream that was sealed when it was retained keeps its tags, since a store cannot change it.
    """

    created: int
    holder: str | None = None
    foreign: bool = False
    sealed: bool = False
    drifted: bool = False
    retained: bool = False


@dataclass
class Owner:
    """A workload. `deleting` is the way of its deletion while it still exists."""

    uid: str
    finished: bool = False
    deleting: str = ""


class Cluster:
    """The API server, the owners, the store, and the reports on remains.

    Attributes:
        server: the API server.
        owners: the owners by name.
        streams: the streams by name.
        markers: markers of claims to prefixes, by the uid of the resource.
        orphaned: uids of resources that were reported to leave remains behind.
        up: whether the store answers.
        half: whether the next change of the store is cut off in the middle.
    """

    def __init__(self) -> None:
        self.server = ApiServer()
        self.server.clock = lambda: CLOCK.now
        self.server.changed = self._look
        self.owners: dict[str, Owner] = {}
        self.streams: dict[str, Stream] = {}
        self.markers: dict[str, int] = {}
        self.orphaned: set[str] = set()
        self.up, self.half = True, False
        self._number = 0
        self._born: dict[str, tuple[str, int]] = {}
        self._known: dict[str, tuple[str, EphemeralSeen]] = {}
        self._released: set[str] = set()
        self.clock = 0.0
        self.there = True

    # -- time and numbers

    @property
    def clock(self) -> float:
        """The seconds since the simulation began."""
        return (CLOCK.now - NOW).total_seconds()

    @clock.setter
    def clock(self, seconds: float) -> None:
        CLOCK.now = NOW + timedelta(seconds=seconds)

    def tick(self) -> int:
        """Return the store's time, which is never the same twice."""
        self._number += 1
        return self._number

    def unique(self, what: str) -> str:
        """Return a new uid."""
        return f"{what}-{self.tick()}"

    # -- the API server

    @property
    def there(self) -> bool:
        """Tell whether there is a StreamStore."""
        return self.server.body(STREAM_STORE, "local") is not None

    @there.setter
    def there(self, there: bool) -> None:
        if not there:
            self.server.destroy(STREAM_STORE, "local")
        elif not self.there:
            meta = {"name": "local", "namespace": "default", "generation": 1}
            self.server.put(STREAM_STORE, resources.STORE | {"metadata": meta})

    @property
    def seen(self) -> dict[str, EphemeralSeen]:
        """The present EphemeralStreams, by name."""
        return {one["metadata"]["name"]: self._read(one) for one in self._all()}

    @property
    def deleted(self) -> set[str]:
        """The names of the EphemeralStreams that are being deleted."""
        return {name for name, one in self.seen.items() if one.deleted is not None}

    def create(self, name: str, spec: EphemeralStreamSpec) -> None:
        """Apply a resource."""
        if self.server.body(EPHEMERAL_STREAM, name) is None:
            uid = self.unique(name)
            self._born[uid] = (name, self.tick())
            meta = {
                "name": name,
                "uid": uid,
                "generation": 1,
                "creationTimestamp": CLOCK.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "annotations": {},
            }
            fields = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
            body = resources.EPHEMERAL | {"metadata": meta, "spec": fields}
            self.server.put(EPHEMERAL_STREAM, body)

    def delete(self, name: str) -> None:
        """Delete a resource, as a user or the garbage collector does."""
        self.server.remove(EPHEMERAL_STREAM, name)

    def suspend(self, name: str, *, on: bool) -> None:
        """Suspend a resource, or resume it."""
        body = self.server.body(EPHEMERAL_STREAM, name)
        if body is not None:
            generation = {"generation": body["metadata"]["generation"] + 1}
            spec = body["spec"] | {"suspend": on}
            self.server.edit(EPHEMERAL_STREAM, name, spec=spec, metadata=generation)

    def force_orphan(self, name: str) -> None:
        """Set the annotation that skips the wait."""
        if self.server.body(EPHEMERAL_STREAM, name) is not None:
            notes = {"annotations": {FORCE_ORPHAN: "true"}}
            self.server.edit(EPHEMERAL_STREAM, name, metadata=notes)

    def refer(self, name: str, uids: frozenset[str]) -> None:
        """Leave a resource only these owner references, as a user or garbage collector does."""
        body = self.server.body(EPHEMERAL_STREAM, name)
        if body is not None:
            owners = body["metadata"].get("ownerReferences") or ()
            kept = [one for one in owners if one["uid"] in uids]
            self.server.edit(EPHEMERAL_STREAM, name, metadata={"ownerReferences": kept})

    def collect(self) -> None:
        """Run one round of Kubernetes' garbage collector."""
        for owner in list(self.owners):
            how = self.owners[owner].deleting
            if how == "foreground":
                del self.owners[owner]
            elif how == "orphan":
                uid = self.owners[owner].uid
                held = [one for one in self.seen.values() if uid in one.references]
                for one in held[:1]:
                    self.refer(one.name, one.references - {uid})
                if not held:
                    del self.owners[owner]
        alive = {owner.uid for owner in self.owners.values()}
        for one in self.seen.values():
            if one.references & alive and one.references - alive:
                self.refer(one.name, one.references & alive)
            elif one.references - alive:
                self.delete(one.name)

    def of(self, uid: str) -> EphemeralSeen | None:
        """Return the resource of a uid, with its status."""
        return next((one for one in self.seen.values() if one.uid == uid), None)

    def needed(self, one: EphemeralSeen) -> bool:
        """Tell whether a bound owner is there and at work, or no owner is wanted."""
        bound = {owner.uid for owner in one.status.owners}
        working = [
            owner
            for owner in self.owners.values()
            if owner.uid in bound
            and not (owner.finished and one.spec.release_when == "OwnersFinished")
        ]
        return not one.spec.owners or bool(working)

    def aged(self, one: EphemeralSeen) -> bool:
        """Tell whether a resource has reached its age."""
        age = (CLOCK.now - one.created).total_seconds()
        return one.spec.max_age_seconds is not None and age >= one.spec.max_age_seconds

    def _all(self) -> list[Object]:
        return self.server.all(EPHEMERAL_STREAM)

    def _read(self, body: Object) -> EphemeralSeen:
        """Return a resource as it is, read once a version, and anew while it is being deleted."""
        meta = body["metadata"]
        known = self._known.get(meta["name"])
        if known is not None and known[0] == meta["resourceVersion"] and not known[1].deleted:
            return known[1]
        found = ephemeral_seen(body, parse(body, EphemeralStream))
        written = body.get("status")
        assert not written or found.status.dump() == written, "a status reads back as written"
        self._known[meta["name"]] = (meta["resourceVersion"], found)
        return found

    def _look(self) -> None:
        """Check that no resource is released while it is needed."""
        for body in self._all():
            uid = body["metadata"]["uid"]
            if uid not in self._released and (body.get("status") or {}).get("release"):
                self._released.add(uid)
                one = self._read(body)
                assert self.aged(one) or not self.needed(one), "released while it is needed"

    # -- the store, as `engine.claims.claims`

    def look(self, claim: Claim, _: object = None) -> Holding:
        """Return the store's answer about a claim."""
        self._reach()
        mine = tuple(self._claimed(claim))
        if claim.stream is None:
            marked = claim.claimant.uid in self.markers
            whose = Ownership.OURS if marked else Ownership.ABSENT
            return Holding(scope=True, marked=marked, ownership=whose, streams=mine)
        found = self.streams.get(claim.stream)
        if found is None:
            return Holding(scope=True)
        if mine:
            whose = Ownership.OURS
        else:
            whose = Ownership.UNOWNED if found.holder is None else Ownership.OTHERS
        holder = found.holder if whose is Ownership.OTHERS else None
        name = "" if holder is None else self._born[holder][0]
        return Holding(
            scope=True,
            ownership=whose,
            streams=mine,
            created=found.created,
            holder=found.holder or "",
            holder_uid=holder,
            holder_resource=f"default/{name}",
            drift=("scaling is another",) if mine and found.drifted else (),
        )

    def make(self, claim: Claim, _store: object, _now: int) -> None:
        """Make a stream or a marker."""
        self._reach()
        uid = claim.claimant.uid
        if claim.stream is None:
            self.markers.setdefault(uid, self.tick())
        elif claim.stream not in self.streams:
            self.streams[claim.stream] = Stream(self.tick(), holder=uid)
        elif self.streams[claim.stream].holder != uid:
            raise StreamExists("another client was faster")

    def adopt(self, claim: Claim, _store: object, predecessor: str | None) -> None:
        """Take a stream that has no holder, or none any more."""
        self._reach()
        found, uid = self.streams.get(str(claim.stream)), claim.claimant.uid
        if found is None or found.holder not in {predecessor, uid}:
            raise StreamExists("it is not there for us any more")
        if found.sealed:
            raise StreamExists("it is sealed")
        found.holder, found.foreign, found.drifted = uid, False, True

    def configure(self, claim: Claim, _: object) -> None:
        """Give a stream of the claim the wanted configuration."""
        self._reach()
        found = self.streams.get(str(claim.stream))
        if found is not None and found.holder == claim.claimant.uid and not found.sealed:
            found.drifted = False

    def release(self, claim: Claim, _: object, *, delete: bool, watch: bool) -> int:
        """Seal and delete the claim's streams, or remove its tags; then delete the marker."""
        self._reach()
        names = self._claimed(claim) if delete or claim.stream is not None else []
        for name in names:
            stream = self.streams[name]
            if delete:
                stream.sealed = True
                self._cut_off()
                self._drop(claim, name, stream)
            elif stream.sealed:
                stream.retained = True
            else:
                stream.holder = None
            self._cut_off()
        if not watch:
            self.markers.pop(claim.claimant.uid, None)
        return len(names)

    def ours(self, one: EphemeralSeen) -> list[str]:
        """Return the streams of a resource."""
        spec, known = one.spec, one.status.created_milliseconds
        return self._of(one.uid, spec.stream, known, existing=spec.claim == "ExistingAndNew")

    def _claimed(self, claim: Claim) -> list[str]:
        return self._of(claim.claimant.uid, claim.stream, claim.known, existing=claim.existing)

    def _of(self, uid: str, name: str | None, known: int | None, *, existing: bool) -> list[str]:
        if name is not None:
            found = self.streams.get(name)
            mine = found is not None and (
                found.holder == uid or (found.holder is None and found.created == known)
            )
            return [name] if mine else []
        if uid not in self.markers:
            return []
        since = 0 if existing else self._born[uid][1]
        return sorted(
            one
            for one, stream in self.streams.items()
            if stream.holder is None and stream.created > since
        )

    def _drop(self, claim: Claim, name: str, stream: Stream) -> None:
        live = self.of(claim.claimant.uid)
        assert stream.holder in {None, claim.claimant.uid}, "the stream was given to another"
        assert not (stream.foreign and claim.stream is not None), "the stream is not ours"
        if live is not None and live.deleted is None:
            assert live.status.release is not None, "deleted while the resource is there"
        del self.streams[name]

    def _reach(self) -> None:
        if not (self.up and self.there):
            raise StoreUnavailable("no answer")

    def _cut_off(self) -> None:
        half, self.half = self.half, False
        if half:
            raise StoreUnavailable("no answer")
