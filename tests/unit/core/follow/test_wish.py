"""Wishes for the end of a copy, as its journal records them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from sluice.core.copy import follow_progress
from sluice.core.copy.journal import Journal, checkpoint_record, fold, plan_record, target_record
from sluice.core.values.wish import Wish, consent, is_consent
from sluice.errors import JournalDamaged
from support.engine.plans import segment_plan, stream_plan

PLAN = stream_plan(segment_plan(100)).model_copy(update={"follow": True})
SEAL = Wish(cutover="SealAndDrain")
FULL = Wish(
    cutover="Drain", idle_seconds=600, bytes=1 << 40, time=datetime(2026, 12, 1, tzinfo=UTC)
)


def journal(*records: dict[str, object]) -> Journal:
    """Return the journal with these records behind plan and target."""
    made = fold([plan_record(PLAN), target_record((10,)), *records])
    assert made is not None
    return made


def wish(number: int, wish: Wish, proof: str = "") -> dict[str, object]:
    """Return the record of a wish."""
    return follow_progress.wish_record(number, wish, proof)


def test_the_last_wish_before_the_end_counts() -> None:
    """Of two clients' wishes with the same number the first counts. Wishes after the end do not."""
    assert journal().trail.wish == Wish()
    assert journal(wish(0, FULL)).trail.wish == FULL
    known = journal(wish(0, FULL), wish(1, SEAL), wish(1, FULL)).trail
    assert (known.wish, known.wishes) == (SEAL, 2)
    late = journal(wish(0, FULL), follow_progress.stop_record("x"), wish(1, SEAL))
    assert late.trail.wish == FULL


def test_a_decision_to_seal_stays() -> None:
    """The decision counts only if the present wish is to seal. Later wishes do not revoke it."""
    sealing = follow_progress.sealing_record()
    assert journal(sealing).trail.sealing == ()
    assert journal(wish(0, SEAL, "p"), wish(1, Wish()), sealing).trail.sealing == ()
    known = journal(wish(0, FULL), wish(1, SEAL, "p"), sealing, wish(2, Wish())).trail
    assert known.sealing == (follow_progress.Consent(1, "p"),)
    assert (known.wish, known.consent) == (Wish(), None)
    assert journal(wish(0, FULL, "p"), sealing).trail.sealing == ()


def test_an_end_that_was_decided_before_a_seal_does_not_count() -> None:
    """The copy has to go on to the sealed source's end, so an earlier end is ignored."""
    begin = (wish(0, SEAL, "p"), follow_progress.sealing_record())
    assert journal(*begin, follow_progress.stop_record("Time")).trail.stopped is None
    late = (follow_progress.stop_record("CutOver", 1), follow_progress.stop_record("Time", 1))
    assert journal(*begin, *late).trail.stopped == "CutOver"
    again = journal(*begin, follow_progress.sealing_record(), *late)
    assert again.trail.stopped == "CutOver"


def test_other_clients_cannot_hide_a_decision_to_seal() -> None:
    """The owner's consent stays the first of at most 100, whatever others record later."""
    begin = [wish(0, SEAL, "p"), follow_progress.sealing_record()]
    forged = [
        record
        for number in range(1, 200)
        for record in (wish(number, SEAL, "f"), follow_progress.sealing_record())
    ]
    known = journal(*begin, *forged).trail.sealing
    assert known[0] == follow_progress.Consent(0, "p")
    assert len(known) == 100


def test_a_checkpoint_has_the_wish() -> None:
    """A checkpoint keeps wish, consent and decision to seal. Without a wish it lacks the fields."""
    known = journal(wish(0, SEAL, "p"), follow_progress.sealing_record(), wish(1, FULL))
    assert fold([checkpoint_record(known, {})]) == known
    waiting = journal(wish(0, SEAL, "p"))
    assert fold([checkpoint_record(waiting, {})]) == waiting
    assert "wish" not in str(checkpoint_record(journal(), {}))


def test_a_consent_is_one_owners_of_one_copy_at_one_time() -> None:
    """A proof holds for one key, one copy and one number. An empty key has no proof."""
    proof = consent("key", "copy", 3)
    assert is_consent(proof, "key", "copy", 3)
    others = (("other", "copy", 3), ("key", "other", 3), ("key", "copy", 2), ("", "copy", 3))
    assert not any(is_consent(proof, *other) for other in others)
    assert consent("", "copy", 3) == ""
    assert not is_consent("", "", "copy", 3)


@pytest.mark.parametrize(
    "record",
    [
        {"record": "wish"},
        {"record": "wish", "number": -1, "wish": {}},
        {"record": "wish", "number": True, "wish": {}},
        {"record": "wish", "number": 0, "wish": []},
        {"record": "wish", "number": 0, "wish": {"cutover": "Seal"}},
        {"record": "wish", "number": 0, "wish": {"idleSeconds": 0}},
        {"record": "wish", "number": 0, "wish": {"bytes": 1 << 63}},
        {"record": "wish", "number": 0, "wish": {"time": "2026-12-01T00:00:00"}},
        {"record": "wish", "number": 0, "wish": {"time": "9999-12-31T23:59:59-14:00"}},
        {"record": "wish", "number": 0, "wish": {"time": 1 << 90}},
        {"record": "wish", "number": 0, "wish": {"more": 1}},
        {"record": "wish", "number": 0, "wish": {}, "consent": "x" * 65},
        {"record": "wish", "number": 0, "wish": {}, "consent": 5},
    ],
)
def test_a_damaged_wish_is_named(record: dict[str, object]) -> None:
    """A record with wrong values raises JournalDamaged.

    Any client with write access to the target's scope may have written it.
    """
    with pytest.raises(JournalDamaged):
        journal(record)


@pytest.mark.parametrize(
    "trail",
    [
        {"wishes": -1, "wish": {}},
        {"wishes": 1},
        {"wishes": 1, "wish": {"bytes": -1}},
        {"wishes": 1, "wish": {}, "consent": [0]},
        {"wishes": 1, "wish": {}, "sealing": [[0, 1]]},
        {"wishes": 1, "wish": {}, "sealing": 5},
    ],
)
def test_a_damaged_checkpoint_of_a_wish_is_named(trail: dict[str, object]) -> None:
    """A wrong value in a checkpoint that begins the journal raises JournalDamaged."""
    record = checkpoint_record(journal(), {})
    record["trail"] |= trail
    with pytest.raises(JournalDamaged):
        fold([record])


def test_a_wish_has_bounds() -> None:
    """A value out of bounds raises ValidationError, and a default value is not written."""
    with pytest.raises(ValidationError):
        Wish(idle_seconds=1 << 40)
    assert Wish().model_dump(mode="json", exclude_defaults=True) == {}
