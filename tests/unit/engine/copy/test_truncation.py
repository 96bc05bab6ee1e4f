"""A source that loses bytes during its copy: the loss is amended, recorded and reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.journal import amend_record, digest_record, events_record, fold, plan_record
from sluice.core.copy.steps import Amend, Publish, Transfer
from sluice.engine.copy.abort import abort
from sluice.engine.copy.query import ask
from sluice.engine.positions.position_map import position_map
from sluice.errors import SourceTruncated, TargetReplaced
from support.engine.plans import ADDRESS, COPY, SOURCE, TARGET, segment_plan, stream_plan
from support.engine.sources import REQUEST, begun, copy_all, go, put_source
from support.model import ModelStore, World, segment_name

if TYPE_CHECKING:
    from sluice.engine.copy.stream_copy import StreamCopyWork

RECORD = REQUEST.model_copy(update={"on_truncation": "Record"})
PLAN = stream_plan(segment_plan(100, cuts=(48,)), segment_plan(50)).model_copy(
    update={"on_truncation": "Record"}
)
DIGEST = b"d" * 32
FIRST = 48
"""The offset of the second event in the first segment."""


@pytest.fixture
def world() -> World:
    """Return a world with a source of two segments."""
    made = World()
    put_source(made, [40, 40, 3], [9])
    return made


def lose(world: World, to: int, segment: int = 0) -> None:
    """Truncate the source."""
    world.segments[segment_name(SOURCE, segment)].start = to


def driver(world: World) -> StreamCopyWork:
    """Return a driver that has recorded its plan."""
    return begun(world, RECORD)


def test_an_amendment_moves_the_begin_and_forgets_what_was_hashed() -> None:
    """The first chunk changes then, and its events have to be counted."""
    journal = fold(
        [
            plan_record(PLAN),
            digest_record(0, 0, [DIGEST]),
            digest_record(1, 0, [DIGEST]),
            amend_record(0, 0, 60),
        ]
    )
    assert journal is not None
    (first, second) = journal.current.segments
    assert (first.start, first.lost, first.cuts, first.events) == (60, 60, (), None)
    assert second == PLAN.segments[1]
    assert (journal.known(0), journal.known(1)) == ({}, {0: DIGEST})
    assert journal.plan == PLAN


def test_what_a_late_driver_learnt_does_not_count() -> None:
    """Records of the segment before its amendment are skipped, as is a second such amendment."""
    journal = fold(
        [
            plan_record(PLAN),
            amend_record(0, 0, 60),
            amend_record(0, 0, 80),
            digest_record(0, 0, [DIGEST]),
            events_record(0, 7),
            digest_record(0, 1, [DIGEST], 1),
        ]
    )
    assert journal is not None
    assert journal.current.segments[0].start == 60
    assert journal.known(0) == {1: DIGEST}
    assert journal.events == {}


def test_amendments_follow_one_another_up_to_the_end() -> None:
    """A segment that is gone is empty, without events. No bound moves back or past the end."""
    records = [plan_record(PLAN), amend_record(0, 0, 60), amend_record(0, 1, 100)]
    journal = fold([*records, amend_record(0, 2, 101), amend_record(1, 0, 0)])
    assert journal is not None
    segment = journal.current.segments[0]
    assert (segment.length, segment.lost, segment.events, segment.attempt) == (0, 100, 0, 2)
    assert journal.current.segments[1] == PLAN.segments[1]


def test_a_plan_is_written_without_what_a_journal_makes_of_it() -> None:
    """Hash and record of a plan do not depend on a later truncation."""
    amended = PLAN.of([PLAN.segments[0].without(60), PLAN.segments[1]])
    assert "lost" not in amended.model_dump_json()


def test_the_gap_is_in_the_target_and_the_report(world: World) -> None:
    """Later clients read it from the target's own attributes."""
    one = driver(world)
    lose(world, FIRST)
    store = ModelStore(world)
    contents = world.bytes_of(SOURCE)
    (report,) = copy_all(store, one.plan)
    assert [(gap.source, gap.start, gap.lost) for gap in report.gaps] == [(0, FIRST, FIRST)]
    assert world.bytes_of(TARGET) == [contents[0][FIRST:], contents[1]]
    assert [one.lost for one in position_map(COPY, TARGET, store)] == [FIRST, 0]
    assert world.staging() == []


@pytest.mark.parametrize("known", [True, False])
def test_the_operator_reads_the_gap_from_the_target(world: World, known: bool) -> None:  # noqa: FBT001
    """This holds with and without the plan. A plan for all bytes gets no such answer."""
    one = driver(world)
    plan = one.plan
    lose(world, FIRST)
    go(one, world)
    store = ModelStore(world)

    def answer(plan_known: object) -> object:
        return ask(
            RECORD,
            sources=[(ADDRESS, store)],
            target=(ADDRESS, store),
            known=plan_known,  # type: ignore[arg-type]
        )

    found = answer(plan if known else None)
    assert [tuple(gap) for gap in found.gaps] == [(0, 0, 0, FIRST)]  # type: ignore[attr-defined]
    assert (found.bytes, found.events) == (plan.bytes - FIRST, 3)  # type: ignore[attr-defined]
    with pytest.raises(TargetReplaced):
        answer(plan.model_copy(update={"on_truncation": "Fail"}))


@pytest.mark.parametrize("performed", ["nothing", "mark", "record"])
def test_whoever_dies_while_it_gives_a_segment_up_is_followed(world: World, performed: str) -> None:
    """A driver may die before the mark, before the record or after it. The next one goes on."""
    one = driver(world)
    go(one, world, Transfer)
    lose(world, FIRST)
    step = one.look()
    assert step == Amend(((0, FIRST),))
    if performed == "mark":
        one.journal.write = lambda _: None  # type: ignore[method-assign]
    if performed != "nothing":
        one.perform(step)
    go(driver(world), world)
    assert len(world.bytes_of(TARGET)[0]) == 48 + 11
    assert world.staging() == []


def test_what_was_verified_first_is_not_given_up(world: World) -> None:
    """A driver that was held up before its mark finds it set, and amends nothing."""
    one, other = driver(world), driver(world)
    go(one, world, Transfer)
    held = world.segments[segment_name(SOURCE, 0)]
    lose(world, FIRST)
    step = one.look()
    held.start = 0
    go(other, world, Publish)
    held.start = FIRST
    one.perform(step)
    contents = world.bytes_of(SOURCE)
    go(one, world)
    assert world.bytes_of(TARGET) == contents


def test_a_truncation_inside_an_event_is_found(world: World) -> None:
    """No event begins there, so none of it is published."""
    one = driver(world)
    lose(world, FIRST + 3)
    (report,) = copy_all(ModelStore(world), one.plan)
    assert report.error is not None
    assert report.error.reason == SourceTruncated.__name__
    assert "inside an event" in report.error.message
    assert TARGET not in world.streams
    assert world.staging() == []


def test_an_abort_finds_all_attempts_also_without_the_journal(world: World) -> None:
    """Each attempt's mark leads to the next attempt."""
    one = driver(world)
    for to in (FIRST, 2 * FIRST):
        go(one, world, Transfer)
        lose(world, to)
    go(one, world, Transfer)
    assert len(world.staging()) > 3
    del world.segments[one.journal.name]
    abort(COPY, TARGET, ModelStore(world))
    assert world.staging() == []
