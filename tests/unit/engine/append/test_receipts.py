"""Receipts of appends: their stream, and the room for the next receipt."""

from __future__ import annotations

from contextlib import suppress

import pytest

from sluice.core.copy import record_frames
from sluice.core.copy.steps import WriteReceipt
from sluice.core.values import identity
from sluice.engine.append import receipts
from sluice.engine.copy.report import Outcome
from support.engine.appends import APPEND, appended, driven, put_target, run_append
from support.engine.plans import SOURCE, TARGET
from support.engine.sources import ManualClock, put_source
from support.model import ModelStore, World


def test_a_target_that_is_made_again_each_night_is_appended_to_each_night() -> None:
    """Each night's driver deletes earlier receipts, and the store frees their names by day."""
    world = World()
    store = ModelStore(world)
    put_source(world, [40, 40])
    contents = world.bytes_of(SOURCE)
    for _ in range(2 * receipts.MOST):
        put_target(world, 1)
        assert run_append(APPEND, store, ManualClock()) is Outcome.COPIED
        assert appended(world, contents) == [1]
        assert run_append(APPEND, store, ManualClock()) == "complete before"
        store.seal_stream(TARGET)
        store.delete_stream(TARGET)
        world.kept.clear()


class Held(ModelStore):
    """A store for a driver that is held up between its look and its deletion.

    Attributes:
        late: the name that the driver is about to delete.
    """

    late: str | None = None

    def delete(self, name: str, *, length: int | None = None) -> bool:
        """See Segments. A real store needs two calls for it."""
        if name not in receipts._names(APPEND.copy_id, TARGET, self):
            return super().delete(name, length=length)
        assert self.infos([name]) != [None]
        self.late = name
        raise TimeoutError


def test_a_deletion_that_comes_late_meets_no_later_receipt() -> None:
    """A driver is frozen before it deletes an old receipt, and deletes no newer one later."""
    world = World()
    store, held = ModelStore(world), Held(world)
    put_source(world, [40, 40])
    contents = world.bytes_of(SOURCE)
    for night in range(receipts.MOST - 1):
        put_target(world, 1)
        if night == 1:
            with pytest.raises(TimeoutError):
                run_append(APPEND, held, ManualClock())
            with suppress(TypeError):  # a driver with no work left raises TypeError
                driven(world, WriteReceipt)
            world.kept.clear()  # this takes minutes
        assert run_append(APPEND, store, ManualClock()) in {Outcome.COPIED, "complete before"}
        if night:
            assert held.late is not None
            ModelStore(world).delete(held.late)
        assert appended(world, contents) == [1]
        assert run_append(APPEND, store, ManualClock()) == "complete before"
        assert appended(world, contents) == [1]
        store.seal_stream(TARGET)
        store.delete_stream(TARGET)
        world.kept.clear()


def test_names_that_the_store_has_not_let_go_of_are_waited_for() -> None:
    """The append succeeds, and the receipt follows when a name for it is free."""
    world = World()
    store = ModelStore(world)
    put_source(world, [40, 40])
    contents = world.bytes_of(SOURCE)
    put_target(world, 1)
    world.kept = {
        store.staging_name(TARGET, 0, identity.receipt_key(APPEND.copy_id, number))
        for number in range(receipts.MOST)
    }
    assert run_append(APPEND, store, ManualClock()) == "StoreBusy"
    assert appended(world, contents) == [1]
    world.kept.clear()
    assert run_append(APPEND, store, ManualClock()) is Outcome.COPIED
    assert appended(world, contents) == [1]


def test_a_receipt_of_an_earlier_stream_does_not_count_for_one_whose_age_nobody_can_tell() -> None:
    """The stream was made again, scaled, and truncated past its first segments."""
    world = World()
    store = ModelStore(world)
    put_source(world, [40, 40])
    contents = world.bytes_of(SOURCE)
    put_target(world, 1)
    assert run_append(APPEND, store, ManualClock()) is Outcome.COPIED
    store.seal_stream(TARGET)
    store.delete_stream(TARGET)
    put_target(world, 1)
    world.scale(TARGET, 2, truncate=True)
    assert run_append(APPEND, store, ManualClock()) is Outcome.COPIED
    assert appended(world, contents) == [1]
    assert run_append(APPEND, store, ManualClock()) == "complete before"


def test_a_receipt_counts_however_the_target_was_scaled_since() -> None:
    """This holds even after retention dropped all segments from the time of the receipt."""
    world = World()
    store = ModelStore(world)
    put_source(world, [40, 40])
    put_target(world, 1)
    assert run_append(APPEND, store, ManualClock()) is Outcome.COPIED
    world.scale(TARGET, 3, truncate=True)
    assert run_append(APPEND, store, ManualClock()) == "complete before"


def test_a_receipt_without_a_segment_goes_by_age() -> None:
    """Such receipts, of the former form, count if they are newer than the stream."""
    world = World()
    store = ModelStore(world)
    put_target(world, 1)
    name = store.staging_name(TARGET, 0, identity.receipt_key(APPEND.copy_id, 0))
    store.create(name)
    record = {"record": "receipt", "digest": "d", "bytes": 1, "events": 1, "at": world.time}
    store.append_at(name, 0, record_frames.frame(record))
    assert receipts.find(APPEND.copy_id, TARGET, store) == receipts.Receipt("d", 1, 1, record["at"])
    store.seal_stream(TARGET)
    store.delete_stream(TARGET)
    put_target(world, 1)
    assert receipts.find(APPEND.copy_id, TARGET, store) is None
