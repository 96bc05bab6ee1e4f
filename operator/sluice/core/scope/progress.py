"""How far a copy is, how fast it goes and when it will be done."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sluice.core.scope.scope import Counts

_STANDSTILL = 1.0
"""Bytes per second below which a copy stands still: there is no time left to tell."""


class Progress(NamedTuple):
    """How far a plan is.

    Attributes:
        bytes: bytes in the target store, staged or published.
        total: bytes to copy.
        published: whether all of it can be read in the target.
        streams: of a scope's copy, its streams by their state.
    """

    bytes: int
    total: int
    published: bool
    streams: Counts | None = None


class Pace(NamedTuple):
    """Speed in bytes/s and the time left in seconds; None while it cannot be told."""

    rate: float
    eta: float | None


class Meter:
    """Speed from repeated readings of a growing number of bytes.

    The rate is an exponential mean over time: readings older than a few times `memory` hardly
    count, however often readings come.

    Args:
        memory: seconds over which the mean forgets.
    """

    def __init__(self, memory: float = 5.0) -> None:
        self._memory = memory
        self._last: tuple[float, int] | None = None
        self._rate: float | None = None

    def read(self, now: float, done: int, total: int) -> Pace:
        """Take a reading: at `now` seconds, `done` bytes of `total` are there."""
        if self._last is None:
            self._last = (now, done)
            return Pace(0.0, None)
        then, before = self._last
        if now > then:
            latest = max(0, done - before) / (now - then)
            keep = math.exp((then - now) / self._memory)
            self._rate = latest if self._rate is None else keep * self._rate + (1 - keep) * latest
            self._last = (now, done)
        rate = self._rate or 0.0
        return Pace(rate, (total - done) / rate if rate >= _STANDSTILL else None)
