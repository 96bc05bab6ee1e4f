"""Measure how far a copy is, how fast it goes and when it will be done."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from sluice.core.follow.lag import Followed
    from sluice.core.scope.scope import Counts

PAUSE: Final = 10.0
"""Seconds without a byte after which a copy waits for a store, at least."""

_STANDSTILL: Final = 1.0
"""Bytes per second below which a copy stands still, and has no estimate of the time left."""

_RHYTHMS: Final = 3
"""Pauses between lumps of bytes over which a rate is taken at least."""

_RESOLUTION: Final = 1.0
"""Seconds within which arrivals of bytes count as one."""

_MOST_ARRIVALS: Final = 128
"""Arrivals that are remembered at most."""


class Progress(NamedTuple):
    """Progress of a plan.

    Attributes:
        bytes: bytes in the target store, staged or published.
        total: bytes to copy.
        published: whether all bytes can be read in the target.
        streams: counts of the streams of a scope's copy; None for other copies.
        follow: how far a source is followed; None for copies that follow none, and once it ended.
    """

    bytes: int
    total: int
    published: bool
    streams: Counts | None = None
    follow: Followed | None = None


class Pace(NamedTuple):
    """The speed of a copy.

    Attributes:
        rate: bytes per second; 0 once no byte has come for so long that the copy waits.
        eta: seconds until the last byte comes at this rate; None while that is unknown.
        still: seconds since the last byte came.
        rhythm: the longest time between two arrivals of bytes lately, in seconds; None before the
            second arrival.
    """

    rate: float
    eta: float | None
    still: float = 0.0
    rhythm: float | None = None

    @property
    def patience(self) -> float:
        """Seconds without a byte after which the copy waits. Bytes may come in lumps."""
        return max(PAUSE, 2 * (self.rhythm or 0.0))

    @property
    def waits(self) -> bool:
        """Whether no byte has come for so long that people want to know why."""
        return self.still >= self.patience


class _Arrival(NamedTuple):
    """A reading that showed new bytes: its time in seconds, and the bytes that were there."""

    at: float
    done: int


class Meter:
    """Meter of the speed of a copy, from repeated readings of its bytes.

    The rate is that from one arrival of bytes to a later one. So it is the same whether bytes come
    all the time, or in lumps with long pauses, as they do with a limit: a mean over a fixed time
    would rise with each lump and fall until the next one. The time between the two arrivals is at
    least `window`, and at least `_RHYTHMS` times the longest pause within it. If a pause gets
    longer than those before, the rate falls, and is 0 once the copy waits (see `Pace`). Only a
    second pause of that length in a row is a rhythm.

    Args:
        window: seconds over which the rate is taken, if bytes come all the time.
    """

    def __init__(self, window: float = 20.0) -> None:
        self._window = window
        self._arrivals: deque[_Arrival] = deque(maxlen=_MOST_ARRIVALS)
        self._begins = True  # whether the first arrival stands for a time in which nothing moved
        self._moved = 0.0

    def read(self, now: float, done: int, total: int) -> Pace:
        """Take a reading and give the pace: at `now` seconds, `done` bytes of `total` are there."""
        if not self._arrivals:
            self._moved = now
            self._begin(_Arrival(now, done))
        last = self._arrivals[-1]
        if done < last.done:  # staging was deleted
            self._begin(_Arrival(now, done))
        elif done > last.done and now > last.at:
            waited_twice = self._begins and len(self._arrivals) > 1
            if self._pace(now, total - done).waits and not waited_twice:
                self._begin(last)
            self._moved = now
            self._add(_Arrival(now, done))
        return self._pace(now, total - done)

    def _begin(self, arrival: _Arrival) -> None:
        """Forget all earlier arrivals."""
        self._arrivals.clear()
        self._arrivals.append(arrival)
        self._begins = True

    def _add(self, arrival: _Arrival) -> None:
        """Add an arrival, and forget those that are too old to count."""
        arrivals = self._arrivals
        if len(arrivals) > 1 and arrivals[-1].at - arrivals[-2].at < _RESOLUTION:
            arrivals.pop()
        arrivals.append(arrival)
        while len(arrivals) > 2 and arrival.at - arrivals[1].at >= self._least():  # noqa: PLR2004 - a rate needs two
            arrivals.popleft()
            self._begins = False

    def _least(self) -> float:
        """Return the least seconds over which the rate is taken."""
        rhythm = self._rhythm()
        return _RESOLUTION if rhythm is None else max(self._window, _RHYTHMS * rhythm)

    def _rhythm(self) -> float | None:
        """Return the longest time between two arrivals; None before it is known."""
        if self._begins:
            return None
        return max(after.at - before.at for before, after in pairwise(self._arrivals))

    def _pace(self, now: float, left: int) -> Pace:
        """Return the pace at `now` seconds, with `left` bytes to come."""
        begin, end = self._arrivals[0], self._arrivals[-1]
        rhythm = self._rhythm()
        pace = Pace(0.0, None, now - self._moved, rhythm)
        if end.at == begin.at or pace.waits:
            return pace
        late = max(0.0, pace.still - (rhythm or 0.0))
        rate = (end.done - begin.done) / (end.at - begin.at + late)
        return pace._replace(
            rate=rate, eta=left / rate if left > 0 and rate >= _STANDSTILL else None
        )
