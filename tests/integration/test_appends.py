"""Copies into streams that live: the Java client writes to them meanwhile, and reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sluice.core.model import StreamConfig, StreamName
from sluice.engine.report import Outcome
from sluice.pipelines.program import Stores
from support.command import Copy
from support.inline import SETTINGS, job_of, run_inline

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone

KEYS = 64
EPOCH = 1 << 32
Ranges = list[tuple[float, float]]
SPLIT: tuple[list[int], Ranges] = ([0], [(0.0, 0.2), (0.2, 0.5)])
MERGED: tuple[list[int], Ranges] = ([EPOCH | 3, 1], [(0.2, 1.0)])


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str) -> Copy:
    """Gives a copy within a scope of its own, whose streams are still to be made."""
    source, target = (scope, "source"), (scope, "target")
    return Copy(tmp_path, standalone.controller_uri, source, target, exists="Append")


def _written(
    copy: Copy, foreign: ForeignClient, scales: list[tuple[list[int], Ranges]], *, count: int = 2000
) -> int:
    """A source with so many events before and after each scale event; how many there are."""
    foreign.create(*copy.source, segments=2)
    events = 0
    for ended, ranges in [([], []), *scales]:
        if ended:
            assert foreign.scale(*copy.source, segments=ended, ranges=ranges)
        foreign.write(*copy.source, events=count, keys=KEYS, first=events)
        events += count
    return events


def _config(copy: Copy) -> StreamConfig | None:
    with Stores(SETTINGS) as stores:
        name = StreamName(scope=copy.target[0], stream=copy.target[1])
        return stores[job_of(copy).target].configuration(name)


@pytest.mark.parametrize(
    ("segments", "scales"),
    [(2, []), (3, []), (1, [SPLIT, MERGED]), (3, [SPLIT, MERGED])],
    ids=[
        "as the source is",
        "of more segments",
        "of fewer epochs",
        "of fewer epochs, more of them",
    ],
)
def test_a_source_is_appended_beside_a_live_writer(
    copy: Copy, foreign: ForeignClient, segments: int, scales: list[tuple[list[int], Ranges]]
) -> None:
    """Each event is there once, in order for its key; the writer loses, repeats and fails nothing.

    The target has its number of segments and its configuration again.
    """
    events = _written(copy, foreign, scales)
    foreign.create(*copy.target, segments=segments)
    before = _config(copy)
    stop = foreign.start_writer(*copy.target, rate=1000, keys=50, seed=1)
    report = run_inline(copy)
    live = stop()
    assert report.outcome is Outcome.COPIED, report.error
    assert report.events == events
    assert (live.failed, live.acknowledged) == (0, live.events)
    read = foreign.read(*copy.target)
    assert read.clean, read
    assert (read.events, read.keys) == (events + live.events, KEYS + 50)
    assert _config(copy) == before
    assert len(foreign.info(*copy.target).segments) == segments
    foreign.write(*copy.target, events=1000, keys=KEYS, first=events)
    assert foreign.read(*copy.target).clean


def test_a_copy_appends_once_and_another_one_again(copy: Copy, foreign: ForeignClient) -> None:
    """The same resource does nothing the second time; one of another name does it all again."""
    events = _written(copy, foreign, [SPLIT])
    foreign.create(*copy.target, segments=1)
    assert run_inline(copy).outcome is Outcome.COPIED
    assert run_inline(copy).outcome is Outcome.ALREADY_COMPLETE
    assert foreign.read(*copy.target).events == events
    assert run_inline(replace(copy, name="again")).outcome is Outcome.COPIED
    read = foreign.read(*copy.target)
    assert (read.events, read.duplicates) == (2 * events, events)


def test_a_target_that_is_made_again_is_appended_to_again(
    copy: Copy, foreign: ForeignClient
) -> None:
    """A receipt is for the stream that it was given for."""
    events = _written(copy, foreign, [])
    for _ in range(2):
        foreign.create(*copy.target, segments=1)
        assert run_inline(copy).outcome is Outcome.COPIED
        assert foreign.read(*copy.target).events == events
        foreign.seal(*copy.target)
        foreign.delete(*copy.target)


def test_a_target_that_is_not_there_is_made(copy: Copy, foreign: ForeignClient) -> None:
    """As by a copy that does not append: it is then the copy's own, and complete."""
    events = _written(copy, foreign, [SPLIT])
    assert run_inline(copy).outcome is Outcome.COPIED
    assert run_inline(copy).outcome is Outcome.ALREADY_COMPLETE
    assert foreign.read(*copy.target).events == events


def test_a_sealed_target_is_refused(copy: Copy, foreign: ForeignClient) -> None:
    """Before anything is staged."""
    _written(copy, foreign, [])
    foreign.create(*copy.target, segments=1)
    foreign.seal(*copy.target)
    report = run_inline(copy)
    assert report.error is not None
    assert report.error.reason == "TargetSealed"
