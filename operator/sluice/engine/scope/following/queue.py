"""Share out streams that are followed among a few threads.

A thread holds a stream only while something comes in it, and not for long while others wait. In
between the stream is parked, and takes no thread and no connection.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from sluice.engine.scope.queue import StreamQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sluice.engine.tasks.clock import Clock
    from sluice.engine.tasks.work import CopyRun


class FollowQueue(StreamQueue):
    """The streams that are begun, followed and parked.

    Args:
        places: the places of the streams to copy in the plan, in the order to begin them.
        begin: makes the run of the stream at a place.
        clock: time.

    Attributes:
        waits: whether the work goes on though there is no stream.
    """

    def __init__(
        self, places: Iterable[int], begin: Callable[[int], CopyRun], clock: Clock
    ) -> None:
        super().__init__(places, begin, clock)
        self.waits = False
        self._live: set[int] = set()  # of those that are open
        self._deferred: set[int] = set()  # those that were given up for now at least once
        self._parked: dict[int, tuple[CopyRun, float]] = {}
        self._again: list[tuple[float, int]] = []
        self._fresh_next = True

    # -- workers

    def followed(self, number: int) -> None:
        """Note that the planned bytes of a stream are copied, so that another one may begin."""
        with self._changed:
            if number not in self._live:
                self._live.add(number)
                self._changed.notify_all()

    def put(self, run: CopyRun) -> None:
        """Give a stream back; see StreamQueue."""
        with self._changed:
            if run.report is not None:
                self._live.discard(run.copy.number)
            super().put(run)

    def call_off(self, run: CopyRun) -> None:
        """Give back a stream as not begun, and begin no other stream."""
        with self._changed:
            self._live.discard(run.copy.number)
            self._again.clear()
            super().call_off(run)

    def close(self) -> None:
        """Begin no other stream."""
        with self._changed:
            self._again.clear()
            super().close()

    def rest(self, run: CopyRun, *, parked: bool) -> None:
        """Give back a stream that is followed.

        Args:
            run: the stream.
            parked: whether it waits until it is roused. If not, it only lets others go first.
        """
        with self._changed:
            self._held.discard(run.copy.number)
            if parked:
                self._parked[run.copy.number] = run, self._clock.monotonic()
            else:
                self._ready.append(run)
            self._changed.notify_all()

    def again(self, place: int, delay: float) -> None:
        """Begin a stream anew after a while, once its run is given back."""
        with self._changed:
            heapq.heappush(self._again, (self._clock.monotonic() + delay, place))
            self._deferred.add(place)
            self._changed.notify_all()

    def is_wanted(self) -> bool:
        """Tell whether streams wait for a thread."""
        with self._changed:
            self._settle()
            return bool(self._ready) or self._may_begin()

    # -- the thread that looks after parked streams

    def parked(self) -> list[tuple[CopyRun, float]]:
        """Return the streams that are parked, and since when."""
        with self._changed:
            return list(self._parked.values())

    def rouse(self, numbers: Iterable[int]) -> None:
        """Have threads look at these streams, of those that are parked."""
        with self._changed:
            for number in numbers:
                if number in self._parked:
                    self._ready.append(self._parked.pop(number)[0])
            self._changed.notify_all()

    def join(self, places: Iterable[int]) -> None:
        """Take in streams that have joined."""
        with self._changed:
            self._places.extend(places)
            self.waits = False
            self._changed.notify_all()

    def end_waiting(self) -> None:
        """End the work once there is no stream."""
        with self._changed:
            self.waits = False
            self._changed.notify_all()

    @property
    def begun(self) -> bool:
        """Whether all streams have been begun, and are followed."""
        with self._changed:
            return not (self._places or self._again or self._open.keys() - self._live)

    def came_live(self, first: int) -> bool:
        """Tell whether each stream at the first places is followed, has ended, or was given up.

        If none is followed, none may have been given up: perhaps a store is away.
        """
        with self._changed:
            coming = {*self._places, *self._open} - self._live - self._deferred
            live = any(place < first for place in self._live)
            deferred = any(place < first for place in self._deferred)
            return not any(place < first for place in coming) and (live or not deferred)

    @property
    def busy(self) -> int:
        """How many streams are held by threads."""
        return len(self._held)

    # -- with the lock

    def _next(self) -> CopyRun | None:
        self._settle()
        if self._may_begin() and (self._fresh_next or not self._ready):
            self._fresh_next = False
            run = self._begin(self._places.popleft())
            self._open[run.copy.number] = run
            return run
        self._fresh_next = True
        return self._ready.popleft() if self._ready else None

    def _settle(self) -> None:
        """Take in the streams whose time has come."""
        now = self._clock.monotonic()
        while self._later and self._later[0][0] <= now:
            self._ready.append(self._open[heapq.heappop(self._later)[1]])
        while self._again and self._again[0][0] <= now and self._again[0][1] not in self._open:
            self._places.append(heapq.heappop(self._again)[1])

    def _may_begin(self) -> bool:
        return bool(self._places) and len(self._open) - len(self._live) < self._parallelism

    def _until_due(self) -> float | None:
        first = [heap[0][0] for heap in (self._later, self._again) if heap]
        return max(0.0, min(first) - self._clock.monotonic()) if first else None

    def _is_done(self) -> bool:
        return super()._is_done() and not self._again and not self.waits
