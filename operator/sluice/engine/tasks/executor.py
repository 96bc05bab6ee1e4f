"""Executors: they run the engine's slices in tasks. The engine does not know what a task is."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Protocol, Self

from sluice.engine.tasks.slices import run_slice
from sluice.engine.tasks.throttle import RateLimiter, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.engine.tasks.limits import Limits
    from sluice.engine.tasks.slices import Slice, SliceResult
    from sluice.stores.base import Source, Store

INLINE_BYTES: Final = 1 << 20
"""Most bytes that a step of one of many streams moves in the thread that does the step."""

INLINE_RUN: Final = 32 << 20
"""Most bytes that one process archives without Spark, with many events in an object."""

INLINE_EVENTS: Final = 1 << 20
"""Most bytes that it archives with an object for each event: many objects take longer than few."""


def is_small(size: int, limits: Limits | None = None, *, most: int | None = None) -> bool:
    """Tell whether one process moves `size` bytes by itself, without tasks.

    Args:
        size: bytes.
        limits: the present limits, for one of many streams. With a rate limit it uses tasks, since
            only the scheduler shares the rate out. None for work that is alone.
        most: the most bytes for this work; None for those of one of many streams.
    """
    alone = limits is None or limits.bytes_per_second is None
    return alone and size <= (INLINE_BYTES if most is None else most)


class Executor(Protocol):
    """An executor of slices. Each slice is a task of its own."""

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        ...

    def submit(self, work: Slice) -> Future[SliceResult]:
        """Begin a slice, or queue it until a slot is free, in the order of the calls.

        Returns:
            The result to come. An error of the stores is in the result. InfrastructureError if
            there is no result: the next look at the store finds what is missing.
        """
        ...

    def check(self, rate: float | None) -> None:
        """Set the present rate, if tasks follow it. Called every second while tasks run.

        Args:
            rate: most bytes per second of all tasks; None for no limit.

        Raises:
            InfrastructureError: there is nothing that could run tasks, for too long.
        """
        ...

    def stop(self, grace: float) -> None:
        """Have tasks end soon, without waiting for it. No other slice can be submitted.

        Args:
            grace: seconds after which tasks are cancelled that cannot end by themselves. A task
                that is cancelled keeps the bytes that it moved, but loses the digests.
        """
        ...


@dataclass(frozen=True, slots=True)
class InlineExecutor:
    """An executor that runs every slice in the calling thread.

    Attributes:
        sources, target: the stores.
        slots: for how many tasks slices are made.
        pace: limits the rate in place of the slices' own rates; None for those.
    """

    sources: Sequence[Source]
    target: Store | ArchiveRoot
    slots: int = 1
    pace: RateLimiter | None = None

    def submit(self, work: Slice) -> Future[SliceResult]:
        """Run a slice now."""
        future: Future[SliceResult] = Future()
        try:
            (result,) = self.run([work])
            future.set_result(result)
        except Exception as error:  # noqa: BLE001 - the future raises it
            future.set_exception(error)
        return future

    def run(self, slices: Sequence[Slice]) -> list[SliceResult]:
        """Run slices as one task, one after the other, until its time is over.

        The first slice is begun in any case. Slices that are not begun have no result.
        """
        results: list[SliceResult] = []
        task = None
        for work in slices:
            if task is not None and task.over:
                break
            task = task or Task(work.rate, work.seconds, self.pace)
            results.append(run_slice(work, self.sources[work.store], self.target, task))
        return results

    def check(self, rate: float | None) -> None:
        """Do nothing: no task runs while the caller does not wait for it."""

    def stop(self, grace: float) -> None:
        """Do nothing: no task runs while the caller does not wait for it."""


class ThreadExecutor:
    """An executor that runs slices in threads of this process, all within one rate.

    Threads help although Python runs one of them at a time: most of the work is done in the
    network, in SHA-256 and in the counter of events, which let other threads run meanwhile.

    Args:
        sources, target: the stores, which the threads share.
        slots: the number of threads.
    """

    def __init__(
        self, sources: Sequence[Source], target: Store | ArchiveRoot, *, slots: int
    ) -> None:
        self._sources = sources
        self._target = target
        self._slots = slots
        self._rate: float | None = None
        self._pace = RateLimiter(self._present_rate)
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._waiting: SimpleQueue[tuple[Slice, Future[SliceResult]]] = SimpleQueue()
        self._threads = 0

    def __enter__(self) -> Self:
        """Enter the block in which slices run."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads before their next block, without waiting for it."""
        self._ended.set()
        self.stop(0)

    @property
    def slots(self) -> int:
        """The number of threads."""
        return self._slots

    def submit(self, work: Slice) -> Future[SliceResult]:
        """Begin a slice, or queue it; see Executor."""
        future: Future[SliceResult] = Future()
        self._waiting.put((work, future))
        if self._threads < self._slots:
            self._threads += 1
            # Daemons: a process that has been told to stop does not wait for a call to a store.
            threading.Thread(target=self._work, name=f"task-{self._threads}", daemon=True).start()
        return future

    def check(self, rate: float | None) -> None:
        """Set the present rate, which the threads follow from their next block on."""
        self._rate = rate

    def stop(self, grace: float) -> None:  # noqa: ARG002 - a chunk takes less
        """Have each slice end where its chunk ends; see Executor."""
        self._stopping.set()

    def _work(self) -> None:
        while not self._ended.is_set():
            work, future = self._waiting.get()
            task = Task(work.rate, work.seconds, self._pace, self._stopping)
            try:
                result = run_slice(work, self._sources[work.store], self._target, task)
            except BaseException as error:  # noqa: BLE001 - the future raises it
                future.set_exception(error)
            else:
                future.set_result(result)

    def _present_rate(self) -> float | None:
        if self._ended.is_set():
            raise _EndedError
        return self._rate


class SizedExecutor:
    """An executor that takes one of two, by how much there is to move.

    Args:
        small: for few bytes.
        large: for many. It is not used before there are so many.
        is_small: tells whether they are few now. The answer changes between steps only.
    """

    def __init__(self, small: Executor, large: Executor, is_small: Callable[[], bool]) -> None:
        self._small, self._large = small, large
        self._is_small = is_small
        self._used: dict[int, Executor] = {}

    @property
    def _now(self) -> Executor:
        one = self._small if self._is_small() else self._large
        self._used[id(one)] = one
        return one

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        return self._now.slots

    def submit(self, work: Slice) -> Future[SliceResult]:
        """Begin a slice, or queue it; see Executor."""
        return self._now.submit(work)

    def check(self, rate: float | None) -> None:
        """Set the present rate; see Executor."""
        self._now.check(rate)

    def stop(self, grace: float) -> None:
        """Have tasks end soon; see Executor."""
        for one in self._used.values():
            one.stop(grace)


class _EndedError(Exception):
    """The executor's block has ended. It ends a slice midway; no one waits for its result."""
