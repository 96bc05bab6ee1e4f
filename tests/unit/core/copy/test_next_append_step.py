from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sluice.core.copy.append_progress import Opened, Roll
from sluice.core.copy.journal import Journal
from sluice.core.copy.next_append_step import next_step
from sluice.core.copy.observed import Observed, SeenRoll, SeenSource, SeenStaging, SeenTarget
from sluice.core.copy.plan import SourceStream, StreamPlan
from sluice.core.copy.steps import (
    AcquireScaling,
    Commit,
    DeleteJournal,
    Done,
    MergeIntoTransaction,
    Open,
    PlanPlacement,
    RecordCommitted,
    RecordDecision,
    RecordLayout,
    RelaxPolicy,
    ReleaseScaling,
    Reshape,
    Restart,
    RestoreLayout,
    RestorePolicy,
    Stage,
    Step,
    Verify,
    WriteReceipt,
)
from sluice.core.values.identity import TAG_APPENDING
from sluice.core.values.model import KeyRange, Segment, SegmentInfo, TransactionState
from sluice.errors import (
    CopyAborted,
    OutcomeUnknown,
    SluiceError,
    StoreBusy,
    TargetLost,
    TargetReplaced,
    TargetSealed,
)
from support.engine.plans import COPY, SOURCE, TARGET, segment_plan

OPEN, COMMITTING, COMMITTED = (
    TransactionState.OPEN,
    TransactionState.COMMITTING,
    TransactionState.COMMITTED,
)
ABORTED, UNKNOWN = TransactionState.ABORTED, TransactionState.UNKNOWN
HALVES = (KeyRange(low=0, high=0.5), KeyRange(low=0.5, high=1))
WHOLE = (KeyRange(low=0, high=1),)
PLAN = StreamPlan(
    copy_id=COPY,
    sources=(SourceStream(stream=SOURCE),),
    target=TARGET,
    segments=(
        segment_plan(8, number=0).model_copy(update={"keys": HALVES[0]}),
        segment_plan(0, number=1).model_copy(update={"keys": HALVES[1]}),
        segment_plan(8, number=2).model_copy(update={"keys": WHOLE[0], "generation": 1}),
    ),
    config={},
    verify=True,
    append=True,
)
T0, T1 = Opened("0", (3, 4)), Opened("1", (5,))
BOTH = {0: T0, 1: T1}


def target(ranges: tuple[KeyRange, ...], **other: Any) -> SeenTarget:
    """Return a target with these key ranges."""
    tail = tuple(Segment(id=10 + i, keys=keys) for i, keys in enumerate(ranges))
    seen = SeenTarget(("team=b",), tuple(one.id for one in tail), tail, tail=tail)
    return replace(seen, **other)


def segment(length: int | None, **other: Any) -> SeenStaging:
    """Return a segment of the plan, staged up to this length; None if it is not staged."""
    info = None if length is None else SegmentInfo(start=0, length=length, sealed=False)
    return replace(SeenStaging((info,), None, None, None, None), **other)


EMPTY = SeenStaging((), None, None, None, None)
SOURCES = tuple(
    SeenSource(SegmentInfo(start=0, length=one.end, sealed=True), one.created)
    for one in PLAN.segments
)
STAGED, VERIFIED = segment(8), segment(8, verified=8)
JOINED = segment(None, published=8)
THIRDS = tuple(KeyRange(low=i / 3, high=(i + 1) / 3) for i in range(3))
THERE = target(THIRDS, least=3)
LOOSE = ("team=b", f"{TAG_APPENDING}{COPY}/Fixed/0/0/3")


def observed(
    *segments: SeenStaging,
    roll: Roll | None = None,
    states: Mapping[int, TransactionState] | None = None,
    seen: SeenTarget | None = THERE,
    bound: tuple[int, ...] | None = (20, 21, 22),
    digest: str | None = None,
    misplaced: bool = False,
    turn: str | None = COPY,
) -> Observed:
    """Return an observation of an append with known digests of the source."""
    first, second = segments or (VERIFIED, VERIFIED)
    known = {0: ((0, b"0" * 32),), 2: ((0, b"2" * 32),)}
    return Observed(
        journal=Journal(PLAN, bound, known, roll=roll or Roll()),
        target=seen,
        segments=(first, EMPTY, second),
        sources=SOURCES,
        roll=SeenRoll(digest, turn, states or {}, misplaced),
    )


REMEMBERED = Roll(layout=THIRDS)
FIRST = replace(REMEMBERED, transactions={0: T0})
OPENED = replace(REMEMBERED, transactions=BOTH)
DECIDED = replace(OPENED, decided=True)
HALF = replace(DECIDED, committed=frozenset({0}))
ALL = replace(DECIDED, committed=frozenset({0, 1}))
OPENS = {0: OPEN, 1: OPEN}


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (observed(bound=None), PlanPlacement()),
        (observed(segment(None), VERIFIED), Stage(((0, PLAN.segments[0].parts[0]),))),
        (observed(STAGED, VERIFIED), Verify((0,))),
        (observed(turn=None), AcquireScaling()),
        (observed(), RecordLayout()),
        (observed(roll=REMEMBERED), RelaxPolicy()),
        (observed(roll=REMEMBERED, seen=target(THIRDS)), Reshape(0, (10, 11, 12))),
        (observed(roll=REMEMBERED, seen=target(HALVES, tags=LOOSE)), Open(0)),
        (
            observed(roll=FIRST, states={0: OPEN}, seen=target(HALVES, tags=LOOSE)),
            Reshape(1, (10, 11)),
        ),
        (observed(roll=FIRST, states={0: OPEN}, seen=target(WHOLE, tags=LOOSE)), Open(1)),
        (observed(roll=OPENED, states=OPENS, seen=target(WHOLE, tags=LOOSE)), RestoreLayout((10,))),
        (observed(roll=OPENED, states=OPENS, seen=target(WHOLE, least=4)), RelaxPolicy()),
        (observed(roll=OPENED, states=OPENS, seen=target(THIRDS, tags=LOOSE)), RestorePolicy()),
        (observed(roll=OPENED, states=OPENS), ReleaseScaling()),
        (observed(roll=OPENED, states=OPENS, turn=None), MergeIntoTransaction((0, 2))),
        (observed(turn=None, roll=OPENED, states=OPENS, misplaced=True), Restart(keep=True)),
        (
            observed(JOINED, VERIFIED, turn=None, roll=OPENED, states=OPENS),
            MergeIntoTransaction((2,)),
        ),
        (observed(JOINED, JOINED, turn=None, roll=OPENED, states=OPENS), RecordDecision()),
        (observed(turn=None, roll=OPENED, states={0: OPEN, 1: ABORTED}), Restart(keep=False)),
        (observed(turn=None, roll=OPENED, states={0: UNKNOWN, 1: OPEN}), Restart(keep=False)),
        (observed(turn=None, roll=DECIDED, states=OPENS), Commit((0, 1))),
        (observed(turn=None, roll=DECIDED, states={0: COMMITTING, 1: OPEN}), Commit((0, 1))),
        (observed(turn=None, roll=DECIDED, states={0: COMMITTED, 1: OPEN}), RecordCommitted((0,))),
        (
            observed(turn=None, roll=DECIDED, states={0: COMMITTED, 1: COMMITTED}),
            RecordCommitted((0, 1)),
        ),
        (observed(turn=None, roll=DECIDED, states={0: ABORTED, 1: OPEN}), Restart(keep=False)),
        (observed(turn=None, roll=HALF, states={1: OPEN}), Commit((1,))),
        (observed(turn=None, roll=HALF, states={1: ABORTED}), Restart(keep=False)),
        (observed(roll=HALF, states={1: OPEN}, seen=target(WHOLE)), RestoreLayout((10,))),
        (observed(turn=None, roll=ALL), WriteReceipt()),
        (observed(turn=None, roll=ALL, digest="12"), DeleteJournal()),
        (replace(observed(turn=None, digest="12"), journal=None), Done("12")),
        (
            replace(observed(digest="12", seen=target(THIRDS, tags=LOOSE)), journal=None),
            RestorePolicy(),
        ),
    ],
)
def test_each_observation_has_its_next_step(seen: Observed, step: Step) -> None:
    """One observation decides the step, without a memory of earlier steps."""
    assert next_step(PLAN, seen) == step


@pytest.mark.parametrize(
    ("seen", "error"),
    [
        (observed(turn=None, roll=Roll(aborted=True)), CopyAborted),
        (replace(observed(turn=None), journal=None), CopyAborted),
        (replace(observed(turn=None, seen=None), journal=None), TargetLost),
        (replace(observed(turn=None, seen=None), journal=None, scopeless=True), TargetLost),
        (observed(seen=None), TargetReplaced),
        (observed(turn="another"), StoreBusy),
        (observed(seen=target(THIRDS, sealed=True)), TargetSealed),
        (observed(turn=None, roll=DECIDED, states={0: UNKNOWN, 1: OPEN}), OutcomeUnknown),
    ],
)
def test_what_cannot_go_on_is_an_error(seen: Observed, error: type[SluiceError]) -> None:
    """A state that no step can mend raises the error of its cause."""
    with pytest.raises(error):
        next_step(PLAN, seen)


@pytest.mark.parametrize("roll", [replace(FIRST, aborted=True), replace(ALL, aborted=True)])
def test_an_aborted_copy_gives_back_what_it_took(roll: Roll) -> None:
    """A driver restores the target's key ranges and policy before it raises CopyAborted."""
    reshaped = observed(roll=roll, seen=target(WHOLE, tags=LOOSE))
    assert next_step(PLAN, reshaped) == RestoreLayout((10,))
    assert next_step(PLAN, observed(roll=roll, seen=target(THIRDS, tags=LOOSE))) == RestorePolicy()


def test_segments_that_somebody_else_made_are_left_alone() -> None:
    """The copy does not reshape the target if another client has scaled it."""
    fifths = tuple(KeyRange(low=i / 5, high=(i + 1) / 5) for i in range(5))
    seen = observed(roll=OPENED, states=OPENS, seen=target(fifths))
    assert next_step(PLAN, seen) == ReleaseScaling()
