"""A log that was truncated before a summary is read and written as before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.engine.journal import record_log
from sluice.errors import CopyAborted, JournalDamaged, PlanTooLarge
from support.engine.notes import Notes
from support.engine.plans import TARGET
from support.model import ModelStore, World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.values.model import SegmentInfo


@pytest.fixture
def store() -> ModelStore:
    """Return a store of an empty world."""
    return ModelStore(World())


@pytest.fixture
def log(store: ModelStore) -> Notes:
    """Return a log with three records."""
    log = Notes(store, TARGET)
    log.begin()
    log.write(1, 2, 3)
    return log


def test_what_stands_behind_a_summary_is_read(store: ModelStore, log: Notes) -> None:
    """Later readers get the summary and all behind it. Offsets do not change."""
    (before,) = store.infos([log.name])
    assert log.sum_up()
    log.write(4)
    assert Notes(store, TARGET).load() == [6, 4]
    (after,) = store.infos([log.name])
    assert before is not None
    assert after is not None
    assert after.start == before.length
    assert after.length > before.length


def test_who_had_read_all_reads_on(store: ModelStore, log: Notes) -> None:
    """The reader gets no record twice. The summary comes as one more record."""
    other = Notes(store, TARGET)
    other.load()
    log.sum_up()
    log.write(4)
    assert other.load() == [1, 2, 3, 6, 4]
    assert other.read == 5


def test_who_was_behind_begins_at_the_summary(store: ModelStore, log: Notes) -> None:
    """The summary also stands for the records that the reader had read."""
    other = Notes(store, TARGET)
    other.load()
    log.write(10)
    log.sum_up()
    assert other.load() == [16]


@pytest.mark.parametrize("behind", [True, False])
def test_others_write_on_behind_a_summary(store: ModelStore, log: Notes, *, behind: bool) -> None:
    """A truncated log is not mistaken for another log."""
    other = Notes(store, TARGET)
    other.load()
    if behind:
        log.write(10)
    log.sum_up()
    other.write(4)
    assert Notes(store, TARGET).load() == [16 if behind else 6, 4]
    assert log.load()[-1] == 4


def test_a_summary_that_is_late_drops_nothing(store: ModelStore, log: Notes) -> None:
    """The summary would lack the record that another driver wrote before it."""
    Notes(store, TARGET).load()
    other = Notes(store, TARGET)
    other.load()
    other.write(4)
    assert not log.sum_up()
    assert Notes(store, TARGET).load() == [1, 2, 3, 4]


def test_a_summary_without_a_truncation_is_one_more_record(
    store: ModelStore, log: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may end between the two. The next summary replaces all these records."""

    def die(_name: str, _offset: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "truncate_segment", die)
        with pytest.raises(KeyboardInterrupt):
            log.sum_up()
    other = Notes(store, TARGET)
    assert other.load() == [1, 2, 3, 6]
    other.sum_up()
    assert Notes(store, TARGET).load() == [12]


def test_a_log_that_has_only_its_summary_left_is_no_rival(store: ModelStore, log: Notes) -> None:
    """It gives way to no other log, and counts as more than a first record."""
    log.sum_up()
    rival = Notes(store, TARGET)
    rival.name = rival._names[1]
    store.create(rival.name)
    rival._append([{"record": "note", "number": 99}])
    rival._drop_rivals()
    assert Notes(store, TARGET).load() == [6]
    assert log.load() == [1, 2, 3, 6]


class Late(ModelStore):
    """A store that does something else right after a look at segments."""

    then: Callable[[], object] | None = None

    def infos(self, names: Sequence[str]) -> list[SegmentInfo | None]:
        """See Segments."""
        infos = super().infos(names)
        then, self.then = self.then, None
        if then is not None:
            then()
        return infos


def test_a_log_that_is_truncated_while_it_is_read_is_read_again(
    store: ModelStore, log: Notes
) -> None:
    """The reader begins again at the log's new start."""
    late = Late(store._world)
    other = Notes(late, TARGET)
    late.then = log.sum_up
    assert other.load() == [6]


def test_a_log_that_was_begun_anew_is_another(store: ModelStore, log: Notes) -> None:
    """The new log has the same name, but begins at an earlier offset than the old log."""
    log.sum_up()
    store.delete(log.name)
    store._world.kept.discard(log.name)
    fresh = Notes(store, TARGET)
    fresh.begin()
    fresh.write(*range(99))
    assert fresh.name == log.name
    with pytest.raises(CopyAborted):
        log.write(5)
    assert Notes(store, TARGET).load() == [*range(99)]


def test_only_what_is_left_counts_for_the_length(
    store: ModelStore, log: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Truncated bytes, maybe of months, hinder neither readers nor writers."""
    monkeypatch.setattr(record_log.Log, "most", 1_000)
    for number in range(100):
        log.write(number)
        assert log.sum_up()
        log.numbers = log.numbers[-1:]
    (info,) = store.infos([log.name])
    assert info is not None
    assert info.length > 2_000
    assert Notes(store, TARGET).load() == [sum(range(100)) + 6]
    with pytest.raises(PlanTooLarge):
        log.write(*range(100))
    monkeypatch.setattr(record_log.Log, "most", 10)
    with pytest.raises(JournalDamaged, match="long"):
        Notes(store, TARGET).load()
