"""The copy protocol against an adversary: drivers, aborts, kills and lost messages."""

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
    rule,
)

from sluice.core.copy.planner import SeenSegment, SourceRequest, plan_stream
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.engine.copy.abort import abort, finish_abort, sweep
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.report import Outcome
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.errors import AbortRefused, CopyAborted, StoreUnavailable
from support.engine.actors import Actor
from support.engine.plans import SOURCE, TARGET, whole_plan
from support.engine.runners import copy_runner
from support.engine.sources import CHUNK, REQUEST, put_scaled_source, split
from support.model import EVENT_COUNT, Fate, ModelStore, World, segment_name
from support.search import run_machine, searches

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan

MANY = 100_000
SIZES = st.lists(st.integers(0, 40), max_size=3)
SECOND = StreamName(scope="in", stream="second")
KINDS = (
    "create_stream",
    "scale",
    "truncate_stream",
    "create ",
    "setup",
    "append ",
    "append_at",
    "seal",
    "merge",
    "set_attribute",
    "update_stream",
    "delete_stream",
    "delete ",
    "describe",
    "attributes",
)
DAMAGE = (
    "DigestMismatch",
    "EventsDamaged",
    "IntegrityError",
    "JournalDamaged",
    "SourceReplaced",
    "SourceTruncated",
    "TargetExists",
)
AFTER_ABORT = ("CopyAborted", "TargetReplaced")
EXPECTED = (AbortRefused, CopyAborted, StoreUnavailable)


class Protocol(RuleBasedStateMachine):
    """Drivers and aborts of one copy, moved call by call in any order."""

    actors = Bundle("actors")
    damage: tuple[str, ...] = DAMAGE
    expected: tuple[type[Exception], ...] = EXPECTED

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.number = 0
        self.alive: list[Actor] = []
        self.promised = False
        self.aborted = False

    @initialize(
        shapes=st.lists(st.lists(st.integers(0, 40), max_size=4), min_size=1, max_size=3),
        moves=st.lists(
            st.tuples(st.sampled_from(["split", "merge", "truncate"]), st.integers(0, 3)),
            max_size=3,
        ),
        second=st.none()
        | st.lists(st.lists(st.integers(0, 40), max_size=3), min_size=1, max_size=2),
        divided=st.booleans(),
        told=st.sampled_from([None, 0, 1]),
        seal=st.booleans(),
    )
    def source(
        self,
        shapes: list[list[int]],
        moves: list[tuple[str, int]],
        *,
        second: list[list[int]] | None = None,
        divided: bool,
        told: int | None,
        seal: bool,
    ) -> None:
        """Make a source of a few segments, scaled or not, in one or more parts; perhaps another.

        Its store knows how many events are in a segment, or reports a wrong number.
        """
        self.contents = put_scaled_source(self.world, shapes, moves)
        sources = [SOURCE]
        if second is not None:
            self.contents += put_scaled_source(self.world, second, [], name=SECOND)
            sources.append(SECOND)
        requests = tuple(SourceRequest(stream=name) for name in sources)
        self.request = REQUEST.model_copy(update={"sources": requests, "seal": seal})
        self.counts = [
            self.world.segments[segment_name(name, segment.id)].attributes[EVENT_COUNT]
            for name in sources
            for segment in self.world.streams[name].readable
        ]
        self.divided = divided
        self.told = told
        for _ in range(2):
            self.driver()

    def plan(self, store: ModelStore) -> StreamPlan | None:
        """Return a driver's plan: that of `resolve`, with parts of 32 bytes."""
        found = resolve(self.request, [store], store)
        if found.plan is None or found.recorded:
            return found.plan
        seen = [
            SeenSegment(
                **segment.model_dump(exclude={"cuts", "events", "keys"}),
                keys=segment.keys,
                events=self.told if segment.length else 0,
            )
            for segment in found.plan.segments
        ]
        made = plan_stream(self.request, config=found.plan.config, seen=seen)
        return split(made) if self.divided else made

    def drive(self, store: ModelStore, clock: Actor) -> object:
        """Run one driver from beginning to end."""
        finish_abort(REQUEST.copy_id, TARGET, store)
        plan = self.plan(store)
        if plan is None:
            sweep(REQUEST.copy_id, TARGET, store)
            return "complete before"
        runner = copy_runner(
            whole_plan(plan),
            sources=[store],
            target=store,
            executor=InlineExecutor([store], store),
            limits=lambda: Limits(slice_bytes=2 * CHUNK),
            clock=clock,
        )
        (report,) = runner.run()
        return report.outcome if report.error is None else report.error.reason

    @rule(target=actors)
    def driver(self) -> Actor:
        """Start a driver."""
        self.number += 1
        actor = Actor(f"driver {self.number}", self.world, self.drive)
        actor.move()
        self.alive.append(actor)
        return actor

    @rule(target=actors)
    def aborter(self) -> Actor:
        """Start an abort of the copy."""
        self.aborted = True
        self.number += 1
        actor = Actor(
            f"abort {self.number}",
            self.world,
            lambda store, _: abort(REQUEST.copy_id, TARGET, store),
        )
        actor.move()
        self.alive.append(actor)
        return actor

    @rule(actor=actors, kind=st.sampled_from(KINDS), beyond=st.integers(0, 3))
    def hold(self, actor: Actor, kind: str, beyond: int) -> None:
        """Move an actor to a call of a kind, or some calls further, and hold it there."""
        for _ in range(MANY):
            if not actor.alive or actor.pending.startswith(kind):
                break
            self.step(actor)
        for _ in range(beyond):
            self.step(actor)

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

    def turn(self, actor: Actor, fate: Fate) -> None:
        """Make one call of an actor.

        An abort is not held up between its last look at the target and the call that seals it.
        Stores delete by name only, which docs/protocol.md lists under what is not guaranteed.
        Drivers that seal a whole target may be held up.
        """
        if actor.alive:
            actor.move(fate)
        while actor.alive and actor.pending.startswith("seal_stream") and not self.is_whole():
            actor.move()

    def is_whole(self) -> bool:
        """Tell whether the target is marked whole."""
        stream = self.world.streams.get(TARGET)
        return stream is not None and (
            identity.completed(stream.config.tags, REQUEST.copy_id) is not None
        )

    def step(self, actor: Actor) -> None:
        """Make one call of an actor, and check the readable segments."""
        self.turn(actor, Fate.DONE)
        if actor.alive:
            self.only_whole_segments_are_readable()
            self.staging_holds_beginnings()
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

    @invariant()
    def only_whole_segments_are_readable(self) -> None:
        """Check that a reader of the target sees a segment whole or not at all."""
        if TARGET not in self.world.streams:
            return
        found = self.world.bytes_of(TARGET)
        if not any(found):
            return
        for index, data in enumerate(found):
            assert data in (b"", self.contents[index]), f"segment {index} holds {data!r}"
        made = self.world.streams[TARGET].made
        older = len(found) - len(made[-1]) if len(made) > 1 else 0
        assert found[:older] == self.contents[:older], "it was scaled before it was published"

    @invariant()
    def staging_holds_beginnings(self) -> None:
        """Check that staged bytes are the first bytes of their part, without gap or repetition."""
        if TARGET not in self.world.streams:
            return
        staging = {name.partition("#")[2]: name for name in self.world.staging()}
        for index, content in enumerate(self.contents):
            for part in range(len(content) // (2 * CHUNK) + 1):
                name = staging.get(identity.staging_key(REQUEST.copy_id, index, part))
                begin = part * 2 * CHUNK if self.divided else 0
                if name is not None:
                    assert content[begin:].startswith(bytes(self.world.segments[name].data))

    @invariant()
    def what_was_promised_holds(self) -> None:
        """Check that a target reported whole stays, and that no driver wrongly reports damage."""
        for actor in self.alive:
            if actor.alive or actor.killed:
                continue
            assert actor.error is None or isinstance(actor.error, self.expected), actor.error
            assert actor.result not in self.damage, actor.name
            assert self.aborted or actor.result not in AFTER_ABORT, actor.name
            if actor.result in (Outcome.COPIED, "complete before"):
                self.promised = True
        if self.promised:
            self.assert_whole()
            assert self.world.streams[TARGET].sealed is self.request.seal

    @invariant()
    def complete_means_complete(self) -> None:
        """Check that a target marked whole is whole."""
        if not self.is_whole():
            return
        self.assert_whole()
        stream = self.world.streams[TARGET]
        counts = [
            self.world.segments[segment_name(TARGET, segment.id)].attributes[EVENT_COUNT]
            for segment in stream.readable
        ]
        assert counts == self.counts

    def assert_whole(self) -> None:
        """Check that the target holds all planned bytes."""
        assert self.world.bytes_of(TARGET) == self.contents

    def left_over(self) -> list[str]:
        """Return staging segments that hold bytes, or that lie beside the present target.

        An empty segment beside a deleted target may stay. A driver made it that was held up between
        look and call, during an abort and another run. Its name may begin as that of another
        segment of the target made since.
        """
        current = {
            segment_name(TARGET, segment.id): index
            for index, segment in enumerate(self.world.streams[TARGET].readable)
        }
        places = {
            identity.staging_key(REQUEST.copy_id, index, part): index
            for index in current.values()
            for part in range(8)
        }
        found = []
        for name in self.world.staging():
            beside, _, key = name.partition("#")
            own = beside in current and places.get(key, current[beside]) == current[beside]
            if own or self.world.segments[name].data:
                found.append(name)
        return found

    def teardown(self) -> None:
        """Let one more driver make the target whole, and check that nothing else is left."""
        try:
            for actor in self.alive:
                for _ in range(MANY):
                    if not actor.alive:
                        break
                    actor.move()
            for _ in range(3):
                # A copy that was cut off may have to be aborted, copied, or only reported.
                last = self.driver()
                for _ in range(MANY):
                    if not last.alive:
                        break
                    last.move()
                assert not last.alive, "a driver without an adversary does not end"
                assert last.error is None, last.error
            assert last.result == "complete before"
            self.complete_means_complete()
            self.assert_whole()
            assert self.world.streams[TARGET].config.tags[0] == "team=a"
            assert self.world.streams[TARGET].sealed is self.request.seal
            assert self.left_over() == []
        finally:
            if currently_in_test_context():
                note("\n".join(["history:", *self.world.history]))


@searches
def test_the_copy_is_exact_whatever_the_scheduler_does() -> None:
    """Under any order of calls, losses, kills and aborts, a copy ends exact and leaves nothing."""
    run_machine(Protocol, examples=8, steps=60)


def test_a_driver_without_an_adversary_copies() -> None:
    """The machine's own driver copies a scaled source in several parts."""
    machine = Protocol()
    moves = [("split", 0), ("merge", 1)]
    machine.source(shapes=[[5, 90, 3], [], [17]], moves=moves, divided=True, told=None, seal=True)
    actor = machine.driver()
    while actor.alive:
        actor.move()
    assert actor.result is Outcome.COPIED
    machine.teardown()
