"""The end of a live copy against an adversary: beside two followers, kills and lost messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis.stateful import precondition, rule

from sluice.core.follow.position import LEFT
from sluice.core.values import identity
from sluice.engine.copy.leaving import leave
from sluice.engine.copy.report import Outcome
from sluice.errors import TargetExists
from support.engine.plans import COPY, TARGET
from support.model import segment_name
from support.search import run_machine, searches
from unit.engine.follow.test_follow_machine import EXPECTED, Following

if TYPE_CHECKING:
    from sluice.core.values.wish import Wish
    from support.engine.actors import Actor
    from support.model import ModelStore

ENDED = {"TargetExists", "TargetReplaced", "CopyAborted"}
"""The results of drivers whose copy was ended."""


class Leaving(Following):
    """The machine of `Following`, with a user who ends the copy once it is live."""

    actors = Following.actors

    def __init__(self) -> None:
        super().__init__()
        self.enders: list[Actor] = []
        self.kept: list[bytes] | None = None

    def drive(self, store: ModelStore, clock: Actor, wish: Wish | None) -> object:
        """Run one driver. Return TargetExists if the target of an ended copy refuses it."""
        try:
            return super().drive(store, clock, wish)
        except TargetExists as error:
            return error.reason

    @precondition(lambda self: self.enders or not self.aborted)
    @rule(target=Following.actors)
    def ender(self) -> Actor:
        """End the copy as a user does, if it is live."""
        self.aborted = True
        self.number += 1
        name = f"end {self.number}"
        made = self.actor(name, lambda store, _: leave(COPY, TARGET, store))
        self.enders.append(made)
        return made

    def is_left(self) -> bool:
        """Tell whether the target was left: it has no mark of the copy any more."""
        stream = self.world.streams.get(TARGET)
        begun = any(actor.result is True for actor in self.enders)
        return begun and stream is not None and not identity.is_ours(stream.config.tags, COPY)

    def what_was_promised_holds(self) -> None:
        """Check that a target that was left gets no bytes, and that drivers find no damage."""
        if not self.enders:
            super().what_was_promised_holds()
            return
        for actor in self.alive:
            if not (actor.alive or actor.killed):
                assert actor.error is None or isinstance(actor.error, EXPECTED), actor.error
                assert actor.result not in {"DigestMismatch", "JournalDamaged"}, actor.result
        if self.kept is None and any(actor.result is True for actor in self.enders):
            self.kept = self.world.bytes_of(TARGET)
        if self.kept is not None and not self.foreign:
            assert self.world.bytes_of(TARGET)[: len(self.kept)] == self.kept
            assert not any(self.world.bytes_of(TARGET)[len(self.kept) :])

    def end(self) -> None:
        """End the copy for good, let all other actors end, and check the target."""
        if not self.enders:
            super().end()
            return
        for actor in self.enders:
            self.run(actor)
        last = self.ender()
        self.run(last)
        assert last.error is None, last.error
        if not self.is_left():  # the copy was not live, or was whole before
            super().end()
            return
        for actor in self.alive:
            self.run(actor)
        late = self.driver()
        self.run(late)
        assert late.result in ENDED, late.result
        stream = self.world.streams[TARGET]
        assert not [tag for tag in stream.config.tags if tag.startswith(identity.OURS)]
        assert [name for name in self.world.staging() if self.world.segments[name].data] == []
        values = {
            value
            for one in stream.segments
            for value in self.world.segments[segment_name(TARGET, one.id)].attributes.values()
        }
        assert LEFT in values or self.rescaled or stream.sealed


@searches
def test_a_live_copy_is_ended_whatever_the_scheduler_does() -> None:
    """Its target holds a beginning of its source, has no mark, and does not change any more."""
    run_machine(Leaving, examples=12, steps=40)


def test_an_end_beside_a_follower_without_an_adversary() -> None:
    """The store refuses the append of a follower that was held up."""
    machine = Leaving()
    machine.source([[20, 9], [30]], [], record=False, every=0.0, ready=2)
    first, second = machine.alive
    machine.write(0, [40])
    machine.hold(first, "append ", 0)
    machine.go_on(machine.ender())
    assert machine.is_left()
    machine.go_on(first)
    machine.go_on(second)
    assert first.result in ENDED
    assert Outcome.COPIED not in {first.result, second.result}
    machine.teardown()
