"""Copies that follow a source and end as their owner wishes, on a real store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from localstore import ForeignClientError
from localstore.errors import LocalStoreError
from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.values.wish import Wish
from sluice.engine.copy.report import Outcome
from sluice.engine.follow import wishes
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.pipelines.programs.stores import Stores
from support.engine.plans import COPY
from support.following.follower import start
from support.search import FAR
from support.store.inline import SETTINGS
from support.until import PATIENCE, until
from support.witness.foreign_witness import assert_equal, assert_readable

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from localstore import ForeignClient, Standalone

KEY = "a-key"
SEAL = Wish(cutover="SealAndDrain")
DRAIN = Wish(cutover="Drain")
KEYS = 32
RATE = 2000 if FAR == 1 else 10_000
Pair = tuple[tuple[str, str], tuple[str, str]]
"""Scope and name of a source, and of its target."""


class Followed:
    """A source of two segments that is followed by a process of its own.

    Attributes:
        source, target: scope and name of the streams.
        process: the follower.
    """

    def __init__(self, server: Standalone, scope: str, output: Path) -> None:
        self.source, self.target = (scope, "source"), (scope, "target")
        self._server = server
        self._output = output
        self.process: subprocess.Popen[str]

    def start(self) -> None:
        """Start a follower."""
        with self._output.open("a") as file:
            words = ("--key", KEY)
            self.process = start(
                self._server.controller_uri, self.source, self.target, file, *words
            )

    def kill(self) -> None:
        """Kill the follower."""
        self.process.kill()
        self.process.wait()

    def wish(self, wish: Wish, key: str = "") -> None:
        """Write how the copy should end, as soon as the copy accepts it."""
        target = StreamName(scope=self.target[0], stream=self.target[1])
        with Stores(SETTINGS) as stores:
            store = stores[StoreAddress(uri=self._server.controller_uri)]
            log = CopyJournal(store, COPY, target)
            until("the wish holds", lambda: wishes.write(wish, log, key=key))

    def ended(self) -> str:
        """Wait for the follower's end, and return its reason."""
        assert self.process.wait(PATIENCE) == 0, self._output.read_text()
        *_, reason, outcome = self._output.read_text().splitlines()
        assert outcome == Outcome.COPIED.value
        return reason.removeprefix("ended: ")


@pytest.fixture
def followed(
    standalone: Standalone, foreign: ForeignClient, scope: str, tmp_path: Path
) -> Iterator[Followed]:
    """Yield a source with 2,000 events, and its follower, which does not outlive the test."""
    made = Followed(standalone, scope, tmp_path / "follower.txt")
    foreign.create(*made.source, segments=2)
    foreign.write(*made.source, events=2000, keys=KEYS)
    made.start()
    yield made
    made.kill()


def bytes_of(foreign: ForeignClient, stream: tuple[str, str]) -> int:
    """Return the number of bytes in a stream; 0 before the store has made it."""
    try:
        return sum(one.end for one in foreign.info(*stream).segments)
    except ForeignClientError:
        return 0


@pytest.mark.exhaustive
def test_a_source_is_sealed_under_its_writer_and_nothing_is_lost(
    followed: Followed,
    standalone: Standalone,
    foreign: ForeignClient,
    say: Callable[[str], None],
) -> None:
    """The target has every event that the source took. The seal refuses the writer's others."""
    until("it follows", lambda: bytes_of(foreign, followed.target) > 0)
    stop = foreign.start_writer(*followed.source, rate=RATE, keys=KEYS, first=2000)
    time.sleep(3)
    followed.kill()  # the next follower finds the wish in the journal
    followed.wish(SEAL, KEY)
    followed.start()
    began = time.monotonic()
    assert followed.ended() == "CutOver"
    say(f"  cut over {time.monotonic() - began:.1f} s after the start of the follower")
    with pytest.raises(LocalStoreError, match="the writer failed") as refused:
        stop()
    say(f"  the writer was told: {refused.value}"[:200])
    reports = assert_equal(standalone.segment_store, foreign, followed.source, followed.target)
    expected = foreign.read(*followed.source)
    assert expected.events > 2000 + RATE
    assert sum(one["events"] for one in reports) == expected.events
    assert_readable(foreign, followed.target, events=expected.events, digest=expected.digest)


@pytest.mark.exhaustive
def test_a_live_cutover_takes_seconds(
    followed: Followed,
    standalone: Standalone,
    foreign: ForeignClient,
    say: Callable[[str], None],
) -> None:
    """A cutover takes seconds: the follower finds the wish by itself, beside a writer."""
    stop = foreign.start_writer(*followed.source, rate=RATE, keys=KEYS, first=2000)
    until("it follows", lambda: bytes_of(foreign, followed.target) > 2000 * 108)
    time.sleep(2)
    began = time.monotonic()
    followed.wish(SEAL, KEY)
    assert followed.ended() == "CutOver"
    say(f"  {time.monotonic() - began:.2f} s from the wish to the follower's end")
    with pytest.raises(LocalStoreError):
        stop()
    assert_equal(standalone.segment_store, foreign, followed.source, followed.target)


@pytest.mark.exhaustive
def test_a_client_without_the_key_has_no_source_sealed(
    followed: Followed, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A client without the key can end the copy but seals no source. The writers go on."""
    followed.wish(SEAL, "another key")
    foreign.write(*followed.source, events=100, keys=KEYS, first=2000)
    length = bytes_of(foreign, followed.source)
    until("all is followed", lambda: bytes_of(foreign, followed.target) == length)
    followed.wish(DRAIN)
    assert followed.ended() == "Drained"
    assert_equal(standalone.segment_store, foreign, followed.source, followed.target)
    foreign.write(*followed.source, events=1, keys=1, first=2100)


@pytest.mark.exhaustive
def test_a_follower_without_anything_to_do_takes_no_processor(
    followed: Followed, foreign: ForeignClient, say: Callable[[str], None]
) -> None:
    """An idle follower takes no processor time, and still sees a wish within about a second."""
    length = bytes_of(foreign, followed.source)
    until("all is followed", lambda: bytes_of(foreign, followed.target) == length)
    time.sleep(3)
    before, began = seconds_of(followed.process.pid), time.monotonic()
    time.sleep(20)
    used = (seconds_of(followed.process.pid) - before) / (time.monotonic() - began)
    say(f"  {used:.4f} cores while idle")
    began = time.monotonic()
    followed.wish(Wish(bytes=1))
    assert followed.ended() == "Bytes"
    say(f"  ended {time.monotonic() - began:.1f} s after the wish")


def seconds_of(pid: int) -> float:
    """Return the processor time of a process, in seconds."""
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 - no path of a user
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
