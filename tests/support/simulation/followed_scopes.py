"""A ScopeCopy that follows its streams, and its adversary.

Streams grow, appear later, vanish, and fail. Each stream has its own state in the stores. A stream
that fails or vanishes holds up no other stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from sluice.core.follow.lag import Age, Followed, FollowedStreams, StreamLag
from sluice.core.scope.progress import Progress
from sluice.core.scope.scope import StreamState
from sluice.core.values.wish import Wish
from sluice.core.workloads.answers import Following, Planned, ScopeEnded
from sluice.errors import (
    DigestMismatch,
    SourceNotFound,
    StoreUnavailable,
    TargetExists,
)
from support.reconcile import scope_copies
from support.reconcile.followed_scopes import FOLLOW
from support.simulation.copy_store import located
from support.simulation.follower_jobs import CUTOVERS, FollowedPromises, FollowerJobs
from support.simulation.scope_cluster import SOURCES, ScopeCluster, ScopeStore, run_of
from support.simulation.scope_machine import OUTSIDE, ScopeMachine

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from sluice.core.copy.plan import StreamPlan
    from sluice.core.scope.scope import StreamResult
    from sluice.core.workloads.plan import Plan
    from support.simulation.copy_cluster import Cluster, Driver

LATER = ("d", "e")
"""Streams that may appear in the scope later."""

_EVEN = Age(0.0, certain=True)


@dataclass
class FollowedScopeStore(ScopeStore):
    """The data of a scope's copy that follows its streams.

    Attributes:
        positions: for each live stream, the bytes of the source that the target has.
        wish: how the copy is to end, by its log.
        sealed: the sources that were sealed.
        left: targets that stayed when the copy was ended. They belong to users.
        first: the run's plan without the streams that have joined.
        live: whether the log says that the copy follows all streams of that plan.
    """

    positions: dict[str, int] = field(default_factory=dict)
    wish: Wish = field(default_factory=Wish)
    sealed: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    first: Plan | None = None
    live: bool = False

    @property
    def is_over(self) -> bool:
        """Tell whether nothing is left to do in this run."""
        return super().is_over and bool(self.ended or self.stopped)

    def ask(self, known: Plan | None, *, again: bool) -> Planned | ScopeEnded:
        """See ScopeStore. Targets of an ended copy block a new one."""
        if self.left and self.log is None and self.source and self.target:
            raise TargetExists(f"out/{min(self.left)} exists", field="spec.onExists")
        answer = super().ask(known, again=again)
        if self.log is None or self.is_over or self.first is None:
            return answer
        kind = Following if self.live else Planned
        return kind(plan=self.first, recorded=True)

    def _planned(
        self, names: set[str], settled: tuple[StreamResult, ...], *, run: int
    ) -> Planned | ScopeEnded:
        found = super()._planned(names, settled, run=run)
        plan = _followed(found.plan)
        if isinstance(found, ScopeEnded) and run > 1:
            return ScopeEnded(plan=plan, results=found.results)
        return Planned(plan=plan)

    def begin(self, plan: Plan) -> None:
        """Record a driver's plan in the log, if the log allows it. Its wish counts from then on."""
        before = self.log
        super().begin(plan)
        if self.log is not before:
            self.wish, self.first, self.live = Wish(), plan, False

    def lead(self) -> bool:
        """Take a step of a stream that is not live. Return False if all of them are."""
        assert self.log is not None
        for plan in self.log.streams:
            name = plan.target.stream
            if name in self.ended or name in self.positions:
                continue
            if name in self.done:
                self.ended[name] = self._copied(name)
            elif not self.fails(name):
                self._stage(plan)
            return True
        return False

    def _stage(self, plan: StreamPlan) -> None:
        name = plan.target.stream
        if self.staged.get(name, 0) < plan.bytes:
            self.staged[name] = min(plan.bytes, self.staged.get(name, 0) + 400)
        else:
            self.positions[name] = plan.bytes
            self.staged.pop(name, None)

    def fails(self, name: str) -> bool:
        """End a stream that is bad or gone, and tell whether it is. Its target keeps its bytes."""
        if name in self.there and name not in self.bad:
            return False
        error = DigestMismatch("other bytes") if name in self.bad else SourceNotFound("gone")
        size = SOURCES.get(name, 0)
        self.ended[name] = scope_copies.failed(name, error, size)
        self.positions.pop(name, None)
        return True

    def follow(self) -> None:
        """Take a step of each live stream, and add the streams that join."""
        assert self.log is not None
        self.stopped = not self.log.streams and self.wish.cutover != "None"
        known = {one.target.stream for one in self.log.streams}
        known |= {one.stream for one in self.log.scope.settled} if self.log.scope else set()
        for name in sorted(set(self.there) - known):
            joining = scope_copies.stream(name, self.there[name])
            streams = (*self.log.streams, joining.model_copy(update={"follow": True}))
            self.log = self.log.model_copy(update={"streams": streams})
        for name, position in list(self.positions.items()):
            if name not in self.ended and not self.fails(name):
                self._go_on(name, position)

    def _go_on(self, name: str, position: int) -> None:
        length = self.there[name]
        if position < length:
            self.positions[name] = min(length, position + 400)
        elif self.wish.cutover == "SealAndDrain" and name not in self.sealed:
            self.sealed.add(name)
        elif name in self.sealed or self.wish.cutover == "Drain":
            self.done[name] = self.positions.pop(name)
            self.ended[name] = self._copied(name)

    def progress(self, known: Plan) -> Progress:
        """See the watch of a scope that is followed."""
        log = self.log
        if log is None or run_of(log) < run_of(known):
            return Progress(0, known.bytes, published=False, follow=Followed())
        failures = tuple(one for one in self.results if one.state is StreamState.FAILED)
        behind = {
            name: self.there.get(name, 0) - position
            for name, position in self.positions.items()
            if self.there.get(name, 0) > position
        }
        ended = sum(one.state is StreamState.COPIED for one in self.results)
        streams = FollowedStreams(
            followed=len(self.positions),
            coming=len(self.results) - len(self.positions) - len(failures) - ended,
            ended=ended,
            failed=len(failures),
            joined=len(log.streams) - len(self.first.streams if self.first else ()),
            sealed=len(self.sealed),
            worst=tuple(StreamLag(name, size, 5.0) for name, size in sorted(behind.items())),
            failures=failures,
        )
        lag = Age(5.0 if behind else 0.0, certain=True)
        there = sum(self.positions.values()) + sum(self.staged.values())
        follow = Followed(
            live=not streams.coming,
            position=there,
            proved=there,
            lag_bytes=sum(behind.values()),
            lag=lag,
            unproved=_EVEN,
            segments=len(self.positions),
            wish=None if self.is_over else self.wish,
            streams=streams,
            results=self.results,
        )
        total = max(known.bytes, there)
        return Progress(there, total, published=self.is_over, streams=self.counts, follow=follow)

    def abandon(self) -> None:
        """See `sluice.engine.scope.query.abandon_scope`: live targets stay."""
        super().abandon()
        self.left |= set(self.positions)
        self.positions.clear()
        self.wish = Wish()


def _followed(plan: Plan) -> Plan:
    """Return a plan whose streams are followed."""
    streams = tuple(one.model_copy(update={"follow": True}) for one in plan.streams)
    assert plan.scope is not None
    scope = plan.scope.model_copy(update={"following": FOLLOW})
    return located(plan.model_copy(update={"streams": streams, "scope": scope}))


class FollowedScopeCluster(FollowerJobs, ScopeCluster):
    """A cluster whose ScopeCopy follows its streams."""

    store: FollowedScopeStore

    def __init__(self, **spec: Any) -> None:
        super().__init__(**spec)
        self.store = FollowedScopeStore()

    def wished(self, wish: Wish) -> bool:
        """See `ScopeRecords.wish`."""
        store = self.store
        if not store.target:
            raise StoreUnavailable("no connection")
        if store.log is None or store.is_over:
            return False
        store.wish = wish
        return True

    def advance(self, driver: Driver, mounted: Plan) -> None:
        """Take the next step of a driver or a follower."""
        store = self.store
        begins = driver.epoch is None or driver.epoch != store.epoch or store.log is None
        if begins or store.is_over:
            super().advance(driver, mounted)
        elif store.lead():
            return
        elif self.follows(driver):
            store.follow()
        else:
            store.live = True
            self.end(driver, None)

    def abandon(self) -> None:
        """See `engine.scope.query.abandon_scope`. Only a deletion ends a live copy."""
        assert not self.store.positions or self.deleted or not self.alone
        super().abandon()


class FollowedScopeMachine(FollowedPromises, ScopeMachine):
    """A ScopeCopy that follows its streams, with its adversary."""

    make: Callable[[], Cluster] = FollowedScopeCluster
    cluster: FollowedScopeCluster

    @property
    def things(self) -> tuple[str, ...]:
        """The things that can happen outside. The API server refuses failurePolicy: Stop."""
        return tuple(what for what in OUTSIDE if what != "stop")

    def others(self, random: Random) -> dict[str, tuple[int, Callable[[], None]]]:
        """Return the moves that only this machine has."""
        return {
            "cutover": (2, lambda: self.cut_over(random.choice(CUTOVERS))),
            "write": (2, lambda: self.write(random.randrange(5), random.randrange(900))),
            "come": (1, lambda: self.come(random.choice(LATER), random.randrange(900))),
        }

    @rule(how=st.sampled_from(CUTOVERS))
    def cut_over(self, how: str) -> None:
        """Request the cutover, or withdraw the request while that is allowed."""
        if how != "SealAndDrain" and self.cluster.store.sealed:
            return
        self.change(cutover=how)

    @rule(which=st.integers(0, 4), size=st.integers(0, 900))
    def write(self, which: int, size: int) -> None:
        """Write to a source, as a writer does."""
        store = self.cluster.store
        name = sorted(store.there)[which % len(store.there)]
        if name not in store.sealed:
            store.there[name] += size

    @rule(name=st.sampled_from(LATER), size=st.integers(0, 900))
    def come(self, name: str, size: int) -> None:
        """Make a stream in the source's scope."""
        self.cluster.store.there.setdefault(name, size)

    def change(self, **fields: Any) -> None:
        """Change the spec, without a deadline: the API server refuses one for a continuous copy."""
        super().change(**fields | {"activeDeadlineSeconds": None})

    def outside(self, what: str, *, on: bool) -> None:
        """Change whether a store or a stream is there; see ScopeMachine."""
        store = self.cluster.store
        thing, _, name = what.partition(" ")
        if thing == "there":
            if on:
                store.there.setdefault(name, SOURCES[name])
            elif len(store.there) > 1:
                store.there.pop(name, None)
        elif what != "stop":
            super().outside(what, on=on)

    def mend(self) -> None:
        """Restore the missing streams, keep the others as they are, and let all be copied."""
        there = self.cluster.store.there
        super().mend()
        self.cluster.store.there = SOURCES | there

    def the_end_can_be_read(self) -> None:
        """Check the end as for any scope. After a cutover the reason is CutOver."""
        said = self.status.condition("Ready")
        if said is not None and said.reason == "CutOver" and self.is_heard():
            results = self.cluster.results
            assert results is not None
            assert all(one.state is StreamState.COPIED for one in results)
        super().the_end_can_be_read()

    def success_is_true(self) -> None:
        """Check that no end is reported too early, and that no target lacks bytes of its source."""
        super().success_is_true()
        store = self.cluster.store
        if self.said_to_be_done() and not self.taken:
            assert store.log is None or store.is_over
            for name in store.sealed & set(store.done) & set(store.there):
                assert store.done[name] >= store.there[name], "a sealed source has nothing more"

    def teardown(self) -> None:
        """Check that the copy reaches its cutover, or is gone, once failures have stopped."""
        self.cluster.change(cutover="SealAndDrain")
        super().teardown()
