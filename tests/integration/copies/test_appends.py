"""Copies into live streams, which the Java client writes and reads meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sluice.core.copy.steps import (
    Commit,
    MergeIntoTransaction,
    Open,
    Reshape,
    RestoreLayout,
    Transfer,
    Verify,
)
from sluice.core.values.model import StreamName
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.report import Outcome
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.pipelines.programs.stores import Stores
from support.command.sluice_command import Copy
from support.store.inline import SETTINGS, begin, job_of, run_inline
from support.store.live import assert_nothing_failed
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from sluice.core.values.model import KeyRange, StreamConfig

KEYS = 64
EPOCH = 1 << 32
Ranges = list[tuple[float, float]]
SPLIT: tuple[list[int], Ranges] = ([0], [(0.0, 0.2), (0.2, 0.5)])
MERGED: tuple[list[int], Ranges] = ([EPOCH | 3, 1], [(0.2, 1.0)])


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str) -> Copy:
    """Return a copy within a scope of its own. Its streams do not exist yet."""
    source, target = (scope, "source"), (scope, "target")
    return Copy(tmp_path, standalone.controller_uri, source, target, exists="Append")


def _written(
    copy: Copy, foreign: ForeignClient, scales: list[tuple[list[int], Ranges]], *, count: int = 2000
) -> int:
    """Write a source with events before and after each scale event. Return their number."""
    foreign.create(*copy.source, segments=2)
    events = 0
    for ended, ranges in [([], []), *scales]:
        if ended:
            assert foreign.scale(*copy.source, segments=ended, ranges=ranges)
        foreign.write(*copy.source, events=count, keys=KEYS, first=events)
        events += count
    return events


def _looks(copy: Copy) -> tuple[StreamConfig, list[KeyRange]]:
    """Return the target's configuration, and the key ranges of the segments that take events."""
    with Stores(SETTINGS) as stores:
        name = StreamName(scope=copy.target[0], stream=copy.target[1])
        found = stores[job_of(copy).target].describe(name)
        assert found is not None
        return found.config, [segment.keys for segment in found.tail]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("segments", "scales"),
    [
        pytest.param(2, [], id="as the source is"),
        pytest.param(3, [], id="of more segments"),
        pytest.param(1, [SPLIT, MERGED], id="of fewer epochs"),
        pytest.param(3, [SPLIT, MERGED], id="of fewer epochs, more of them"),
    ],
)
def test_a_source_is_appended_beside_a_live_writer(
    copy: Copy,
    foreign: ForeignClient,
    say: Callable[[str], None],
    segments: int,
    scales: list[tuple[list[int], Ranges]],
) -> None:
    """Each event is there once, in order per key, and no write of the live writer fails.

    Afterwards the target has its earlier key ranges and configuration.
    """
    events = _written(copy, foreign, scales)
    foreign.create(*copy.target, segments=segments)
    before = _looks(copy)
    stop = foreign.start_writer(*copy.target, rate=1200, keys=50, seed=1)
    report = run_inline(copy)
    live = stop()
    assert report.outcome is Outcome.COPIED, report.error
    assert report.events == events
    assert_nothing_failed(live, say)
    read = foreign.read(*copy.target)
    assert read.clean, read
    assert (read.events, read.keys) == (events + live.events, KEYS + 50)
    assert _looks(copy) == before
    foreign.write(*copy.target, events=1000, keys=KEYS, first=events)
    assert foreign.read(*copy.target).clean


def test_a_copy_appends_once_and_another_one_again(copy: Copy, foreign: ForeignClient) -> None:
    """A resource appends only once. A resource with another name appends again."""
    events = _written(copy, foreign, [SPLIT])
    foreign.create(*copy.target, segments=1)
    assert run_inline(copy).outcome is Outcome.COPIED
    assert run_inline(copy).outcome is Outcome.ALREADY_COMPLETE
    assert foreign.read(*copy.target).events == events
    assert run_inline(replace(copy, name="again")).outcome is Outcome.COPIED
    read = foreign.read(*copy.target)
    assert (read.events, read.duplicates) == (2 * events, events)


@pytest.mark.exhaustive
def test_sources_are_appended_one_after_the_other(
    copy: Copy, foreign: ForeignClient, say: Callable[[str], None]
) -> None:
    """Keys stay in order over all sources, though the target has other segments and a writer."""
    events = _written(copy, foreign, [SPLIT])
    more = (copy.source[0], "more")
    foreign.create(*more, segments=3)
    foreign.write(*more, events=2000, keys=KEYS, first=events)
    foreign.create(*copy.target, segments=1)
    before = _looks(copy)
    stop = foreign.start_writer(*copy.target, rate=1200, keys=50, seed=1)
    report = run_inline(replace(copy, more=[(more, [])]))
    live = stop()
    assert report.outcome is Outcome.COPIED, report.error
    assert_nothing_failed(live, say)
    read = foreign.read(*copy.target)
    assert read.clean, read
    assert read.events == events + 2000 + live.events
    assert _looks(copy) == before


@pytest.mark.exhaustive
def test_a_target_that_is_made_again_is_appended_to_again(
    copy: Copy, foreign: ForeignClient
) -> None:
    """A receipt counts only for its own stream. A new target of that name is appended to again."""
    events = _written(copy, foreign, [])
    for _ in range(2):
        foreign.create(*copy.target, segments=1)
        assert run_inline(copy).outcome is Outcome.COPIED
        assert foreign.read(*copy.target).events == events
        foreign.seal(*copy.target)
        foreign.delete(*copy.target)


def test_a_target_that_is_not_there_is_made(copy: Copy, foreign: ForeignClient) -> None:
    """A missing target is made, as by other copies. It is the copy's own, and complete."""
    events = _written(copy, foreign, [SPLIT])
    assert run_inline(copy).outcome is Outcome.COPIED
    assert run_inline(copy).outcome is Outcome.ALREADY_COMPLETE
    assert foreign.read(*copy.target).events == events


def test_a_sealed_target_is_refused(copy: Copy, foreign: ForeignClient) -> None:
    """An append to a sealed target is refused before anything is staged."""
    _written(copy, foreign, [])
    foreign.create(*copy.target, segments=1)
    foreign.seal(*copy.target)
    report = run_inline(copy)
    assert report.error is not None
    assert report.error.reason == "TargetSealed"


@pytest.mark.exhaustive
def test_each_step_may_be_another_drivers(
    copy: Copy, foreign: ForeignClient, say: Callable[[str], None]
) -> None:
    """Drivers that die after each step cost only time. The writer notices nothing."""
    events = _written(copy, foreign, [SPLIT, MERGED])
    foreign.create(*copy.target, segments=3)
    before = _looks(copy)
    stop = foreign.start_writer(*copy.target, rate=1200, keys=50, seed=1)
    begin(copy)
    job = job_of(copy)
    taken = []
    while True:
        with Stores(SETTINGS) as stores:
            (address,) = job.sources
            source, target = stores[address], stores[job.target]
            one = resolve(job.request, [source], target)
            if one.plan is None:
                break
            driver = StreamCopyWork(one.plan, 0, [source], target)
            taken.append(driver.look())
            if isinstance(taken[-1], Transfer | Verify):
                slices = driver.slices(taken[-1], Limits(), 1)
                driver.absorb(taken[-1], InlineExecutor([source], target).run(slices))
            else:
                driver.perform(taken[-1])
    live = stop()
    assert {Reshape, Open, RestoreLayout, MergeIntoTransaction, Commit} <= {
        type(step) for step in taken
    }
    assert_nothing_failed(live, say)
    read = foreign.read(*copy.target)
    assert read.clean, read
    assert read.events == events + live.events
    assert _looks(copy) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "segments",
    [
        pytest.param(1, id="fewer segments"),
        pytest.param(4, id="more segments"),
    ],
)
def test_a_reader_group_that_is_attached_sees_each_event_once_and_in_order(
    copy: Copy, foreign: ForeignClient, say: Callable[[str], None], segments: int
) -> None:
    """Two readers and two writers run from before the append until after it.

    Each writer writes 1,200 events a second. None of them fails.
    """
    events = _written(copy, foreign, [SPLIT, MERGED])
    foreign.create(*copy.target, segments=segments)
    before = _looks(copy)
    readers = foreign.start_readers(*copy.target, readers=2)
    writers = [foreign.start_writer(*copy.target, rate=1200, keys=50, seed=seed) for seed in (1, 2)]
    until("readers read", lambda: readers.events > 0)
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error
    seen = readers.events
    until("they read on", lambda: readers.events > seen)
    wrote = [stop() for stop in writers]
    assert _looks(copy) == before
    foreign.seal(*copy.target)
    read = readers.end()
    for one in wrote:
        assert_nothing_failed(one, say)
    assert read.clean, read
    assert read.events == events + sum(one.events for one in wrote)
    assert (read.keys, read.keys_from_zero) == (KEYS + 100, KEYS + 100)
