"""Copies of scaled and truncated sources, which the Java client reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.values.model import ScaleType, Scaling, StreamConfig, StreamName
from sluice.engine.copy.report import Outcome
from sluice.pipelines.programs.stores import Stores
from sluice.stores.pravega.groups import cuts
from support.command.sluice_command import Copy
from support.store.inline import SETTINGS, assert_equal_segments, job_of, run_inline, staging_of

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from sluice.engine.copy.report import StreamReport

KEYS = 64
EPOCH = 1 << 32
Ranges = list[tuple[float, float]]


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str) -> Copy:
    """Return a copy within a scope of its own, whose source is still to be made."""
    return Copy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))


def _written(
    copy: Copy, foreign: ForeignClient, segments: int, *scales: tuple[list[int], Ranges]
) -> int:
    """Write a source with 5,000 events before and after each scale event. Return their number."""
    foreign.create(*copy.source, segments=segments)
    with Stores(SETTINGS) as stores:  # the official client's policies would keep two segments
        store = stores[job_of(copy).sources[0]]
        policy = Scaling(type=ScaleType.BY_EVENTS, target_rate=10**9, scale_factor=2)
        name = StreamName(scope=copy.source[0], stream=copy.source[1])
        store.update_stream(name, StreamConfig(scaling=policy, tags=("team=a",)))
    first = 0
    for ended, ranges in [([], []), *scales]:
        if ended:
            assert foreign.scale(*copy.source, segments=ended, ranges=ranges)
        foreign.write(*copy.source, events=5000, keys=KEYS, first=first)
        first += 5000
    return first


SPLIT = ([0], [(0.0, 0.2), (0.2, 0.5)])
MERGED = ([EPOCH | 3, 1], [(0.2, 1.0)])
ONE_LEFT = ([EPOCH | 2, 2 * EPOCH | 4], [(0.0, 1.0)])


def _assert_like_the_source(
    copy: Copy, foreign: ForeignClient, report: StreamReport, events: int
) -> None:
    """Check that ids, segments and order of events are the source's, by a foreign reader."""
    assert report.outcome is Outcome.COPIED, report.error
    assert report.events == events
    assert [segment.source for segment in report.segments] == [
        segment.target for segment in report.segments
    ]
    original, copied = foreign.read(*copy.source), foreign.read(*copy.target)
    assert copied.clean, copied
    assert (copied.events, copied.digest) == (events, original.digest)
    assert [(s.id, s.low, s.high) for s in foreign.info(*copy.target).segments] == [
        (s.id, s.low, s.high) for s in foreign.info(*copy.source).segments
    ]


@pytest.mark.parametrize(
    ("segments", "scales"),
    [
        pytest.param(2, [SPLIT], id="split", marks=pytest.mark.exhaustive),
        pytest.param(2, [SPLIT, MERGED], id="split and merged", marks=pytest.mark.exhaustive),
        pytest.param(2, [SPLIT, MERGED, ONE_LEFT], id="merged to fewer than at first"),
    ],
)
def test_a_scaled_stream_is_copied_with_its_epochs(
    copy: Copy,
    standalone: Standalone,
    foreign: ForeignClient,
    segments: int,
    scales: list[tuple[list[int], Ranges]],
) -> None:
    """A copy has the source's ids, key ranges, bytes and order over all scale events."""
    events = _written(copy, foreign, segments, *scales)
    report = run_inline(copy)
    _assert_like_the_source(copy, foreign, report, events)
    assert sum(assert_equal_segments(copy, standalone, report)) == events
    assert staging_of(copy, standalone, [s.target for s in report.segments]) == []
    assert run_inline(copy).outcome is Outcome.ALREADY_COMPLETE


@pytest.mark.exhaustive
def test_writers_go_on_in_the_target_with_order_per_key(copy: Copy, foreign: ForeignClient) -> None:
    """20,000 events keep their order per key, over two scale events and the end of the copy."""
    events = _written(copy, foreign, 2, SPLIT, MERGED)
    assert run_inline(copy).outcome is Outcome.COPIED
    foreign.write(*copy.target, events=20_000 - events, keys=KEYS, first=events)
    read = foreign.read(*copy.target)
    assert read.clean, read
    assert read.events == 20_000


@pytest.mark.exhaustive
def test_a_sealed_scaled_stream_is_copied(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """The copy finds the last segments of a sealed stream, though the store does not list them."""
    events = _written(copy, foreign, 2, SPLIT, MERGED)
    foreign.seal(*copy.source)
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED
    assert sum(assert_equal_segments(copy, standalone, report)) == events
    assert foreign.info(*copy.target).sealed is False
    assert foreign.read(*copy.target).clean


@pytest.mark.exhaustive
def test_a_head_truncated_within_an_epoch_is_copied(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """The target begins with the key ranges of the head, which no new stream has."""
    events = _written(copy, foreign, 2, SPLIT, MERGED)
    foreign.truncate(*copy.source, offsets={EPOCH | 2: 0, EPOCH | 3: 10 * 108, 1: 0})
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    counts = assert_equal_segments(copy, standalone, report)
    original, copied = foreign.read(*copy.source), foreign.read(*copy.target)
    assert (copied.events, copied.digest) == (original.events, original.digest)
    assert 0 < original.events < events
    assert sum(counts) == original.events
    assert [segment.start for segment in report.segments] == [0, 1080, 0, 0]
    assert staging_of(copy, standalone, [s.target for s in report.segments]) == []


@pytest.mark.exhaustive
def test_a_head_of_several_epochs_is_copied(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """Some keys of a source may be truncated further than others."""
    _written(copy, foreign, 2, SPLIT, ([1], [(0.5, 0.6), (0.6, 1.0)]))
    foreign.truncate(*copy.source, offsets={0: 0, 2 * EPOCH | 4: 0, 2 * EPOCH | 5: 0})
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    assert_equal_segments(copy, standalone, report)
    original, copied = foreign.read(*copy.source), foreign.read(*copy.target)
    assert (copied.events, copied.digest) == (original.events, original.digest)
    assert len(report.segments) == 5


@pytest.mark.exhaustive
def test_a_position_of_the_source_is_translated_to_the_target(
    copy: Copy, foreign: ForeignClient
) -> None:
    """The source's tail, by the Java client, translates to the target's, though ids differ."""
    _written(copy, foreign, 2, SPLIT, MERGED)
    middle = foreign.info(*copy.source).tail
    foreign.truncate(*copy.source, offsets={EPOCH | 2: 0, EPOCH | 3: 10 * 108, 1: 0})
    assert run_inline(copy).outcome is Outcome.COPIED
    translated = copy.run("position", "--cut", middle)
    assert translated.code == 0, translated.err
    target = foreign.info(*copy.target)
    assert cuts.read(translated.out.strip()) == cuts.read(target.tail)
    assert cuts.read(middle)[1] != cuts.read(target.tail)[1]
    mapped = copy.run("position", "--output", "json").json
    assert [one["shift"] for one in mapped["segments"]] == [0, -1080, 0, 0]
    head = copy.run("position", "--cut", "0:" + "/".join(copy.source) + ":0,1:0,0:0,0")
    assert head.code == 2
    assert "of segment 0 it has nothing" in head.err
