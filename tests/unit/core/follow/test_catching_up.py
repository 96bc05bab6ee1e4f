"""Catch-ups: when a copy begins one, its steps, and its records."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.copy import follow_progress
from sluice.core.copy.journal import checkpoint_record, fold
from sluice.core.copy.observed import Observed, SeenSource, SeenStaging
from sluice.core.copy.steps import (
    BeginCatchUp,
    EndCatchUp,
    Follow,
    Prove,
    Publish,
    SealSource,
    Stage,
    Step,
    Stop,
    Verify,
)
from sluice.core.copy.steps import CatchUp as CatchUpStep
from sluice.core.events import digest
from sluice.core.events.chain import Chain, Link
from sluice.core.events.digest import ChunkDigester
from sluice.core.follow.catching_up import (
    MOST,
    Staging,
    border,
    extended,
    next_step,
    plan_of,
    planned,
)
from sluice.core.values import identity
from sluice.core.values.model import SegmentInfo
from sluice.core.values.wish import Wish, consent
from sluice.errors import JournalDamaged
from unit.core.follow.test_following import PLAN, RECORD, decide, journal, row

if TYPE_CHECKING:
    from sluice.core.copy.follow_progress import RecordedCatchUp
    from sluice.core.copy.journal import Journal

FAR = 1000
RANGES = ((0, 100, 2000), (1, 50, 60))
CHUNK = 16
COMPARED = tuple(follow_progress.proved_record(index, Link(start)) for index, start, _ in RANGES)


def begun(*records: dict[str, object], plan: object = PLAN) -> Journal:
    """Return the journal of a copy that catches up."""
    one = planned(journal(plan=plan), RANGES, Staging())
    return journal(follow_progress.catch_up_record(one), *records, plan=plan)


def behind(known: Journal, **seen: object) -> Step:
    """Return the step for a source that has 1,910 bytes more than the target."""
    rows = (row(known, 0, at=100, length=2000), row(known, 1, at=50, length=60))
    return decide(known, *rows, **{"far": FAR, **seen})


def test_what_is_missing_is_staged_from_a_distance_on() -> None:
    """If the lag is large, each segment's missing bytes are staged from its position on.

    They are appended if the lag is small or exceeds the limit, or if the driver does not stage.
    """
    known = journal(*COMPARED)
    assert behind(known) == BeginCatchUp(RANGES)
    near = (row(known, 0, at=1010, length=2000), row(known, 1, at=50, length=60))
    assert decide(known, *near, far=FAR) == Follow(((0, 1010), (1, 50)))
    assert behind(known, far=None) == Follow(((0, 100), (1, 50)))
    much = (row(known, 0, at=100, length=101 + MOST), row(known, 1, at=50))
    assert decide(known, *much, far=FAR) == Follow(((0, 100), (1, 50)))


def test_what_was_appended_is_compared_before() -> None:
    """Bytes that were appended are compared first, since the source may lose them later."""
    known = journal(*COMPARED)
    rows = (row(known, 0, at=130, length=2000), row(known, 1, at=50))
    assert decide(known, *rows, far=FAR) == Prove(((0, 130),))
    known = journal(*COMPARED, follow_progress.proved_record(0, Link(130)))
    assert decide(known, *rows, far=FAR) == BeginCatchUp(((0, 130, 2000),))


def test_a_catch_up_that_is_begun_goes_on_before_losses_are_left_out() -> None:
    """Staged bytes that the source lost are still copied. Without the catch-up they are skipped."""
    known = begun(plan=RECORD)
    lost = (row(known, 0, at=100, start=150, length=2000), row(known, 1, at=50, length=60))
    assert decide(known, *lost) == CatchUpStep()
    assert type(decide(known, *lost, apart=False)).__name__ == "Skip"


def test_an_end_comes_first() -> None:
    """An end by bytes comes before a catch-up, and so does a seal that is decided.

    Once the source is sealed, its last bytes are appended, not staged.
    """
    key = "key"
    ended = begun(follow_progress.wish_record(0, Wish(bytes=1)))
    assert behind(ended) == Stop("Bytes")
    seal = Wish(cutover="SealAndDrain")
    proof = consent(key, PLAN.copy_id, 0)
    wished = follow_progress.wish_record(0, seal, proof)
    assert behind(begun(wished), key=key) == CatchUpStep()
    sealing = begun(wished, follow_progress.sealing_record())
    assert behind(sealing, key=key) == SealSource()
    assert behind(sealing, key=key, sealed=True) == Follow(((0, 100), (1, 50)))


def test_nothing_is_staged_behind_the_end_in_bytes() -> None:
    """If the copy ends within the lag, the bytes are appended, so that the end is exact."""
    known = journal(follow_progress.wish_record(0, Wish(bytes=1000)))
    assert behind(known) == Follow(((0, 100), (1, 50)))


def staging(length: int, size: int, **changes: Any) -> SeenStaging:
    """Return the staging of a segment with one part, or with no part if it has no bytes."""
    info = SegmentInfo(start=0, length=length, sealed=False)
    seen = {"stitched": None, "verified": None, "published": None, "target": info}
    return SeenStaging(parts=(info if size else None,), **(seen | changes))


def test_a_segment_is_merged_once_it_is_verified_and_has_not_moved() -> None:
    """Segments that have moved are not merged, and the others go on.

    When none is left, the catch-up ends.
    """
    plan = plan_of(PLAN, planned(journal(), RANGES, Staging()))
    infos = [SegmentInfo(start=0, length=one.end, sealed=False) for one in plan.segments]
    sources = tuple(
        SeenSource(info, one.created) for info, one in zip(infos, plan.segments, strict=True)
    )

    def step(first: SeenStaging, second: SeenStaging, *moved: int, stages: bool = True) -> Any:
        seen = Observed(None, None, (first, second), sources)
        return next_step(plan, seen, moved, stages=stages)

    none, whole = staging(0, 0), staging(10, 1)
    assert step(none, whole) == Stage(((0, plan.segments[0].parts[0]),))
    assert step(staging(1900, 1), staging(10, 1, verified=10)) == Verify((0,))
    verified = staging(1900, 1, verified=1900)
    assert step(verified, staging(10, 1, verified=10)) == Publish((0, 1))
    assert step(verified, staging(10, 1, verified=10), 1) == Publish((0,))
    assert step(verified, whole, 0, stages=False) is None
    given_up = staging(10, 1, verified=identity.ABORTED)
    assert step(staging(0, 0, published=1900), given_up) is None
    assert step(staging(0, 0, published=1900), given_up, 0, 1) == EndCatchUp()
    assert step(none, none, 0, 1) == EndCatchUp()


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce chunks to 16 bytes."""
    monkeypatch.setattr(digest, "CHUNK", CHUNK)


@pytest.mark.usefixtures("small_chunks")
@given(size=st.integers(1, 100), start=st.integers(0, 99), first=st.integers(0, 40))
def test_the_digest_goes_on_over_chunks_that_were_staged(size: int, start: int, first: int) -> None:
    """The link is that of all bytes, wherever the segment and its staged bytes begin and end."""
    data = hashlib.sha512(b"x").digest() * 3
    start = first + start % size
    end = first + size
    digester = ChunkDigester(start, end)
    digester.feed(memoryview(data[start:end]))
    chain = Chain(Link(first))
    segment = PLAN.segments[0].model_copy(update={"start": start, "end": end})
    at = border(segment) if start < end else end
    assert start <= at <= end
    chain.feed(memoryview(data[first:at]))
    link = chain.link if at == end else extended(chain.link, end, digester.done)
    whole = Chain(Link(first))
    whole.feed(memoryview(data[first:end]))
    assert link == whole.link


def test_a_digest_does_not_go_on_without_a_chunk_or_within_one() -> None:
    """`extended` returns None, so that the bytes are read back."""
    assert extended(Link(0), digest.CHUNK, {}) is None
    assert extended(Link(5, b"", b"r", 5), 20, {0: b"d"}) is None
    assert extended(Link(30), 20, {0: b"d"}) is None


# Records


def test_the_first_record_of_a_number_holds_and_the_next_waits_for_the_end() -> None:
    """Of two drivers' records of a catch-up the first counts.

    The record of a second catch-up counts only after the end of the first.
    """
    one = planned(journal(), RANGES, Staging())
    other = one._replace(rows=(1,), segments=one.segments[1:])
    known = journal(*map(follow_progress.catch_up_record, (one, other)))
    assert (known.trail.catch_up, known.trail.catches_up) == (one, True)
    second = other._replace(number=1)
    early = journal(*map(follow_progress.catch_up_record, (one, second)))
    assert early.trail.catch_up == one
    over = (follow_progress.catch_up_record(one), follow_progress.caught_up_record(0))
    assert not journal(*over).trail.catches_up
    assert journal(*over).trail.caught_up == 1
    assert not journal(*over, follow_progress.catch_up_record(one)).trail.catches_up
    again = journal(*over, follow_progress.catch_up_record(second))
    assert (again.trail.catch_up, again.trail.catches_up) == (second, True)
    assert planned(journal(*over), RANGES, Staging()).number == 1


def test_no_catch_up_begins_after_the_end() -> None:
    """The record of a driver that has not seen the end is ignored."""
    one = planned(journal(), RANGES, Staging())
    ended = journal(follow_progress.stop_record("Asked"), follow_progress.catch_up_record(one))
    assert ended.trail.catch_up is None


@pytest.mark.parametrize("over", [False, True])
def test_a_checkpoint_has_the_catch_up(over: object) -> None:
    """A checkpoint keeps the catch-up and whether it is over."""
    known = begun(*[follow_progress.caught_up_record(0)] * bool(over))
    again = fold([checkpoint_record(known, known.trail.proved)])
    assert again is not None
    assert (again.trail.catch_up, again.trail.caught_up) == (known.trail.catch_up, int(bool(over)))


@pytest.mark.parametrize(
    "trail",
    [
        {"caught-up": 2},
        {"caught-up": -1},
        {"catch-up": {"number": 0, "rows": [9], "segments": []}},
        {"catch-up": {"number": 0, "rows": [1, 0]}},
        {"catch-up": {"number": 7}},
    ],
)
def test_a_damaged_checkpoint_is_named(trail: dict[str, Any]) -> None:
    """A catch-up with wrong values raises JournalDamaged, so that the copy can still be deleted."""
    known = begun()
    record = checkpoint_record(known, known.trail.proved)
    own = record["trail"]["catch-up"]
    trail = {key: own | one if isinstance(one, dict) else one for key, one in trail.items()}
    record["trail"] |= trail
    with pytest.raises(JournalDamaged):
        fold([record])


@pytest.mark.parametrize(
    "change",
    [
        {"rows": []},
        {"rows": [0, 0]},
        {"rows": [0, 9]},
        {"rows": [1, 0]},
        {"rows": [0]},
        {"number": -1},
        {"segments": "no"},
        {"segments": [{"start": 50}]},
        {"segments": [{"end": 100}, {}]},
        {"segments": [{"created": 7}, {}]},
        {"segments": [{"id": 7}, {}]},
        {"segments": [{"source": 1}, {}]},
        {"segments": [{"generation": 1}, {}]},
    ],
)
def test_a_damaged_record_is_named(change: dict[str, Any]) -> None:
    """A record with wrong values raises JournalDamaged: any client may have written it."""
    record = follow_progress.catch_up_record(planned(journal(), RANGES, Staging()))
    parts = change.get("segments")
    if isinstance(parts, list):
        own = record["segments"]
        change = {"segments": [one | more for one, more in zip(own, parts, strict=False)]}
    with pytest.raises(JournalDamaged):
        journal(record | change)


def test_long_ranges_are_divided_for_tasks() -> None:
    """A long range gets two parts for each task, as in any copy."""
    one: RecordedCatchUp = planned(journal(), ((0, 100, 1 << 30),), Staging(tasks=2))
    assert len(one.segments[0].parts) == 4
