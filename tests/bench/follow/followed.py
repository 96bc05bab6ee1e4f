"""A stream that a process follows, and the cost of the process."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Final

from bench import usage
from bench.follow.lag import Lag
from bench.model import BenchError
from sluice.core.values.model import StreamName
from sluice.core.values.wish import Wish
from support.following.follower import start, wish

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from bench.scopes import Place
    from localstore import ForeignClient

SCOPE: Final = "followed"
SEGMENTS: Final = 4
KEYS: Final = 1000
SIZE: Final = 100
STORED: Final = SIZE + 8
"""Bytes of an event in a segment."""

_EVERY: Final = 10.0
"""Seconds after which a follower compares, as in a copy by a resource."""

_KEY: Final = "of the owner"
"""The key by which a follower recognises a wish to seal the source."""

_PATIENCE: Final = 120.0
_numbers = count(1)


class Followed:
    """A source, the name of its target, and a process that follows.

    Args:
        place: the store, and a folder for files.
        scope: the scope of both streams.
        segments: number of segments of the source.
    """

    def __init__(self, place: Place, *, scope: str = SCOPE, segments: int = SEGMENTS) -> None:
        number = next(_numbers)
        self.scope = scope
        self.source = f"source-{number}"
        self.target = f"target-{number}"
        self.server = place.store.segment_store
        self._java: ForeignClient = place.java
        self._uri = place.store.controller_uri
        self._controls: Path = place.folder / f"controls-{number}.json"
        self._said: Path = place.folder / f"follower-{number}.txt"
        self._process: subprocess.Popen[str] | None = None
        self._java.create(scope, self.source, segments=segments)
        self.limit(None)

    def start(self) -> None:
        """Start the follower."""
        with self._said.open("a") as output:
            self._process = start(
                self._uri,
                (self.scope, self.source),
                (self.scope, self.target),
                output,
                "--every",
                str(_EVERY),
                "--controls",
                str(self._controls),
                "--key",
                _KEY,
            )

    def limit(self, bytes_per_second: int | None) -> None:
        """Write the follower's limit."""
        new = self._controls.with_suffix(".new")
        new.write_text(json.dumps({"bytesPerSecond": bytes_per_second}))
        new.replace(self._controls)

    def wait_live(self) -> None:
        """Wait until the target can be read."""
        until = time.monotonic() + _PATIENCE
        while self.target not in (self._java.streams(self.scope) or ()):
            if time.monotonic() > until or self._running.poll() is not None:
                raise BenchError(f"nothing follows {self.source}: {self._said.read_text()[-2000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the follower, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def cut_over(self) -> float:
        """Wish the cutover, wait for the end, and return the seconds in between."""
        begun = time.monotonic()
        target = StreamName(scope=self.scope, stream=self.target)
        if not wish(self._uri, target, Wish(cutover="SealAndDrain"), _KEY):
            raise BenchError(f"{self.target} goes by no wish")
        self.wait_end()
        return time.monotonic() - begun

    def wait_end(self) -> None:
        """Wait until the follower ends by itself."""
        if self._running.wait(timeout=_PATIENCE) != 0:
            raise BenchError(f"a follower failed: {self._said.read_text()[-2000:]}")

    def lag(self) -> Lag:
        """Return a sampler of the target's lag."""
        return Lag(self._java, self.server, self.scope, self.source, self.target)

    @property
    def cpu_seconds(self) -> float:
        """The processor seconds that the follower took so far."""
        return usage.cpu_seconds(self._running.pid)

    @property
    def rss(self) -> int:
        """The follower's memory in bytes."""
        return usage.rss(self._running.pid)

    @property
    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise BenchError("no follower was started")
        return self._process


@contextmanager
def followed(place: Place, *, live: bool = True) -> Iterator[Followed]:
    """Follow a new source in the block.

    Args:
        place: the store, and a folder for files.
        live: whether to wait until the target can be read.
    """
    made = Followed(place)
    try:
        made.start()
        if live:
            made.wait_live()
        yield made
    finally:
        made.kill()
