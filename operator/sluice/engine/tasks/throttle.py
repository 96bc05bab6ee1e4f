"""Keep work below a rate that may change meanwhile."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from sluice.core.pace.bucket import TokenBucket, block

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.engine.tasks.clock import Clock

STEP: Final = 0.25
"""Most seconds to sleep before the rate is asked again, which may have changed or end the work."""


class RateLimiter:
    """A limiter of the bytes that all threads of a process move.

    Args:
        rate: returns the present limit in bytes per second, None for no limit. It is called before
            every block and while waiting. An error that it raises ends the calling thread's work.
        clock: time.
    """

    def __init__(self, rate: Callable[[], float | None], clock: Clock = time) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = threading.Lock()
        self._bucket = TokenBucket(clock.monotonic())

    def ready(self) -> bool:
        """Tell whether bytes may be moved now, without waiting."""
        rate = self._rate()
        with self._lock:
            return not self._bucket.wait(rate, self._clock.monotonic())

    def take(self, most: int) -> int:
        """Wait until bytes may be moved, and count them.

        Args:
            most: most bytes that the caller wants to move.

        Returns:
            How many of them it may move now.
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
        """Wait until `count` bytes may be moved, and count them."""
        while count:
            count -= self.take(count)


class Task:
    """The rate and time of a task.

    Args:
        rate: most bytes per second; None for no limit.
        seconds: time until the task is over.
        pace: a rate limiter that takes the place of the rate.
        stopping: set if the task is to end earlier.
    """

    def __init__(
        self,
        rate: float | None,
        seconds: float,
        pace: RateLimiter | None = None,
        stopping: threading.Event | None = None,
    ) -> None:
        self.pace = pace or RateLimiter(lambda: rate)
        self._until = time.monotonic() + seconds
        self._stopping = stopping

    @property
    def over(self) -> bool:
        """Whether the task is to end where its chunk or object ends."""
        stopping = self._stopping is not None and self._stopping.is_set()
        return stopping or time.monotonic() >= self._until
