"""The one work queue: keys of resources to look at, each once, with a lane for deletions.

Everything that happens only puts a key here, so nothing depends on seeing an edge: a key that is
added while it is worked on is worked on again. Failures of one key delay that key alone. Deletions
have workers of their own, so a flood of other work cannot keep a namespace from going away.

Namespaces take turns, and none takes more workers than it leaves free: however many of its
resources wait for stores that do not answer, another namespace's need not wait for a worker.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import Counter, OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from sluice.kube.loop.served import ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluice.kube.loop.served import Served


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


_Due = tuple[float, int, Key]
"""When a key is due, and its place among those of one time."""


@dataclass(slots=True)
class _Lane:
    """One lane.

    Attributes:
        workers: how many there are; None where nobody counts them.
        moved: when a key was last taken, or done.
        at: when each key is due that nobody has taken.
        due: these by time, soonest first; entries that were overtaken are still among them.
        ready: those that were due, by namespace, whose turn comes first; with overtaken ones too.
        working: how many workers each namespace has.
        changed: set when somebody may find a key who found none.
    """

    workers: int | None
    moved: float
    at: dict[Key, float] = field(default_factory=dict)
    due: list[_Due] = field(default_factory=list)
    ready: OrderedDict[str, list[_Due]] = field(default_factory=OrderedDict)
    working: Counter[str] = field(default_factory=Counter)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def pick(self, now: float) -> tuple[float, Key] | None:
        """The next key, and when it was due; of a namespace that may have another worker."""
        while self.due and self.due[0][0] <= now:
            one = heapq.heappop(self.due)
            heapq.heappush(self.ready.setdefault(one[2].namespace, []), one)
        for namespace in list(self.ready):
            keys = self.ready[namespace]
            if self._first(keys) is None:
                del self.ready[namespace]
            elif self.has_room(namespace):
                self.ready.move_to_end(namespace)
                at, _, key = heapq.heappop(keys)
                return at, key
        return None

    def has_room(self, namespace: str) -> bool:
        """Whether a namespace leaves more workers free than it has."""
        if self.workers is None:
            return True
        return self.working[namespace] < self.workers - self.working.total()

    def next(self, now: float) -> float | None:
        """Seconds until a key becomes due that is not; None without one."""
        first = self._first(self.due)
        return None if first is None else first - now

    def _first(self, keys: list[_Due]) -> float | None:
        """When the first of these is due; those that were overtaken are dropped."""
        while keys and self.at.get(keys[0][2]) != keys[0][0]:
            heapq.heappop(keys)
        return keys[0][0] if keys else None

    def stands(self, now: float) -> float:
        """Seconds for which nothing was taken nor done, though there was something to do."""
        if self.working.total():
            return now - self.moved
        return max(0.0, now - max(self.moved, min(self.at.values(), default=now)))


class WorkQueue:
    """Keys to work on. One asyncio loop only.

    Args:
        clock: seconds since some moment.
        workers: of each lane; a namespace has at most half of them.
        served: keys of other namespaces are nobody's work.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        workers: Mapping[Lane, int] | None = None,
        served: Served = ALL,
    ) -> None:
        self._clock = clock
        self._served = served
        self._lanes = {lane: _Lane((workers or {}).get(lane), clock()) for lane in Lane}
        self._lane_of: dict[Key, Lane] = {}
        self._working: dict[Key, _Lane] = {}
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
        if not self._served.include(key.namespace):
            return
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
            now = self._clock()
            picked = queue.pick(now)
            if picked is not None:
                at, key = picked
                del queue.at[key]
                self._working[key], self._waited[key] = queue, now - at
                queue.working[key.namespace] += 1
                queue.moved = now
                return key
            queue.changed.clear()
            # Not `wait_for`: in Python 3.11 it loses a cancellation that comes with the event, so
            # that a worker would wait on, and the operator would never end.
            with suppress(TimeoutError):
                async with asyncio.timeout(queue.next(now)):
                    await queue.changed.wait()

    def done(self, key: Key, *, again: float | None = None, failed: bool = False) -> None:
        """The key was worked on.

        Args:
            key: which.
            again: seconds until it is to be worked on in any case.
            failed: by surprise: it is tried again, later each time.
        """
        queue = self._working.pop(key, None)
        if queue is not None:
            queue.working[key.namespace] -= 1
            queue.moved = self._clock()
            queue.changed.set()
            queue.working += Counter()  # without those that have none
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

    def stands(self) -> float:
        """Seconds for which no worker of some lane has taken or done anything that was to do."""
        now = self._clock()
        return max(lane.stands(now) for lane in self._lanes.values())
