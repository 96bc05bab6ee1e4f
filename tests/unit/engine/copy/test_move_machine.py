"""Moves against an adversary that writes to the source and scales it until it is sealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from sluice.core.values import identity
from sluice.core.values.model import KeyRange
from sluice.engine.copy.report import Outcome
from sluice.errors import SourceNotFound, SourceReplaced
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import REQUEST, events_of, put_scaled_source
from support.model import EVENT_COUNT, segment_name
from support.search import run_machine, searches
from unit.engine.copy.test_protocol_machine import DAMAGE, EXPECTED, MANY, Protocol

if TYPE_CHECKING:
    from support.engine.actors import Actor


class Moved(Protocol):
    """Drivers and aborts of a move, whose source takes events until it is sealed."""

    damage = tuple(word for word in DAMAGE if word != "SourceReplaced")
    expected = (*EXPECTED, SourceNotFound, SourceReplaced)  # for drivers that come too late

    @initialize(
        shapes=st.lists(
            st.lists(st.integers(0, 40), min_size=1, max_size=4), min_size=1, max_size=3
        ),
        moves=st.lists(
            st.tuples(st.sampled_from(["split", "merge", "truncate"]), st.integers(0, 3)),
            max_size=2,
        ),
        divided=st.booleans(),
        told=st.sampled_from([None, 0, 1]),
    )
    def source(  # type: ignore[override]
        self,
        shapes: list[list[int]],
        moves: list[tuple[str, int]],
        *,
        divided: bool,
        told: int | None,
    ) -> None:
        """Make a source of a few segments, in one or more parts each."""
        put_scaled_source(self.world, shapes, moves)
        self.request = REQUEST.model_copy(update={"move": True})
        self.divided = divided
        self.told = told
        self.seed = 1_000
        self.remember()
        for _ in range(2):
            self.driver()

    def remember(self) -> None:
        """Remember the source's content and its events."""
        self.contents = self.world.bytes_of(SOURCE)
        self.counts = [
            self.world.segments[segment_name(SOURCE, segment.id)].attributes[EVENT_COUNT]
            for segment in self.world.streams[SOURCE].readable
        ]

    def goes_on(self) -> bool:
        """Tell whether the source still takes events."""
        stream = self.world.streams.get(SOURCE)
        return stream is not None and not stream.sealed

    @rule(place=st.integers(0, 3), sizes=st.lists(st.integers(0, 40), min_size=1, max_size=3))
    def write(self, place: int, sizes: list[int]) -> None:
        """Write to the source as another client."""
        if self.goes_on():
            active = self.world.streams[SOURCE].segments
            there = self.world.segments[segment_name(SOURCE, active[place % len(active)].id)]
            self.seed += 1
            there.data += events_of(sizes, self.seed)
            there.attributes[EVENT_COUNT] += len(sizes)
            self.remember()

    @rule(place=st.integers(0, 3))
    def scale(self, place: int) -> None:
        """Scale the source."""
        if self.goes_on():
            active = self.world.streams[SOURCE].segments
            one = active[place % len(active)]
            middle = (one.keys.low + one.keys.high) / 2
            halves = [(one.keys.low, middle), (middle, one.keys.high)]
            ranges = [KeyRange(low=low, high=high) for low, high in halves]
            self.world.replace(SOURCE, {one.id}, ranges)
            self.remember()

    @rule(
        actor=Protocol.actors,
        kind=st.sampled_from(["read", "append ", "setup", "seal_stream", "generations", "infos"]),
        again=st.integers(1, 4),
        sizes=st.lists(st.integers(0, 40), min_size=1, max_size=3),
    )
    def write_meanwhile(self, actor: Actor, kind: str, again: int, sizes: list[int]) -> None:
        """Write to the source while a driver is held up."""
        for _ in range(again):
            for _ in range(MANY):
                if not actor.alive or actor.pending.startswith(kind):
                    break
                self.step(actor)
            self.step(actor)
        self.write(again, sizes)

    @invariant()
    def the_source_is_there_until_the_target_is_whole(self) -> None:
        """Check that the source is deleted only after a whole target has all of it."""
        if SOURCE not in self.world.streams:
            stream = self.world.streams[TARGET]
            assert identity.completed(stream.config.tags, COPY) is not None
            self.assert_whole()

    @invariant()
    def staging_holds_beginnings(self) -> None:
        """Check that staged bytes are a stretch of one source segment."""
        for name in self.world.staging():
            data = bytes(self.world.segments[name].data)
            if b'{"record"' not in data[:20]:
                assert any(data in whole for whole in self.contents), name

    def teardown(self) -> None:
        """Let one more driver finish the move, and check that the source is gone."""
        super().teardown()
        assert SOURCE not in self.world.streams


@searches
def test_a_move_is_exact_whatever_the_scheduler_does() -> None:
    """The target has all that the source ever took until its seal. Then the source is deleted."""
    run_machine(Moved, examples=3, steps=40)


def test_a_move_without_an_adversary_moves() -> None:
    """Bytes and segments that arrive during the copy are copied, too."""
    machine = Moved()
    machine.source(shapes=[[5, 30, 3], [17]], moves=[("split", 0)], divided=True, told=None)
    actor = machine.alive[0]
    while not actor.pending.startswith("append "):
        actor.move()
    machine.write(0, [20, 30])
    machine.scale(1)
    machine.write(2, [7])
    while actor.alive:
        actor.move()
    assert actor.error is None, actor.error
    assert actor.result is Outcome.COPIED
    machine.teardown()
