"""The streams of a scope's copy among the threads that work on them.

Each stream is in one thread's hands at a time: in a worker's, which does its steps; in the main
thread's, which runs rounds; or in nobody's, while it waits for its turn, for a round, or for a
moment at which it is tried again. Those that wait occupy no thread.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sluice.core.copy.steps import Step
    from sluice.engine.rounds.work import Clock, CopyRun, Listener, Work
    from sluice.errors import SluiceError

GATHER: Final = 0.1
"""Seconds that a round waits for further streams as long as workers are busy."""


class Halted(BaseException):
    """All is to end: no error of a stream, so nothing that handles errors may hold it up."""


class CalledOff(BaseException):
    """No other stream is begun: not this one, and none after it."""


class StreamQueue:
    """Who works on which stream next.

    Args:
        places: of the streams to copy, in the order in which they are begun.
        begin: makes the run of a stream.
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
        self._rounds: list[CopyRun] = []
        self._halted = False
        self._error: BaseException | None = None

    # -- workers

    def take(self) -> CopyRun | None:
        """The next stream to work on, once there is one; None when there will be none any more."""
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

    def put_all(self, runs: Iterable[CopyRun]) -> None:
        """Give streams back that have waited for a round."""
        for run in runs:
            self.put(run)

    def want_round(self, run: CopyRun) -> None:
        """Let a stream wait for a round."""
        with self._changed:
            self._held.discard(run.copy.number)
            self._rounds.append(run)
            self._changed.notify_all()

    def drop(self, run: CopyRun | None, error: BaseException | None = None) -> None:
        """Leave a stream as it is, since all ends; because of this error if there is one."""
        with self._changed:
            if run is not None:
                self._held.discard(run.copy.number)
            self._error = self._error or error
            self._halted = True
            self._changed.notify_all()

    def call_off(self, run: CopyRun) -> None:
        """Take a stream as not begun, and begin no other one."""
        with self._changed:
            self._held.discard(run.copy.number)
            del self._open[run.copy.number]
            self._places.clear()
            self._changed.notify_all()

    def check(self) -> None:
        """Raise Halted if all is to end."""
        if self._halted:
            raise Halted

    # -- the main thread

    def allow(self, parallelism: int) -> None:
        """Let so many streams be begun and not ended, from now on."""
        with self._changed:
            if parallelism != self._parallelism:
                self._parallelism = parallelism
                self._changed.notify_all()

    def collect(self, seconds: float) -> list[CopyRun] | None:
        """The streams that wait for a round; none if there are none for so many seconds.

        Returns:
            None when all streams have ended that are to be copied.

        Raises:
            BaseException: what a worker has raised.
        """
        with self._changed:
            self._changed.wait_for(self._is_news, seconds)
            if self._rounds:
                self._changed.wait_for(lambda: self._halted or not self._held, GATHER)
            if self._error is not None:
                raise self._error
            if self._is_done():
                return None
            runs, self._rounds = self._rounds, []
            return runs

    def waiting(self) -> list[int]:
        """The streams that have not begun."""
        with self._changed:
            return list(self._places)

    def close(self) -> None:
        """Begin no other stream."""
        with self._changed:
            self._places.clear()
            self._changed.notify_all()

    def halt(self) -> None:
        """Let workers end before their next step."""
        with self._changed:
            self._halted = True
            self._changed.notify_all()

    def left(self) -> list[CopyRun]:
        """The streams that have begun and not ended, and that no worker holds."""
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
        """Seconds until something is to be tried again; None if nothing is."""
        if not self._later:
            return None
        return max(0.0, self._later[0][0] - self._clock.monotonic())

    def _is_done(self) -> bool:
        return not self._open and not self._places

    def _is_news(self) -> bool:
        return bool(self._rounds) or self._halted or self._is_done()


class Halting:
    """A listener that lets a worker end before its next step, if all is to end.

    Args:
        listener: hears of all else.
        queue: knows whether it is.
    """

    def __init__(self, listener: Listener, queue: StreamQueue) -> None:
        self._listener = listener
        self._queue = queue

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """See Listener."""
        self._queue.check()
        self._listener.step(copy, step)

    def retry(self, copy: Work[Any, Any], error: SluiceError, delay: float) -> None:
        """See Listener."""
        self._listener.retry(copy, error, delay)
