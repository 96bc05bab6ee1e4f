"""Keeping a slice of work below its rate, and knowing when its time is over."""

from __future__ import annotations

import time


class Throttle:
    """What a slice of work may use.

    Args:
        rate: most bytes per second; None for no limit.
        seconds: after which its time is over.
    """

    def __init__(self, rate: float | None, seconds: float) -> None:
        self._rate = rate
        self._begin = time.monotonic()
        self._until = self._begin + seconds
        self._moved = 0

    @property
    def over(self) -> bool:
        """Whether the slice's time is over."""
        return time.monotonic() >= self._until

    def moved(self, count: int) -> None:
        """Wait as long as `count` more bytes take at the rate."""
        if self._rate is None:
            return
        self._moved += count
        ahead = self._begin + self._moved / self._rate - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
