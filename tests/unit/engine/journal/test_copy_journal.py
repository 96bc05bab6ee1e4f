import pytest

from sluice.core.copy import journal
from sluice.engine.journal.copy_journal import MAX_RECORD, CopyJournal
from sluice.errors import CopyAborted, JournalDamaged, NoSuchSegment, PlanTooLarge
from support.engine.plans import COPY, TARGET, segment_plan, stream_plan
from support.model import Fate, ModelStore, World

PLAN = stream_plan(segment_plan(100))
OTHER = stream_plan(segment_plan(200))
DIGEST = b"d" * 32


@pytest.fixture
def store() -> ModelStore:
    """Return a store of an empty world."""
    return ModelStore(World())


def copy_journal(store: ModelStore) -> CopyJournal:
    """Return another driver's journal of the same copy."""
    return CopyJournal(store, COPY, TARGET)


def test_nothing_written_is_none(store: ModelStore) -> None:
    """A copy that was never begun has no journal."""
    assert copy_journal(store).load() is None


def test_a_segment_without_a_plan_is_none(store: ModelStore) -> None:
    """A driver that died between making the journal and writing it began nothing."""
    mine = copy_journal(store)
    store.create(mine.name)
    assert mine.load() is None
    assert mine.begin(PLAN) == PLAN


def test_the_first_plan_holds(store: ModelStore) -> None:
    """Of two drivers with different bounds, the second gets the plan of the first."""
    assert copy_journal(store).begin(PLAN) == PLAN
    assert copy_journal(store).begin(OTHER) == PLAN
    assert copy_journal(store).begin(PLAN) == PLAN


def test_two_writers_go_on_behind_each_other(store: ModelStore) -> None:
    """Two drivers that write in turn, and a third one, get all records."""
    one, two = copy_journal(store), copy_journal(store)
    one.begin(PLAN)
    two.begin(PLAN)
    one.write([journal.target_record([1])])
    two.write([journal.digest_record(0, 0, [DIGEST])])
    one.write([journal.events_record(0, 5), journal.digest_record(0, 1, [DIGEST])])
    expected = journal.Journal(PLAN, (1,), {0: ((0, DIGEST), (1, DIGEST))}, {0: 5})
    assert one.loaded == expected
    assert two.load() == expected
    assert copy_journal(store).load() == expected


def test_what_was_written_is_known_without_asking(store: ModelStore) -> None:
    """A driver knows its own records without a call to the store."""
    mine = copy_journal(store)
    mine.begin(PLAN)
    mine.write([journal.target_record([3])])
    assert mine.loaded == journal.Journal(PLAN, (3,))


def test_a_deleted_journal_is_forgotten(store: ModelStore) -> None:
    """After an abort, a driver that had read the journal finds none, and cannot write to it."""
    mine, other = copy_journal(store), copy_journal(store)
    mine.begin(PLAN)
    other.load()
    mine.delete()
    mine.delete()
    assert other.load() is None
    with pytest.raises(NoSuchSegment):
        other.write([journal.target_record([1])])


def test_a_copy_that_was_begun_anew_is_another(store: ModelStore) -> None:
    """A driver whose copy was aborted and begun anew meanwhile writes nothing into the new one."""
    late, other = copy_journal(store), copy_journal(store)
    late.begin(PLAN)
    late.write([journal.target_record([1]), journal.digest_record(0, 0, [DIGEST] * 9)])
    other.load()
    other.delete()
    other.begin(PLAN)
    with pytest.raises(NoSuchSegment):
        late.write([journal.events_record(0, 1)])
    assert copy_journal(store).load() == journal.Journal(PLAN)
    assert late.load() == journal.Journal(PLAN)


def test_a_journal_under_its_old_name_is_another(store: ModelStore) -> None:
    """A late driver writes nothing into a new journal under the old name either."""
    late, other = copy_journal(store), copy_journal(store)
    late.begin(PLAN)
    late.write([journal.target_record([1]), journal.digest_record(0, 0, [DIGEST] * 9)])
    other.load()
    other.delete()
    store._world.kept.clear()
    other.begin(PLAN)
    with pytest.raises(CopyAborted):
        late.write([journal.events_record(0, 1)])
    assert copy_journal(store).load() == journal.Journal(PLAN)


def test_a_journal_deleted_while_it_is_read_is_gone_and_not_aborted(store: ModelStore) -> None:
    """A driver whose journal vanishes while it reads does not report an abort."""
    other = copy_journal(store)
    reads: list[str] = []
    begun = False

    def gate(what: str) -> Fate:
        if begun and what.startswith("read"):
            reads.append(what)
            if len(reads) == 2:
                other.delete()
        return Fate.DONE

    late = copy_journal(ModelStore(store._world, gate))
    other.begin(PLAN)
    late.begin(PLAN)
    begun = True
    other.write([journal.digest_record(0, 0, [DIGEST] * 9)])
    with pytest.raises(NoSuchSegment):
        late.write([journal.events_record(0, 1)])
    assert len(reads) == 2


def test_a_damaged_journal_is_refused(store: ModelStore) -> None:
    """Bytes that are no records raise JournalDamaged."""
    mine = copy_journal(store)
    mine.begin(PLAN)
    length = store.infos([mine.name])[0]
    assert length is not None
    store.append_at(mine.name, length.length, b"garbage!" * 4)
    with pytest.raises(JournalDamaged, match="damaged"):
        mine.load()


def test_a_plan_too_large_for_one_append_is_refused(store: ModelStore) -> None:
    """A plan that a store cannot take in one append is refused before it is written."""
    mine = copy_journal(store)
    huge = PLAN.model_copy(
        update={"config": PLAN.config.model_copy(update={"tags": ("x" * MAX_RECORD,)})}
    )
    with pytest.raises(PlanTooLarge, match="too large"):
        mine.begin(huge)
    assert mine.load() is None
