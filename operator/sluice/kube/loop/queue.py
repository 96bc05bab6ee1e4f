"""The work queue: keys of resources to look at, each at most once, with a lane for deletions.

Every event, list and timer only adds a key, so no decision depends on a single event. A key that is
added while it is worked on is worked on again. Failures of a key delay that key alone. Deletions
have workers of their own, so a flood of other work cannot keep a namespace from going away.

Namespaces take turns, and none takes more workers than it leaves free. So the resources of one
namespace that wait for dead stores never take the last worker from another namespace.
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
    """Key of a resource: kind, namespace and name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Write the key for people."""
        return f"{self.kind}/{self.namespace}/{self.name}"


class Lane(StrEnum):
    """Lane of the queue, with workers of its own."""

    NORMAL = "normal"
    DELETION = "deletion"


FIRST_DELAY, LONGEST_DELAY = 0.2, 60.0
"""First and longest wait in seconds after an error that was raised; it doubles each time."""


_Due = tuple[float, int, Key]
"""The time when a key is due, a number that orders keys of one time, and the key."""


@dataclass(slots=True)
class _Lane:
    """Keys and workers of one lane.

    Attributes:
        workers: number of workers; None for no limit on a namespace.
        moved: when a worker last took or finished a key.
        at: when each waiting key is due. Entries of `due` and `ready` with other times are stale.
        due: heap of keys by time, with stale entries.
        ready: heaps of keys that have become due, by namespace in the order of turns, with stale
            entries.
        working: number of workers of each namespace.
        changed: set when a worker that found no key may find one.
    """

    workers: int | None
    moved: float
    at: dict[Key, float] = field(default_factory=dict)
    due: list[_Due] = field(default_factory=list)
    ready: OrderedDict[str, list[_Due]] = field(default_factory=OrderedDict)
    working: Counter[str] = field(default_factory=Counter)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def pick(self, now: float) -> tuple[float, Key] | None:
        """Pick the next due key whose namespace may have another worker, and tell its due time."""
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
        """Tell whether a namespace has fewer workers than are free."""
        if self.workers is None:
            return True
        return self.working[namespace] < self.workers - self.working.total()

    def next(self, now: float) -> float | None:
        """Give the seconds until the next key becomes due; None if there is none."""
        first = self._first(self.due)
        return None if first is None else first - now

    def _first(self, keys: list[_Due]) -> float | None:
        """Tell when the first key of a heap is due, and drop stale entries before it."""
        while keys and self.at.get(keys[0][2]) != keys[0][0]:
            heapq.heappop(keys)
        return keys[0][0] if keys else None

    def stands(self, now: float) -> float:
        """Give the seconds for which no key was taken or finished, though there was work."""
        if self.working.total():
            return now - self.moved
        return max(0.0, now - max(self.moved, min(self.at.values(), default=now)))


class WorkQueue:
    """Queue of keys to work on, for one asyncio loop.

    Args:
        clock: gives seconds since a fixed moment.
        workers: number of workers of each lane; a namespace has at most half of them.
        served: the namespaces whose keys are queued; others are dropped.

    Attributes:
        is_open: whether keys are queued. In a replica that only waits to take over they would
            become more and more.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        workers: Mapping[Lane, int] | None = None,
        served: Served = ALL,
    ) -> None:
        self.is_open = True
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
            key: the key.
            delay: seconds.
            lane: move the key to this lane; None leaves it in its lane.
        """
        if not (self.is_open and self._served.include(key.namespace)):
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
        """Wait for a key that is due. No other worker gets the key until `done` is called."""
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
        """Give back a key that was worked on.

        Args:
            key: the key.
            again: seconds until it is worked on again in any case.
            failed: whether an error was raised: then it is tried again, later each time.
        """
        queue = self._working.pop(key, None)
        if queue is not None:
            queue.working[key.namespace] -= 1
            queue.moved = self._clock()
            queue.changed.set()
            queue.working += Counter()  # drops the namespaces that have no worker
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
        """Give the seconds for which a key was due before a worker took it."""
        return self._waited[key]

    def depth(self, lane: Lane) -> int:
        """Count the keys that are due and wait for a worker."""
        now = self._clock()
        return sum(at <= now for at in self._lanes[lane].at.values())

    def oldest(self) -> float:
        """Give the seconds for which the longest waiting key has been due."""
        now = self._clock()
        due = [at for lane in self._lanes.values() for at in lane.at.values()]
        return max(0.0, now - min(due, default=now))

    def stands(self) -> float:
        """Give the most seconds for which a lane with work has neither taken nor finished a key."""
        now = self._clock()
        return max(lane.stands(now) for lane in self._lanes.values())
