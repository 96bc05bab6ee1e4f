"""The decisions of EphemeralStreams against an adversary: crashes, stale looks, two operators."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from support.reconcile.ephemerals import ready, spec
from support.search import WALKS, run_machine, searches, seeds
from support.simulation.ephemeral_cluster import HELPER, PREFIX, Cluster, Owner, Stream
from support.simulation.ephemeral_operator import Operator
from support.simulation.simulated import simulated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.core.reconcile.ephemeral.world import EphemeralSeen

ROUNDS = 30
NAMES = ("a", "b")
OWNERS = ("app", "load")
APP = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}
LOAD = {"apiVersion": "batch/v1", "kind": "Job", "name": "load"}
WAYS = ("background", "foreground", "orphan")
SECONDS = (0.0, 1.0, 4.0, 30.0, 70.0, 400.0)
LOST = ("", "", "", "request", "reply", "half")


def one_of(random: Random) -> dict[str, object]:
    """Make a random spec."""
    pick = random.choice
    fields: dict[str, object] = {"stream": HELPER, "adopt": pick(["Never", "IfUnowned"])}
    if not random.randrange(3):
        fields = {"stream": None, "streamPrefix": PREFIX, "claim": pick([None, "ExistingAndNew"])}
    owners = pick([[], [APP], [APP], [LOAD], [APP, LOAD]])
    fields |= {
        "owners": owners,
        "tracking": pick(["OwnerReference", "Observe"]),
        "gracePeriodSeconds": pick([0, 0, 60]),
        "maxAgeSeconds": pick([None, None, None, 500]),
        "onRelease": pick(["Delete", "Delete", "Delete", "Retain"]),
        "releaseWhen": pick(["OwnersDeleted", "OwnersFinished"]) if owners else None,
        "deletionTimeoutSeconds": pick([None, None, 120]),
    }
    return fields


@pytest.fixture(autouse=True)
def _simulated() -> Iterator[None]:
    """Run the operator at the time and with the engine of the simulation."""
    with simulated():
        yield


class Ephemerals(RuleBasedStateMachine):
    """Two resources that may claim the same streams, and all events that can happen to them."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.operators = [Operator(self.cluster)]

    @initialize(two=st.booleans())
    def begin(self, *, two: bool) -> None:
        """Start with one operator or with two."""
        if two:
            self.operators.append(Operator(self.cluster))

    @property
    def alone(self) -> bool:
        """Tell whether there was never more than one operator."""
        return len(self.operators) == 1

    def operator(self, which: int) -> Operator:
        """Return one of the operators."""
        return self.operators[which % len(self.operators)]

    # -- operators

    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES), stale=st.booleans())
    def look(self, which: int, name: str, *, stale: bool) -> None:
        """Let an operator look at a resource and decide."""
        self.operator(which).begin(name, stale=stale)

    @rule(which=st.integers(0, 1), steps=st.integers(1, 6), lost=st.sampled_from(LOST))
    def go_on(self, which: int, steps: int, lost: str) -> None:
        """Let an operator make some calls, of which one may be lost."""
        operator = self.operator(which)
        operator.lost = lost if operator.busy else ""
        for _ in range(steps):
            operator.step()

    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES), times=st.integers(1, 4))
    def settle(self, which: int, name: str, times: int) -> None:
        """Let an operator look at a resource several times and finish each look."""
        operator = self.operator(which)
        for _ in range(times):
            operator.begin(name)
            operator.finish()

    @rule(which=st.integers(0, 1))
    def crash(self, which: int) -> None:
        """End an operator between two calls and start another."""
        self.operator(which).crash()

    # -- users

    @rule(name=st.sampled_from(NAMES), seed=st.integers(0, 9999))
    def create(self, name: str, seed: int) -> None:
        """Apply a resource, as a user or GitOps does."""
        self.cluster.create(name, spec(**one_of(Random(seed))))  # noqa: S311 - a choice, no secret

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        """Delete a resource, as a user does."""
        self.cluster.delete(name)

    @rule(name=st.sampled_from(NAMES), on=st.booleans())
    def suspend(self, name: str, *, on: bool) -> None:
        """Suspend or resume a resource."""
        self.cluster.suspend(name, on=on)

    @rule(name=st.sampled_from(NAMES))
    def cut_references(self, name: str) -> None:
        """Remove Sluice's owner references, as a tool does that rewrites the metadata."""
        if not any(owner.deleting for owner in self.cluster.owners.values()):
            self.cluster.refer(name, frozenset())

    @rule(name=st.sampled_from(NAMES))
    def force_orphan(self, name: str) -> None:
        """Annotate a resource with force-orphan."""
        self.cluster.force_orphan(name)

    # -- owners

    @rule(name=st.sampled_from(OWNERS))
    def owner_comes(self, name: str) -> None:
        """Make a workload, or make it again."""
        if name not in self.cluster.owners:
            self.cluster.owners[name] = Owner(self.cluster.unique("owner"))

    @rule(name=st.sampled_from(OWNERS))
    def owner_finishes(self, name: str) -> None:
        """Let a workload finish."""
        if name in self.cluster.owners:
            self.cluster.owners[name].finished = True

    @rule(name=st.sampled_from(OWNERS), how=st.sampled_from(WAYS))
    def owner_goes(self, name: str, how: str) -> None:
        """Delete a workload."""
        if how == "background":
            self.cluster.owners.pop(name, None)
        elif name in self.cluster.owners:
            self.cluster.owners[name].deleting = how

    @rule()
    def collect(self) -> None:
        """Run Kubernetes' garbage collector."""
        self.cluster.collect()

    # -- the store and its other clients

    @rule(up=st.booleans(), there=st.booleans())
    def store(self, *, up: bool, there: bool) -> None:
        """Make the store reachable or not, or delete its StreamStore."""
        self.cluster.up, self.cluster.there = up, there or up

    @rule(name=st.sampled_from([HELPER, f"{PREFIX}1", f"{PREFIX}2"]))
    def somebody_makes(self, name: str) -> None:
        """Make a stream as an application or another client does."""
        self.cluster.streams.setdefault(name, Stream(self.cluster.tick(), foreign=True))

    @rule(how=st.sampled_from(["delete", "untag", "drift", "seal"]))
    def somebody_meddles(self, how: str) -> None:
        """Delete the stream, remove its tags, reconfigure it or seal it, as another client may."""
        found = self.cluster.streams.get(HELPER)
        if found is None:
            return
        if how == "delete":
            del self.cluster.streams[HELPER]
        elif how == "seal":
            found.sealed = True
        elif how == "untag":
            found.holder = None
        else:
            found.drifted = True

    @rule(seconds=st.sampled_from(SECONDS))
    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.cluster.clock += seconds
        if seconds:
            self.rested()

    def rested(self) -> None:
        """Forget the operators' rows of looks without a pause."""
        for operator in self.operators:
            operator.rows.clear()

    # -- invariants

    @invariant()
    def what_is_released_has_nothing_to_make(self) -> None:
        """Check that a resource whose release is complete holds no stream."""
        for one in self.cluster.seen.values():
            done = one.status.release is not None and one.status.release.completed is not None
            if done and self.alone and not one.finalizer:
                assert one.uid not in self.held()

    @invariant()
    def what_is_held_is_protected(self) -> None:
        """Check that each held stream has a resource with a finalizer, unless it was orphaned."""
        if self.alone:
            for uid in self.held() - self.cluster.orphaned:
                one = self.cluster.of(uid)
                assert one is not None
                assert one.finalizer

    def held(self) -> set[str]:
        """Return the uids of the resources that hold something in the store."""
        streams = [one for one in self.cluster.streams.values() if not one.retained]
        return {stream.holder for stream in streams if stream.holder} | set(self.cluster.markers)

    # -- the end

    def teardown(self) -> None:
        """Let all operators settle with the store up, and check where each resource ends."""
        cluster = self.cluster
        cluster.up = cluster.there = True
        for operator in self.operators:
            operator.lost = ""
            operator.finish()
        for name in NAMES:
            self.suspend(name, on=False)
        operator = self.operators[0]
        operator.crash()
        for _ in range(ROUNDS):
            cluster.collect()
            for name in NAMES:
                self.rest(operator, name)
            cluster.clock += 40
            self.rested()
        assert not cluster.deleted, "a resource is stuck terminating"
        for one in cluster.seen.values():
            self.is_where_it_belongs(one)
        if self.alone:  # an operator that was overtaken may leave a stream with our tags
            alive = {one.uid for one in cluster.seen.values() if one.status.release is None}
            assert self.held() <= alive | cluster.orphaned

    def rest(self, operator: Operator, name: str) -> None:
        """Let an operator look at a resource until it may wait."""
        while name in self.cluster.seen:
            uid = self.cluster.seen[name].uid
            operator.begin(name)
            operator.finish()
            again = operator.again.get(uid)
            if again is None or again > 1:
                return
            self.cluster.clock += again

    def is_where_it_belongs(self, one: EphemeralSeen) -> None:
        """Assert that a resource's status agrees with its owners, its finalizer and the store."""
        cluster, (status, reason) = self.cluster, ready(one.status)
        bound = {owner.uid for owner in one.status.owners if owner.uid is not None}
        if one.status.release is not None:
            assert (status, reason) == ("True", "Released")
            assert not one.finalizer
            return
        if one.spec.owners and not bound:
            assert reason == "WaitingForOwner"
            assert not any(owner.name in cluster.owners for owner in one.spec.owners)
            return
        if cluster.needed(one):
            assert reason in {"Claimed", "StreamExists", "Conflict"}, reason
            if reason == "Claimed":
                assert one.finalizer
                assert cluster.ours(one) or one.uid in cluster.markers
            elif reason == "Conflict":
                holders = {stream.holder for stream in cluster.streams.values()}
                assert ({other.uid for other in cluster.seen.values()} | holders) - {one.uid, None}
            return
        assert reason == "OwnerOrphaned"
        assert one.spec.tracking == "OwnerReference"


@searches
def test_streams_live_as_long_as_their_workload_whatever_happens() -> None:
    """Under crashes, lost calls, stale looks and users' changes, no stream leaks or is lost."""
    run_machine(Ephemerals, examples=3, steps=50)


def walk(seed: int, moves: int = 80) -> Ephemerals:
    """Return a machine after random moves, which cost less than moves that hypothesis chooses."""
    random = Random(seed)  # noqa: S311 - a walk, no secret
    machine = Ephemerals()
    which, flag = partial(random.randrange, 2), partial(random.choice, (True, False))
    name, owner = partial(random.choice, NAMES), partial(random.choice, OWNERS)
    streams = (HELPER, f"{PREFIX}1", f"{PREFIX}2")
    choices: tuple[tuple[int, Callable[[], None]], ...] = (
        (6, lambda: machine.look(which(), name(), stale=flag())),
        (8, lambda: machine.go_on(which(), 1 + random.randrange(4), random.choice(LOST))),
        (6, lambda: machine.settle(which(), name(), 1 + random.randrange(4))),
        (1, lambda: machine.crash(which())),
        (4, lambda: machine.create(name(), random.randrange(9999))),
        (1, lambda: machine.delete(name())),
        (1, lambda: machine.suspend(name(), on=flag() and flag())),
        (1, lambda: machine.cut_references(name())),
        (5, lambda: machine.owner_comes(owner())),
        (1, lambda: machine.owner_finishes(owner())),
        (2, lambda: machine.owner_goes(owner(), random.choice(WAYS))),
        (3, machine.collect),
        (1, lambda: machine.store(up=flag() or flag(), there=flag())),
        (1, lambda: machine.somebody_makes(random.choice(streams))),
        (1, lambda: machine.somebody_meddles(random.choice(("delete", "untag", "drift", "seal")))),
        (3, lambda: machine.wait(random.choice(SECONDS))),
    )
    machine.begin(two=not random.randrange(3))
    for _, move in random.choices(choices, [weight for weight, _ in choices], k=moves):
        move()
        machine.what_is_released_has_nothing_to_make()
        machine.what_is_held_is_protected()
    if not random.randrange(9):
        machine.force_orphan(name())
    return machine


@searches
@pytest.mark.parametrize("first", seeds(WALKS, WALKS))
def test_streams_live_as_long_as_their_workload_on_any_way(first: int) -> None:
    """The same holds along random walks that each run repeats. A failure's number is its seed."""
    for seed in range(first, first + WALKS):
        walk(seed).teardown()


def test_without_an_adversary_a_stream_comes_and_goes() -> None:
    """The simulation itself makes a stream and deletes it with its owner."""
    machine = Ephemerals()
    machine.cluster.create("a", spec(stream=HELPER, owners=[APP]))
    machine.settle(0, "a", times=2)
    assert machine.cluster.streams == {}
    machine.owner_comes("app")
    machine.settle(0, "a", times=3)
    assert set(machine.cluster.streams) == {HELPER}
    assert ready(machine.cluster.seen["a"].status) == ("True", "Claimed")
    machine.owner_goes("app", "background")
    machine.collect()
    machine.settle(0, "a", times=1)
    assert machine.cluster.streams == {}
    assert machine.cluster.seen == {}
