"""A copy that follows its source, and its adversary."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from sluice.core.follow.lag import Age, Followed
from sluice.core.scope.progress import Progress
from sluice.core.values.wish import Wish
from sluice.core.workloads.answers import Complete, EndCut, Following, Planned
from sluice.errors import CopyAborted, StoreUnavailable, TargetExists
from support.engine.plans import segment_plan, stream_plan, whole_plan
from support.simulation.copy_machine import CopyMachine
from support.simulation.copy_store import Store, located
from support.simulation.follower_jobs import CUTOVERS, FollowedPromises, FollowerJobs

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from sluice.core.copy.plan import StreamPlan
    from sluice.core.workloads.answers import Answer
    from sluice.core.workloads.plan import Plan
    from sluice.errors import SluiceError
    from support.simulation.copy_cluster import Cluster, Driver


@lru_cache
def planned(length: int) -> Plan:
    """Return the plan of a copy that follows a source of this length."""
    stream = stream_plan(segment_plan(length)).model_copy(update={"follow": True})
    return located(whole_plan(stream))


@dataclass
class FollowedStore(Store):
    """The data of a copy that follows its source.

    Attributes:
        position: bytes of the source that the target has, once the copy is live.
        wish: how the copy is to end, by its journal.
        sealed: whether the source was sealed.
        stopped: reason why the copy follows nothing more.
        left: whether the copy was ended while it was live, and so left its target to the user.
    """

    position: int | None = None
    wish: Wish = field(default_factory=Wish)
    sealed: bool = False
    stopped: str | None = None
    left: bool = False

    @property
    def live(self) -> bool:
        """Tell whether the copy follows its source."""
        return self.recorded is not None and self.position is not None

    def ask(self, known: StreamPlan | None, *, again: bool) -> Answer:
        """See `sluice.engine.workloads.stream.StreamWorkload.ask`."""
        if self.left and self.source and self.target:
            raise TargetExists("out/orders exists", field="spec.target.stream")
        if self.recorded is None and self.whole is None and self.source and self.target:
            if self.foreign:
                raise TargetExists("out/orders exists", field="spec.target.stream")
            return Planned(plan=planned(self.length))
        answer = super().ask(known, again=again)
        if isinstance(answer, Complete):
            return Complete(
                digest=answer.digest,
                bytes=self.position,
                events=1,
                segments=1,
                positions=answer.positions,
                cut=EndCut(f"0={self.position}", f"0={self.position}"),
            )
        if isinstance(answer, Planned) and self.live:
            return Following(plan=answer.plan, recorded=True, stopped=self.stopped)
        return answer

    def progress(self, known: Plan) -> Progress:
        """See `sluice.engine.follow.lag.FollowWatch`."""
        if self.whole is not None and self.recorded is None:
            return Progress(known.bytes, known.bytes, published=True)
        wish = self.wish if self.recorded is not None else None
        if self.position is None:
            follow = Followed(wish=wish)
            return Progress(self.staged, known.bytes, published=False, follow=follow)
        behind = max(0, self.length - self.position)
        follow = Followed(
            live=True,
            position=self.position,
            proved=self.position,
            lag_bytes=behind,
            lag=Age(0.0 if not behind else 5.0, certain=True),
            unproved=Age(0.0, certain=True),
            segments=1,
            sealed=self.sealed,
            stopped=self.stopped,
            wish=wish,
        )
        return Progress(self.position, self.length, published=False, follow=follow)

    def abandon(self) -> None:
        """End the copy. A live target stays."""
        live = self.live
        super().abandon()
        self.left = self.left or (live and self.whole is None)
        self.position = self.position if self.whole is not None else None
        self.wish, self.stopped = Wish(), None


class FollowedCluster(FollowerJobs):
    """A cluster whose copy follows its source."""

    store: FollowedStore

    def __init__(self, **spec: Any) -> None:
        super().__init__(**spec)
        self.store = FollowedStore()

    def wished(self, wish: Wish) -> bool:
        """See `engine.follow.wishes.write`."""
        store = self.store
        if not store.target:
            raise StoreUnavailable("no connection")
        if store.recorded is None or store.stopped is not None:
            return False
        store.wish = wish
        return True

    def fail(self, driver: Driver, error: SluiceError | None) -> None:
        """End a driver badly. A live copy keeps its data."""
        if self.store.live:
            self.end(driver, error)
        else:
            super().fail(driver, error)

    def advance(self, driver: Driver, mounted: Plan) -> None:
        """Take the next step of a driver or a follower."""
        store = self.store
        fresh = driver.epoch is not None and driver.epoch == store.epoch
        if not fresh or store.recorded is None or store.whole is not None:
            super().advance(driver, mounted)
        elif store.position is None:
            if store.staged < store.recorded.bytes:
                super().advance(driver, mounted)
            else:
                store.position = store.recorded.bytes
        elif not self.follows(driver):
            self.end(driver, None)
        else:
            self._follow(driver)

    def _follow(self, driver: Driver) -> None:
        store = self.store
        assert store.position is not None
        if store.stopped is not None:
            store.whole = store.recorded
        elif driver.epoch != store.epoch:
            self.end(driver, CopyAborted("the copy was ended"))
        elif store.position < store.length:
            store.position = min(store.length, store.position + 400)
        elif store.wish.cutover == "SealAndDrain" and not store.sealed:
            store.sealed = True
        elif store.sealed:
            store.stopped = "CutOver"
        elif store.wish.cutover == "Drain":
            store.stopped = "Drained"

    def abandon(self) -> None:
        """See `engine.copy.query.abandon`. Only a deletion ends a live copy."""
        assert not self.store.live or self.store.whole is not None or self.deleted or not self.alone
        super().abandon()


class FollowedMachine(FollowedPromises, CopyMachine):
    """A copy that follows its source, with its adversary."""

    make: Callable[[], Cluster] = FollowedCluster
    cluster: FollowedCluster

    def others(self, random: Random) -> dict[str, tuple[int, Callable[[], None]]]:
        """Return the moves that only this machine has."""
        return {
            "cutover": (2, lambda: self.cut_over(random.choice(CUTOVERS))),
            "write": (2, lambda: self.write(random.randrange(900))),
        }

    @rule(how=st.sampled_from(CUTOVERS))
    def cut_over(self, how: str) -> None:
        """Request the cutover, or withdraw the request while that is allowed."""
        if how != "SealAndDrain" and self.cluster.store.sealed:
            return
        self.change(cutover=how)

    @rule(size=st.integers(0, 900))
    def write(self, size: int) -> None:
        """Write to the source, as a writer does."""
        if not self.cluster.store.sealed:
            self.cluster.store.length += size

    def change(self, **fields: Any) -> None:
        """Change the spec, without a deadline: the API server refuses one for a continuous copy."""
        super().change(**fields | {"activeDeadlineSeconds": None})

    def outside(self, what: str, *, on: bool) -> None:
        """Change whether a store or an object is there, or let the source grow."""
        if what != "length" or not self.cluster.store.sealed:
            super().outside(what, on=on)

    def success_is_true(self) -> None:
        """Check that no end is reported too early, and that the target lacks no source bytes."""
        super().success_is_true()
        store = self.cluster.store
        if self.said_to_be_done() and not self.taken:
            assert store.stopped is not None or store.recorded is None
            if store.sealed:
                assert store.position == store.length, "a sealed source has nothing more"

    def teardown(self) -> None:
        """Check that the copy reaches its cutover, or is gone, once failures have stopped."""
        self.cluster.change(cutover="SealAndDrain")
        super().teardown()
