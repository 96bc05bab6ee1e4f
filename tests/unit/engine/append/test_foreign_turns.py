"""A log of turns that another client has written."""

from __future__ import annotations

import pytest

from sluice.core.copy import record_frames
from sluice.core.values import identity
from sluice.engine.append import scaling_lock
from sluice.errors import JournalDamaged
from support.engine.appends import put_target
from support.engine.plans import COPY, TARGET
from support.model import ModelStore, World

FOREIGN = {
    "short": b"x",
    "no frames": b"x" * 200,
    "no id": record_frames.frame({"record": "turn", "copy": "team/orders" + "." * 21}),
    "no text": record_frames.frame({"record": "turn", "copy": "\ud800" * 6}),
    "another record": record_frames.frame({"record": "note", "copy": "0" * 32}),
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_log_of_turns_that_is_none_is_named_and_left_alone(data: bytes) -> None:
    """The bytes are treated as foreign. No copy takes a turn in the log."""
    world = World()
    put_target(world, 1)
    store = ModelStore(world)
    name = store.staging_name(TARGET, 0, identity.turns_key())
    store.create(name)
    store.append_at(name, 0, data)
    with pytest.raises(JournalDamaged, match=r"is no log of turns|not records|damaged"):
        scaling_lock.holder(TARGET, store)
    with pytest.raises(JournalDamaged):
        scaling_lock.take(COPY, TARGET, store)
    assert world.segments[name].data == data
