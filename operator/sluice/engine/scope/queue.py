"""Share out the streams of a scope's copy among the threads that work on them.

At most one thread holds a stream at a time: a worker, which does the stream's steps, or the main
thread, which has its slices run as tasks. No thread holds a stream that waits for its turn, or for
its next try. So waiting streams occupy no thread.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sluice.core.copy.steps import Step
    from sluice.engine.tasks.clock import Clock
    from sluice.engine.tasks.work import CopyRun, Listener, Work
    from sluice.errors import SluiceError


class Halted(BaseException):
    """The end of all work. It is not an error of a stream, so no error handler may catch it."""


class CalledOff(BaseException):
    """A call to begin no other stream: neither this stream nor any after it."""


class StreamQueue:
    """The streams that are to be begun or gone on with, for workers and the main thread.

    Args:
        places: the places of the streams to copy in the plan, in the order to begin them.
        begin: makes the run of the stream at a place.
        clock: time.
    """

    def __init__(
        self, places: Iterable[int], begin: Callable[[int], CopyRun], clock: Clock
    ) -> None:
        self._parallelism = 0
        self._begin = begin
        self._clock = clock
        self._changed = threading.Condition()
        self._places = deque(places)
        self._open: dict[int, CopyRun] = {}
        self._held: set[int] = set()  # by workers
        self._ready: deque[CopyRun] = deque()
        self._later: list[tuple[float, int]] = []
        self._large: list[CopyRun] = []
        self._woken = False
        self._halted = False
        self._error: BaseException | None = None

    # -- workers

    def take(self) -> CopyRun | None:
        """Wait for the next stream to work on, and return it. Return None at the end of all."""
        with self._changed:
            while not self._halted and not self._is_done():
                run = self._next()
                if run is not None:
                    self._held.add(run.copy.number)
                    return run
                self._changed.wait(self._until_due())
        return None

    def put(self, run: CopyRun) -> None:
        """Give a stream back: it has ended, is to be tried again, or can go on at once."""
        with self._changed:
            self._held.discard(run.copy.number)
            if run.report is not None:
                del self._open[run.copy.number]
            elif run.not_before > self._clock.monotonic():
                heapq.heappush(self._later, (run.not_before, run.copy.number))
            else:
                self._ready.append(run)
            self._changed.notify_all()

    def hand_over(self, run: CopyRun) -> None:
        """Give a stream to the main thread, which has its slices run as tasks."""
        with self._changed:
            self._held.discard(run.copy.number)
            self._large.append(run)
            self._changed.notify_all()

    def wake(self) -> None:
        """Have `collect` return, since a task has ended."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def drop(self, run: CopyRun | None, error: BaseException | None = None) -> None:
        """Give back a stream unfinished, and end all work.

        Args:
            run: the stream; None for no stream.
            error: why all work ends, for `collect` to raise.
        """
        with self._changed:
            if run is not None:
                self._held.discard(run.copy.number)
            self._error = self._error or error
            self._halted = True
            self._changed.notify_all()

    def call_off(self, run: CopyRun) -> None:
        """Give back a stream as not begun, and begin no other stream."""
        with self._changed:
            self._held.discard(run.copy.number)
            del self._open[run.copy.number]
            self._places.clear()
            self._changed.notify_all()

    def check(self) -> None:
        """Raise Halted if all work is to end."""
        if self._halted:
            raise Halted

    # -- the main thread

    def allow(self, parallelism: int) -> None:
        """Set how many streams may be in work at once."""
        with self._changed:
            if parallelism != self._parallelism:
                self._parallelism = parallelism
                self._changed.notify_all()

    def collect(self, seconds: float) -> list[CopyRun] | None:
        """Wait at most `seconds` for streams that need tasks, or until woken; return the streams.

        Returns:
            The streams, maybe none; None when all streams that are to be copied have ended.

        Raises:
            BaseException: the error that a worker raised.
        """
        with self._changed:
            self._changed.wait_for(self._is_news, seconds)
            self._woken = False
            if self._error is not None:
                raise self._error
            if self._is_done():
                return None
            runs, self._large = self._large, []
            return runs

    def waiting(self) -> list[int]:
        """Return the places of the streams that have not begun."""
        with self._changed:
            return list(self._places)

    def close(self) -> None:
        """Begin no other stream."""
        with self._changed:
            self._places.clear()
            self._changed.notify_all()

    def halt(self) -> None:
        """End all work: workers end before their next step."""
        with self._changed:
            self._halted = True
            self._changed.notify_all()

    def left(self) -> list[CopyRun]:
        """Return the streams that have begun and not ended, and that no worker holds."""
        with self._changed:
            return [run for number, run in self._open.items() if number not in self._held]

    # -- with the lock

    def _next(self) -> CopyRun | None:
        if self._ready:
            return self._ready.popleft()
        if self._later and self._later[0][0] <= self._clock.monotonic():
            return self._open[heapq.heappop(self._later)[1]]
        if self._places and len(self._open) < self._parallelism:
            run = self._begin(self._places.popleft())
            self._open[run.copy.number] = run
            return run
        return None

    def _until_due(self) -> float | None:
        """Return the seconds until the next stream is tried again; None if none waits for that."""
        if not self._later:
            return None
        return max(0.0, self._later[0][0] - self._clock.monotonic())

    def _is_done(self) -> bool:
        return not self._open and not self._places

    def _is_news(self) -> bool:
        return bool(self._large) or self._woken or self._halted or self._is_done()


class Halting:
    """A listener that ends a worker before its next step once the queue is halted.

    Args:
        listener: the listener to pass steps and retries on to.
        queue: the queue.
    """

    def __init__(self, listener: Listener, queue: StreamQueue) -> None:
        self._listener = listener
        self._queue = queue

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """Raise Halted if all work is to end; otherwise pass the step on."""
        self._queue.check()
        self._listener.step(copy, step)

    def retry(self, copy: Work[Any, Any], error: SluiceError, delay: float) -> None:
        """Pass the retry on."""
        self._listener.retry(copy, error, delay)
