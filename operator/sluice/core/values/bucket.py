"""How many bytes may be moved by now, at a rate that may change at any moment. Pure."""

from __future__ import annotations

from typing import Final

BURST: Final = 1.0
"""Seconds for which what was not used may be made up for: between two steps nothing is moved."""

BLOCKS: Final = 10
"""Blocks in a second, at least, where a rate is low."""

SMALLEST: Final = 1 << 10
LARGEST: Final = 1 << 20
"""Bytes of a block."""


def block(rate: float | None) -> int:
    """The most bytes to move at a time, at a rate."""
    if rate is None:
        return LARGEST
    return int(min(max(rate / BLOCKS, SMALLEST), LARGEST))


class TokenBucket:
    """Bytes that may be moved, which come at a rate and go as they are moved.

    What is moved may be more than there is: then nothing more may be moved until that has come in.
    So in any time t at most rate x (t + BURST) and one block are moved.

    Args:
        now: the time, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._rate: float | None = None
        self._there = 0.0
        self._at = now

    def wait(self, rate: float | None, now: float) -> float:
        """Seconds until bytes may be moved, at this rate from now on; 0 if they may now."""
        if self._rate is not None:
            come = (now - self._at) * self._rate
            self._there = min(self._there + come, self._rate * BURST)
        self._at = now
        if rate != self._rate:
            # What was moved at another rate is no debt for longer than a block is at this one.
            least = 0.0 if rate is None else float(-block(rate))
            self._there = min(max(self._there, least), 0.0)
            self._rate = rate
        return 0.0 if rate is None or self._there >= 0 else -self._there / rate

    def take(self, count: int) -> None:
        """Take note of bytes that are moved now."""
        if self._rate is not None:
            self._there -= count


class Account:
    """Lets rounds of work make up for the time between them, in which nothing is moved.

    What a round has left, or moved too much, counts for the next ones: no more than what comes in
    BURST seconds.
    """

    def __init__(self) -> None:
        self._limit: float | None = None
        self._there = 0.0
        self._at = 0.0

    def rate(self, limit: float | None, now: float, seconds: float) -> float | None:
        """The rate of a round that begins now.

        Args:
            limit: most bytes per second in the long run; None for no limit.
            now: the time, in seconds.
            seconds: that the round lasts.
        """
        if limit is None or limit != self._limit:
            self._there = 0.0
        else:
            there = self._there + (now - self._at) * limit
            self._there = max(min(there, limit * BURST), -limit * BURST)
        self._limit, self._at = limit, now
        return None if limit is None else max(limit + self._there / seconds, limit / 2)

    def moved(self, count: int) -> None:
        """Take note of what was moved in the round."""
        self._there -= count
