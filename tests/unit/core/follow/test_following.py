"""The steps of a copy that follows its source, for each observation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice.core.copy import follow_progress
from sluice.core.copy.follow_progress import Loss
from sluice.core.copy.journal import (
    Journal,
    amend_record,
    checkpoint_record,
    events_record,
    fold,
    plan_record,
    target_record,
)
from sluice.core.copy.observed import SeenSource
from sluice.core.copy.steps import ConfigureTarget, Follow, Grow, Halt, Prove, Skip, Step, Stop
from sluice.core.events.chain import Link
from sluice.core.follow.ending import SEALED
from sluice.core.follow.following import next_step
from sluice.core.follow.observed import SeenRow, SeenStream
from sluice.core.follow.position import Position, position_of
from sluice.core.follow.rows import Stretch, proved, row_of
from sluice.core.values.model import KeyRange, Segment, SegmentInfo
from sluice.core.values.wish import Wish
from sluice.errors import (
    JournalDamaged,
    SluiceError,
    SourceNotFound,
    SourceReplaced,
    SourceTruncated,
    StoreUnavailable,
    TargetReplaced,
)
from support.engine.plans import segment_plan, stream_plan

PLAN = stream_plan(segment_plan(100), segment_plan(50, number=1)).model_copy(
    update={"follow": True}
)
RECORD = PLAN.model_copy(update={"on_truncation": "Record"})
HALVES = (
    Segment(id=2, keys=KeyRange(low=0, high=0.25)),
    Segment(id=3, keys=KeyRange(low=0.25, high=0.5)),
)
GROWN = [
    segment_plan(0, number=one.id).model_copy(update={"keys": one.keys, "generation": 1})
    for one in HALVES
]


def journal(*records: dict[str, object], plan: object = PLAN) -> Journal:
    """Return the journal with these records behind plan and target."""
    made = fold([plan_record(plan), target_record((10, 11)), *records])  # type: ignore[arg-type]
    assert made is not None
    return made


def row(
    known: Journal,
    index: int,
    *,
    at: int | None,
    halted: bool = False,
    start: int = 0,
    length: int | None = None,
    sealed: bool = False,
    foreign: int | None = 0,
) -> SeenRow:
    """Return a segment at a position, whose source has the bytes [start, length)."""
    position = None if at is None else Position(at, halted=halted)
    end = length if length is not None else at or 0
    info = SegmentInfo(start=start, length=end, sealed=sealed)
    of = row_of(known, index)
    return SeenRow(of, position, foreign, SeenSource(info, of.segment.created))


def decide(known: Journal, *rows: SeenRow, **seen: object) -> Step:
    """Return the step for these segments of a source that exists."""
    return next_step(known, SeenStream(rows, there=True, **seen))  # type: ignore[arg-type]


def test_a_source_that_goes_on_is_followed_from_its_positions() -> None:
    """Each segment is followed from the offset in the target's attribute."""
    known = journal()
    step = decide(known, row(known, 0, at=100), row(known, 1, at=70, length=90))
    assert step == Follow(((0, 100), (1, 70)))


def test_a_scale_event_waits_until_its_segments_are_followed_and_compared() -> None:
    """The ended segments are followed to their ends and compared before the target is scaled."""
    known = journal()
    made = {"made": HALVES}
    behind = row(known, 0, at=90, length=100, sealed=True)
    ended = row(known, 0, at=130, sealed=True)
    other = row(known, 1, at=50)
    assert decide(known, behind, other, **made) == Follow(((0, 90), (1, 50)))
    assert decide(known, ended, other) == Follow(((1, 50),), waits=True)
    assert decide(known, ended, other, **made) == Prove(((0, 130),))
    known = journal(follow_progress.proved_record(0, Link(130, b"c", b"r", 2)))
    assert decide(known, ended, other, **made) == Grow(HALVES)


def test_a_merge_waits_for_both_of_its_segments() -> None:
    """The order of a key's events would be lost if one segment were still behind."""
    known = journal(
        follow_progress.proved_record(0, Link(100)), follow_progress.proved_record(1, Link(50))
    )
    merged = (Segment(id=2, keys=KeyRange(low=0, high=1)),)
    ended = row(known, 0, at=100, sealed=True)
    late = row(known, 1, at=50, length=51, sealed=True)
    assert decide(known, ended, late, made=merged) == Follow(((1, 50),))
    whole = row(known, 1, at=50, sealed=True)
    assert decide(known, ended, whole, made=merged) == Grow(merged)


def test_a_sealed_source_ends_it() -> None:
    """Once all bytes are followed, the copy stops, halts, compares and marks the target."""
    known = journal()
    rows = (row(known, 0, at=100, sealed=True), row(known, 1, at=60, sealed=True))
    assert decide(known, *rows) == Follow((), waits=True)
    assert decide(known, *rows, sealed=True) == Stop(SEALED)
    stopped = follow_progress.stop_record(SEALED)
    known = journal(stopped)
    assert decide(known, *rows) == Halt(((0, 100), (1, 60)))
    halted = [replace(one, position=Position(one.position.offset, halted=True)) for one in rows]  # type: ignore[union-attr]
    assert decide(known, *halted) == Prove(((0, 100), (1, 60)))
    unknown = [replace(one, foreign=None) for one in halted]
    with pytest.raises(StoreUnavailable):
        decide(known, *unknown)
    proofs = [follow_progress.proved_record(i, Link(at)) for i, at in ((0, 100), (1, 60))]
    assert decide(journal(stopped, *proofs), *halted) == ConfigureTarget()


def test_a_wish_ends_it_where_it_is() -> None:
    """The offsets at which the segments are halted are the end, and the first reason holds."""
    known = journal()
    rows = (row(known, 0, at=100, length=500), row(known, 1, at=60))
    asked = journal(follow_progress.wish_record(0, Wish(bytes=160)))
    assert decide(asked, *rows) == Stop("Bytes")
    late = journal(follow_progress.stop_record("Asked"), follow_progress.stop_record("Other"))
    assert late.trail.stopped == "Asked"
    assert decide(late, *rows) == Halt(((0, 100), (1, 60)))


def test_lost_bytes_end_the_copy_or_are_left_out() -> None:
    """With `Fail` the error names segment and offsets. With `Record` the copy skips the bytes."""
    known = journal()
    lost = (row(known, 0, at=100, start=120, length=150), row(known, 1, at=50))
    with pytest.raises(SourceTruncated, match="offsets 100 to 120 of segment 0 are gone, 20 bytes"):
        decide(known, *lost)
    known = journal(plan=RECORD)
    lost = (row(known, 0, at=100, start=120, length=150), row(known, 1, at=50))
    assert decide(known, *lost) == Skip(((0, 100, 120),))
    halted = row(known, 0, at=100, halted=True, start=120, length=150)
    assert decide(known, halted, lost[1]) == Skip(((0, 100, 120),))


@pytest.mark.parametrize(
    ("change", "seen", "error"),
    [
        pytest.param({"source": None}, {"there": False}, SourceNotFound, id="deleted"),
        pytest.param(
            {"source": None}, {"had": frozenset({0})}, SourceTruncated, id="truncated past it"
        ),
        pytest.param(
            {"source": None},
            {"had": frozenset({0}), "sealed": True},
            StoreUnavailable,
            id="being deleted",
        ),
        pytest.param({"source": None}, {}, SourceReplaced, id="another stream"),
        pytest.param(
            {"source": SeenSource(SegmentInfo(start=0, length=200, sealed=False), 9)},
            {},
            SourceReplaced,
            id="another segment of the same id",
        ),
        pytest.param({"foreign": 7}, {}, TargetReplaced, id="foreign bytes"),
        pytest.param({"foreign": -7}, {}, TargetReplaced, id="missing bytes"),
        pytest.param({"position": None}, {}, StoreUnavailable, id="no position"),
        pytest.param({"position": Position(100, halted=True)}, {}, StoreUnavailable, id="halted"),
    ],
)
def test_a_change_under_the_copy_is_named(
    change: dict[str, object], seen: dict[str, object], error: type[SluiceError]
) -> None:
    """The copy neither reads another source nor appends to a changed target."""
    known = journal()
    rows = (replace(row(known, 0, at=100), **change), row(known, 1, at=50))  # type: ignore[arg-type]
    with pytest.raises(error):
        next_step(known, replace(SeenStream(rows, there=True), **seen))  # type: ignore[arg-type]


def test_foreign_bytes_are_named_by_segment_and_offsets() -> None:
    """The error names the target's segment, and the offsets of the foreign bytes in it."""
    known = journal()
    with pytest.raises(
        TargetReplaced, match=r"wrote 7 bytes into segment 10 of .* between offsets 100 and 107"
    ):
        decide(known, row(known, 0, at=100, foreign=7), row(known, 1, at=50))


def test_the_first_record_of_a_scale_event_and_of_a_loss_holds() -> None:
    """Of two drivers' records of the same event, the second is ignored. After the end both are."""
    grow = follow_progress.grow_record(GROWN, [12, 13])
    skip = follow_progress.skip_record(0, 0, Loss(100, 120))
    known = journal(grow, grow, skip, follow_progress.skip_record(0, 0, Loss(100, 150)))
    assert known.target == (10, 11, 12, 13)
    assert [one.id for one in known.current.segments] == [0, 1, 2, 3]
    assert known.current.active[-1] == (2, 3, 1)
    assert known.trail.lost == {0: (Loss(100, 120),)}
    again = follow_progress.skip_record(0, 1, Loss(100, 120))
    more = follow_progress.skip_record(0, 1, Loss(120, 150))
    assert journal(skip, again).trail.lost == {0: (Loss(100, 120),)}
    assert journal(skip, again, more).trail.lost == {0: (Loss(100, 120), Loss(120, 150))}
    late = journal(follow_progress.stop_record("x"), grow, skip)
    assert (late.trail.grown, late.trail.lost) == ((), {})


def test_comparisons_only_go_forward() -> None:
    """The record of a slower driver does not reduce the compared bytes."""
    near, far = Link(110, b"n"), Link(160, b"f")
    known = journal(
        follow_progress.proved_record(0, far, 4), follow_progress.proved_record(0, near, 4)
    )
    assert (known.trail.proved, known.trail.blind) == ({0: far}, {0: 4})


def test_lost_bytes_shift_what_comes_behind_them() -> None:
    """The target has no gaps, so offsets behind a loss are smaller by its length."""
    known = journal(
        follow_progress.skip_record(0, 0, Loss(100, 120)),
        follow_progress.skip_record(0, 1, Loss(150, 180)),
        plan=RECORD,
    )
    of = row_of(known, 0)
    assert [of.shift(at) for at in (0, 100, 120, 150, 180)] == [0, 0, -20, -20, -50]
    assert list(of.stretches(90, 200)) == [
        Stretch(90, 100, 0),
        Stretch(120, 150, -20),
        Stretch(180, 200, -50),
    ]
    assert list(of.stretches(100, 100)) == []
    assert list(of.stretches(100, 120)) == []


@pytest.mark.parametrize(
    "position",
    [Position(0), Position(7), Position(0, halted=True), Position(9, halted=True)],
)
def test_a_position_is_one_number(position: Position) -> None:
    """A halted position is below -1: no running appender has it, and no copy that was ended."""
    assert position_of(position.value) == position
    assert (position.value < -1) == position.halted
    assert position_of(None) is None


def test_a_checkpoint_says_all_that_the_records_said() -> None:
    """A checkpoint keeps changed bounds, scale events, losses, comparisons, counts and the end."""
    known = journal(
        amend_record(1, 0, 20),
        follow_progress.grow_record(GROWN, [12, 13]),
        follow_progress.skip_record(0, 0, Loss(100, 120)),
        follow_progress.proved_record(0, Link(130, b"chain", b"rest", 2), 7),
        events_record(0, 9),
        follow_progress.stop_record("Asked"),
        plan=RECORD,
    )
    links = {index: proved(known, index) for index in range(4)}
    again = fold([checkpoint_record(known, links)])
    assert again is not None
    assert again.current.segments == known.current.segments
    assert again.current.segments[1].edition == 1
    assert (again.plan, again.target, again.events) == (known.plan, known.target, known.events)
    assert again.trail == replace(known.trail, proved=links)
    more = fold([checkpoint_record(known, links), follow_progress.proved_record(0, Link(140))])
    assert more is not None
    assert more.trail.proved[0] == Link(140)


def test_a_checkpoint_behind_its_records_changes_nothing() -> None:
    """A checkpoint is ignored if the journal still has the records that it stands for."""
    records = [plan_record(PLAN), target_record((10, 11)), follow_progress.stop_record("Asked")]
    known = fold(records)
    assert known is not None
    assert fold([*records, checkpoint_record(known, {})]) == known


def test_a_plan_that_does_not_follow_keeps_its_text() -> None:
    """The JSON has the field `follow` only if it is set, so older plans keep their hashes."""
    plan = stream_plan(segment_plan(100))
    assert "follow" not in plan.model_dump_json()
    assert "follow" in PLAN.model_dump_json()


@pytest.mark.parametrize(
    "record",
    [
        {"record": "grow", "segments": [], "target": []},
        {"record": "skip", "segment": 9, "number": 0, "start": 0, "end": 5},
        {"record": "skip", "segment": 0, "number": 0, "start": -1, "end": 5},
        {"record": "proved", "segment": 0, "to": 5, "chain": "no", "rest": "", "held": 0},
        {"record": "proved", "segment": 2, "to": 5, "chain": "", "rest": "", "held": 0},
        {"record": "proved", "segment": 0, "to": 5, "chain": "", "rest": "", "held": 6},
        {"record": "proved", "segment": 0, "to": 1 << 40, "chain": "", "rest": "", "held": 1 << 39},
        {"record": "stop", "why": 5},
        {"record": "stop"},
    ],
)
def test_a_damaged_record_is_named(record: dict[str, object]) -> None:
    """A record with wrong values raises JournalDamaged: any client may have written it."""
    with pytest.raises(JournalDamaged):
        journal(record)


def test_a_copy_that_does_not_follow_knows_no_such_records() -> None:
    """The records are refused like those of a later version."""
    plan = PLAN.model_copy(update={"follow": False})
    with pytest.raises(JournalDamaged, match="does not know"):
        journal(follow_progress.stop_record("x"), plan=plan)


@pytest.mark.parametrize(
    ("changes", "trail"),
    [
        ({"target": [10]}, {}),
        ({"target": [10, 11, 12]}, {}),
        (
            {"target": [10, 11, 12]},
            {"grown": [GROWN[0].model_dump(mode="json") | {"generation": 1 << 60}]},
        ),
        ({}, {"stopped": 5}),
        ({}, {"lost": [[0, 5, -1]]}),
    ],
)
def test_a_damaged_checkpoint_is_named(
    changes: dict[str, object], trail: dict[str, object]
) -> None:
    """A wrong value in a checkpoint that begins the journal raises JournalDamaged."""
    record = checkpoint_record(journal(), {})
    record |= changes
    record["trail"] |= trail
    with pytest.raises(JournalDamaged):
        fold([record])


def test_a_copy_that_does_not_follow_has_no_checkpoint() -> None:
    """A checkpoint raises JournalDamaged, as the first record and behind the plan."""
    known = journal()
    plan = PLAN.model_copy(update={"follow": False})
    record = checkpoint_record(replace(known, plan=plan), {})
    with pytest.raises(JournalDamaged, match="has a checkpoint"):
        fold([record])
    with pytest.raises(JournalDamaged, match="does not know"):
        journal(record, plan=plan)
