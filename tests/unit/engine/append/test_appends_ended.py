"""Appends that end before they are done: aborted, deleted, or with a store that forgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.copy import append_progress, record_frames
from sluice.core.copy.steps import (
    Commit,
    DeleteJournal,
    MergeIntoTransaction,
    Open,
    RecordCommitted,
    RecordDecision,
    RestoreLayout,
    RestorePolicy,
    Step,
    Transfer,
    WriteReceipt,
)
from sluice.core.values.model import TransactionState
from sluice.core.workloads.answers import Complete
from sluice.engine.copy.abort import abort
from sluice.engine.copy.query import abandon, ask, held
from sluice.engine.copy.report import Outcome
from sluice.errors import AbortRefused
from support.engine.appends import APPEND, appended, driven, kept, put_target
from support.engine.plans import ADDRESS, TARGET
from support.engine.sources import copy_all, planned, put_scaled_source
from support.model import ModelStore, World

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    "until", [Transfer, Open, RestoreLayout, RestorePolicy, MergeIntoTransaction, RecordDecision]
)
def test_what_is_not_decided_is_dropped_without_a_trace(until: type[Step]) -> None:
    """Deleting the resource leaves the target as it was, with nothing beside it."""
    world = World()
    contents = put_scaled_source(world, [[9, 30], [20]], [("split", 0)])
    put_target(world, 4)
    before = world.streams[TARGET].config
    layout = [segment.keys for segment in world.streams[TARGET].segments]
    driven(world, until)
    store = ModelStore(world)
    for _ in range(2):
        abandon(APPEND, sources=[store], target=store)
        assert appended(world, contents) == [0 for content in contents if content]
        stream = world.streams[TARGET]
        assert stream.config == before
        assert [segment.keys for segment in stream.segments] == layout
        assert not set(world.staging()) - kept()
    (report,) = copy_all(store, planned(store, APPEND))
    assert report.outcome is Outcome.COPIED


@pytest.mark.parametrize("until", [Commit, RecordCommitted, WriteReceipt, DeleteJournal])
def test_what_is_decided_is_finished(until: type[Step]) -> None:
    """A deletion at that time completes the append; a second one finds it complete."""
    world = World()
    contents = put_scaled_source(world, [[9, 30], [20]], [("split", 0)])
    put_target(world, 4)
    driven(world, until)
    store = ModelStore(world)
    for _ in range(2):
        abandon(APPEND, sources=[store], target=store)
        assert appended(world, contents) == [1 for content in contents if content]
        assert set(world.staging()) == kept()


def _half_appended(world: World, *, noted: bool) -> None:
    """Make a copy whose driver died, and whose store dropped the second of two transactions."""
    store = ModelStore(world)
    copy = driven(world, Commit)
    first, second = world.streams[TARGET].transactions.values()
    store.commit_transaction(TARGET, first.key)
    world.drop(TARGET, second)
    world.commit(TARGET)
    assert first.state is TransactionState.COMMITTED
    if noted:
        copy.perform(copy.look())


@pytest.mark.parametrize("noted", [False, True], ids=["not noted", "noted"])
def test_a_beginning_that_is_appended_is_never_appended_again(
    noted: bool,  # noqa: FBT001 - a parameter
) -> None:
    """An abort is refused. A deletion leaves it, and a copy of that name appends the rest."""
    world = World()
    contents = put_scaled_source(world, [[9, 30], [20]], [("split", 0)])
    put_target(world, 1)
    before = world.streams[TARGET].config
    layout = [segment.keys for segment in world.streams[TARGET].segments]
    store = ModelStore(world)
    _half_appended(world, noted=noted)
    beginning = appended(world, contents)
    assert set(beginning) == {0, 1}

    for _ in range(2):
        with pytest.raises(AbortRefused):
            abort(APPEND.copy_id, TARGET, store)
        done = abandon(APPEND, sources=[store], target=store)
        assert "a beginning is appended" in done
        assert appended(world, contents) == beginning
        assert [segment.keys for segment in world.streams[TARGET].segments] == layout
        assert world.streams[TARGET].config == before
        assert len(set(world.staging()) - kept()) == 1, "the journal"
    (report,) = copy_all(store, planned(store, APPEND))
    assert report.outcome is Outcome.COPIED
    assert appended(world, contents) == [1 for content in contents if content]
    assert set(world.staging()) == kept()


class _HeldUp(ModelStore):
    """A store in which another client's `meanwhile` runs right after an abort was recorded."""

    def __init__(self, world: World, meanwhile: Callable[[], None]) -> None:
        super().__init__(world)
        self._meanwhile = meanwhile

    def append_at(self, name: str, offset: int, data: bytes) -> bool:
        done = super().append_at(name, offset, data)
        if record_frames.frame(append_progress.aborted_record()) in data:
            self._meanwhile()
        return done


def test_an_abort_that_was_held_up_leaves_the_next_run_alone() -> None:
    """Meanwhile another client ended the copy, and a new run has committed its beginning."""
    world = World()
    contents = put_scaled_source(world, [[9, 30], [20]], [("split", 0)])
    put_target(world, 1)
    store = ModelStore(world)
    driven(world, MergeIntoTransaction)

    def meanwhile() -> None:
        abort(APPEND.copy_id, TARGET, store)
        driven(world, Commit)
        *_, first, _ = world.streams[TARGET].transactions.values()
        store.commit_transaction(TARGET, first.key)
        world.commit(TARGET)
        assert 1 in appended(world, contents)

    abort(APPEND.copy_id, TARGET, _HeldUp(world, meanwhile))
    (report,) = copy_all(store, planned(store, APPEND))
    assert report.outcome is Outcome.COPIED
    assert appended(world, contents) == [1 for content in contents if content]
    assert set(world.staging()) == kept()


@pytest.mark.parametrize("noted", [False, True], ids=["not noted", "noted"])
def test_a_beginning_stays_in_a_target_that_was_sealed(
    noted: bool,  # noqa: FBT001 - a parameter
) -> None:
    """The rest cannot follow, so a deletion leaves nothing beside the target."""
    world = World()
    contents = put_scaled_source(world, [[9, 30], [20]], [("split", 0)])
    put_target(world, 1)
    store = ModelStore(world)
    _half_appended(world, noted=noted)
    beginning = appended(world, contents)
    store.seal_stream(TARGET)
    for _ in range(2):
        abandon(APPEND, sources=[store], target=store)
        assert appended(world, contents) == beginning
        assert not set(world.staging()) - kept()


@pytest.mark.parametrize("gone", [False, True], ids=["sealed", "deleted"])
def test_what_is_decided_and_cannot_be_is_dropped(gone: bool) -> None:  # noqa: FBT001 - a parameter
    """Sealing a stream ends its transactions, and no client can open others."""
    world = World()
    put_scaled_source(world, [[9]], [])
    put_target(world, 1)
    store = ModelStore(world)
    driven(world, Commit)
    store.seal_stream(TARGET)
    if gone:
        store.delete_stream(TARGET)
    abandon(APPEND, sources=[store], target=store)
    assert not set(world.staging()) - kept()


def test_what_nobody_knows_any_more_is_said_until_the_copy_is_deleted() -> None:
    """The store forgets a transaction after a day, so a user has to check."""
    world = World()
    put_scaled_source(world, [[9]], [])
    put_target(world, 1)
    store = ModelStore(world)
    copy = driven(world, Commit)
    copy.perform(copy.look())
    world.streams[TARGET].transactions.clear()
    for _ in range(2):  # trying again must not append again
        (report,) = copy_all(store, planned(store, APPEND))
        assert report.error is not None
        assert report.error.reason == "OutcomeUnknown"
    abandon(APPEND, sources=[store], target=store)
    assert not set(world.staging()) - kept()


def test_an_append_that_is_done_tells_what_the_stream_holds() -> None:
    """The result tells it as far as it is known: a later deletion of the stream is no failure."""
    world = World()
    contents = put_scaled_source(world, [[9, 30], [20]], [("split", 0)])
    put_target(world, 4)
    store = ModelStore(world)
    before = held(TARGET, store)
    assert before is not None
    copy_all(store, planned(store, APPEND))
    place = (ADDRESS, store)
    found = ask(APPEND, sources=[place], target=place, known=None)
    assert isinstance(found, Complete)
    added = sum(len(content) for content in contents)
    assert (found.appended, found.bytes, found.held) == (True, added, before + added)
    del world.streams[TARGET]
    assert held(TARGET, store) is None
