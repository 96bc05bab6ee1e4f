"""A scope whose streams are followed while the Java client writes to them, on a real store."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from localstore.errors import LocalStoreError
from sluice.core.follow.lag import FollowedStreams
from sluice.core.scope.scope import StreamState
from sluice.core.values.wish import Wish
from support.following.scope_follower import measured, results_of, start, wish
from support.search import FAR
from support.until import PATIENCE, until
from support.witness.foreign_witness import assert_equal, assert_readable

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from sluice.core.follow.lag import Followed as Reading

KEY = "a-key"
KEYS = 16
RATE = 300 if FAR == 1 else 2000
STREAMS = [f"s{number:02}" for number in range(36)]
"""More streams than a follower has threads."""
WRITTEN = STREAMS[:4]


class Followed:
    """A scope that is followed by a process of its own.

    Attributes:
        source, target: the scopes.
        process: the follower.
    """

    def __init__(self, server: Standalone, scope: str, output: Path) -> None:
        self.source, self.target = scope, f"{scope}-copy"
        self.server = server
        self._output = output
        self.process: subprocess.Popen[str]

    def start(self, *options: str) -> None:
        """Start a follower."""
        with self._output.open("a") as file:
            self.process = start(
                self.server.controller_uri, self.source, self.target, file, "--key", KEY, *options
            )

    def kill(self) -> None:
        """Kill the follower."""
        self.process.kill()
        self.process.wait()

    def said(self) -> str:
        """Return all output of the followers."""
        return self._output.read_text()


class Small(Followed):
    """A scope of two streams, of which one is scaled."""

    streams = ("a", "b")

    def __init__(
        self, server: Standalone, foreign: ForeignClient, scope: str, output: Path
    ) -> None:
        super().__init__(server, scope, output)
        for stream in self.streams:
            foreign.create(scope, stream, segments=2)
            foreign.write(scope, stream, events=100, keys=KEYS)
        assert foreign.scale(scope, "a", segments=[0], ranges=[(0.0, 0.2), (0.2, 0.5)])
        foreign.write(scope, "a", events=100, keys=KEYS, first=100)


@pytest.fixture
def followed(
    standalone: Standalone, foreign: ForeignClient, scope: str, tmp_path: Path
) -> Iterator[Followed]:
    """Yield a scope of many streams with few events, and its follower."""
    made = Followed(standalone, scope, tmp_path / "follower.txt")
    for stream in STREAMS:
        foreign.create(scope, stream, segments=2 if stream in WRITTEN else 1)
        foreign.write(scope, stream, events=20, keys=KEYS)
    made.start()
    yield made
    made.kill()


@pytest.mark.exhaustive
def test_a_scope_is_followed_and_cut_over_and_nothing_is_lost(
    followed: Followed,
    standalone: Standalone,
    foreign: ForeignClient,
    say: Callable[[str], None],
) -> None:
    """Writers write, a stream joins, one is deleted, and the follower is killed three times.

    A stream whose target another client has made fails alone.
    """
    source, target = followed.source, followed.target

    def there(*streams: str) -> None:
        until(f"{streams} are copied", lambda: set(streams) <= set(foreign.streams(target) or []))

    def arrived(stream: str) -> None:
        until(f"{stream} has arrived", lambda: length(target, stream) == length(source, stream))

    def length(scope: str, stream: str) -> int:
        with suppress(LocalStoreError):  # the store is making it
            return sum(one.end for one in foreign.info(scope, stream).segments)
        return -1

    there(*STREAMS)
    writers = [
        foreign.start_writer(source, stream, rate=RATE, keys=KEYS, first=20) for stream in WRITTEN
    ]
    for number in range(3):
        had = length(target, WRITTEN[0])
        until("events are followed", lambda: length(target, WRITTEN[0]) > had)  # noqa: B023 - at once
        followed.kill()
        foreign.write(source, STREAMS[10 + number], events=50, keys=KEYS, first=20)
        followed.start()
    foreign.create(target, "taken")
    foreign.create(source, "taken")
    foreign.create(source, "later", segments=2)
    foreign.write(source, "later", events=100, keys=KEYS)
    there("later")
    arrived("later")
    for number in range(3):
        arrived(STREAMS[10 + number])
    gone = STREAMS[-1]
    before = length(source, gone)
    assert foreign.seal(source, gone)
    assert foreign.delete(source, gone)
    foreign.write(source, STREAMS[10], events=50, keys=KEYS, first=70)
    arrived(STREAMS[10])
    assert length(target, gone) == before
    for stop in writers:
        stop()
    began = time.monotonic()
    seal = Wish(cutover="SealAndDrain")
    until("the wish holds", lambda: wish(standalone.controller_uri, target, seal, KEY))
    assert followed.process.wait(PATIENCE) == 0, followed.said()
    say(f"  {len(STREAMS)} streams were cut over in {time.monotonic() - began:.1f} s")
    results = results_of(followed.said())
    assert set(results) == {*STREAMS, "later", "taken"}
    lost = results.pop(gone)
    reason = None if lost.trouble is None else lost.trouble.reason
    assert lost.ended == "SourceSealed" or reason == "SourceNotFound", lost
    foreign_target = results.pop("taken")
    assert foreign_target.trouble is not None
    assert foreign_target.trouble.reason == "TargetExists"
    assert {one.state for one in results.values()} == {StreamState.COPIED}
    assert {one.ended for one in results.values()} == {"CutOver"}
    for stream in (*WRITTEN, "later", *STREAMS[10:13]):
        assert_equal(standalone.segment_store, foreign, (source, stream), (target, stream))
    for stream in WRITTEN:
        expected = foreign.read(source, stream)
        assert expected.events > 20
        there_are = {"events": expected.events, "digest": expected.digest}
        assert_readable(foreign, (target, stream), **there_are)


@pytest.mark.exhaustive
def test_a_first_leg_ends_and_a_follower_goes_on(
    standalone: Standalone, foreign: ForeignClient, scope: str, tmp_path: Path
) -> None:
    """A driver ends once all streams are live, as the operator's does, and another one follows.

    Meanwhile `measured` tells the scope's lag and joined streams.
    """
    small = Small(standalone, foreign, scope, tmp_path / "follower.txt")
    source, target = small.source, small.target

    def look() -> Reading:
        return measured(standalone.controller_uri, source, target)

    small.start("--until-live")
    assert small.process.wait(PATIENCE) == 0, small.said()
    begun = look()
    assert begun.live
    assert begun.streams == FollowedStreams(followed=2)
    assert (begun.lag_bytes, begun.segments) == (0, 5)
    foreign.write(source, "b", events=50, keys=KEYS, first=100)
    behind = look()
    assert behind.lag_bytes > 0
    assert behind.streams is not None
    assert [one.stream for one in behind.streams.worst] == ["b"]
    assert behind.position == begun.position
    small.start()
    try:
        foreign.create(source, "later")
        foreign.write(source, "later", events=30, keys=KEYS)
        until("it joins", lambda: look().streams == FollowedStreams(followed=3, joined=1))
        until("all is there", lambda: (now := look()).proved == now.position > behind.position)
        assert look().lag_bytes == 0
        assert wish(standalone.controller_uri, target, Wish(cutover="Drain"), KEY)
        assert small.process.wait(PATIENCE) == 0, small.said()
    finally:
        small.kill()
    results = results_of(small.said())
    assert {name: one.ended for name, one in results.items()} == dict.fromkeys(
        ("a", "b", "later"), "Drained"
    )
    for stream in results:
        assert_equal(standalone.segment_store, foreign, (source, stream), (target, stream))
