"""The one work queue: keys of resources to look at, each once, with a lane for deletions.

Everything that happens only puts a key here, so nothing depends on seeing an edge: a key that is
added while it is worked on is worked on again. Failures of one key delay that key alone. Deletions
have workers of their own, so a flood of other work cannot keep a namespace from going away.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Key(NamedTuple):
    """A resource."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """As people write it."""
        return f"{self.kind}/{self.namespace}/{self.name}"


class Lane(StrEnum):
    """Which workers do it."""

    NORMAL = "normal"
    DELETION = "deletion"


FIRST_DELAY, LONGEST_DELAY = 0.2, 60.0
"""Seconds before a key that failed by surprise is tried again, doubled each time."""


@dataclass(slots=True)
class _Lane:
    """One lane's keys: those that are due at a time, soonest first, and those ready to be taken."""

    due: list[tuple[float, int, Key]] = field(default_factory=list)
    at: dict[Key, float] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class WorkQueue:
    """Keys to work on. One asyncio loop only.

    Args:
        clock: seconds since some moment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lanes = {lane: _Lane() for lane in Lane}
        self._lane_of: dict[Key, Lane] = {}
        self._working: dict[Key, float] = {}
        self._waited: dict[Key, float] = {}
        self._again: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._order = itertools.count()

    def add(self, key: Key, *, delay: float = 0.0, lane: Lane | None = None) -> None:
        """Have a key worked on in `delay` seconds, or sooner if it is due sooner already.

        Args:
            key: which.
            delay: seconds.
            lane: from now on the key is in this lane; None leaves it where it is.
        """
        at = self._clock() + delay
        if key in self._working:
            self._again[key] = min(at, self._again.get(key, at))
            if lane is not None:
                self._lane_of[key] = lane
            return
        now_in = self._lane_of.get(key, Lane.NORMAL)
        if lane is not None and lane is not now_in:
            at = min(at, self._lanes[now_in].at.pop(key, at))
            now_in = self._lane_of[key] = lane
        queue = self._lanes[now_in]
        if key in queue.at and queue.at[key] <= at:
            return
        queue.at[key] = at
        heapq.heappush(queue.due, (at, next(self._order), key))
        queue.changed.set()

    async def take(self, lane: Lane) -> Key:
        """Wait for a key that is due. It is this worker's until `done` is called."""
        queue = self._lanes[lane]
        while True:
            wait = self._next(queue)
            if wait is not None and wait <= 0:
                _, _, key = heapq.heappop(queue.due)
                del queue.at[key]
                self._working[key], self._waited[key] = self._clock(), -wait
                return key
            queue.changed.clear()
            try:
                await asyncio.wait_for(queue.changed.wait(), wait)
            except TimeoutError:
                continue

    def done(self, key: Key, *, again: float | None = None, failed: bool = False) -> None:
        """The key was worked on.

        Args:
            key: which.
            again: seconds until it is to be worked on in any case.
            failed: by surprise: it is tried again, later each time.
        """
        self._working.pop(key, None)
        self._waited.pop(key, None)
        wish = self._again.pop(key, None)
        if failed:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            again = min(FIRST_DELAY * 2.0 ** min(failures - 1, 20), LONGEST_DELAY)
        else:
            self._failures.pop(key, None)
            if wish is not None:
                delay = max(0.0, wish - self._clock())
                again = delay if again is None else min(again, delay)
        if again is not None:
            self.add(key, delay=again)
        elif key not in self._lanes[self._lane_of.get(key, Lane.NORMAL)].at:
            self._lane_of.pop(key, None)

    def waited(self, key: Key) -> float:
        """Seconds for which a key that is worked on was due before somebody took it."""
        return self._waited[key]

    def depth(self, lane: Lane) -> int:
        """Keys that are due and wait for a worker."""
        now = self._clock()
        return sum(at <= now for at in self._lanes[lane].at.values())

    def oldest(self) -> float:
        """Seconds for which the key that waits longest for a worker has been due."""
        now = self._clock()
        due = [at for lane in self._lanes.values() for at in lane.at.values()]
        return max(0.0, now - min(due, default=now))

    def longest(self) -> float:
        """Seconds for which the key that takes longest has been worked on."""
        now = self._clock()
        return max(0.0, now - min(self._working.values(), default=now))

    def _next(self, queue: _Lane) -> float | None:
        """Seconds until the lane's next key is due; entries that were overtaken are dropped."""
        while queue.due:
            at, _, key = queue.due[0]
            if queue.at.get(key) == at:
                return at - self._clock()
            heapq.heappop(queue.due)
        return None
