"""Changes of the target's configuration, as a journal records them."""

from __future__ import annotations

import pytest

from sluice.core.copy.follow_progress import (
    change_record,
    changed_record,
    leave_record,
    scaled_record,
    stop_record,
)
from sluice.core.copy.journal import checkpoint_record, fold
from sluice.errors import JournalDamaged
from unit.core.follow.test_wish import journal


def test_a_change_may_come_until_it_is_said_to_be_done() -> None:
    """A change is pending until its own `changed` record, also after the end."""
    assert journal(change_record("a"), change_record("b")).trail.changes == ("a", "b")
    assert journal(change_record("a"), changed_record("b")).trail.changes == ("a",)
    assert journal(change_record("a"), changed_record("a")).trail.changes == ()
    known = journal(change_record("a"), stop_record("Idle"), changed_record("a"))
    assert known.trail.changes == ()


def test_a_change_counts_also_behind_the_end() -> None:
    """Changes and scale events that drivers announce after the end or the abort still count."""
    known = journal(stop_record("Idle"), leave_record(), change_record("a"), scaled_record(1))
    assert (known.trail.changes, known.trail.scaled) == (("a",), 1)


def test_other_clients_cannot_keep_a_driver_from_its_change() -> None:
    """The journal keeps the last 100 changes, so forged ones do not displace a new one."""
    forged = [change_record(f"f{number}") for number in range(1000)]
    known = journal(*forged, change_record("a")).trail.changes
    assert (known[-1], len(known)) == ("a", 100)


def test_the_latest_generation_counts() -> None:
    """The late record of an earlier generation is ignored."""
    assert journal().trail.scaled == 0
    assert journal(scaled_record(2), scaled_record(1)).trail.scaled == 2


def test_a_checkpoint_keeps_them() -> None:
    """Changes and generation are still known after a checkpoint, so that drivers wait for them."""
    known = journal(change_record("a"), change_record("b"), scaled_record(3))
    assert fold([checkpoint_record(known, {})]) == known


@pytest.mark.parametrize(
    "record",
    [
        {"record": "change", "name": "n" * 33},
        {"record": "changed", "name": 7},
        {"record": "change"},
        {"record": "scaled", "generation": "2"},
        {"record": "scaled", "generation": -1},
    ],
)
def test_a_damaged_record_is_named(record: dict[str, object]) -> None:
    """A record with wrong values raises JournalDamaged."""
    with pytest.raises(JournalDamaged):
        journal(record)
