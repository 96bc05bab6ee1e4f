"""An append that is cut off, or overtaken, at any call to the store.

Some calls are tried, more of them where more can go wrong. A far search tries each call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.values.model import TransactionState
from sluice.engine.copy.abort import abort
from sluice.engine.copy.report import Outcome
from sluice.errors import AbortRefused
from support.engine.actors import Actor
from support.engine.appends import APPEND, run_append
from support.engine.plans import TARGET
from support.model import Fate
from support.search import searches, some
from unit.engine.append.test_machine import Appending

if TYPE_CHECKING:
    from collections.abc import Callable

DONE = (Outcome.COPIED, Outcome.ALREADY_COMPLETE)
GENERATIONS = "two generations into fewer segments"
TWO_SOURCES = "two sources, one after the other"
SHAPES = {
    GENERATIONS: ([[9], [20], [17]], [("split", 0)], 1),
    "one segment, in parts, into more": ([[9, 30]], [], 2),
    "the same layout": ([[9], [20]], [], 2),
    TWO_SOURCES: ([[9], [20]], [], 1),
}


def _machine(shape: str) -> Appending:
    """Make two drivers that have not made a call yet."""
    shapes, moves, count = SHAPES[shape]
    machine = Appending()
    second = [[30]] if shape is TWO_SOURCES else None
    machine.streams(
        shapes=shapes, moves=moves, count=count, second=second, divided="parts" in shape
    )
    return machine


def _finish(machine: Appending, actor: Actor) -> None:
    while actor.alive:
        machine.turn(actor, Fate.DONE)
    machine.all_or_nothing_of_a_generation_is_readable()
    machine.live_events_are_there_in_order()
    machine.what_was_promised_holds()


def _killed(machine: Appending, held: Actor) -> None:
    """Kill the driver and let another one go on."""
    machine.killed = True
    held.kill()
    _finish(machine, machine.alive[1])


def _overtaken(machine: Appending, held: Actor) -> None:
    """Let another driver do all of the copy before this one goes on."""
    _finish(machine, machine.alive[1])
    assert machine.alive[1].result in (*DONE, "complete before")
    _finish(machine, held)


def _passed(machine: Appending, held: Actor) -> None:
    """Let another driver go on until all is under transactions; this one finishes first."""
    other = machine.alive[1]
    while other.alive and not other.pending.startswith("commit_transaction"):
        machine.turn(other, Fate.DONE)
    _finish(machine, held)
    _finish(machine, other)


def _reply_lost(machine: Appending, held: Actor) -> None:
    """Lose the reply of a call that was done."""
    held.move(Fate.REPLY_LOST)
    _finish(machine, held)


def _dropped(machine: Appending, held: Actor) -> None:
    """Drop the open transactions, as the store may."""
    for one in machine.open():
        machine.world.drop(TARGET, one)
    _finish(machine, held)


def _half_dropped(machine: Appending, held: Actor) -> None:
    """Drop only the latest transaction."""
    for one in machine.open()[-1:]:
        machine.world.drop(TARGET, one)
    _finish(machine, held)


def _half_dropped_and_aborted(machine: Appending, held: Actor) -> None:
    """Drop the latest one and kill the driver; abort the copy unless a part is appended; rerun."""
    for one in machine.open()[-1:]:
        machine.world.drop(TARGET, one)
    machine.killed = True
    held.kill()
    _aborted(machine, machine.alive[1])


def _scaled(machine: Appending, held: Actor) -> None:
    """Scale the target, as another client may."""
    machine.scaled = True
    machine.world.scale(TARGET, 3)
    _finish(machine, held)


def _aborted(machine: Appending, held: Actor) -> None:
    """Abort the copy unless it is too late, then let the driver go on."""
    machine.aborted = True

    def body(store: object, _: object) -> object:
        try:
            return abort(APPEND.copy_id, TARGET, store)  # type: ignore[arg-type]
        except AbortRefused:
            return "refused"

    one = Actor("abort", machine.world, body)
    while one.alive:
        one.move()
    assert one.error is None
    _finish(machine, held)


EVENTS = {
    "killed": _killed,
    "overtaken": _overtaken,
    "passed": _passed,
    "reply lost": _reply_lost,
    "dropped": _dropped,
    "half dropped": _half_dropped,
    "half dropped and aborted": _half_dropped_and_aborted,
    "scaled": _scaled,
    "aborted": _aborted,
}


THOROUGHLY = (_killed, _overtaken, _half_dropped_and_aborted, _aborted)


@searches
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_whatever_happens_at_whichever_call_all_is_appended_once(
    shape: str, event: Callable[[Appending, Actor], None]
) -> None:
    """In the end each byte of the source is there once, the target is as it was, with a receipt."""
    calls = 0
    while True:
        machine = _machine(shape)
        held = machine.alive[0]
        for _ in range(calls):
            if held.alive:
                machine.turn(held, Fate.DONE)
        if not held.alive:
            break
        machine.write(0.1)
        event(machine, held)
        machine.write(0.1)
        machine.teardown()
        calls += some(89 if shape == GENERATIONS and event in THOROUGHLY else 197)
    assert calls > 50
    assert all(one.state is not TransactionState.OPEN for one in _transactions(machine))


def _transactions(machine: Appending) -> list[object]:
    return list(machine.world.streams[TARGET].transactions.values())


@searches
@pytest.mark.parametrize("shape", SHAPES)
def test_two_copies_that_append_at_once_wait_for_each_other(shape: str) -> None:
    """At any interleaving both copies are complete, and the target has its layout again."""
    calls = 0
    while True:
        machine = _machine(shape)
        held = machine.alive[0]
        for _ in range(calls):
            if held.alive:
                machine.turn(held, Fate.DONE)
        if not held.alive:
            break
        _run(machine, "cd" * 16)
        while held.alive:
            held.move()
        for copy_id in (APPEND.copy_id, "cd" * 16):
            _run(machine, copy_id)
        assert set(machine.found()) <= {1, 2}
        assert machine.found() == [2 if content else 1 for content in machine.contents]
        stream = machine.world.streams[TARGET]
        assert stream.config == machine.before
        assert [segment.keys for segment in stream.segments] == machine.layout
        calls += some(71)


def _run(machine: Appending, copy_id: str) -> None:
    """Run a driver of a copy to its end, or until its patience is over."""
    request = machine.request.model_copy(update={"copy_id": copy_id})
    actor = Actor(copy_id, machine.world, lambda store, clock: run_append(request, store, clock))
    while actor.alive:
        actor.move()
    assert actor.error is None
