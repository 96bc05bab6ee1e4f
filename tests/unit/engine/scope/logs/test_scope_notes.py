import pytest

from sluice.core.archive.names import read_note
from sluice.core.scope.scope import ScopePlan
from sluice.core.workloads.plan import Plan
from sluice.engine.scope.object_log import ScopeNotes, log_of
from sluice.errors import CopyAborted, JournalDamaged, NoSuchSegment, StoreUnavailable
from support.archiving.scope_roots import root_in
from support.engine.scope_drivers import (
    MANY,
    SCOPE_ID,
    SharedStore,
    copied,
    scope_plan,
    write_at_once,
)
from support.model import Fate
from support.model.gated_objects import GatedObjects
from support.model.memory_objects import MemoryObjects

WORK = ScopePlan(scope_id=SCOPE_ID, source="in", target="out", begin=1, end=2)


@pytest.fixture
def objects() -> MemoryObjects:
    """Return an empty place for archives."""
    return MemoryObjects()


def log(objects: MemoryObjects) -> ScopeNotes:
    """Return another driver's log of the same copy."""
    found = log_of(root_in(objects), SCOPE_ID, WORK)
    assert isinstance(found, ScopeNotes)
    return found


def results_in(objects: MemoryObjects) -> set[int] | None:
    """Return the places of the streams that have a result. Return None without a log."""
    state = log(objects).load()
    return None if state is None else set(state.results)


def test_the_first_plan_holds(objects: MemoryObjects, store: SharedStore, plan: Plan) -> None:
    """If two drivers have different plans, the second driver gets the plan of the first."""
    assert log(objects).load() is None
    assert log(objects).begin(plan) == plan
    assert log(objects).begin(scope_plan(store, [1])) == plan


def test_of_plans_that_are_made_at_once_one_holds(
    objects: MemoryObjects, store: SharedStore, plan: Plan
) -> None:
    """The other plan's driver works on the plan that holds."""
    other = scope_plan(store, [1])

    def gate(what: str) -> Fate:
        if what.startswith("put_new") and not objects.held:
            log(objects).begin(other)
        return Fate.DONE

    assert log(GatedObjects(objects, gate)).begin(plan) == other


def test_a_later_run_follows_on_one_that_is_over(
    objects: MemoryObjects, store: SharedStore, plan: Plan
) -> None:
    """Until then the earlier plan holds. Of two later plans, the first one holds."""
    later, other = scope_plan(store, [1], run=2), scope_plan(store, [2], run=2)
    mine = log(objects)
    mine.begin(plan)
    assert log(objects).begin(later) == plan
    mine.stopped()
    assert log(objects).begin(later) == later
    assert log(objects).begin(other) == later


def test_threads_write_side_by_side(objects: MemoryObjects, plan: Plan) -> None:
    """Several threads of two drivers write, and no result is lost."""
    write_at_once([log(objects), log(objects)], plan)
    assert results_in(objects) == set(range(MANY))


def test_an_answer_that_is_lost_writes_nothing_twice(objects: MemoryObjects, plan: Plan) -> None:
    """The driver's next try finds the note of the first try."""
    lost = iter([Fate.DONE, Fate.REPLY_LOST])

    def gate(what: str) -> Fate:
        return next(lost, Fate.DONE) if what.startswith("put_new") else Fate.DONE

    mine = log(GatedObjects(objects, gate))
    mine.begin(plan)
    with pytest.raises(StoreUnavailable):
        mine.ended({0: copied(0)})
    before = dict(objects.held)
    mine.ended({0: copied(0)})
    assert objects.held == before


def test_a_log_that_has_grown_is_not_deleted(objects: MemoryObjects, plan: Plan) -> None:
    """A driver deletes only a log that it has read to its end.

    Afterwards no other driver can write.
    """
    mine, other = log(objects), log(objects)
    mine.begin(plan)
    other.load()
    mine.ended({0: copied(0)})
    assert not other.delete()
    assert results_in(objects) == {0}
    other.load()
    assert other.delete()
    assert objects.held == {}
    with pytest.raises(NoSuchSegment):
        mine.ended({1: copied(1)})
    assert objects.held == {}


def test_a_log_that_is_about_to_be_deleted_is_none(
    objects: MemoryObjects, store: SharedStore, plan: Plan
) -> None:
    """A driver closes the log, and dies before it deletes the notes.

    A new log takes their place.
    """
    mine, late = log(objects), log(objects)
    mine.begin(plan)
    mine.ended({0: copied(0)})
    late.load()

    def gate(what: str) -> Fate:
        return Fate.REQUEST_LOST if what.startswith("delete") else Fate.DONE

    killed = log(GatedObjects(objects, gate))
    killed.load()
    with pytest.raises(StoreUnavailable):
        killed.delete()
    assert len(objects.held) == 3
    assert results_in(objects) is None
    with pytest.raises(NoSuchSegment):
        late.ended({1: copied(1)})
    other = scope_plan(store, [1])
    assert log(objects).begin(other) == other
    assert len(objects.held) == 1
    assert results_in(objects) == set()
    with pytest.raises((CopyAborted, NoSuchSegment)):
        mine.ended({1: copied(1)})
    assert results_in(objects) == set()


def test_what_somebody_late_has_written_counts_for_nothing(
    objects: MemoryObjects, store: SharedStore, plan: Plan
) -> None:
    """The notes belong to a log that was deleted. The new log skips their numbers."""
    late = log(objects)
    late.begin(plan)
    note = dict(objects.held)
    late.ended({0: copied(0)})
    stale = {name: data for name, data in objects.held.items() if name not in note}
    other = log(objects)
    other.load()
    other.delete()
    objects.held |= stale
    objects.modified |= dict.fromkeys(stale, 1)
    new = log(objects)
    new.begin(scope_plan(store, range(3)))
    new.ended({1: copied(1)})
    new.ended({2: copied(2)})
    assert results_in(objects) == {1, 2}


def test_a_log_that_cannot_be_read_can_be_discarded(objects: MemoryObjects, plan: Plan) -> None:
    """A read of it fails with JournalDamaged before."""
    log(objects).begin(plan)
    (name,) = objects.held
    objects.held[name] = b"{}"
    broken = log(objects)
    with pytest.raises(JournalDamaged):
        broken.load()
    broken.discard()
    assert objects.held == {}


def test_no_sweep_takes_a_log(objects: MemoryObjects, plan: Plan) -> None:
    """The notes have other names than the notes of an archive."""
    log(objects).begin(plan)
    (name,) = objects.held
    assert name.startswith("out/work/")
    assert read_note(name.removeprefix("out/")) is None


def test_what_is_no_note_stays_when_a_log_is_deleted(objects: MemoryObjects, plan: Plan) -> None:
    """Objects of other clients may lie beside the notes."""
    log(objects).begin(plan)
    (name,) = objects.held
    others = {f"{name.rpartition('/')[0]}/{one}": b"mine" for one in ("draft.txt", "a/b", "0")}
    for one, data in others.items():
        objects.put(one, data)
    made = log(objects)
    made.load()
    made.discard()
    assert objects.held == others
