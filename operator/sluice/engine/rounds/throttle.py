"""Keeping work below a rate that may change while it goes on."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from sluice.core.values.bucket import TokenBucket, block

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.engine.rounds.work import Clock

STEP: Final = 0.25
"""Most seconds of sleep between two looks whether the rate is another one, or all is to stop."""


class RateLimiter:
    """What all that is moved in one process keeps to, in however many threads.

    Args:
        rate: gives the most bytes per second that hold now, None for no limit. It is asked before
            every block and while waiting; what it raises ends the work of the thread that asks.
        clock: time.
    """

    def __init__(self, rate: Callable[[], float | None], clock: Clock = time) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = threading.Lock()
        self._bucket = TokenBucket(clock.monotonic())

    def ready(self) -> bool:
        """Whether bytes may be moved now, without waiting."""
        rate = self._rate()
        with self._lock:
            return not self._bucket.wait(rate, self._clock.monotonic())

    def take(self, most: int) -> int:
        """Wait until bytes may be moved, and count them.

        Args:
            most: how many there are to be moved.

        Returns:
            How many of them may be.
        """
        while True:
            rate = self._rate()
            with self._lock:
                wait = self._bucket.wait(rate, self._clock.monotonic())
                if not wait:
                    count = min(most, block(rate))
                    self._bucket.take(count)
                    return count
            self._clock.sleep(min(wait, STEP))

    def spend(self, count: int) -> None:
        """Wait until so many bytes may be moved, and count them."""
        while count:
            count -= self.take(count)


class Task:
    """What slices that are done one after the other may use.

    Args:
        rate: most bytes per second; None for no limit.
        seconds: after which its time is over.
        pace: takes the place of the rate.
    """

    def __init__(self, rate: float | None, seconds: float, pace: RateLimiter | None = None) -> None:
        self.pace = pace or RateLimiter(lambda: rate)
        self._until = time.monotonic() + seconds

    @property
    def over(self) -> bool:
        """Whether its time is over."""
        return time.monotonic() >= self._until
