"""The names under which a journal is searched, and the choice of one journal by all drivers."""

from __future__ import annotations

import random

import pytest

from sluice.core.copy import journal, record_frames
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.errors import CopyAborted, NoSuchSegment
from support.engine.actors import Actor
from support.engine.plans import COPY, TARGET, segment_plan, stream_plan
from support.model import Fate, ModelStore, World
from support.search import searches, seeds

PLAN = stream_plan(segment_plan(100))
SEARCH = "infos 16"
ONE = "infos 1"


class Heard:
    """A store's gate that records the calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, what: str) -> Fate:
        """Record a call, and let it be done."""
        self.calls.append(what)
        return Fate.DONE


def bound(store: ModelStore) -> CopyJournal:
    """Return a journal with the plan and the target's segments."""
    made = CopyJournal(store, COPY, TARGET)
    made.begin(PLAN)
    made.write([journal.target_record([3])])
    return made


def test_a_journal_that_cannot_give_way_is_asked_for_by_its_one_name() -> None:
    """After its second record, no journal under another name can take its place."""
    heard = Heard()
    mine = CopyJournal(ModelStore(World(), heard), COPY, TARGET)
    mine.begin(PLAN)
    heard.calls.clear()
    mine.load()
    assert heard.calls == [SEARCH]
    mine.write([journal.target_record([3])])
    heard.calls.clear()
    assert mine.load() == journal.Journal(PLAN, (3,))
    assert mine.is_there()
    assert heard.calls == [ONE, ONE]


def test_a_journal_with_only_its_plan_gives_way_to_one_that_was_gone_on_with() -> None:
    """So its driver searches all names before it writes the second record."""
    world = World()
    late = CopyJournal(ModelStore(world), COPY, TARGET)
    late.name = late._names[1]
    assert ModelStore(world).create(late.name)
    late._append([journal.plan_record(PLAN)])
    assert late.loaded is not None
    other = CopyJournal(ModelStore(world), COPY, TARGET)
    other.name = other._names[0]
    assert ModelStore(world).create(other.name)
    other._append([journal.plan_record(PLAN), journal.target_record([3])])
    assert late.load() == journal.Journal(PLAN, (3,))
    assert late.name == other.name


@pytest.mark.parametrize("place", ["another name", "its old name"])
def test_the_journal_of_the_next_run_is_found_at_once(place: str) -> None:
    """All names are searched if the known journal is gone, or shorter than before."""
    world = World()
    known = bound(ModelStore(world))
    other = CopyJournal(ModelStore(world), COPY, TARGET)
    other.load()
    assert other.delete()
    if place == "its old name":
        world.kept.clear()
    other.begin(PLAN)
    assert (other.name == known.name) is (place == "its old name")
    assert known.load() == journal.Journal(PLAN)
    assert known.name == other.name


def test_a_journal_that_was_made_late_under_the_known_name_hides_none() -> None:
    """It is shorter than the known journal was, so the journal of the next run counts."""
    world = World()
    known = bound(ModelStore(world))
    other = CopyJournal(ModelStore(world), COPY, TARGET)
    other.load()
    assert other.delete()
    run = bound(ModelStore(world))
    world.kept.clear()
    assert ModelStore(world).create(known.name)
    record = record_frames.frame(journal.plan_record(PLAN))
    assert ModelStore(world).append_at(known.name, 0, record)
    assert known.load() == journal.Journal(PLAN, (3,))
    assert known.name == run.name


def test_a_journal_that_is_gone_is_none() -> None:
    """A driver searches all names before it finds no journal."""
    heard, world = Heard(), World()
    known = bound(ModelStore(world, heard))
    assert CopyJournal(ModelStore(world), COPY, TARGET).load() is not None
    ModelStore(world).delete(known.name)
    heard.calls.clear()
    assert known.load() is None
    assert heard.calls == [ONE, SEARCH]
    assert not known.is_there()


def driver(store: ModelStore, _: Actor) -> str:
    """Begin a copy as a driver does, and record its target and numbers of events."""
    mine = CopyJournal(store, COPY, TARGET)
    mine.load()
    try:
        mine.begin(PLAN)
        for _number in range(3):
            if (loaded := mine.load()) is None:
                return "gone"
            if loaded.target is None:
                mine.write([journal.target_record([3])])
            else:
                mine.write([journal.events_record(0, 1)])
    except (NoSuchSegment, CopyAborted):
        return "gone"
    return "done"


def gone_on_with(world: World) -> list[str]:
    """Return the names of the journals with more than their first record."""
    return [
        name
        for name, segment in world.segments.items()
        if len(record_frames.unframe(bytes(segment.data))) > 1
    ]


@searches
@pytest.mark.parametrize("seed", seeds(30))
def test_drivers_that_begin_at_once_go_by_one_journal(seed: int) -> None:
    """Whatever names the store accepts meanwhile, only one journal gets a second record."""
    chance = random.Random(seed)  # noqa: S311 - which call is next is no secret
    world = World()
    names = CopyJournal(ModelStore(world), COPY, TARGET)._names
    world.kept = set(chance.sample(names[:3], chance.randint(0, 2)))
    alive = [Actor(f"driver {number}", world, driver) for number in range(3)]
    actors = [*alive]
    for actor in alive:
        actor.move()
    while alive := [actor for actor in alive if actor.alive]:
        if chance.random() < 0.1:
            world.kept.clear()
        chance.choice(alive).move()
        assert len(gone_on_with(world)) <= 1, world.history
    assert not any(actor.error for actor in actors), world.history
    assert "done" in {actor.result for actor in actors}, world.history
    assert CopyJournal(ModelStore(world), COPY, TARGET).load() is not None
