"""Sources that lose bytes during a copy. The Java client truncates and reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from segment_hash import segment_report
from sluice.core.copy.steps import Amend, Publish, Transfer
from sluice.engine.copy.query import ask
from sluice.engine.copy.report import Outcome
from sluice.pipelines.programs.stores import Stores
from support.command.sluice_command import Copy
from support.store.inline import (
    SETTINGS,
    assert_equal_segments,
    begin,
    drive,
    job_of,
    leftovers,
    run_inline,
    staging_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from sluice.core.copy.steps import Step
    from sluice.engine.copy.report import StreamReport

EVENT = 108
"""Bytes of an event of the source."""
EPOCH = 1 << 32


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str, foreign: ForeignClient) -> Copy:
    """Return a copy of a stream of two segments and 400 events that records gaps."""
    foreign.create(scope, "source", segments=2)
    foreign.write(scope, "source", events=400, keys=8)
    made = Copy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))
    made.on_truncation = "Record"
    return made


def assert_without(
    copy: Copy, standalone: Standalone, foreign: ForeignClient, report: StreamReport
) -> None:
    """Check that the target equals the present source, as the Java client reads both."""
    assert report.outcome is Outcome.COPIED, report.error
    assert_equal_segments(copy, standalone, report)
    original, copied = foreign.read(*copy.source), foreign.read(*copy.target)
    assert copied.clean
    assert (copied.events, copied.digest) == (original.events, original.digest)
    assert staging_of(copy, standalone, [one.target for one in report.segments]) == []


def lengths(copy: Copy, standalone: Standalone, *segments: int) -> list[int]:
    """Return the lengths of segments of the source."""
    server = standalone.segment_store
    return [segment_report(*server, *copy.source, one)["length"] for one in segments]


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(None, id="planned", marks=pytest.mark.exhaustive),
        pytest.param(Transfer, id="staged", marks=pytest.mark.exhaustive),
        pytest.param(Amend, id="amended"),
    ],
)
def test_what_a_source_has_lost_is_left_out_and_named(
    copy: Copy, standalone: Standalone, foreign: ForeignClient, step: type[Step] | None
) -> None:
    """The run, the map of positions and the verification name a gap."""
    drive(copy, Transfer) if step else begin(copy)
    whole = lengths(copy, standalone, 0, 1)
    foreign.truncate(*copy.source, offsets={0: 10 * EVENT, 1: 0})
    if step is Amend:
        drive(copy, Amend, perform=True)
    report = run_inline(copy)
    assert_without(copy, standalone, foreign, report)
    assert [(one.source, one.start, one.end, one.lost) for one in report.segments] == [
        (0, 10 * EVENT, whole[0], 10 * EVENT),
        (1, 0, whole[1], 0),
    ]
    mapped = copy.run("position")
    assert f"of segment 0, offsets 0 to {10 * EVENT:,} are not in the copy" in mapped.out
    verified = copy.run("verify")
    assert verified.code == 0, verified.out + verified.err


def test_a_run_tells_of_the_gap(copy: Copy, standalone: Standalone, foreign: ForeignClient) -> None:
    """`sluice run` says which bytes are missing, and a second run finds nothing to do."""
    begin(copy)
    foreign.truncate(*copy.source, offsets={0: 0, 1: 3 * EVENT})
    ended = copy.run("run", "--tasks", "1", "-o", "json")
    assert ended.code == 0, ended.err
    assert f"offsets 0 to {3 * EVENT} (324 B) are not in the copy" in ended.err
    assert [one["lost"] for one in ended.json[0]["segments"]] == [0, 3 * EVENT]
    assert copy.run("run", "-o", "json").json[0]["outcome"] == "AlreadyComplete"
    assert lengths(copy, standalone, 1)[0] > 3 * EVENT


@pytest.mark.exhaustive
def test_truncated_again_and_again_is_one_gap(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Repeated truncations make one gap. Bytes staged in between are dropped."""
    begin(copy)
    for events in (5, 20, 40):
        foreign.truncate(*copy.source, offsets={0: events * EVENT, 1: events * EVENT})
        drive(copy, Transfer)
    report = run_inline(copy)
    assert_without(copy, standalone, foreign, report)
    assert [one.lost for one in report.segments] == [40 * EVENT] * 2


@pytest.mark.exhaustive
def test_segments_that_are_gone_leave_empty_ones(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A source truncated past a scale event keeps its later generations, and ids in the target."""
    foreign.scale(*copy.source, segments=[0], ranges=[(0.0, 0.2), (0.2, 0.5)])
    foreign.write(*copy.source, events=300, keys=8, first=400)
    begin(copy)
    foreign.truncate(*copy.source, offsets={EPOCH | 2: 0, EPOCH | 3: 2 * EVENT, 1: 7 * EVENT})
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    by_id = {one.source: one for one in report.segments}
    assert by_id[0].start == by_id[0].end == by_id[0].lost > 0
    assert by_id[EPOCH | 3].lost == 2 * EVENT
    original, copied = foreign.read(*copy.source), foreign.read(*copy.target)
    assert copied.clean
    assert (copied.events, copied.digest) == (original.events, original.digest)
    assert staging_of(copy, standalone, [one.target for one in report.segments]) == []


@pytest.mark.exhaustive
def test_a_source_that_went_on_without_the_planned_is_no_other(
    copy: Copy, foreign: ForeignClient
) -> None:
    """A source truncated past all planned bytes is not taken for a replaced one."""
    begin(copy)
    foreign.scale(*copy.source, segments=[0, 1], ranges=[(0.0, 0.3), (0.3, 1.0)])
    foreign.truncate(*copy.source, offsets={EPOCH | 2: 0, EPOCH | 3: 0})
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    assert report.bytes == 0
    assert all(one.lost for one in report.segments)
    assert foreign.read(*copy.target).events == 0


@pytest.mark.exhaustive
def test_what_is_verified_is_not_given_up(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Verified bytes are published without a gap, even if the source loses them later."""
    original = foreign.read(*copy.source)
    drive(copy, Publish)
    foreign.truncate(*copy.source)
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    assert report.gaps == []
    copied = foreign.read(*copy.target)
    assert (copied.events, copied.digest) == (original.events, original.digest)
    assert staging_of(copy, standalone) == []


@pytest.mark.exhaustive
def test_a_truncation_inside_an_event_fails(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A source that begins inside an event after a truncation is not published."""
    begin(copy)
    foreign.truncate(*copy.source, offsets={0: 10 * EVENT + 5, 1: 0})
    report = run_inline(copy)
    assert report.error is not None
    assert report.error.reason == "SourceTruncated"
    assert "inside an event" in report.error.message
    assert (report.cleaned, leftovers(copy, standalone)) == (True, [])


def test_without_the_consent_the_gap_is_refused(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """With onTruncation: Fail the error has segment, offsets and bytes. Nothing is left."""
    copy.on_truncation = "Fail"
    begin(copy)
    foreign.truncate(*copy.source, offsets={0: 10 * EVENT, 1: 0})
    report = run_inline(copy)
    assert report.error is not None
    assert report.error.reason == "SourceTruncated"
    assert "offsets 0 to 1080 of segment 0 are gone, 1080 bytes" in report.error.message
    assert "onTruncation: Record" in report.error.remedy
    assert (report.cleaned, leftovers(copy, standalone)) == (True, [])


def test_the_operator_finds_the_gap_in_the_target(copy: Copy, foreign: ForeignClient) -> None:
    """A whole target's answer has the gap, whether the plan is known or not."""
    begin(copy)
    job = job_of(copy)
    foreign.truncate(*copy.source, offsets={0: 10 * EVENT, 1: 0})
    with Stores(SETTINGS) as stores:
        planned = job.plan(stores)
        assert planned.plan is not None
        assert run_inline(copy).outcome is Outcome.COPIED
        (address,) = job.sources
        for known in (planned.plan.streams[0], None):
            answer = ask(
                job.request,
                sources=[(address, stores[address])],
                target=(job.target, stores[job.target]),
                known=known,
            )
            assert [tuple(gap) for gap in answer.gaps] == [(0, 0, 0, 10 * EVENT)]
