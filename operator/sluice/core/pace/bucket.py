"""Rate limits: how many bytes may be moved by now, at a rate that may change at any time. Pure."""

from __future__ import annotations

from typing import Final

BURST: Final = 1.0
"""Seconds of unused rate that may be made up for later: between two steps nothing is moved."""

SHORTEST: Final = 1e-9
"""Shortest wait in seconds. A clock with seconds as floating point may not pass a shorter one."""

BLOCKS: Final = 10
"""Fewest blocks per second, where a rate is low."""

SMALLEST: Final = 1 << 10
LARGEST: Final = 1 << 20
"""Fewest and most bytes of a block."""


def block(rate: float | None) -> int:
    """Return the most bytes to move at a time, at a rate in bytes per second; None: no limit."""
    if rate is None:
        return LARGEST
    return int(min(max(rate / BLOCKS, SMALLEST), LARGEST))


class TokenBucket:
    """A budget of bytes that may be moved: it grows at a rate, and shrinks as bytes are moved.

    Other things than bytes may be counted. A move may take more than the budget has. Then nothing
    may be moved until the budget is no longer negative. So in any time t at most rate x (t + BURST)
    and one block are moved.

    Args:
        now: the time, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._rate: float | None = None
        self._there = 0.0
        self._at = now

    def wait(self, rate: float | None, now: float) -> float:
        """Set the rate from now on, and return the seconds until bytes may be moved at it.

        Args:
            rate: bytes per second; None for no limit.
            now: the time, in seconds.

        Returns:
            The seconds to wait; 0 if bytes may be moved now.
        """
        if self._rate is not None:
            come = (now - self._at) * self._rate
            self._there = min(self._there + come, self._rate * BURST)
        self._at = now
        if rate != self._rate:
            # A debt of another rate holds for no longer than one block takes at this rate.
            least = 0.0 if rate is None else float(-block(rate))
            self._there = min(max(self._there, least), 0.0)
            self._rate = rate
        wait = 0.0 if rate is None else -self._there / rate
        return wait if wait > SHORTEST else 0.0

    def take(self, count: int) -> None:
        """Count bytes that are moved now."""
        if self._rate is not None:
            self._there -= count


class WaveBudget:
    """A budget over waves of work, which make up for the time between them.

    Bytes that a wave has left unused, or moved beyond its limit, count for the next waves: at
    most as many as the limit allows in BURST seconds.
    """

    def __init__(self) -> None:
        self._limit: float | None = None
        self._there = 0.0
        self._at = 0.0

    def rate(self, limit: float | None, now: float, seconds: float) -> float | None:
        """Return the rate of a wave that begins now, in bytes per second; None for no limit.

        Args:
            limit: most bytes per second in the long run; None for no limit.
            now: the time, in seconds.
            seconds: how long the wave lasts.
        """
        if limit is None or limit != self._limit:
            self._there = 0.0
        else:
            there = self._there + (now - self._at) * limit
            self._there = max(min(there, limit * BURST), -limit * BURST)
        self._limit, self._at = limit, now
        return None if limit is None else max(limit + self._there / seconds, limit / 2)

    def moved(self, count: int) -> None:
        """Count bytes that the wave has moved."""
        self._there -= count
