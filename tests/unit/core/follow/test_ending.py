"""The end of a copy that follows its source, by its wish and by observation."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sluice.core.copy.follow_progress import proved_record, sealing_record, wish_record
from sluice.core.copy.steps import Follow, Grow, SealSource, Step, Stop
from sluice.core.events.chain import Link
from sluice.core.follow.ending import NEAR
from sluice.core.values.wish import Wish, consent
from support.engine.plans import COPY
from unit.core.follow.test_following import HALVES, decide, journal, row

KEY = "key"
NOON = Wish(time="2026-12-01T12:00:00Z")  # type: ignore[arg-type] - as in a resource
ON = Follow(((0, 100), (1, 50)))


def end(wish: Wish, *, behind: int = 0, sealed: bool = False, **seen: object) -> Step:
    """Return the step for a source of two segments, of which the second lacks `behind` bytes."""
    known = journal(wish_record(0, wish, consent(KEY, COPY, 0)))
    rows = (
        row(known, 0, at=100, sealed=sealed),
        row(known, 1, at=50, length=50 + behind, sealed=sealed),
    )
    return decide(known, *rows, **{"key": KEY, "sealed": sealed} | seen)


@pytest.mark.parametrize(
    ("wish", "seconds", "why"),
    [(Wish(cutover="Drain"), 5, "Drained"), (Wish(idle_seconds=60), 60, "Idle")],
)
def test_a_quiet_source_ends_it(wish: Wish, seconds: int, why: str) -> None:
    """The copy ends after enough quiet seconds, once no bytes and no scale event are left."""
    assert end(wish, quiet=seconds - 0.1) == ON
    assert end(wish, quiet=seconds) == Stop(why)
    assert end(wish, quiet=seconds, behind=1) == ON
    assert end(wish, quiet=seconds, made=HALVES) == ON
    assert end(Wish(), quiet=1e9) == ON


def test_the_time_ends_it_wherever_it_is() -> None:
    """The copy ends at the wished moment, even if it is behind its source, and not earlier."""
    assert NOON.time is not None
    assert end(NOON, now=NOON.time - timedelta(seconds=1)) == ON
    assert end(NOON, now=NOON.time, behind=7) == Stop("Time")


def test_so_many_bytes_end_it() -> None:
    """The planned bytes count for the wished number too."""
    assert end(Wish(bytes=151)) == ON
    assert end(Wish(bytes=150), behind=7) == Stop("Bytes")


def test_a_source_is_sealed_once_the_copy_is_near_its_end() -> None:
    """The seal needs the owner's consent, and waits until scale events are followed."""
    seal = Wish(cutover="SealAndDrain")
    assert end(seal, behind=NEAR + 1) == ON
    assert end(seal, behind=NEAR) == SealSource()
    assert end(seal, made=HALVES) == ON
    assert end(seal, key="other") == ON
    assert end(seal, key="") == ON
    assert end(seal, sealed=True) == SealSource()


def test_nothing_else_ends_a_copy_whose_source_is_to_be_sealed() -> None:
    """Another end would leave the target without the last bytes of a sealed source."""
    both = Wish(cutover="SealAndDrain", idle_seconds=1, bytes=1, time=NOON.time)
    late = {"quiet": 1e9, "now": NOON.time}
    assert end(both, behind=NEAR + 1, **late) == ON
    proof = consent(KEY, COPY, 0)
    decided = (wish_record(0, both, proof), sealing_record(), wish_record(1, NOON))
    known = journal(*decided)
    rows = (row(known, 0, at=100), row(known, 1, at=50))
    assert decide(known, *rows, key=KEY, **late) == SealSource()
    ended = (row(known, 0, at=100, sealed=True), row(known, 1, at=50, sealed=True))
    assert decide(known, *ended, key=KEY, sealed=True, **late) == Stop("CutOver")
    rest = (row(known, 0, at=100, sealed=True), row(known, 1, at=50, length=60, sealed=True))
    assert decide(known, *rest, key=KEY, sealed=True, **late) == Follow(((1, 50),))


def test_a_scale_event_before_the_seal_is_followed_first() -> None:
    """The target gets the segments that the sealed source has, before the copy ends."""
    proof = consent(KEY, COPY, 0)
    known = journal(
        wish_record(0, Wish(cutover="SealAndDrain"), proof),
        sealing_record(),
        proved_record(0, Link(100)),
    )
    rows = (row(known, 0, at=100, sealed=True), row(known, 1, at=50, sealed=True))
    assert decide(known, *rows, key=KEY, sealed=True, made=HALVES) == Grow(HALVES)
