"""Sources that are followed while the Java client writes to them, on a real store."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from sluice.core.values import identity
from sluice.core.values.model import StoreAddress, StreamName
from sluice.engine.copy.report import Outcome
from sluice.pipelines.programs.stores import Stores
from sluice.stores.pravega import names
from sluice.stores.reading import joined
from support.engine.follower import follow, start
from support.engine.plans import COPY
from support.search import FAR
from support.store.inline import SETTINGS
from support.store.live import assert_nothing_failed
from support.until import PATIENCE, until
from support.witness.foreign_witness import assert_equal, assert_readable, left_of

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import IO

    from localstore import ForeignClient, Standalone

Pair = tuple[tuple[str, str], tuple[str, str]]
"""Scope and name of a source, and of its target."""

KEYS = 32
SECONDS = 30.0 * min(FAR, 4)
KILLS = 6 * min(FAR, 4)
RATE = 2000 if FAR == 1 else 10_000
SIZE = 108
"""Bytes of an event with its header."""
SCALES = (
    [(0.0, 0.2), (0.2, 0.5)],
    [(0.2, 0.6), (0.6, 1.0)],
    [(0.0, 0.6)],
)
"""Key ranges of new segments, of a source of two: a split, both at once, a merge."""


def named(stream: tuple[str, str]) -> StreamName:
    """A stream's name."""
    return StreamName(scope=stream[0], stream=stream[1])


def scale(
    foreign: ForeignClient, stream: tuple[str, str], ranges: list[tuple[float, float]]
) -> None:
    """Replace the segments that have these keys."""
    low, high = ranges[0][0], ranges[-1][1]
    ended = [
        one.id
        for one in foreign.info(*stream).segments
        if one.low is not None and one.high is not None and low <= one.low and one.high <= high
    ]
    assert foreign.scale(*stream, segments=ended, ranges=ranges)


def journals(server: Standalone, target: tuple[str, str]) -> list[str]:
    """The journals that are left of the copy."""
    keys = (identity.journal_key(COPY, number) for number in range(16))
    return left_of(
        server.segment_store, [names.staging_name(named(target), 0, key) for key in keys]
    )


@pytest.fixture
def streams(foreign: ForeignClient, scope: str) -> Pair:
    """Gives a source of two segments with events, and a target that is still to be made."""
    source = (scope, "source")
    foreign.create(*source, segments=2)
    foreign.write(*source, events=2000, keys=KEYS)
    return source, (scope, "target")


class Followers:
    """Followers of one source, each a process of its own.

    Args:
        uri: the controller.
        streams: the source and the target.
        output: the file that they write to.
    """

    def __init__(self, uri: str, streams: Pair, output: IO[str]) -> None:
        self._uri = uri
        self._streams = streams
        self._output = output
        self._processes: list[subprocess.Popen[str]] = []

    def start(self, *options: str) -> None:
        """Start one, with options of `support.engine.follower`."""
        self._processes.append(start(self._uri, *self._streams, self._output, *options))

    def kill(self) -> None:
        """Kill the last one, if it still runs."""
        for process in self._processes[-1:]:
            process.kill()
            process.wait()

    def result(self) -> int:
        """Wait for the end of the last one, and return its exit code."""
        return self._processes[-1].wait(timeout=PATIENCE)

    def said(self) -> str:
        """All that they have written."""
        self._output.seek(0)
        return self._output.read()


@pytest.fixture
def followers(streams: Pair, standalone: Standalone, tmp_path: Path) -> Iterator[Followers]:
    """Gives followers of the source, none of which outlives the test."""
    with (tmp_path / "followers.txt").open("a+") as file:
        made = Followers(standalone.controller_uri, streams, file)
        yield made
        made.kill()


def test_a_source_is_followed_exactly_through_kills_and_scale_events(
    streams: Pair,
    standalone: Standalone,
    foreign: ForeignClient,
    followers: Followers,
    say: Callable[[str], None],
) -> None:
    """Lost, twice and reordered are 0: the follower is killed again and again, and goes on.

    The source is split and merged meanwhile, and sealed at the end. Then the copy ends by itself.
    """
    source, target = streams
    followers.start()
    stop = foreign.start_writer(*source, rate=RATE, keys=KEYS, first=2000)
    began, dice = time.monotonic(), random.Random(23)  # noqa: S311 - moments, not secrets
    moments = [(SECONDS * (i + 1) / 4, ranges) for i, ranges in enumerate(SCALES)]
    moments += [(dice.uniform(2, SECONDS), []) for _ in range(KILLS)]
    for moment, ranges in sorted(moments):
        time.sleep(max(0.0, began + moment - time.monotonic()))
        if ranges:
            scale(foreign, source, ranges)
            continue
        followers.kill()
        followers.start()
    live = stop()
    assert_nothing_failed(live, say)
    sealed = time.monotonic()
    assert foreign.seal(*source)
    assert followers.result() == 0, followers.said()
    say(f"  ended {time.monotonic() - sealed:.1f} s after the source was sealed")
    assert followers.said().splitlines()[-1] == Outcome.COPIED.value
    expected = foreign.read(*source)
    assert expected.events == 2000 + live.events
    reports = assert_equal(standalone.segment_store, foreign, source, target)
    assert_readable(foreign, target, events=expected.events, digest=expected.digest)
    assert journals(standalone, target) == []
    assert counts(standalone, target, [one["id"] for one in reports]) == [
        one["events"] for one in reports
    ]


def counts(server: Standalone, stream: tuple[str, str], ids: list[int]) -> list[int | None]:
    """The events of segments by the store's own count."""
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=server.controller_uri)]
        asked = [(store.segment_name(named(stream), one), store.event_count) for one in ids]
        return store.attributes(asked)


def test_a_sealed_source_is_copied_and_no_more(
    streams: Pair, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A source that is sealed before the copy begins ends it; another run finds it whole."""
    source, target = streams
    assert foreign.seal(*source)
    report = follow(standalone.controller_uri, named(source), named(target))
    assert report is not None
    assert report.outcome is Outcome.COPIED, report.error
    assert report.events == 2000
    assert_equal(standalone.segment_store, foreign, source, target)
    assert follow(standalone.controller_uri, named(source), named(target)) is None


def test_large_events_are_followed(
    streams: Pair,
    standalone: Standalone,
    foreign: ForeignClient,
    followers: Followers,
) -> None:
    """Events of 3 MB come whole: a reader of the target never waits for the rest of one."""
    source, target = streams
    followers.start()
    foreign.write(*source, events=8, size=3_000_000, keys=KEYS, first=2000)
    assert foreign.seal(*source)
    assert followers.result() == 0, followers.said()
    expected = foreign.read(*source)
    assert_equal(standalone.segment_store, foreign, source, target)
    assert_readable(foreign, target, events=expected.events, digest=expected.digest)


def test_lost_bytes_are_left_out_and_all_else_is_followed(
    streams: Pair,
    standalone: Standalone,
    foreign: ForeignClient,
    followers: Followers,
) -> None:
    """A source is truncated while no follower lives; the next one goes on behind the loss."""
    source, target = streams
    before = contents(standalone, source)
    followers.start("--record")
    wait_for(foreign, target, sum(map(len, before.values())))
    followers.kill()
    foreign.write(*source, events=1000, keys=KEYS, first=2000)
    whole = contents(standalone, source)
    begins = {segment: len(data) + 5 * SIZE for segment, data in before.items()}
    assert foreign.truncate(*source, offsets=begins)
    assert foreign.seal(*source)
    report = follow(standalone.controller_uri, named(source), named(target), record=True)
    assert report is not None
    assert report.outcome is Outcome.COPIED, report.error
    assert [one.lost for one in report.segments] == [5 * SIZE] * 2
    assert contents(standalone, target) == {
        segment: before[segment] + data[begins[segment] :] for segment, data in whole.items()
    }
    assert report.events == 3000 - 10


def test_a_foreign_writer_in_the_target_is_named(
    streams: Pair,
    standalone: Standalone,
    foreign: ForeignClient,
    followers: Followers,
) -> None:
    """The follower stops, and says in which segment and between which offsets the bytes lie."""
    source, target = streams
    followers.start()
    followed = sum(one.end for one in foreign.info(*source).segments)
    wait_for(foreign, target, followed)
    foreign.write(*target, events=1, keys=1, first=0, seed=9)
    foreign.write(*source, events=2000, keys=KEYS, first=2000)
    assert followers.result() == 1
    last = followers.said().splitlines()[-1]
    assert last.startswith("TargetReplaced: another client wrote 108 bytes into segment "), last


def contents(server: Standalone, stream: tuple[str, str]) -> dict[int, bytes]:
    """The bytes of a stream's segments by id, of a stream that was not truncated."""
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=server.controller_uri)]
        ids = [one.id for made in store.generations(named(stream)) for one in made]
        segments = [store.segment_name(named(stream), one) for one in ids]
        infos = store.infos(segments)
        return {
            number: joined(store.read(name, 0, info.length))
            for number, name, info in zip(ids, segments, infos, strict=True)
            if info is not None
        }


def wait_for(foreign: ForeignClient, target: tuple[str, str], count: int) -> None:
    """Wait until a target has so many bytes."""
    until(f"{count} bytes in the target", lambda: length(foreign, target) == count)


def length(foreign: ForeignClient, stream: tuple[str, str]) -> int:
    """The bytes of a stream; 0 while there is none."""
    if stream[1] not in (foreign.streams(stream[0]) or []):
        return 0
    return sum(one.end for one in foreign.info(*stream).segments)
