"""The ledger has a query's progress, and a checkpoint that does not belong to it is refused."""

from typing import Any

import pytest

from sluice.core.query.ledger import (
    AttemptRecord,
    BatchRecord,
    BegunRecord,
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
    return BatchRecord(batch=number, ends=(end,), rows=number, late=number, sha256="0" * 64)


def begun(number: int) -> BegunRecord:
    """Return the record of a batch's beginning."""
    return BegunRecord(batch=number, ends=batch(number).ends, keys="0" * 64, part=9)


def folded(*records: Record) -> LedgerState:
    """Return the state after these records, read from their JSON."""
    return states(map(record_json, records), LedgerState())


def test_a_ledger_tells_version_attempt_and_batch() -> None:
    """A new version begins without a last batch, and keeps the counts of rows and late events."""
    state = folded(AttemptRecord(number=1), FIRST, batch(0), batch(1), AttemptRecord(number=2))
    assert (state.attempt, state.last, state.rows, state.late) == (2, batch(1), 1, 1)
    later = state.after(
        record_json(VersionRecord(number=2, plan=query_plan(), begins=(position(1),)))
    )
    assert (later.last, later.rows, later.late) == (None, 1, 1)
    assert later.version is not None
    assert later.version.number == 2


def test_records_of_before_late_events_were_counted_are_read() -> None:
    """Old records count no late events, and the version's results begin at the streams' heads."""
    records = [record_json(one) for one in (FIRST, batch(2))]
    records[0].pop("results")
    records[1].pop("late")
    state = states(records, LedgerState())
    assert (state.rows, state.late) == (2, 0)
    assert state.version is not None
    assert state.version.results == ()


def test_a_summary_stands_for_all_before_it() -> None:
    """A reader that begins with the summary gets the same state."""
    for records in ([batch(0), batch(3)], [batch(0), begun(1)], []):
        state = folded(AttemptRecord(number=1), FIRST, *records)
        assert state.summary is not None
        assert folded(state.summary) == state


@pytest.mark.parametrize(
    "records",
    [
        (batch(0),),
        (FIRST, FIRST),
        (FIRST, batch(1), batch(1)),
        (FIRST, batch(1), batch(0)),
        (begun(0),),
        (FIRST, begun(0), begun(0)),
        (FIRST, batch(0), begun(0)),
        (FIRST, begun(0), batch(1)),
        (FIRST, begun(0), batch(0, offset=7)),
        (AttemptRecord(number=2),),
    ],
)
def test_records_out_of_order_are_damage(records: tuple[Record, ...]) -> None:
    """Records in an impossible order raise JournalDamaged."""
    with pytest.raises(JournalDamaged):
        folded(*records)


@pytest.mark.parametrize("record", [{}, {"record": "batch"}, {"record": "other"}, {"batch": 1}])
def test_no_record_is_damage(record: dict[str, Any]) -> None:
    """Other JSON raises JournalDamaged: any client may write beside a sink."""
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
        (0, 0, None),  # its record is in the ledger too
        (0, 0, 0),  # it is done in the checkpoint too
        (0, 1, 0),
        (1, 1, 0),
        (7, 7, 7),
    ],
)
def test_a_process_that_ended_at_any_point_goes_on(
    last: int | None, planned: int | None, done: int | None
) -> None:
    """A kill can leave each of these states, and the next process accepts the checkpoint."""
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
        (3, found(None, None), CheckpointLost),
        (None, Checkpoint(version=5), CheckpointDiverged),  # only a later version's number is read
        (3, Checkpoint(version=5), CheckpointDiverged),
    ],
)
def test_a_checkpoint_of_another_history_is_refused(
    last: int | None, checkpoint: Checkpoint, error: type[Exception]
) -> None:
    """A checkpoint that is missing, older, newer or of another version raises an error."""
    state = folded(FIRST, *([] if last is None else [batch(last)]))
    with pytest.raises(error):
        check_checkpoint(state, checkpoint)


@pytest.mark.parametrize(
    ("last", "checkpoint", "error"),
    [
        (None, Checkpoint(), CheckpointLost),
        (0, Checkpoint(), CheckpointLost),
        (0, found(0, 0), CheckpointDiverged),
        (0, found(1, 0)._replace(ends={1: (position(9),)}), CheckpointDiverged),
    ],
)
def test_a_batch_that_was_begun_has_to_be_in_the_checkpoint(
    last: int | None, checkpoint: Checkpoint, error: type[Exception]
) -> None:
    """Otherwise another batch would get its number, and a sink would refuse that batch's rows."""
    number = 0 if last is None else last + 1
    state = folded(FIRST, *([] if last is None else [batch(last)]), begun(number))
    check_checkpoint(state, found(number, last))
    with pytest.raises(error):
        check_checkpoint(state, checkpoint)


def test_a_checkpoint_without_a_ledger_is_left_alone() -> None:
    """The checkpoint is of an earlier query with this name, so the version gets the next number."""
    version = chosen(
        LedgerState(),
        query_plan(),
        lambda: found(3, 3),
        lambda: [position(4)],
        _nothing,
        restart=False,
    )
    assert (version.number, version.begins) == (2, (position(4),))


def test_a_checkpoint_that_cannot_be_read_is_left_by_a_restart() -> None:
    """A damaged checkpoint raises an error. With a restart, a new version begins."""

    def damaged() -> Checkpoint:
        raise CheckpointDiverged("offsets/3 cannot be read")

    state = folded(FIRST, batch(0))
    with pytest.raises(CheckpointDiverged):
        chosen(state, query_plan(), damaged, _never, _nothing, restart=False)
    assert chosen(state, query_plan(), damaged, _never, _nothing, restart=True).number == 2


def test_a_repeated_batch_has_to_read_the_same() -> None:
    """A repeated batch with other positions or other keys raises CheckpointDiverged."""
    state = folded(FIRST, batch(0))
    check_repeated(state, begun(0))
    check_repeated(state, begun(1))
    other = begun(0).model_copy(update={"ends": (position(7),)})
    for known in (state, folded(FIRST, begun(0))):
        with pytest.raises(CheckpointDiverged, match="other positions"):
            check_repeated(known, other)
    keys = begun(0).model_copy(update={"keys": "1" * 64})
    with pytest.raises(CheckpointDiverged, match="other keys"):
        check_repeated(folded(FIRST, begun(0)), keys)


CHANGED = query_plan(emit="Changes")


def test_an_unchanged_query_goes_on_as_its_version() -> None:
    """The recorded version runs, and the beginnings of its sources are not looked up again."""
    state = folded(FIRST, batch(0))
    assert (
        chosen(state, query_plan(), lambda: found(0, 0), _never, _nothing, restart=False) == FIRST
    )


def test_a_changed_query_is_refused_with_what_was_changed() -> None:
    """QueryChanged names the field, with its former and its present value."""
    with pytest.raises(QueryChanged, match=r"spec\.result\.emit was Final, and is Changes"):
        chosen(
            folded(FIRST, batch(0)), CHANGED, lambda: found(0, 0), _never, _nothing, restart=False
        )


@pytest.mark.parametrize("checkpoint", [found(0, 0), Checkpoint(), found(0, 0, version=5)])
def test_a_restart_goes_on_behind_the_last_batch(checkpoint: Checkpoint) -> None:
    """A changed query, or one without its checkpoint, becomes a new version that reads on."""
    state = folded(FIRST, batch(0))
    plan = CHANGED if checkpoint == found(0, 0) else query_plan()
    version = chosen(state, plan, lambda: checkpoint, _never, _nothing, restart=True)
    assert version.begins == batch(0).ends
    assert version.number == 1 + max(1, checkpoint.version or 0)  # its folder is a new one


def test_a_new_source_begins_where_its_spec_says() -> None:
    """In a new version, the former sources continue behind the last batch."""
    views = source(name="views", stream=source().stream.model_copy(update={"stream": "views"}))
    plan = query_plan(sources=(views, source()))
    begins = [position(5, views.stream), position(6)]
    version = chosen(
        folded(FIRST, batch(0)), plan, lambda: found(0, 0), lambda: begins, _nothing, restart=True
    )
    assert version.begins == (position(5, views.stream), *batch(0).ends)


def test_the_first_version_begins_where_the_spec_says() -> None:
    """The positions are looked up once, and the version's record keeps them."""
    version = chosen(
        LedgerState(), query_plan(), Checkpoint, lambda: [position(4)], _nothing, restart=False
    )
    assert version == VersionRecord(number=1, plan=query_plan(), begins=(position(4),))


def test_a_restart_waits_for_a_batch_that_was_cut_off() -> None:
    """A sink has some of the batch's rows, and a new version would write these again."""
    state = folded(FIRST, batch(0), begun(1))
    for look in (lambda: found(1, 0), Checkpoint):
        with pytest.raises(CheckpointDiverged, match="batch 1 was cut off"):
            chosen(state, CHANGED, look, _never, lambda _: 1, restart=True)
    version = chosen(state, CHANGED, lambda: found(1, 0), _never, _nothing, restart=True)
    assert version.begins == batch(0).ends


def test_a_restart_of_two_readers_of_a_stream_is_refused() -> None:
    """Two readers may be at different positions, so the restart has no single one to begin at."""
    record = batch(0).model_copy(update={"ends": (position(5), position(6))})
    with pytest.raises(CheckpointDiverged, match="reads in/clicks twice"):
        chosen(folded(FIRST, record), CHANGED, Checkpoint, _never, _nothing, restart=True)


def _nothing(_version: VersionRecord) -> int:
    return -1


def _never() -> list[dict[str, Any]]:
    raise AssertionError("no question is expected")
