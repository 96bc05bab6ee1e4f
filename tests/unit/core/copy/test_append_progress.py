from typing import Any

import pytest

from sluice.core.copy.append_progress import (
    Opened,
    Roll,
    aborted_record,
    attempt_record,
    committed_record,
    decision_record,
    layout_record,
    transaction_record,
)
from sluice.core.copy.journal import fold, plan_record, target_record
from sluice.core.values.model import KeyRange
from sluice.errors import JournalDamaged
from support.engine.plans import segment_plan, stream_plan

PLAN = stream_plan(segment_plan(7)).model_copy(update={"append": True})
HALVES = (KeyRange(low=0, high=0.5), KeyRange(low=0.5, high=1))
ONE, OTHER = Opened("a" * 32, (1, 2)), Opened("b" * 32, (3, 4))


def rolled(*records: dict[str, Any]) -> tuple[Roll, tuple[int, ...] | None]:
    """Return the progress and the target's ids after these records behind plan and target."""
    found = fold([plan_record(PLAN), target_record([1]), *records])
    assert found is not None
    return found.roll, found.target


def test_the_first_record_of_a_kind_holds() -> None:
    """If two drivers record the layout or a transaction, the first record counts."""
    roll, _ = rolled(
        layout_record(0, HALVES),
        transaction_record(0, 0, ONE),
        layout_record(0, HALVES[:1]),
        transaction_record(0, 0, OTHER),
    )
    assert roll == Roll(layout=HALVES, transactions={0: ONE})


def test_a_record_of_another_attempt_counts_for_nothing() -> None:
    """A late driver's record names an earlier attempt, and is ignored."""
    begun = attempt_record(1, [5], keep=False)
    roll, bound = rolled(
        begun,
        layout_record(0, HALVES),
        transaction_record(0, 0, ONE),
        decision_record(0),
        attempt_record(1, [6], keep=False),
        attempt_record(3, [7], keep=True),
    )
    assert roll == Roll(attempt=1, former=((1,),))
    assert bound == (5,)


def test_an_attempt_keeps_transactions_or_begins_without() -> None:
    """A new attempt keeps the open transactions or drops them.

    Committed generations stay committed.
    """
    before = [layout_record(0, HALVES), transaction_record(0, 0, ONE)]
    kept, _ = rolled(*before, attempt_record(1, [5], keep=True))
    assert kept == Roll(attempt=1, layout=HALVES, transactions={0: ONE}, former=((1,),))
    ended = [decision_record(0), committed_record([0]), attempt_record(1, [5], keep=False)]
    anew, _ = rolled(*before, *ended)
    assert anew == Roll(attempt=1, committed=frozenset({0}), former=((1,),))


def test_of_a_decision_and_an_abort_the_first_holds() -> None:
    """After a decision an abort is ignored. After an abort every record is ignored."""
    opened = transaction_record(0, 0, ONE)
    decided, _ = rolled(opened, decision_record(0), aborted_record())
    assert (decided.decided, decided.aborted) == (True, False)
    aborted, bound = rolled(
        aborted_record(), opened, decision_record(0), attempt_record(1, [5], keep=False)
    )
    assert aborted == Roll(aborted=True)
    assert bound == (1,)


def test_an_attempt_that_is_decided_is_not_staged_anew() -> None:
    """After the decision, a new attempt that keeps the transactions is ignored."""
    roll, bound = rolled(decision_record(0), attempt_record(1, [5], keep=True))
    assert (roll.attempt, bound) == (0, (1,))


@pytest.mark.parametrize(
    "record",
    [
        {"record": "layout", "attempt": 0, "keys": [[0.5, "x"]]},
        {"record": "transaction", "attempt": 0, "generation": 0, "key": "a", "segments": [-1]},
        {"record": "attempt", "attempt": 1, "segments": ["1"], "keep": True},
        {"record": "committed", "generations": [True]},
    ],
)
def test_a_damaged_record_is_found(record: dict[str, Any]) -> None:
    """A record with wrong values raises JournalDamaged."""
    with pytest.raises(JournalDamaged):
        rolled(record)


def test_a_copy_that_appends_nothing_has_no_such_records() -> None:
    """In the journal of a copy to a new stream, these records raise JournalDamaged."""
    plan = plan_record(stream_plan(segment_plan(7)))
    with pytest.raises(JournalDamaged):
        fold([plan, decision_record(0)])
