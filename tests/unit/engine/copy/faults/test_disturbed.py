"""A copy to a new target that is disturbed at any call of its driver.

A driver leaves out looks between steps whose effect it knows. Even so, the copy is exact, or ends
with an error that names the cause, and streams of other clients do not change.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from sluice.core.values import identity
from sluice.core.values.model import Scaling, StreamConfig
from sluice.engine.copy.abort import abort
from sluice.engine.copy.report import Outcome
from sluice.errors import AbortRefused, SluiceError
from support.engine.actors import Actor
from support.engine.plans import SOURCE, TARGET
from support.engine.sources import REQUEST, events_of, put_source
from support.model import Fate, ModelStore, segment_name
from support.search import FAR, searches, some
from unit.engine.copy.test_protocol_machine import Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = "two segments, one of them in parts"
SCALED = "a source that was scaled to fewer segments"
EMPTY = "an empty source"
SEALED = "a target that is sealed"
SHAPES = {
    PARTS: ([[9, 30], [20]], [], False),
    SCALED: ([[9], [20], [17]], [("split", 0), ("merge", 0), ("merge", 0)], False),
    EMPTY: ([[], []], [], False),
    SEALED: ([[9], [20]], [], True),
}
DONE = (Outcome.COPIED, Outcome.ALREADY_COMPLETE, "complete before")
GONE = ("TargetReplaced", "CopyAborted", "StreamNotFound")
FOREIGN = StreamConfig(scaling=Scaling(min_segments=1), tags=("team=c",))
EVENT = events_of([20], seed=999)
_TURNS = (
    (range(1, 60, 23), (1, 13), (9, 43, 1000))
    if FAR == 1
    else (range(110), (*range(1, 14), 21), (1, 4, 9, 16, 30, 43, 60, 1000))
)
"""Calls of a driver, of an abort beside it, and again of the driver."""


def _machine(shape: str) -> Protocol:
    """Make two drivers that have not made a call yet."""
    shapes, moves, seal = SHAPES[shape]
    machine = Protocol()
    machine.source(shapes=shapes, moves=moves, divided=True, told=None, seal=seal)
    return machine


def _finish(machine: Protocol, actor: Actor) -> object:
    """Run an actor to its end, and return its result."""
    while actor.alive:
        machine.step(actor)
    assert actor.error is None
    return actor.result


def _aborter(machine: Protocol) -> Actor:
    """Make an abort that has not made a call yet."""
    machine.aborted = True

    def body(store: ModelStore, _: Actor) -> object:
        try:
            return abort(REQUEST.copy_id, TARGET, store)
        except AbortRefused:
            return "refused"

    return Actor("abort", machine.world, body)


def _abort(machine: Protocol) -> None:
    """Abort the copy, unless it is too late."""
    actor = _aborter(machine)
    while actor.alive:
        actor.move()
    assert actor.error is None


def _nothing_staged_is_left(machine: Protocol) -> None:
    staged = machine.world.staging()
    assert not any(machine.world.segments[name].data for name in staged), machine.world.history


def _killed(machine: Protocol, held: Actor) -> None:
    """Kill the driver, and let another one go on."""
    held.kill()
    assert _finish(machine, machine.alive[1]) in DONE
    machine.teardown()


def _overtaken(machine: Protocol, held: Actor) -> None:
    """Let another driver do all of the copy before this one goes on."""
    assert _finish(machine, machine.alive[1]) in DONE
    assert _finish(machine, held) in DONE
    _nothing_staged_is_left(machine)
    machine.teardown()


def _passed(machine: Protocol, held: Actor) -> None:
    """Let another driver go on to its merge, and wait there for the first one's end."""
    other = machine.alive[1]
    while other.alive and not other.pending.startswith(("merge out/t/0 ", "update_stream")):
        machine.step(other)
    assert _finish(machine, held) in DONE
    assert _finish(machine, other) in DONE
    _nothing_staged_is_left(machine)
    machine.teardown()


def _passed_by_little(machine: Protocol, held: Actor) -> None:
    """Let another driver stage some bytes, and wait there for the first one's end."""
    other = machine.alive[1]
    while other.alive and not other.pending.startswith("append "):
        machine.step(other)
    assert _finish(machine, held) in DONE
    assert _finish(machine, other) in DONE
    _nothing_staged_is_left(machine)
    machine.teardown()


def _reply_lost(machine: Protocol, held: Actor) -> None:
    """Lose the reply of a call that was done."""
    held.move(Fate.REPLY_LOST)
    if held.alive or held.error is None:
        assert _finish(machine, held) in DONE
    machine.teardown()


def _aborted(machine: Protocol, held: Actor) -> None:
    """Abort the copy unless it is too late, then let the driver go on."""
    _abort(machine)
    assert _finish(machine, held) in (*DONE, *GONE)
    machine.teardown()


def _begun_again(machine: Protocol, held: Actor) -> None:
    """Abort the copy and let another driver begin it again, then let this one go on."""
    _abort(machine)
    other = machine.alive[1]
    while other.alive and not other.pending.startswith(("append ", "merge", "update_stream")):
        machine.step(other)
    assert _finish(machine, held) in (*DONE, *GONE)
    assert _finish(machine, other) in (*DONE, *GONE)
    machine.teardown()


def _deleted(machine: Protocol, held: Actor) -> None:
    """Delete the target as another client; the driver reports it unless it was whole before."""
    was_whole = machine.is_whole()
    there = _delete(machine)
    ended = _run(held)
    assert ended in (*GONE, *DONE) if there else DONE, ended
    if ended in DONE and not was_whole:
        assert machine.is_whole()  # the driver made it again, since no record existed
        machine.assert_whole()


def _replaced(machine: Protocol, held: Actor) -> None:
    """Make a stream in the target's place as another client; it does not change.

    The exception is the moment before a call that changes a stream by its name: stores have no
    condition for that.
    """
    was_whole = machine.is_whole()
    there = _delete(machine)
    ModelStore(machine.world).create_stream(TARGET, FOREIGN)
    last = held.pending.startswith(("update_stream", "seal_stream", "truncate_stream"))
    ended = _run(held)
    assert ended in (*GONE, "TargetExists", *(DONE if was_whole or last else ())), ended
    assert there or ended == "TargetExists"
    if not last:
        stream = machine.world.streams[TARGET]
        assert (stream.config, stream.sealed) == (FOREIGN, False), machine.world.history
        assert machine.world.bytes_of(TARGET) == [b""]


def _written(machine: Protocol, held: Actor) -> None:
    """Write to the target; the copy refuses that, or is whole beside the event."""
    stream = machine.world.streams.get(TARGET)
    if stream is None or stream.sealed:
        return
    name = segment_name(TARGET, stream.segments[0].id)
    machine.world.segments[name].data += EVENT
    ended = _run(held)
    assert ended in (*DONE, "TargetReplaced"), ended
    if ended in DONE:
        found = machine.world.bytes_of(TARGET)
        there = [sum(data.count(one) for data in found) for one in machine.contents if one]
        assert there == [1] * len(there)
        assert sum(map(len, found)) == sum(map(len, machine.contents)) + len(EVENT)


def _scaled(machine: Protocol, held: Actor) -> None:
    """Scale the target; the copy refuses that, or was whole by then."""
    stream = machine.world.streams.get(TARGET)
    if stream is None or stream.sealed:
        return
    machine.world.scale(TARGET, len(stream.segments) + 1)
    ended = _run(held)
    assert ended in (*DONE, "TargetReplaced"), ended
    if ended in DONE:
        found = [data for data in machine.world.bytes_of(TARGET) if data]
        assert found == [data for data in machine.contents if data]


def _source_deleted(machine: Protocol, held: Actor) -> None:
    """Delete the source; the driver reports that, or has all bytes."""
    store = ModelStore(machine.world)
    store.seal_stream(SOURCE)
    store.delete_stream(SOURCE)
    ended = _run(held)
    assert ended in (*DONE, "SourceNotFound", "SourceReplaced"), ended
    if ended in DONE:
        machine.assert_whole()


def _source_made_again(machine: Protocol, held: Actor) -> None:
    """Make the source anew with other bytes; the copy has the bytes of one of the two."""
    store = ModelStore(machine.world)
    known = machine.contents
    store.seal_stream(SOURCE)
    store.delete_stream(SOURCE)
    put_source(machine.world, [30, 30, 30], [30, 30, 30], seed=77)
    other = machine.world.bytes_of(SOURCE)
    ended = _run(held)
    assert ended in (*DONE, "SourceReplaced", "IntegrityError"), ended
    if ended in DONE:
        assert machine.world.bytes_of(TARGET) in (known, other)


EVENTS = {
    "killed": _killed,
    "overtaken": _overtaken,
    "passed": _passed,
    "passed by little": _passed_by_little,
    "reply lost": _reply_lost,
    "aborted": _aborted,
    "begun again": _begun_again,
    "deleted": _deleted,
    "replaced": _replaced,
    "written": _written,
    "scaled": _scaled,
    "source deleted": _source_deleted,
    "source made again": _source_made_again,
}


def _run(actor: Actor) -> object:
    """Run an actor to its end in a world that another client has changed."""
    while actor.alive:
        actor.move()
    if actor.error is None:
        return actor.result
    assert isinstance(actor.error, SluiceError)
    return actor.error.reason


def _delete(machine: Protocol) -> bool:
    """Delete the target, and tell whether it existed."""
    store = ModelStore(machine.world)
    if TARGET not in machine.world.streams:
        return False
    store.seal_stream(TARGET)
    return store.delete_stream(TARGET)


@searches
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_whatever_happens_at_whichever_call_the_copy_is_exact_or_refused(
    shape: str, event: Callable[[Protocol, Actor], None]
) -> None:
    """Each event comes before each call in turn. A far search takes all calls."""
    calls = 0
    while True:
        machine = _machine(shape)
        held = machine.alive[0]
        for _ in range(calls):
            if held.alive:
                machine.step(held)
        if not held.alive:
            break
        event(machine, held)
        calls += some(67)
    assert calls > 30


def _moves(machine: Protocol, actor: Actor, calls: int, beside: Actor) -> None:
    """Let an actor make so many calls, apart from reads.

    It never deletes a segment that another actor may still merge.
    """
    while actor.alive and calls:
        calls -= not actor.pending.startswith("read ")
        verb, _, rest = actor.pending.partition(" ")
        what, _, merged = beside.pending.partition(" <- ")
        if verb == "delete" and what.startswith("merge ") and merged == rest:
            into = machine.world.segments.get(what.removeprefix("merge "))
            assert into is None or identity.ABORTED in into.attributes.values(), (
                machine.world.history
            )
        actor.move()


@searches
@pytest.mark.parametrize("shape", SHAPES)
def test_a_slow_abort_leaves_nothing_of_what_a_driver_has_staged_meanwhile(shape: str) -> None:
    """The abort waits before each of its calls in turn, while the driver goes on for a while.

    No deletion meets a merge. When both have ended, and the driver was not faster, no staged bytes
    are left. In either case another driver makes the copy whole.
    """
    tried = 0
    for calls, waits, more in product(*_TURNS):
        machine = _machine(shape)
        driver, actor = machine.alive[0], _aborter(machine)
        driver.move()
        actor.move()
        _moves(machine, driver, calls, actor)
        _moves(machine, actor, waits, driver)
        if not (driver.alive and actor.alive):
            continue
        _moves(machine, driver, more, actor)
        _moves(machine, actor, 1000, driver)
        assert actor.error is None, actor.error
        assert _run(driver) in (*DONE, *GONE)
        _nothing_staged_is_left(machine)
        machine.teardown()
        tried += 1
    assert tried > 5
