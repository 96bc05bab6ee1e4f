"""The lag of a target behind its source, sampled from the lengths of their segments.

A stand-alone client reads the lengths, so nothing of Sluice takes part.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import segment_hash
from bench.model import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from localstore import ForeignClient

EVERY: Final = 0.02
"""Seconds between two samples."""

_PATIENCE: Final = 120.0


class Sample(NamedTuple):
    """The lag of a target at a time.

    Attributes:
        at: the monotonic time in seconds.
        target: the bytes of the target.
        late: seconds for which one of its segments was behind.
    """

    at: float
    target: int
    late: float


class Lateness:
    """The time for which segments have been behind: the age of the first byte that a target lacks.

    Its error is at most the time between two samples.
    """

    def __init__(self) -> None:
        self._ahead: defaultdict[int, deque[tuple[float, int]]] = defaultdict(deque)

    def take(self, at: float, segment: int, source: int, target: int) -> float:
        """Take a segment's lengths in source and target.

        Return for how long it is behind, in seconds.
        """
        ahead = self._ahead[segment]
        if source > (ahead[-1][1] if ahead else target):
            ahead.append((at, source))
        while ahead and ahead[0][1] <= target:
            ahead.popleft()
        return at - ahead[0][0] if ahead else 0.0


class Lag:
    """Samples of a source and its target, taken by a thread in the block.

    Args:
        java: the official client, which tells the segments.
        server: host and port of the segment store.
        scope: the scope of both streams.
        source: the source's name.
        target: the target's name. Its segments have the source's ids.
    """

    def __init__(
        self, java: ForeignClient, server: tuple[str, int], scope: str, source: str, target: str
    ) -> None:
        self._java = java
        self._server = server
        self._scope = scope
        self._source, self._target = source, target
        self._ids: tuple[int, ...] = ()
        self._samples: list[Sample] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        """Begin to sample."""
        self.renew()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop sampling."""
        self._over.set()
        self._thread.join()

    def renew(self) -> None:
        """Read the segments that the source has now, after a scale event."""
        info = self._java.info(self._scope, self._source)
        self._ids = tuple(sorted({*self._ids, *(segment.id for segment in info.segments)}))

    def samples(self) -> Sequence[Sample]:
        """Return the samples so far."""
        if self._failure is not None:
            raise BenchError(f"no samples of {self._target}: {self._failure}")
        return self._samples[:]

    def worst(self, since: float, until: float) -> float:
        """Return the longest time for which the target was behind, in seconds."""
        return max((one.late for one in self.samples() if since <= one.at <= until), default=0.0)

    def wait(self, wanted: Callable[[Sample], bool], *, since: float) -> Sample:
        """Wait for a sample, and return it.

        Args:
            wanted: function that recognises the sample.
            since: only later samples count, of a monotonic time in seconds.
        """
        until = time.monotonic() + _PATIENCE
        seen = 0
        while time.monotonic() < until:
            samples = self.samples()
            for sample in samples[seen:]:
                if sample.at > since and wanted(sample):
                    return sample
            seen = len(samples)
            time.sleep(EVERY)
        raise BenchError(f"{self._target} stays behind: {self._samples[-1:]}")

    def wait_below(self, seconds: float, *, since: float) -> float:
        """Wait until the target is less behind than that. Return the time of the sample."""
        return self.wait(lambda sample: sample.late < seconds, since=since).at

    def _look(self) -> None:
        late = Lateness()
        try:
            with segment_hash.Connection(*self._server) as wire:
                while not self._over.wait(EVERY):
                    ids = self._ids
                    there = self._lengths(wire, self._target, ids)
                    here = self._lengths(wire, self._source, ids)
                    at = time.monotonic()
                    lates = map(late.take, [at] * len(ids), ids, here, there)
                    self._samples.append(Sample(at, sum(there), max(lates, default=0.0)))
        except Exception as error:  # noqa: BLE001 - told by the thread that asks for the samples
            self._failure = error

    def _lengths(self, wire: segment_hash.Connection, stream: str, ids: Iterable[int]) -> list[int]:
        infos = (wire.info(segment_hash.segment_name(self._scope, stream, one)) for one in ids)
        return [0 if info is None else int(info["end"]) for info in infos]
