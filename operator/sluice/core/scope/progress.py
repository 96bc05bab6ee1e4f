"""Measure how far a copy is, how fast it goes and when it will be done."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sluice.core.scope.scope import Counts

PAUSE = 10.0
"""Seconds without a byte after which a copy waits for a store."""

_STANDSTILL = 1.0
"""Bytes per second below which a copy stands still, and has no estimate of the time left."""


class Progress(NamedTuple):
    """Progress of a plan.

    Attributes:
        bytes: bytes in the target store, staged or published.
        total: bytes to copy.
        published: whether all bytes can be read in the target.
        streams: counts of the streams of a scope's copy; None for other copies.
    """

    bytes: int
    total: int
    published: bool
    streams: Counts | None = None


class Pace(NamedTuple):
    """The speed of a copy.

    Attributes:
        rate: bytes per second.
        eta: the time left, in seconds; None while it is unknown.
        still: seconds since the last byte came.
    """

    rate: float
    eta: float | None
    still: float = 0.0

    @property
    def waits(self) -> bool:
        """Whether no byte has come for so long that people want to know why."""
        return self.still >= PAUSE


class Meter:
    """Meter of the speed of a copy, from repeated readings of its bytes.

    The rate is an exponential mean over time. Readings older than a few times `memory` hardly
    count, however often readings come.

    Args:
        memory: time constant of the mean, in seconds.
    """

    def __init__(self, memory: float = 5.0) -> None:
        self._memory = memory
        self._last: tuple[float, int] | None = None
        self._rate: float | None = None
        self._moved = 0.0

    def read(self, now: float, done: int, total: int) -> Pace:
        """Take a reading and give the pace: at `now` seconds, `done` bytes of `total` are there."""
        if self._last is None:
            self._last, self._moved = (now, done), now
            return Pace(0.0, None)
        then, before = self._last
        if done > before:
            self._moved = now
        if now > then:
            latest = max(0, done - before) / (now - then)
            keep = math.exp((then - now) / self._memory)
            self._rate = latest if self._rate is None else keep * self._rate + (1 - keep) * latest
            self._last = (now, done)
        rate = self._rate or 0.0
        eta = (total - done) / rate if rate >= _STANDSTILL else None
        return Pace(rate, eta, now - self._moved)
