"""The number of a copy's calls: about 10 ms each to the controller, about 1 ms all others."""

from __future__ import annotations

from sluice.engine.copy.stream_copy import StreamCopyWork
from support.engine.appends import APPEND, put_target
from support.engine.counted import Calls, calls_of
from support.engine.sources import BEFORE_PUBLISHING, REQUEST, drive, put_source
from support.model import ModelStore, World


def test_a_copy_asks_the_store_so_often() -> None:
    """A small copy to a new target, from planning to its end: another call needs a reason."""
    world = World()
    put_source(world, [9], [20])
    calls = calls_of(REQUEST, world)
    assert calls.controller == {
        "create_stream": 1,
        "describe": 6,
        "scope_exists": 2,
        "update_stream": 1,
    }
    assert calls.segments == {
        "append": 2,
        "append_at": 4,
        "attributes": 5,
        "create": 3,
        "delete": 1,
        "infos": 10,
        "merge": 2,
        "read": 4,
        "seal": 2,
        "search": 8,
        "set_attribute": 2,
        "setup": 2,
    }


def test_an_append_asks_the_store_so_often() -> None:
    """A small append to a stream with the source's key ranges, from planning to its end."""
    world = World()
    put_source(world, [9], [20])
    put_target(world, 2)
    calls = calls_of(APPEND, world)
    assert calls.controller == {
        "commit_transaction": 1,
        "describe": 18,
        "had": 1,
        "keep_transaction": 5,
        "open_transaction": 1,
        "settled": 1,
        "transaction": 1,
    }
    assert calls.segments == {
        "append": 2,
        "append_at": 11,
        "attributes": 16,
        "create": 5,
        "delete": 1,
        "infos": 44,
        "merge": 2,
        "read": 14,
        "seal": 2,
        "search": 26,
        "set_attribute": 2,
        "setup": 2,
    }


def test_a_driver_that_goes_on_loads_the_journal_once() -> None:
    """Before its first full look it checks the target, and whether an abort was cut off."""
    world = World()
    put_source(world, [9], [20])
    plan = drive(world, BEFORE_PUBLISHING).plan
    calls = Calls()
    store = ModelStore(world, calls.gate, block=1 << 20)
    copy = StreamCopyWork(plan, 0, [store], store)
    assert copy.begin(permit=None) is None
    assert calls.controller == {"describe": 1}
    assert calls.segments == {"search": 1, "read": 1, "attributes": 1}
