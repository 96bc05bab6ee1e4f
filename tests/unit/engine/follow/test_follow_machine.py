"""Following a source against an adversary: two followers at once, kills, lost messages.

The source is written to, scaled, truncated and sealed meanwhile, and another client may write to
the target.
"""

from __future__ import annotations

import struct
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

from sluice.core.values import identity
from sluice.core.values.model import KeyRange
from sluice.engine.copy.abort import abort, finish_abort, sweep
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.report import Outcome
from sluice.engine.follow.work import FollowWork
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.runner import Runner
from sluice.errors import AbortRefused, CopyAborted, StoreBusy, StoreUnavailable
from support.engine.actors import Actor
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import CHUNK, REQUEST, events_of, put_scaled_source
from support.model import EVENT_COUNT, Fate, ModelStore, World, segment_name
from support.search import run_machine, searches

if TYPE_CHECKING:
    from sluice.core.values.model import Segment

MANY = 20_000
WHILE = 300
"""Calls for which an actor goes on that may wait for bytes without end."""

SIZES = st.lists(st.integers(8, 90), min_size=1, max_size=4)
KINDS = (
    "take",
    "setup",
    "append ",
    "append_at",
    "set_attribute",
    "scale",
    "update_stream",
    "merge",
    "attributes",
    "describe",
    "read",
)
EXPECTED = (AbortRefused, CopyAborted, StoreBusy, StoreUnavailable)
LOST = ("SourceTruncated",)
DAMAGE = (
    "DigestMismatch",
    "EventsDamaged",
    "IntegrityError",
    "JournalDamaged",
    "SourceReplaced",
    "SourceNotFound",
    "SourceUnsupported",
    "TargetExists",
)
WHY = "StoppedByTest"


def events(data: bytes) -> list[bytes]:
    """The events in a segment's bytes, of which the last one may be a part."""
    found = []
    while data:
        length = 8 + struct.unpack_from(">i", data, 4)[0] if len(data) >= 8 else 8
        found.append(data[:length])
        data = data[length:]
    return found


class Following(RuleBasedStateMachine):
    """Drivers and aborts of one copy that follows its source, moved call by call in any order."""

    actors = Bundle("actors")

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.number = 0
        self.seed = 1_000
        self.alive: list[Actor] = []
        self.aborted = False
        self.rescaled = False
        self.wish: str | None = None
        self.promised: list[bytes] | None = None
        self.foreign: dict[int, list[tuple[int, int]]] = {}

    @initialize(
        shapes=st.lists(SIZES, min_size=1, max_size=3),
        moves=st.lists(
            st.tuples(st.sampled_from(["split", "merge", "truncate"]), st.integers(0, 3)),
            max_size=2,
        ),
        record=st.booleans(),
        every=st.sampled_from([0.0, 1e9]),
        long=st.sampled_from([100, 1 << 20]),
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
        ready: int,
    ) -> None:
        """A source of a few segments, and two drivers, which may be following it already."""
        put_scaled_source(self.world, shapes, moves)
        change = {"follow": True, "on_truncation": "Record" if record else "Fail"}
        self.request = REQUEST.model_copy(update=change)
        self.record = record
        self.every = every
        self.long = long
        self.original = [one for made in self.world.streams[SOURCE].made for one in made]
        self.held: dict[int, bytes] = {}
        self.remember()
        for actor in (self.driver(), self.driver())[:ready]:
            for _ in range(MANY):
                if actor.pending.startswith("take"):
                    break
                actor.move()

    # The source and its writers

    def remember(self) -> None:
        """Keep what the source holds: an adversary may take it."""
        for segment in self.readable:
            there = self.world.segments[segment_name(SOURCE, segment.id)]
            self.held[segment.id] = bytes(there.data)

    @property
    def readable(self) -> list[Segment]:
        """All segments of the source that a target has to have, in order."""
        return self.world.streams[SOURCE].readable

    def goes_on(self) -> bool:
        """Whether the source takes events still."""
        return not self.world.streams[SOURCE].sealed

    @precondition(goes_on)
    @rule(place=st.integers(0, 3), sizes=SIZES)
    def write(self, place: int, sizes: list[int]) -> None:
        """A writer writes to the source."""
        active = self.world.streams[SOURCE].segments
        there = self.world.segments[segment_name(SOURCE, active[place % len(active)].id)]
        self.seed += 1
        there.data += events_of(sizes, self.seed)
        there.attributes[EVENT_COUNT] += len(sizes)
        self.remember()

    @precondition(goes_on)
    @rule(place=st.integers(0, 3), sizes=SIZES, merges=st.booleans())
    def scale(self, place: int, sizes: list[int], *, merges: bool) -> None:
        """The source is scaled, and written to."""
        active = self.world.streams[SOURCE].segments
        place %= len(active)
        one = active[place]
        if merges and place + 1 < len(active):
            other = active[place + 1]
            whole = KeyRange(low=one.keys.low, high=other.keys.high)
            self.world.replace(SOURCE, {one.id, other.id}, [whole])
        elif len(active) < 4:
            middle = (one.keys.low + one.keys.high) / 2
            halves = [(one.keys.low, middle), (middle, one.keys.high)]
            ranges = [KeyRange(low=low, high=high) for low, high in halves]
            self.world.replace(SOURCE, {one.id}, ranges)
        self.world.history.append("source: scaled")
        self.write(place, sizes)

    @precondition(goes_on)
    @rule()
    def seal(self) -> None:
        """The source is sealed."""
        self.world.history.append("source: sealed")
        ModelStore(self.world).seal_stream(SOURCE)

    @rule(place=st.integers(0, 3), event=st.integers(0, 5))
    def truncate(self, place: int, event: int) -> None:
        """A segment of the source loses its first events."""
        one = self.readable[place % len(self.readable)]
        there = self.world.segments[segment_name(SOURCE, one.id)]
        sizes = [len(event) for event in events(bytes(there.data))]
        to = sum(sizes[: event % (len(sizes) + 1)])
        there.start = max(there.start, to)
        self.world.history.append(f"source: segment {one.id} truncated to {there.start}")

    @rule()
    def ask(self) -> None:
        """The copy is asked to end."""
        self.world.history.append("the copy is to end")
        self.wish = WHY

    @precondition(lambda self: TARGET in self.world.streams and self.promised is None)
    @rule(place=st.integers(0, 3), sizes=SIZES)
    def write_to_target(self, place: int, sizes: list[int]) -> None:
        """Another client writes to the target, once it is followed and before it is whole."""
        stream = self.world.streams[TARGET]
        one = stream.segments[place % len(stream.segments)]
        there = self.world.segments[segment_name(TARGET, one.id)]
        positions = {identity.position_attribute(COPY, one) for one in self.held}
        if not positions & there.attributes.keys() or there.sealed or self.stopped():
            return  # it is not followed yet, or not any more
        self.seed += 1
        data = events_of(sizes, self.seed)
        self.foreign.setdefault(one.id, []).append((len(there.data), len(data)))
        self.world.history.append(f"another client: writes to {one.id} at {len(there.data)}")
        there.data += data

    def stopped(self) -> bool:
        """Whether the copy has come to its end, after which a target is anybody's."""
        records = (self.world.segments[name].data for name in self.world.staging())
        return self.is_whole() or any(b'"record":"stop"' in record for record in records)

    # The drivers

    def drive(self, store: ModelStore, clock: Actor) -> object:
        """What one driver does from beginning to end."""
        finish_abort(COPY, TARGET, store)
        plan = resolve(self.request, [store], store).plan
        if plan is None:
            sweep(COPY, TARGET, store)
            return "complete before"
        work = FollowWork(
            plan,
            [store],
            store,
            wish=lambda: self.wish,
            clock=clock,
            every=self.every,
            long=self.long,
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

    def actor(self, actor: Actor) -> Actor:
        """Another actor, up to its first call."""
        actor.move()
        self.alive.append(actor)
        return actor

    @rule(target=actors)
    def driver(self) -> Actor:
        """A driver starts."""
        self.number += 1
        return self.actor(Actor(f"driver {self.number}", self.world, self.drive))

    @precondition(lambda self: not self.aborted)
    @rule(target=actors)
    def aborter(self) -> Actor:
        """Somebody aborts the copy."""
        self.aborted = True
        self.number += 1
        name = f"abort {self.number}"
        return self.actor(Actor(name, self.world, lambda store, _: abort(COPY, TARGET, store)))

    @rule(actor=actors, kind=st.sampled_from(KINDS), beyond=st.integers(0, 3))
    def hold(self, actor: Actor, kind: str, beyond: int) -> None:
        """An actor goes on up to a call of a kind, or some calls further, and is held up there."""
        for _ in range(WHILE):
            if not actor.alive or actor.pending.startswith(kind):
                break
            self.step(actor)
        for _ in range(beyond):
            self.step(actor)

    @rule(actor=actors)
    def go_on(self, actor: Actor) -> None:
        """An actor goes on for a while."""
        for _ in range(WHILE):
            self.step(actor)

    @rule(turns=st.lists(st.integers(0, 7), max_size=40))
    def interleave(self, turns: list[int]) -> None:
        """The actors make single calls in turn."""
        for turn in turns:
            alive = [actor for actor in self.alive if actor.alive]
            if alive:
                self.step(alive[turn % len(alive)])

    def turn(self, actor: Actor, fate: Fate) -> None:
        """One call of an actor. An abort is not held up before it seals the target, as ever."""
        if not actor.alive:
            return
        layouts = self.layouts()
        configures = actor.pending.startswith("update_stream")
        actor.move(fate)
        # A store has no compare-and-set for policies: see "What is not guaranteed".
        self.rescaled = self.rescaled or (configures and layouts not in {self.layouts(), 0})
        while actor.alive and actor.pending.startswith("seal_stream") and not self.is_whole():
            actor.move()

    def layouts(self) -> int:
        """The number of scale events of the target; 0 if there is no target."""
        stream = self.world.streams.get(TARGET)
        return 0 if stream is None else len(stream.ever)

    def step(self, actor: Actor) -> None:
        """One call, and a look at the world."""
        if actor.alive:
            self.turn(actor, Fate.DONE)
            self.the_target_holds_a_beginning()
            self.what_was_promised_holds()

    @rule(actor=actors, fate=st.sampled_from([Fate.REQUEST_LOST, Fate.REPLY_LOST]))
    def lose(self, actor: Actor, fate: Fate) -> None:
        """A message of an actor is lost."""
        self.turn(actor, fate)

    @rule(actor=consumes(actors))
    def kill(self, actor: Actor) -> None:
        """An actor dies between two calls."""
        if actor.alive:
            actor.kill()

    # What holds

    def is_whole(self) -> bool:
        """Whether the target says that it is whole."""
        stream = self.world.streams.get(TARGET)
        return stream is not None and identity.completed(stream.config.tags, COPY) is not None

    @invariant()
    def the_target_holds_a_beginning(self) -> None:
        """Each of its segments holds whole events of the source's, in order, each one once.

        Only lost events are left out, and no segment has events before those whose keys it takes
        are whole.
        """
        if TARGET not in self.world.streams or self.rescaled:
            return
        stream, theirs = self.world.streams[TARGET], self.world.streams[SOURCE]
        if not any(self.world.bytes_of(TARGET)):
            return
        assert len(stream.made) <= len(theirs.made), "scaled before its source"
        # A target whose name was used before has other ids.
        same = theirs.ever == theirs.made and stream.made[0] == theirs.made[0]
        for made, others in zip(stream.made, theirs.made, strict=False):
            assert [one.keys for one in made] == [one.keys for one in others]
            if same:
                assert [one.id for one in made] == [one.id for one in others]
        pairs = list(zip(stream.readable, theirs.readable, strict=False))
        whole = [self.is_beginning(ours.id, their.id) for ours, their in pairs]
        for (ours, _), ended in zip(pairs, whole, strict=True):
            assert ended or not self.followed_by_events(ours)

    def followed_by_events(self, segment: Segment) -> bool:
        """Whether later segments of the target that take its keys exist."""
        stream = self.world.streams[TARGET]
        place = next(i for i, made in enumerate(stream.made) if segment in made)
        return any(
            one.keys.overlaps(segment.keys) and self.has_data(one)
            for made in stream.made[place + 1 :]
            for one in made
        )

    def has_data(self, segment: Segment) -> bool:
        """Whether a segment of the target has bytes."""
        return bool(self.world.segments[segment_name(TARGET, segment.id)].data)

    def is_beginning(self, ours: int, theirs: int) -> bool:
        """Check a segment of the target. Return whether it has all that its source ever held."""
        data = bytes(self.world.segments[segment_name(TARGET, ours)].data)
        for at, count in reversed(self.foreign.get(ours, [])):
            # What was in flight may come behind; it has to be in order all the same.
            data = data[:at] + data[at + count :]
        expected = events(self.held[theirs])
        lost = self.world.segments[segment_name(SOURCE, theirs)].start
        at = place = found = 0
        for event in events(data):
            while place < len(expected) and expected[place] != event:
                # A copy begins where its source began when it was planned.
                assert self.record or not found, f"{theirs}: left out or torn at {at}"
                assert at < lost, f"{theirs}: an event is left out that is not lost, at {at}"
                at += len(expected[place])
                place += 1
            assert place < len(expected), f"{theirs}: an event is there twice, or is not its own"
            at += len(event)
            place, found = place + 1, found + 1
        return at >= max(lost, len(self.held[theirs])) or (
            (self.record or not found) and at < lost == len(self.held[theirs])
        )

    @invariant()
    def what_was_promised_holds(self) -> None:
        """A target that was reported whole stays; no driver finds damage where there is none."""
        for actor in self.alive:
            if actor.alive or actor.killed:
                continue
            assert actor.error is None or isinstance(actor.error, EXPECTED), actor.error
            assert actor.result not in DAMAGE, actor.result
            assert actor.result not in LOST or self.has_lost(), actor.result
            # A copy that is aborted, or fails before it is published, is begun again: then another
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

    def has_lost(self) -> bool:
        """Whether the source was truncated."""
        return not self.record and any(
            self.world.segments[segment_name(SOURCE, one.id)].start for one in self.readable
        )

    def complete(self) -> None:
        """A whole target has all that its source ever held, unless the copy was asked to end."""
        assert self.is_whole()
        found = self.world.streams[TARGET]
        assert len(found.made) == len(self.world.streams[SOURCE].made) or self.wish is not None
        self.the_target_holds_a_beginning()
        for ours, theirs in zip(found.readable, self.readable, strict=False):
            assert self.wish is not None or self.is_beginning(ours.id, theirs.id)
            there = self.world.segments[segment_name(TARGET, ours.id)]
            assert there.attributes[EVENT_COUNT] == len(events(bytes(there.data)))

    def teardown(self) -> None:
        """Whatever happened: the source is sealed, and two more drivers end the copy."""
        try:
            if hasattr(self, "request"):
                self.end()
        finally:
            if currently_in_test_context():
                note("\n".join(["history:", *self.world.history]))

    def end(self) -> None:
        """The source is sealed, everybody ends, and then three more drivers."""
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
        """An actor runs to its end."""
        for _ in range(MANY):
            if not actor.alive:
                break
            self.turn(actor, Fate.DONE)
        assert not actor.alive, f"{actor.name} does not end: {actor.pending}"
        self.the_target_holds_a_beginning()
        self.what_was_promised_holds()


@searches
def test_the_source_is_followed_exactly_whatever_the_scheduler_does() -> None:
    """Under any order of calls, losses, kills and changes of the source, each byte comes once."""
    run_machine(Following, examples=125, steps=50)


def test_a_driver_without_an_adversary_follows() -> None:
    """Bytes that come later, and scale events, are in the target when the source is sealed."""
    machine = Following()
    machine.source([[20, 9], [30]], [], record=False, every=0.0, ready=1)
    first = machine.alive[0]
    for place in range(4):
        machine.write(place, [40, 8])
        for _ in range(20):
            machine.step(first)
        machine.scale(place, [11], merges=place % 2 == 1)
    machine.seal()
    machine.run(first)
    assert first.error is None
    assert first.result is Outcome.COPIED
    machine.teardown()
