"""A cluster and a store in memory, in which operators look after EphemeralStreams step by step.

As little as the decisions can notice: EphemeralStreams `a` and `b` that may claim the same, owners
that come and go, Kubernetes' garbage collector, and streams with tags and creation times. Each step
of an operator is one call of the API server or the store; a crash or another operator may come
between any two. What an action does in a store is taken from the contract of `sluice.core.claim`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice.api.ephemeral_status import EphemeralStreamStatus
from sluice.core.claim import Holding, Ownership
from sluice.core.reconcile.ephemeral_world import EphemeralSeen
from support.copies import NOW

if TYPE_CHECKING:
    from sluice.api.ephemeralstream import EphemeralStreamSpec


PREFIX = "app-"
HELPER = "app-helper"


@dataclass
class Stream:
    """A stream: who has it, when it was made, by a counter that is its time, and by whom.

    One that was retained when it was sealed keeps its tags: a store changes nothing of it.
    """

    created: int
    holder: str | None = None
    foreign: bool = False
    sealed: bool = False
    drifted: bool = False
    retained: bool = False


@dataclass
class Owner:
    """A workload; `deleting` says how it is deleted while it is there still."""

    uid: str
    finished: bool = False
    deleting: str = ""


@dataclass
class Cluster:
    """The API server's objects, the store, and what was said of what was left behind."""

    seen: dict[str, EphemeralSeen] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    deleted: dict[str, float] = field(default_factory=dict)
    owners: dict[str, Owner] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    markers: dict[str, int] = field(default_factory=dict)
    orphaned: set[str] = field(default_factory=set)
    rows: dict[str, int] = field(default_factory=dict)
    up: bool = True
    there: bool = True
    clock: float = 0.0
    number: int = 0

    def unique(self, what: str) -> str:
        """A uid."""
        self.number += 1
        return f"{what}-{self.number}"

    def tick(self) -> int:
        """The store's time, which is never the same twice."""
        self.number += 1
        return self.number

    # -- the API server

    def create(self, name: str, spec: EphemeralStreamSpec) -> None:
        """Somebody applies a resource."""
        if name not in self.seen:
            self.seen[name] = EphemeralSeen(
                name=name,
                namespace="team",
                uid=self.unique(name),
                generation=1,
                created=NOW + timedelta(seconds=int(self.clock)),
                spec=spec,
                status=EphemeralStreamStatus(),
            )
            self.versions[name] = self.tick()

    def edit(self, name: str, **changes: object) -> None:
        """Something about a resource changes; it goes when it is deleted and nothing holds it."""
        if name in self.seen:
            self.seen[name] = replace(self.seen[name], **changes)  # type: ignore[arg-type]
            self.versions[name] = self.tick()
            if name in self.deleted and not self.seen[name].finalizer:
                del self.seen[name], self.versions[name], self.deleted[name]

    def delete(self, name: str) -> None:
        """Somebody, or the garbage collector, deletes a resource."""
        if name in self.seen and name not in self.deleted:
            self.deleted[name] = self.clock
            self.edit(name)

    def collect(self) -> None:
        """Kubernetes' garbage collector goes around once."""
        for owner in list(self.owners):
            how = self.owners[owner].deleting
            if how == "foreground":
                del self.owners[owner]
            elif how == "orphan":
                uid = self.owners[owner].uid
                held = [name for name, one in self.seen.items() if uid in one.references]
                for name in held[:1]:
                    self.edit(name, references=self.seen[name].references - {uid})
                if not held:
                    del self.owners[owner]
        alive = {owner.uid for owner in self.owners.values()}
        for name, one in list(self.seen.items()):
            if one.references & alive and one.references - alive:
                self.edit(name, references=one.references & alive)
            elif one.references - alive:
                self.delete(name)

    def of(self, uid: str) -> EphemeralSeen | None:
        """The resource of a uid, with its status."""
        return next((one for one in self.seen.values() if one.uid == uid), None)

    def needed(self, one: EphemeralSeen) -> bool:
        """Whether an owner that was bound is there and at work, or none is wanted."""
        bound = {owner.uid for owner in one.status.owners}
        working = [
            owner
            for owner in self.owners.values()
            if owner.uid in bound
            and not (owner.finished and one.spec.release_when == "OwnersFinished")
        ]
        return not one.spec.owners or bool(working)

    def aged(self, one: EphemeralSeen) -> bool:
        """Whether a resource has reached its age."""
        age = self.clock - (one.created - NOW).total_seconds()
        return one.spec.max_age_seconds is not None and age >= one.spec.max_age_seconds

    # -- the store

    def ours(self, one: EphemeralSeen) -> list[str]:
        """The streams that are a resource's."""
        if one.spec.stream is not None:
            found = self.streams.get(one.spec.stream)
            known = one.status.created_milliseconds
            mine = found is not None and (
                found.holder == one.uid or (found.holder is None and found.created == known)
            )
            return [one.spec.stream] if mine else []
        if one.uid not in self.markers:
            return []
        since = 0 if one.spec.claim == "ExistingAndNew" else int(one.uid.split("-")[1])
        return sorted(
            name
            for name, stream in self.streams.items()
            if stream.holder is None and stream.created > since
        )

    def ask(self, one: EphemeralSeen) -> Holding:
        """What the store says about a claim."""
        mine = tuple(self.ours(one))
        if one.spec.stream is None:
            marked = one.uid in self.markers
            whose = Ownership.OURS if marked else Ownership.ABSENT
            return Holding(scope=True, marked=marked, ownership=whose, streams=mine)
        found = self.streams.get(one.spec.stream)
        if found is None:
            return Holding(scope=True)
        drift = ("scaling is another",) if found.drifted else ()
        if mine:
            whose = Ownership.OURS
        else:
            whose = Ownership.UNOWNED if found.holder is None else Ownership.OTHERS
        return Holding(
            scope=True,
            ownership=whose,
            streams=mine,
            created=found.created,
            holder=found.holder or "",
            holder_uid=found.holder if whose is Ownership.OTHERS else None,
            drift=drift if mine else (),
        )
