"""A driver that is held up before it makes the journal, and goes on minutes later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.steps import DeleteJournal, Done, Open, WriteReceipt
from sluice.engine.copy.abort import abort
from sluice.engine.copy.planning import resolve
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.errors import JournalDamaged
from support.engine.appends import APPEND, appended, driven, put_target, run_append
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import REQUEST, ManualClock, begun, go, put_source
from support.model import ModelStore, World

if TYPE_CHECKING:
    from sluice.core.copy.planner import CopyRequest


@pytest.mark.parametrize("what", ["the segment", "the plan as well"])
@pytest.mark.parametrize("place", ["before", "behind"])
def test_a_journal_that_is_made_late_hides_none(what: str, place: str) -> None:
    """This holds for a name before that of the run's journal, and for one after it.

    Meanwhile others began and aborted the copy, and began it again. That run has committed, and its
    driver was killed before it left the receipt.
    """
    world = World()
    store = ModelStore(world)
    put_source(world, [40, 40])
    put_target(world, 2)
    contents = world.bytes_of(SOURCE)
    old = resolve(APPEND, [store], store).plan
    assert old is not None
    late = CopyJournal(store, COPY, TARGET)
    assert late.load() is None
    if place == "before":  # the aborted run's name is not free for the next run
        driven(world, Open)
        assert abort(COPY, TARGET, store)
    run = driven(world, WriteReceipt)
    assert appended(world, contents) == [1]
    world.kept.clear()
    late.name = late._names[0 if place == "before" else 5]
    assert late.name != run.journal.name
    assert store.create(late.name)
    if what == "the plan as well":
        late.begin(old)
    ended = [run_append(APPEND, store, ManualClock()) for _ in range(3)]
    assert ended[-1] == "complete before", ended
    assert appended(world, contents) == [1]


@pytest.mark.parametrize("request_", [REQUEST, APPEND], ids=["a new target", "an append"])
def test_a_journal_that_is_begun_at_the_very_end_is_deleted(request_: CopyRequest) -> None:
    """A driver that has deleted its own journal still looks for another one."""
    world = World()
    put_source(world, [40, 40])
    if request_.append:
        put_target(world, 2)
    copy = begun(world, request_)
    copy.perform(go(copy, world, DeleteJournal))
    CopyJournal(ModelStore(world), COPY, TARGET).begin(copy.plan)
    assert isinstance(copy.look(), DeleteJournal)
    assert isinstance(go(copy, world), Done)
    assert not CopyJournal(ModelStore(world), COPY, TARGET).is_there()


def test_of_two_journals_that_were_begun_at_once_all_go_by_one() -> None:
    """Each driver chooses the same journal, and the other one is deleted."""
    world = World()
    store = ModelStore(world)
    put_source(world, [40, 40])
    put_target(world, 2)
    plan = resolve(APPEND, [store], store).plan
    assert plan is not None
    second = CopyJournal(store, COPY, TARGET)
    second.name = second._names[1]
    assert store.create(second.name)
    second.begin(plan)
    first = second._names[0]
    assert store.create(first)
    assert store.append_at(first, 0, world_bytes(world, second.name))
    assert CopyJournal(store, COPY, TARGET).load() is not None
    assert {first, second.name} <= set(world.segments), "who only looks deletes nothing"
    third = CopyJournal(store, COPY, TARGET)
    assert third.begin(plan) == plan
    assert third.is_there()
    assert [name for name in third._names if name in world.segments] == [third.name]


def test_two_journals_that_have_led_to_something_are_damage() -> None:
    """This should be impossible. If it happens, no driver relies on either journal."""
    world = World()
    store = ModelStore(world)
    put_source(world, [40, 40])
    put_target(world, 2)
    run = driven(world, Open)
    data = world_bytes(world, run.journal.name)
    other = run.journal._names[3]
    assert store.create(other)
    assert store.append_at(other, 0, data)
    with pytest.raises(JournalDamaged, match="are journals of one copy"):
        CopyJournal(store, COPY, TARGET).load()


def world_bytes(world: World, name: str) -> bytes:
    """Return the content of a segment."""
    return bytes(world.segments[name].data)
