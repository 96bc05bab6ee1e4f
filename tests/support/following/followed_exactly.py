"""A source that is written to, split and merged, while processes that follow it are killed.

Programs that are not Sluice's judge the result: readers of the Java client, which read the target
from its first event on, and the stand-alone script, which hashes all segments.
"""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import segment_hash
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.engine.copy.report import Outcome
from sluice.stores.pravega import names
from support.engine.plans import COPY
from support.following.followers import Followers
from support.store.live import assert_nothing_failed
from support.until import PATIENCE, TIGHT, until
from support.witness.foreign_witness import assert_equal, left_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Self

    from localstore import Cluster, ForeignClient, Standalone
    from localstore.foreign import Following
    from localstore.reports import Paced
    from support.following.followers import Pair

KEYS: Final = 64
SIZE: Final = 100
SEGMENTS: Final = 4
FRAMED: Final = SIZE + 8
"""Bytes of an event in a segment."""


@dataclass(frozen=True)
class Place:
    """The place at which a source is followed.

    Attributes:
        server: the store of both streams.
        foreign: the store's official client.
        folder: directory for files.
        say: callback that puts a line into the test log.
    """

    server: Standalone | Cluster
    foreign: ForeignClient
    folder: Path
    say: Callable[[str], None]


class Exactly:
    """A source with a steady writer, its followers, and readers of the target.

    Args:
        place: the store, its client and the folder.
        streams: the source and the target, which do not exist yet.
        rate: events per second.
        seed: seed of the times of kills and of the scale events.
    """

    def __init__(self, place: Place, streams: Pair, *, rate: int, seed: int) -> None:
        self._place = place
        self._streams = streams
        self._rate = rate
        self._dice = random.Random(seed)  # noqa: S311 - moments, not secrets
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Begin to follow, then to write and to read the target."""
        foreign, (source, target) = self._place.foreign, self._streams
        foreign.create(*source, segments=SEGMENTS)
        with ExitStack() as stack:
            output = stack.enter_context((self._place.folder / "followers.txt").open("a+"))
            self.followers = stack.enter_context(
                Followers(self._place.server.controller_uri, self._streams, output)
            )
            self.followers.start()
            until("a target", lambda: target[1] in (foreign.streams(target[0]) or ()))
            self._readers: Following = foreign.start_readers(*target)
            self._stop: Callable[[], Paced] = foreign.start_writer(
                *source, rate=self._rate, size=SIZE, keys=KEYS
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the last follower, if it still runs."""
        self._stack.close()

    def disturb(self, *, seconds: float, kills: int) -> None:
        """Kill the follower `kills` times while it brings the events of `seconds`.

        Each kill waits until the follower has brought events. Each third one comes after a scale
        event.
        """
        wanted = self._length() + round(seconds * self._rate) * FRAMED
        for number in range(kills):
            if number % 3 == 1:
                self.scale()
            self.kill()
            time.sleep(self._dice.uniform(0, 2 * seconds / kills))
        until(f"the events of {seconds:g} s are followed", lambda: self._length() >= wanted)

    def kill(self) -> None:
        """Kill the follower once it has brought events, and start another one."""
        self.wait_moving()
        self.followers.kill()
        self.followers.start()

    def wait_moving(self) -> None:
        """Wait until the follower has brought events to the target."""
        before = self._length()

        def moves() -> bool:
            assert self.followers.runs, self.followers.said()
            return self._length() > before

        until("events that are followed", moves, poll=TIGHT)

    def _length(self) -> int:
        """Return the number of bytes in the target."""
        return sum(one.end for one in self._place.foreign.info(*self._streams[1]).segments)

    def read_anew(self) -> None:
        """Read the target again from its first event. A failing segment store may break readers."""
        self._readers = self._place.foreign.start_readers(*self._streams[1])

    def scale(self) -> None:
        """Split a segment of the source, or merge two if it has more than its policy asks for."""
        foreign, source = self._place.foreign, self._streams[0]
        last = sorted(
            (one.low, one.high, one.id)
            for one in foreign.info(*source).segments
            if one.low is not None and one.high is not None
        )
        if len(last) > SEGMENTS + 1 or (len(last) > SEGMENTS and self._dice.random() < 0.5):
            place = self._dice.randrange(len(last) - 1)
            (low, _, first), (_, high, second) = last[place : place + 2]
            assert foreign.scale(*source, segments=[first, second], ranges=[(low, high)])
        else:
            low, high, segment = self._dice.choice(last)
            cut = low + (high - low) * self._dice.uniform(0.2, 0.8)
            assert foreign.scale(*source, segments=[segment], ranges=[(low, cut), (cut, high)])

    def journal(self) -> int:
        """Return the number of bytes in the copy's journal."""
        with segment_hash.Connection(*self._place.server.segment_store) as wire:
            infos = [wire.info(name) for name in self._journals()]
        return sum(int(info["end"] - info["start"]) for info in infos if info is not None)

    def end(self, *, patience: int = int(PATIENCE)) -> int:
        """Seal the source, and check that its target has every event, once and in order.

        Args:
            patience: seconds within which the readers must come to the end.

        Returns:
            The number of events.
        """
        foreign, (source, target) = self._place.foreign, self._streams
        wrote = self._stop()
        assert_nothing_failed(wrote, self._place.say)
        assert foreign.seal(*source)
        assert self.followers.result() == 0, self.followers.said()
        assert self.followers.said().splitlines()[-1] == Outcome.COPIED.value
        assert foreign.seal(*target)
        read = self._readers.end(patience=patience)
        assert read.clean, read
        assert (read.events, read.keys_from_zero) == (wrote.events, KEYS)
        server = self._place.server.segment_store
        reports = assert_equal(server, foreign, source, target)
        assert sum(report["events"] for report in reports) == wrote.events
        assert left_of(server, self._journals()) == []
        return wrote.events

    def _journals(self) -> list[str]:
        """Return the names that the copy's journals can have."""
        target = StreamName(scope=self._streams[1][0], stream=self._streams[1][1])
        keys = (identity.journal_key(COPY, number) for number in range(16))
        return [names.staging_name(target, 0, key) for key in keys]
