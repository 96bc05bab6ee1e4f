"""A ledger tells where a query is, and a checkpoint that does not belong to it is refused."""

from typing import Any

import pytest

from sluice.core.query.ledger import (
    AttemptRecord,
    BatchRecord,
    Checkpoint,
    LedgerState,
    Record,
    VersionRecord,
    check_checkpoint,
    check_repeated,
    record_json,
    states,
)
from sluice.core.query.versions import chosen
from sluice.errors import CheckpointDiverged, CheckpointLost, JournalDamaged, QueryChanged
from support.engine.queries import position, query_plan, source

FIRST = VersionRecord(number=1, plan=query_plan(), begins=(position(0),))


def batch(number: int, offset: int | None = None) -> BatchRecord:
    """Return the record of a batch."""
    end = position(100 * (number + 1) if offset is None else offset)
    return BatchRecord(batch=number, ends=(end,), rows=number, sha256="0" * 64)


def folded(*records: Record) -> LedgerState:
    """Return the state after some records, read from their JSON."""
    return states(map(record_json, records), LedgerState())


def test_a_ledger_tells_version_attempt_and_batch() -> None:
    """Batches of a new version count anew."""
    state = folded(AttemptRecord(number=1), FIRST, batch(0), batch(1), AttemptRecord(number=2))
    assert (state.attempt, state.last, state.rows) == (2, batch(1), 1)
    later = state.after(record_json(VersionRecord(number=2, plan=query_plan(), begins=())))
    assert (later.last, later.rows) == (None, 1)
    assert later.version is not None
    assert later.version.number == 2


def test_a_summary_stands_for_all_before_it() -> None:
    """A reader that begins with the summary has the same state."""
    state = folded(AttemptRecord(number=1), FIRST, batch(0), batch(3))
    assert state.summary is not None
    assert folded(state.summary) == state


@pytest.mark.parametrize(
    "records",
    [
        (batch(0),),
        (FIRST, FIRST),
        (FIRST, batch(1), batch(1)),
        (FIRST, batch(1), batch(0)),
        (AttemptRecord(number=2),),
        (VersionRecord(number=2, plan=query_plan(), begins=()),),
    ],
)
def test_records_out_of_order_are_damage(records: tuple[Record, ...]) -> None:
    """No state is made up."""
    with pytest.raises(JournalDamaged):
        folded(*records)


@pytest.mark.parametrize("record", [{}, {"record": "batch"}, {"record": "other"}, {"batch": 1}])
def test_no_record_is_damage(record: dict[str, Any]) -> None:
    """Any client may write beside a sink."""
    with pytest.raises(JournalDamaged):
        LedgerState().after(record)


def found(planned: int | None, done: int | None, version: int = 1) -> Checkpoint:
    """Return a checkpoint with the usual positions of all its batches."""
    ends = {
        number: batch(number).ends for number in range((-1 if planned is None else planned) + 1)
    }
    return Checkpoint(version, planned, done, ends)


@pytest.mark.parametrize(
    ("last", "planned", "done"),
    [
        (None, None, None),  # before the first batch
        (None, 0, None),  # its positions are in the checkpoint; its rows may be in the sinks
        (0, 0, None),  # its record is in the ledger
        (0, 0, 0),  # Spark knows that it is done
        (0, 1, 0),
        (1, 1, 0),
        (7, 7, 7),
    ],
)
def test_a_process_that_ended_at_any_point_goes_on(
    last: int | None, planned: int | None, done: int | None
) -> None:
    """Each order of positions, rows, record and commit is a state that a kill leaves."""
    state = folded(FIRST, *([] if last is None else [batch(last)]))
    check_checkpoint(state, found(planned, done))


@pytest.mark.parametrize(
    ("last", "checkpoint", "error"),
    [
        (3, Checkpoint(), CheckpointLost),
        (3, found(2, 2), CheckpointDiverged),  # an old copy of the checkpoint
        (3, found(5, 4), CheckpointDiverged),  # an old copy of the sinks' store
        (None, found(1, 0), CheckpointDiverged),
        (3, found(3, 3, version=2), CheckpointDiverged),
        (3, found(3, 3)._replace(ends={3: (position(9),)}), CheckpointDiverged),
    ],
)
def test_a_checkpoint_of_another_history_is_refused(
    last: int | None, checkpoint: Checkpoint, error: type[Exception]
) -> None:
    """Nothing goes on with it."""
    state = folded(FIRST, *([] if last is None else [batch(last)]))
    with pytest.raises(error):
        check_checkpoint(state, checkpoint)


def test_a_checkpoint_without_a_ledger_is_refused() -> None:
    """The ledger was lost, or the sink made anew: batches would begin with a wrong number."""
    with pytest.raises(CheckpointDiverged):
        check_checkpoint(LedgerState(), found(3, 3))


def test_a_repeated_batch_has_to_read_the_same() -> None:
    """Other positions of a batch that is in the ledger are refused."""
    state = folded(FIRST, batch(0))
    check_repeated(state, batch(0))
    check_repeated(state, batch(1))
    with pytest.raises(CheckpointDiverged):
        check_repeated(state, batch(0, offset=7))


CHANGED = query_plan(emit="Changes")


def test_an_unchanged_query_goes_on_as_its_version() -> None:
    """Where a source begins is not looked up again."""
    state = folded(FIRST, batch(0))
    assert chosen(state, query_plan(), found(0, 0), _never, restart=False) == FIRST


def test_a_changed_query_is_refused_with_what_was_changed() -> None:
    """The message names the field."""
    with pytest.raises(QueryChanged, match=r"spec\.result\.emit was Final, and is Changes"):
        chosen(folded(FIRST, batch(0)), CHANGED, found(0, 0), _never, restart=False)


@pytest.mark.parametrize("checkpoint", [found(0, 0), Checkpoint(), found(0, 0, version=5)])
def test_a_restart_goes_on_behind_the_last_batch(checkpoint: Checkpoint) -> None:
    """Another query, or the same without its checkpoint, is a new version that reads on."""
    state = folded(FIRST, batch(0))
    plan = CHANGED if checkpoint == found(0, 0) else query_plan()
    version = chosen(state, plan, checkpoint, _never, restart=True)
    assert (version.number, version.begins) == (2, batch(0).ends)


def test_a_new_source_begins_where_its_spec_says() -> None:
    """The others read on."""
    views = source(name="views", stream=source().stream.model_copy(update={"stream": "views"}))
    plan = query_plan(sources=(views, source()))
    begins = [position(5, views.stream), position(6)]
    version = chosen(folded(FIRST, batch(0)), plan, found(0, 0), lambda: begins, restart=True)
    assert version.begins == (position(5, views.stream), *batch(0).ends)


def test_the_first_version_begins_where_the_spec_says() -> None:
    """The positions are taken once, and recorded."""
    version = chosen(
        LedgerState(), query_plan(), Checkpoint(), lambda: [position(4)], restart=False
    )
    assert version == VersionRecord(number=1, plan=query_plan(), begins=(position(4),))


def _never() -> list[dict[str, Any]]:
    raise AssertionError("nobody asks")
