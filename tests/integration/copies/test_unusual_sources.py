from pathlib import Path

import pytest

from localstore import ForeignClient, Standalone
from sluice.engine.copy.query import positions
from sluice.engine.copy.report import Outcome
from sluice.engine.tasks.limits import Limits
from sluice.pipelines.programs.stores import Stores
from support.command.sluice_command import Copy
from support.store.inline import (
    SETTINGS,
    assert_equal_segments,
    counts_of,
    job_of,
    run_inline,
    staging_of,
)

FRAME = 108
"""Bytes of an event of 100 bytes in its segment."""


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str) -> Copy:
    """Return a copy within a scope of its own, whose source is still to be made."""
    return Copy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))


def test_an_empty_stream_is_copied(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A stream without events gives an empty target of as many segments."""
    foreign.create(*copy.source, segments=2)
    report = run_inline(copy)
    assert (report.outcome, report.bytes, report.events) == (Outcome.COPIED, 0, 0)
    assert len(foreign.info(*copy.target).segments) == 2
    assert foreign.visible(*copy.target).events == 0
    assert staging_of(copy, standalone) == []
    assert run_inline(copy).outcome is Outcome.ALREADY_COMPLETE


@pytest.mark.exhaustive
def test_a_sealed_stream_is_copied(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A sealed source is copied whole, and its target is not sealed."""
    foreign.create(*copy.source, segments=2)
    foreign.write(*copy.source, events=1000, keys=16)
    foreign.seal(*copy.source)
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED
    assert sum(assert_equal_segments(copy, standalone, report)) == 1000
    assert foreign.info(*copy.target).sealed is False
    read = foreign.read(*copy.target)
    assert (read.events, read.clean) == (1000, True)
    assert staging_of(copy, standalone) == []


@pytest.mark.exhaustive
def test_a_target_is_sealed_when_that_is_asked_for(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """The sealed target is whole, and its positions can be read. A further run does nothing."""
    copy.seal = True
    foreign.create(*copy.source, segments=2)
    foreign.write(*copy.source, events=500, keys=16)
    assert foreign.scale(*copy.source)
    foreign.write(*copy.source, events=500, keys=16, first=500)
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED
    assert foreign.info(*copy.target).sealed is True
    assert foreign.info(*copy.source).sealed is False
    read = foreign.read(*copy.target)
    assert (read.events, read.clean) == (1000, True)
    assert staging_of(copy, standalone) == []
    assert run_inline(copy).outcome is Outcome.ALREADY_COMPLETE
    request = job_of(copy).request
    with Stores(SETTINGS) as stores:
        mapped = positions(request, stores[job_of(copy).target])
    assert mapped is not None
    assert mapped.same_positions
    ids = {segment.id for segment in foreign.info(*copy.source).segments}
    assert {one.segment for one in mapped.sources[0].segments} == ids


@pytest.mark.exhaustive
def test_segments_without_bytes_are_copied(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A stream with events in one segment only has the same segments in the target."""
    foreign.create(*copy.source, segments=4)
    foreign.write(*copy.source, events=500, keys=8, segments=[2])
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED
    assert assert_equal_segments(copy, standalone, report) == [0, 0, 500, 0]
    assert foreign.read(*copy.target).clean
    assert staging_of(copy, standalone) == []


def test_events_of_the_maximum_size_are_copied(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Events of 8 MiB, longer than a chunk and than any block, are copied whole."""
    foreign.create(*copy.source, segments=1)
    foreign.write(*copy.source, events=5, size=8 << 20, keys=2)
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED
    assert assert_equal_segments(copy, standalone, report) == [5]
    original, copied = foreign.read(*copy.source), foreign.read(*copy.target)
    assert (copied.events, copied.bytes, copied.clean) == (5, 5 * (8 << 20), True)
    assert copied.digest == original.digest


def test_events_that_came_by_transactions_are_counted(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """The source's store does not count events of transactions. Report and target count all."""
    scope, written = copy.source[0], "written"
    foreign.create(scope, written, segments=2)
    foreign.write(scope, written, events=1000, size=300, keys=16)
    foreign.copy(scope, written, copy.source[1], mode="txn", segments=2)
    assert sum(counts_of(standalone, *copy.source, range(2))) < 1000
    foreign.write(*copy.source, events=10, keys=16)
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED
    assert sum(assert_equal_segments(copy, standalone, report)) == report.events == 1010
    assert sum(counts_of(standalone, *copy.target, range(2))) == 1010


@pytest.mark.exhaustive
def test_slices_of_one_segment_are_counted_side_by_side(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """All events of a segment are counted, although three slices verify it."""
    foreign.create(*copy.source, segments=1)
    foreign.write(*copy.source, events=20_000, size=1000, keys=16)
    report = run_inline(copy, limits=Limits(slice_bytes=8 << 20))
    assert report.outcome is Outcome.COPIED
    assert assert_equal_segments(copy, standalone, report) == [20_000]


@pytest.mark.exhaustive
def test_what_a_truncation_left_is_copied(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """After a truncation the rest of the stream is copied, and its events are counted."""
    foreign.create(*copy.source, segments=2)
    foreign.write(*copy.source, events=1000, keys=16)
    foreign.truncate(*copy.source, offsets={0: 40 * FRAME, 1: 0})
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED
    assert [segment.start for segment in report.segments] == [4320, 0]
    assert sum(assert_equal_segments(copy, standalone, report)) == 960
    assert report.events == 960
    original, copied = foreign.read(*copy.source), foreign.read(*copy.target)
    assert (copied.events, copied.digest) == (960, original.digest)
    assert staging_of(copy, standalone) == []


@pytest.mark.exhaustive
def test_a_wholly_truncated_stream_is_copied(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A stream truncated at its tail has no events, and is copied like an empty one."""
    foreign.create(*copy.source, segments=1)
    foreign.write(*copy.source, events=100)
    foreign.truncate(*copy.source)
    report = run_inline(copy)
    assert (report.outcome, report.bytes, report.events) == (Outcome.COPIED, 0, 0)
    assert report.segments[0].start == 100 * FRAME


def test_a_live_source_gives_a_prefix_of_each_segment(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Each segment of a source that is written meanwhile is copied up to the end of an event."""
    foreign.create(*copy.source, segments=2)
    foreign.write(*copy.source, events=20_000, keys=16)
    stop = foreign.start_writer(*copy.source, rate=5000, keys=16, first=20_000)
    report = run_inline(copy)
    written = stop()
    assert written.failed == 0
    assert report.outcome is Outcome.COPIED
    copied = sum(assert_equal_segments(copy, standalone, report))
    assert 20_000 <= copied < 20_000 + written.events
    read = foreign.read(*copy.target)
    assert (read.events, read.clean) == (copied, True)
