"""Following against an adversary: two followers at once, kills, lost messages.

Meanwhile clients write to the source, scale, truncate and seal it, and another client may write to
the target.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from sluice.core.copy.follow_progress import sealing_record, wish_record
from sluice.core.follow.catching_up import Staging
from sluice.core.follow.ending import CUT_OVER, is_sealing
from sluice.core.values.wish import Wish
from sluice.engine.copy.abort import abort, finish_abort, sweep
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.report import Outcome
from sluice.engine.follow import wishes
from sluice.engine.follow.changes import HELD_SECONDS, LATE_SECONDS
from sluice.engine.follow.work import FollowWork
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.runner import Runner
from support.engine.actors import Actor, Time
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import CHUNK, REQUEST, put_scaled_source
from support.following.followed_world import (
    DAMAGE,
    EXPECTED,
    LOST,
    SIZES,
    FollowedWorld,
    events,
)
from support.model import EVENT_COUNT, Fate, ModelStore, segment_name
from support.search import run_machine, searches

if TYPE_CHECKING:
    from collections.abc import Callable

MANY = 20_000
WHILE = 300
"""Calls for which an actor goes on that may wait for bytes without end."""

KINDS = (
    "take",
    "setup",
    "append ",
    "append_at",
    "set_attribute",
    "scale",
    "update_stream",
    "create",
    "seal",
    "merge",
    "attributes",
    "describe",
    "read",
)
KEY = "key"
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
SEAL = Wish(cutover="SealAndDrain")
ON: Final = (Wish(), SEAL, SEAL.model_copy(update={"time": NOON, "bytes": 1}))
"""Wishes by which a copy has all that its source ever holds."""

WISHES = st.sampled_from(
    [
        *ON,
        Wish(cutover="Drain"),
        Wish(idle_seconds=3),
        Wish(bytes=60),
        Wish(bytes=1 << 40),
        Wish(time=NOON),
    ]
)


class Following(FollowedWorld):
    """Drivers and aborts of one copy that follows its source, moved call by call in any order.

    Attributes:
        late: whether calls that change the target's policy may come arbitrarily late.
    """

    actors = Bundle("actors")

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.alive: list[Actor] = []
        self.aborted = False
        self.ends = False
        self.seals = False
        self.sealed = False
        self.now = NOON - timedelta(hours=1)
        self.time = Time()
        self.late = False

    @initialize(
        shapes=st.lists(SIZES, min_size=1, max_size=3),
        moves=st.lists(
            st.tuples(st.sampled_from(["split", "merge", "truncate"]), st.integers(0, 3)),
            max_size=2,
        ),
        record=st.booleans(),
        every=st.sampled_from([0.0, 1e9]),
        long=st.sampled_from([100, 1 << 20]),
        longest=st.sampled_from([40, 1 << 20]),
        far=st.sampled_from([None, 0, 100]),
        ready=st.integers(0, 2),
    )
    def source(
        self,
        shapes: list[list[int]],
        moves: list[tuple[str, int]],
        *,
        record: bool,
        every: float,
        long: int = 1 << 20,
        longest: int = 1 << 20,
        far: int | None = None,
        ready: int,
    ) -> None:
        """Make a source of a few segments, and two drivers, which may be following it already."""
        put_scaled_source(self.world, shapes, moves)
        change = {"follow": True, "on_truncation": "Record" if record else "Fail"}
        self.request = REQUEST.model_copy(update=change)
        self.record = record
        self.every = every
        self.long = long
        self.longest = longest
        self.staging = None if far is None else Staging(far, part_bytes=2 * CHUNK)
        self.remember()
        for actor in (self.driver(), self.driver())[:ready]:
            for _ in range(MANY):
                if actor.pending.startswith("take"):
                    break
                actor.move()

    # The copy's owner, and a client that may write to the target's scope

    def wished(self, wish: Wish) -> None:
        """Remember a requested end, which may happen from now on."""
        self.ends = self.ends or wish not in ON
        self.seals = self.seals or wish.cutover == "SealAndDrain"

    @rule(target=actors, wish=WISHES)
    def wisher(self, wish: Wish) -> Actor:
        """Request an end of the copy, as its owner does."""
        self.wished(wish)
        self.number += 1

        def write(store: ModelStore, _: Actor) -> object:
            return wishes.write(wish, CopyJournal(store, COPY, TARGET), key=KEY)

        return self.actor(f"wish {self.number}: {wish!r}", write)

    @rule(replays=st.booleans())
    def forge(self, *, replays: bool) -> None:
        """Request a seal of the source without the key, as another client may."""
        log = CopyJournal(ModelStore(self.world), COPY, TARGET)
        known = log.load()
        if known is None or known.target is None:
            return
        consent = known.trail.consent
        proof = consent.proof if replays and consent is not None else "f" * 64
        number = known.trail.wishes
        log.write([wish_record(number, SEAL, proof), sealing_record()])
        self.world.history.append("another client: forges a wish")

    @rule(hours=st.sampled_from([-2, 1, 2]))
    def set_clocks(self, hours: int) -> None:
        """Let time pass, or set the clocks of all followers back."""
        self.now += timedelta(hours=hours)
        self.world.history.append(f"it is {self.now:%H:%M}")

    # The drivers

    def drive(self, store: ModelStore, clock: Actor, wish: Wish | None) -> object:
        """Run one driver from beginning to end."""
        finish_abort(COPY, TARGET, store)
        plan = resolve(self.request, [store], store).plan
        if plan is None:
            sweep(COPY, TARGET, store)
            return "complete before"
        work = FollowWork(
            plan,
            [store],
            store,
            wish=wish,
            key=KEY,
            clock=clock,
            wall=lambda: self.now,
            every=self.every,
            long=self.long,
            longest=self.longest,
            staging=self.staging,
        )
        (report,) = Runner(
            [work],
            executor=InlineExecutor([store], store),
            limits=lambda: Limits(slice_bytes=2 * CHUNK),
            clock=clock,
        ).run()
        if report.error is not None:
            self.world.history.append(f"report: {report.error.message}")
        return report.outcome if report.error is None else report.error.reason

    def actor(self, name: str, body: Callable[[ModelStore, Actor], object]) -> Actor:
        """Add another actor and move it up to its first call."""
        actor = Actor(name, self.world, body, time=self.time)
        actor.move()
        self.alive.append(actor)
        return actor

    @rule(target=actors, wish=st.none() | WISHES)
    def driver(self, wish: Wish | None = None) -> Actor:
        """Start a driver, possibly with a request of its own."""
        self.wished(wish or Wish())
        self.number += 1
        name = f"driver {self.number}"
        return self.actor(name, lambda store, clock: self.drive(store, clock, wish))

    @precondition(lambda self: not self.aborted)
    @rule(target=actors)
    def aborter(self) -> Actor:
        """Abort the copy, as a user does."""
        self.aborted = True
        self.number += 1
        name = f"abort {self.number}"
        return self.actor(name, lambda store, _: abort(COPY, TARGET, store))

    @rule(actor=actors, kind=st.sampled_from(KINDS), beyond=st.integers(0, 3))
    def hold(self, actor: Actor, kind: str, beyond: int) -> None:
        """Move an actor to a call of a kind, or some calls further, and hold it there."""
        for _ in range(WHILE):
            if not actor.alive or actor.pending.startswith(kind):
                break
            self.step(actor)
        for _ in range(beyond):
            self.step(actor)

    @rule(actor=actors)
    def go_on(self, actor: Actor) -> None:
        """Let an actor go on for a while."""
        for _ in range(WHILE):
            self.step(actor)

    @rule(turns=st.lists(st.integers(0, 7), max_size=40))
    def interleave(self, turns: list[int]) -> None:
        """Let the actors make single calls in turn."""
        for turn in turns:
            alive = [actor for actor in self.alive if actor.alive]
            if alive:
                self.step(alive[turn % len(alive)])

    def turn(self, actor: Actor, fate: Fate) -> None:
        """Make one call of an actor. An abort is never held up before it seals the target."""
        if not actor.alive:
            return
        if actor.pending == f"seal_stream {SOURCE}":
            self.check_seal()
            self.sealed = self.sealed or fate is not Fate.REQUEST_LOST
        layouts = self.layouts()
        configures = actor.pending == f"update_stream {TARGET}"
        if configures and actor.waits > LATE_SECONDS - HELD_SECONDS and not self.late:
            fate = Fate.REQUEST_LOST  # no call lasts that long
        actor.move(fate)
        self.rescaled = self.rescaled or (configures and layouts not in {self.layouts(), 0})
        assert self.late or not self.rescaled, "a change of the policy has scaled the target"
        while actor.alive and actor.pending == f"seal_stream {TARGET}" and not self.is_whole():
            actor.move()

    def check_seal(self) -> None:
        """Check that a source is sealed only at its owner's request, which then ends the copy."""
        assert self.seals, "sealed without its owner"
        known = CopyJournal(ModelStore(self.world), COPY, TARGET).load()
        if self.aborted or self.has_lost() or not self.goes_on():
            return  # the journal may be gone or replaced, or another driver was faster
        assert known is not None
        assert is_sealing(known, KEY)
        assert known.trail.stopped in {None, CUT_OVER}

    def step(self, actor: Actor) -> None:
        """Make one call of an actor, and check the target."""
        if actor.alive:
            self.turn(actor, Fate.DONE)
            self.the_target_holds_a_beginning()
            self.what_was_promised_holds()

    @rule(actor=actors, fate=st.sampled_from([Fate.REQUEST_LOST, Fate.REPLY_LOST]))
    def lose(self, actor: Actor, fate: Fate) -> None:
        """Lose a message of an actor."""
        self.turn(actor, fate)

    @rule(actor=consumes(actors))
    def kill(self, actor: Actor) -> None:
        """Kill an actor between two calls."""
        if actor.alive:
            actor.kill()

    # Invariants

    @invariant()
    def what_was_promised_holds(self) -> None:
        """Check that a target reported whole stays, and that no driver wrongly reports damage."""
        for actor in self.alive:
            if actor.alive or actor.killed:
                continue
            assert actor.error is None or isinstance(actor.error, EXPECTED), actor.error
            assert actor.result not in DAMAGE, actor.result
            assert actor.result not in LOST or self.has_lost(), actor.result
            # A copy that is aborted, or fails before its publication, begins again: then another
            # driver may miss its target.
            begun_again = self.aborted or self.has_lost()
            disturbed = self.foreign or self.rescaled
            assert begun_again or disturbed or actor.result != "TargetReplaced", actor.name
            assert begun_again or actor.result != "CopyAborted", actor.name
            if actor.result in (Outcome.COPIED, "complete before") and self.promised is None:
                assert not self.foreign, "foreign bytes were not noticed"
                self.promised = self.world.bytes_of(TARGET)
        if self.promised is not None:
            assert self.world.bytes_of(TARGET) == self.promised
            assert self.is_whole()

    def complete(self) -> None:
        """Check that a whole target has all of its source, unless an earlier end was requested.

        If a driver has sealed the source, the target has all of it, for any request.
        """
        assert self.is_whole()
        short = self.ends and not self.sealed
        found = self.world.streams[TARGET]
        assert len(found.made) == len(self.world.streams[SOURCE].made) or short
        self.the_target_holds_a_beginning()
        for ours, theirs in zip(found.readable, self.readable, strict=False):
            assert short or self.is_beginning(ours.id, theirs.id)
            there = self.world.segments[segment_name(TARGET, ours.id)]
            assert there.attributes[EVENT_COUNT] == len(events(bytes(there.data)))

    def teardown(self) -> None:
        """End the copy, check the target, and note the history for a failure's report."""
        try:
            if hasattr(self, "request"):
                self.end()
        finally:
            if currently_in_test_context():
                note("\n".join(["history:", *self.world.history]))

    def end(self) -> None:
        """Seal the source, let all actors and then three more drivers end, and check the target."""
        if self.goes_on():
            self.seal()
        for actor in self.alive:
            self.run(actor)
        for _ in range(3):
            last = self.driver()
            self.run(last)
            assert last.error is None, last.error
        if self.rescaled and last.result == "TargetReplaced":
            return
        if self.foreign and TARGET in self.world.streams and last.result != "complete before":
            assert last.result == "TargetReplaced", last.result
            return
        if self.has_lost() and last.result in LOST:
            return
        assert last.result == "complete before", last.result
        self.complete()
        assert [name for name in self.world.staging() if self.world.segments[name].data] == []

    def run(self, actor: Actor) -> None:
        """Run an actor to its end."""
        for _ in range(MANY):
            if not actor.alive:
                break
            self.turn(actor, Fate.DONE)
        assert not actor.alive, f"{actor.name} does not end: {actor.pending}"
        self.the_target_holds_a_beginning()
        self.what_was_promised_holds()


@searches
def test_the_source_is_followed_exactly_whatever_the_scheduler_does() -> None:
    """Under any order of calls, losses, kills and source changes, each byte comes once."""
    run_machine(Following, examples=12, steps=50)
