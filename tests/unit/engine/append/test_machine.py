"""Appends against an adversary: drivers, aborts, kills, lost messages and other clients.

The target belongs to another owner. Its clients write to it and scale it during the copy, and the
store drops transactions that no client keeps alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from sluice.core.copy.planner import SourceRequest
from sluice.core.values import identity
from sluice.core.values.model import StreamName, TransactionState
from sluice.engine.copy.abort import abort
from sluice.engine.copy.report import Outcome
from sluice.errors import AbortRefused, CopyAborted, NoSuchSegment, StoreUnavailable
from support.engine.actors import Actor
from support.engine.appends import APPEND, kept, put_target, run_append
from support.engine.plans import SOURCE, TARGET
from support.engine.sources import events_of, put_scaled_source
from support.model import Fate, ModelStore, World, segment_name
from support.search import run_machine, searches

if TYPE_CHECKING:
    from sluice.core.values.model import Segment
    from support.model import ModelTransaction

MANY = 100_000
KINDS = (
    "open_transaction",
    "commit_transaction",
    "abort_transaction",
    "settled",
    "scale",
    "update_stream",
    "create ",
    "append_at",
    "merge",
    "delete ",
    "describe",
)
DAMAGE = (
    "DigestMismatch",
    "EventsDamaged",
    "IntegrityError",
    "JournalDamaged",
    "OutcomeUnknown",
    "SourceReplaced",
    "SourceTruncated",
    "TargetExists",
    "TargetReplaced",
)
EXPECTED = (AbortRefused, CopyAborted, NoSuchSegment, StoreUnavailable)
KEYS = (0.1, 0.3, 0.6, 0.9)
SECOND = StreamName(scope="in", stream="second")
CHANGES = ("create ", "append_at", "open_transaction", "merge", "commit_transaction", "settled")
HALTS = st.tuples(*[st.sampled_from(CHANGES)] * 3, st.integers(0, 7))
"""The call before which an actor is frozen, and how far two other actors get meanwhile."""


class Appending(RuleBasedStateMachine):
    """Drivers and aborts of one copy, moved call by call in any order, on a stream in use."""

    actors = Bundle("actors")

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.number = 0
        self.alive: list[Actor] = []
        self.written: dict[float, list[bytes]] = {key: [] for key in KEYS}
        self.promised = False
        self.aborted = False
        self.scaled = False
        self.killed = False

    @initialize(
        shapes=st.lists(st.lists(st.integers(8, 40), max_size=3), min_size=1, max_size=3),
        moves=st.lists(
            st.tuples(st.sampled_from(["split", "merge", "truncate"]), st.integers(0, 3)),
            max_size=3,
        ),
        second=st.none()
        | st.lists(st.lists(st.integers(8, 40), max_size=3), min_size=1, max_size=2),
        count=st.integers(0, 3),
        divided=st.booleans(),
        backwards=st.booleans(),
        halts=st.none() | HALTS,
    )
    def streams(
        self,
        shapes: list[list[int]],
        moves: list[tuple[str, int]],
        count: int,
        *,
        second: list[list[int]] | None = None,
        divided: bool,
        backwards: bool = False,
        halts: tuple[str, str, str, int] | None = None,
    ) -> None:
        """Make a source, scaled or not, perhaps a second one that follows it, and a target.

        The target has a layout of its own, or (0) that of the first source.
        """
        self.contents = put_scaled_source(self.world, shapes, moves)
        sources = [SOURCE]
        if second is not None:
            self.contents += put_scaled_source(self.world, second, [], name=SECOND, seed=500)
            sources.append(SECOND)
        requests = tuple(SourceRequest(stream=name) for name in sources)
        self.request = APPEND.model_copy(update={"sources": requests})
        self.world.backwards = backwards
        self.made = [made for name in sources for made in self.world.streams[name].made]
        put_target(self.world, count or len(self.made[0]))
        target = self.world.streams[TARGET]
        self.before = target.config
        self.layout = [segment.keys for segment in target.segments]
        self.divided = divided
        first, _ = (self.driver() for _ in range(2))
        if halts is not None:
            self.freeze(first, halts)

    def drive(self, store: ModelStore, clock: Actor) -> object:
        """Run one driver from beginning to end."""
        return run_append(self.request, store, clock, divided=self.divided)

    def actor(self, actor: Actor) -> Actor:
        """Add an actor and move it up to its first call."""
        actor.move()
        self.alive.append(actor)
        return actor

    @rule(target=actors)
    def driver(self) -> Actor:
        """Start a driver."""
        self.number += 1
        return self.actor(Actor(f"driver {self.number}", self.world, self.drive))

    @rule(target=actors)
    def aborter(self) -> Actor:
        """Start an abort of the copy."""
        self.aborted = True
        self.number += 1
        name = f"abort {self.number}"
        return self.actor(
            Actor(name, self.world, lambda store, _: abort(APPEND.copy_id, TARGET, store))
        )

    @rule(actor=actors, kind=st.sampled_from(KINDS), beyond=st.integers(0, 3))
    def hold(self, actor: Actor, kind: str, beyond: int) -> None:
        """Move an actor to a call of a kind, or some calls further, and hold it there."""
        for _ in range(MANY):
            if not actor.alive or actor.pending.startswith(kind):
                break
            self.step(actor)
        for _ in range(beyond):
            self.step(actor)

    @rule(target=actors, frozen=actors, halts=HALTS)
    def freeze(self, frozen: Actor, halts: tuple[str, str, str, int]) -> Actor:
        """Freeze an actor's machine for minutes, in which all other actors come and go.

        One driver gets somewhere and the copy is aborted. Another driver begins it again and dies
        somewhere. Then the store frees the names of deleted segments.
        """
        at, *reached, beyond = halts
        self.hold(frozen, at, 0)
        first = self.driver()
        self.hold(first, reached[0], 0)
        for other in [one for one in self.alive if one.alive and one is not frozen]:
            self.kill(other)
        self.finish(self.aborter())
        second = self.driver()
        self.hold(second, reached[1], beyond)
        self.kill(second)
        self.give_back()
        return second

    @rule(actor=actors)
    def finish(self, actor: Actor) -> None:
        """Run an actor to its end."""
        while actor.alive:
            self.step(actor)

    @rule(turns=st.lists(st.integers(0, 7), max_size=40))
    def interleave(self, turns: list[int]) -> None:
        """Let the actors make single calls in turn."""
        for turn in turns:
            alive = [actor for actor in self.alive if actor.alive]
            if alive:
                self.step(alive[turn % len(alive)])

    @rule(key=st.sampled_from(KEYS))
    def write(self, key: float) -> None:
        """Write an event with a key, as a live writer does."""
        data = events_of([9], seed=10_000 + sum(map(len, self.written.values())))
        self.written[key].append(data)
        segment = self.taking(key)
        self.world.segments[segment_name(TARGET, segment.id)].data += data

    def taking(self, key: float) -> Segment:
        """Return the segment that takes a key's events."""
        tail = self.world.streams[TARGET].segments
        return next(one for one in tail if one.keys.low <= key < one.keys.high)

    @precondition(lambda self: not self.scaled)
    @rule(count=st.integers(3, 5))
    def scale(self, count: int) -> None:
        """Scale the target once, as another client may."""
        self.scaled = True
        self.world.history.append(f"another client: scales to {count}")
        self.world.scale(TARGET, count)

    def open(self) -> list[ModelTransaction]:
        """Return the open transactions."""
        known = self.world.streams[TARGET].transactions.values()
        return [one for one in known if one.state is TransactionState.OPEN]

    @precondition(lambda self: self.open())
    @rule(place=st.integers(0, 3))
    def expire(self, place: int) -> None:
        """Drop a transaction whose lease is over."""
        one = self.open()[place % len(self.open())]
        self.world.history.append(f"store: drops {one.key}")
        self.world.drop(TARGET, one)

    @precondition(lambda self: self.world.streams[TARGET].committing)
    @rule()
    def commit(self) -> None:
        """Commit the transactions whose commit was requested."""
        self.world.commit(TARGET)

    @precondition(lambda self: self.world.kept)
    @rule()
    def give_back(self) -> None:
        """Let minutes pass, after which the store frees the names of deleted segments."""
        self.world.history.append("store: gives names back")
        self.world.kept.clear()

    def turn(self, actor: Actor, fate: Fate) -> None:
        """Make one call of an actor."""
        if actor.alive:
            actor.move(fate)

    def step(self, actor: Actor) -> None:
        """Make one call of an actor, and check the invariants."""
        self.turn(actor, Fate.DONE)
        if actor.alive:
            self.all_or_nothing_of_a_generation_is_readable()
            self.live_events_are_there_in_order()
            self.what_was_promised_holds()

    @rule(actor=actors, fate=st.sampled_from([Fate.REQUEST_LOST, Fate.REPLY_LOST]))
    def lose(self, actor: Actor, fate: Fate) -> None:
        """Lose a message of an actor."""
        self.turn(actor, fate)

    @rule(actor=consumes(actors))
    def kill(self, actor: Actor) -> None:
        """Kill an actor between two calls."""
        if actor.alive:
            self.killed = True
            actor.kill()

    def found(self) -> list[int]:
        """Count how often each segment's bytes are readable in the target; 1 for empty segments."""
        readable = self.world.bytes_of(TARGET)
        return [
            sum(data.count(content) for data in readable) if content else 1
            for content in self.contents
        ]

    @invariant()
    def all_or_nothing_of_a_generation_is_readable(self) -> None:
        """Check that a generation comes as a whole, once, and after those before it."""
        if not hasattr(self, "contents"):
            return
        found, at, whole = self.found(), 0, True
        for made in self.made:
            there = [found[at + i] for i in range(len(made)) if self.contents[at + i]]
            at += len(made)
            assert there in ([1] * len(there), [0] * len(there)), found
            assert whole or 1 not in there, f"out of order: {found}"
            whole = whole and 0 not in there

    @invariant()
    def live_events_are_there_in_order(self) -> None:
        """Check that no event of a live writer is lost, repeated or out of order."""
        if TARGET not in self.world.streams:
            return
        everything = b"|".join(self.world.bytes_of(TARGET))
        for events in self.written.values():
            places = [everything.find(one) for one in events]
            assert -1 not in places
            assert places == sorted(places)
            assert all(everything.count(one) == 1 for one in events)

    @invariant()
    def what_was_promised_holds(self) -> None:
        """Check that reported appends stay, and that no driver wrongly reports damage."""
        for actor in self.alive:
            if actor.alive or actor.killed:
                continue
            assert actor.error is None or isinstance(actor.error, EXPECTED), actor.error
            assert actor.result not in DAMAGE, actor.name
            assert self.aborted or actor.result != "CopyAborted", actor.name
            if actor.result in (Outcome.COPIED, "complete before"):
                self.promised = True
        if self.promised:
            assert set(self.found()) <= {1}

    def teardown(self) -> None:
        """Let more drivers end the copy, and check that only a receipt is left."""
        try:
            if hasattr(self, "contents"):
                self.end()
        finally:
            if currently_in_test_context():
                note("\n".join(["history:", *self.world.history]))

    def end(self) -> None:
        """Let all actors end, and then three more drivers."""
        for actor in self.alive:
            self.run(actor)
        for _ in range(3):
            last = self.driver()
            self.run(last)
            assert not last.alive, "a driver without an adversary does not end"
            assert last.error is None, last.error
        assert last.result == "complete before"
        assert set(self.found()) <= {1}
        self.in_order()
        self.nothing_is_left()

    def run(self, actor: Actor) -> None:
        """Run an actor to its end, and check the invariants only then."""
        for _ in range(MANY):
            if not actor.alive:
                break
            actor.move()
        self.all_or_nothing_of_a_generation_is_readable()
        self.live_events_are_there_in_order()
        self.what_was_promised_holds()

    def nothing_is_left(self) -> None:
        """Check that the target differs only by its bytes, and that beside it is only the receipt.

        The layout may differ if a client has scaled it. It may also differ if an actor of an
        aborted copy died right after it had scaled too late, which docs/protocol.md lists under
        what is not guaranteed.
        """
        stream = self.world.streams[TARGET]
        assert not any(tag.startswith(identity.TAG_APPENDING) for tag in stream.config.tags)
        if not self.scaled:
            assert stream.config == self.before
            if not (self.aborted and self.killed):
                assert [segment.keys for segment in stream.segments] == self.layout
        left = [name for name in self.world.staging() if self.world.segments[name].data]
        assert set(left) <= kept(), left

    def in_order(self) -> None:
        """Check that a source segment's bytes come before those of its successors in the target.

        They must also be in a segment of the target with the same keys.
        """
        made = [segment for generation in self.made for segment in generation]
        readable = self.world.bytes_of(TARGET)
        places = [
            next(((i, data.find(content)) for i, data in enumerate(readable) if content in data))
            for content in self.contents
        ]
        keys = [segment.keys for segment in self.world.streams[TARGET].readable]
        for one, place, content in zip(made, places, self.contents, strict=True):
            assert not content or keys[place[0]].is_like(one.keys)
        for i, one in enumerate(made):
            for j, other in enumerate(made[i + 1 :], i + 1):
                if one.keys.overlaps(other.keys) and self.contents[i] and self.contents[j]:
                    assert places[i] < places[j]


@searches
def test_an_append_is_exact_whatever_the_scheduler_does() -> None:
    """This holds under any order of calls, losses, kills, aborts, scale events and drops."""
    run_machine(Appending, examples=6, steps=60)
