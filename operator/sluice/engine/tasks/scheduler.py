"""Schedule slices of many streams on an executor: which run now, where, and how fast.

Without a rate limit no slice waits for another: as soon as a slot is free the largest waiting slice
begins. With a limit slices run in waves, since only the slices that run share the rate.
"""

from __future__ import annotations

import queue
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sluice.core.events.digest import CHUNK
from sluice.core.pace.bucket import WaveBudget
from sluice.core.pace.slicing import take
from sluice.engine.tasks.executor import is_small
from sluice.errors import SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from sluice.engine.tasks.clock import Clock
    from sluice.engine.tasks.executor import Executor
    from sluice.engine.tasks.limits import Limits
    from sluice.engine.tasks.slices import Slice, SliceResult
    from sluice.engine.tasks.work import StreamRun

AHEAD: Final = 2
"""Slices that wait in the executor, so that a free slot has work at once."""

WAVE_SLICES: Final = 2
"""Slices of full size for each slot that a stream may have in a wave."""

BATCH_SLICES: Final = 64
"""The same without a rate limit. It bounds memory."""

TICK: Final = 0.25
"""Most seconds to wait for a result before the limits are asked again."""

TELL_SECONDS: Final = 2.0
"""Least seconds between two times that results of a step are returned that is not over."""

GRACE: Final = 1.0
"""Seconds that tasks may go on when all work is to end: digests of tasks that end are kept."""


def tasks_at(rate: float | None, slots: int, unit: int = CHUNK) -> int:
    """Return how many tasks run at a rate: as many as get one unit of bytes per second.

    A task can end only where a unit ends, and a new limit holds from the next task on. So a unit
    must not take a task long.

    Args:
        rate: most bytes per second of all tasks; None for no limit.
        slots: how many tasks can run at once.
        unit: bytes after which a task can end.
    """
    return slots if rate is None else max(1, min(slots, int(rate // unit)))


def is_slow(limits: Limits, unit: int = CHUNK) -> bool:
    """Tell whether the rate is too low for tasks: a unit would take too long.

    Then the driver's own process moves the bytes, where a new limit takes effect at once.
    """
    rate = limits.bytes_per_second
    return rate is not None and rate < 2 * unit


class StepResults(NamedTuple):
    """Results of the slices of a stream's step.

    Attributes:
        stream: the stream's place in the plan.
        results: the results since the last time.
        error: why some slices have no result; None if there is no such error.
        over: whether none of the step's slices is left.
    """

    stream: int
    results: list[SliceResult]
    error: SluiceError | None
    over: bool


@dataclass(slots=True)
class _Batch:
    """The slices of a stream's step."""

    waiting: list[Slice]
    told: float
    submitted: int = 0
    results: list[SliceResult] = field(default_factory=list)
    error: SluiceError | None = None

    @property
    def is_failed(self) -> bool:
        return self.error is not None or any(one.error is not None for one in self.results)


class Scheduler:
    """A scheduler of slices. One thread uses it.

    Args:
        executor: runs tasks side by side.
        slow: runs slices at a low rate, which it follows by itself; None for `executor`.
        unit: bytes after which a task can end.
        clock: time.
        wake: called by other threads whenever a slice has ended.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        slow: Executor | None = None,
        unit: int = CHUNK,
        clock: Clock = time,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._executor = executor
        self._slow = slow
        self._unit = unit
        self._clock = clock
        self._wake = wake
        self._account = WaveBudget()
        self._batches: dict[int, _Batch] = {}
        self._ended: queue.SimpleQueue[tuple[int, Future[SliceResult]]] = queue.SimpleQueue()
        self._submitted = 0
        self._limits: Limits | None = None
        self._used = executor
        self._each: float | None = None
        self._until = 0.0

    # -- limits

    def is_slow(self, limits: Limits) -> bool:
        """Tell whether the rate is too low for tasks."""
        return is_slow(limits, self._unit)

    def is_inline(self, slices: Sequence[Slice], limits: Limits) -> bool:
        """Tell whether a thread that works on one of many streams moves these bytes itself."""
        return self.is_slow(limits) or is_small(sum(work.size for work in slices), limits)

    def executor(self, limits: Limits) -> Executor:
        """Return the executor for these limits."""
        return self._slow if self._slow is not None and self.is_slow(limits) else self._executor

    def fitted(self, limits: Limits) -> Limits:
        """Return the limits with sizes of slices that fit their rate.

        A slice that copies ends when its time is over. It may have twice the bytes of a wave, to
        make up for the time between waves. A slice that verifies ends only after its bytes, so it
        gets its share of a wave.
        """
        rate = limits.bytes_per_second
        if rate is None:
            return limits
        tasks = tasks_at(rate, self.executor(limits).slots, self._unit)
        wave = int(rate * limits.slice_seconds)
        return replace(
            limits,
            slice_bytes=min(limits.slice_bytes, max(self._unit, 2 * wave)),
            verify_bytes=min(limits.slice_bytes, max(self._unit, wave // tasks // WAVE_SLICES)),
        )

    # -- slices

    @property
    def is_idle(self) -> bool:
        """Whether no stream has slices here."""
        return not self._batches

    def has(self, run: StreamRun[Any, Any]) -> bool:
        """Tell whether a stream has slices here."""
        return run.copy.number in self._batches

    def add(self, slices: Sequence[Slice], limits: Limits) -> None:
        """Take slices of one stream's step, which has none here; as many as fit.

        Args:
            slices: the slices, at least one.
            limits: the fitted limits.
        """
        each = BATCH_SLICES if limits.bytes_per_second is None else WAVE_SLICES
        most = each * self._tasks(limits) * limits.slice_bytes
        fitting = take(slices, most, lambda work: work.size)
        self._batches[slices[0].stream] = _Batch(
            sorted(fitting, key=_size, reverse=True), self._clock.monotonic()
        )

    def turn(self, limits: Limits, wait: float = TICK) -> list[StepResults]:
        """Begin as many slices as may run now, wait for a result, and return all that has ended.

        Args:
            limits: the fitted limits. If they have changed, slices that have not begun are left
                to the next look at their streams.
            wait: most seconds to wait.

        Raises:
            SparkLost: as do all errors of tasks that are not the stores'.
        """
        if not self._batches:
            return []
        self._end_wave(limits)
        if not self._submitted:
            self._begin_wave(limits)
        self._check(limits.bytes_per_second)
        self._fill()
        self._gather(wait if self._submitted and not self._is_over() else 0)
        self._fill()
        return self._collect()

    def fail(self, stream: int, error: SluiceError) -> None:
        """Begin no other slice of a stream's step: its results could not be absorbed."""
        batch = self._batches[stream]
        batch.waiting.clear()
        batch.error = batch.error or error

    def stop(self) -> list[StepResults]:
        """Have all slices end soon, wait a moment for them, and return what has ended."""
        self._limits = None
        self._drop()
        if self._submitted:
            self._used.stop(GRACE)
        end = time.monotonic() + GRACE
        while self._submitted and (left := end - time.monotonic()) > 0:
            with suppress(Exception):  # all work ends for another reason
                self._gather(left)
        return self._collect(end=True)

    def _tasks(self, limits: Limits) -> int:
        """Return how many tasks run at these limits."""
        return tasks_at(limits.bytes_per_second, self.executor(limits).slots, self._unit)

    def _begin_wave(self, limits: Limits) -> None:
        """Set the executor and the rate of the slices that begin from now on."""
        self._limits, self._used = limits, self.executor(limits)
        now, rate = self._clock.monotonic(), limits.bytes_per_second
        self._until = float("inf") if rate is None else now + limits.slice_seconds
        whole = self._account.rate(rate, now, limits.slice_seconds)
        waiting = sum(len(batch.waiting) for batch in self._batches.values())
        tasks = max(1, min(self._tasks(limits), waiting))
        self._each = None if whole is None else whole / tasks

    def _end_wave(self, limits: Limits) -> None:
        """Begin no other slice of this wave if its time is over, or the limits have changed.

        Slices that have not begun are left to the next look. They were made for the old limits, or
        would wait for the slowest slice of the wave.
        """
        if self._limits is None:
            return
        changed = limits != self._limits
        if changed or self._clock.monotonic() >= self._until:
            self._limits = None
            if changed or self._submitted:
                self._drop()

    def _drop(self) -> None:
        for batch in self._batches.values():
            batch.waiting.clear()

    def _fill(self) -> None:
        """Begin waiting slices, the largest first, as long as there are slots."""
        limits = self._limits
        if limits is None:
            return
        tasks = self._tasks(limits)
        most = tasks + AHEAD if limits.bytes_per_second is None else tasks
        while self._submitted < most:
            batch = max(self._batches.values(), key=_next_size, default=None)
            if batch is None or not batch.waiting:
                return
            self._submit(batch, batch.waiting.pop(0), limits)

    def _submit(self, batch: _Batch, work: Slice, limits: Limits) -> None:
        work = replace(work, rate=self._each, seconds=limits.slice_seconds)
        batch.submitted += 1
        self._submitted += 1
        future = self._used.submit(work)
        future.add_done_callback(partial(self._note, work.stream))

    def _note(self, stream: int, future: Future[SliceResult]) -> None:
        self._ended.put((stream, future))
        self._wake()

    def _check(self, rate: float | None) -> None:
        """Have the executor look whether its tasks can run. If not, all streams fail."""
        try:
            self._used.check(rate)
        except SluiceError as error:
            self._used.stop(0)
            for batch in self._batches.values():
                batch.waiting.clear()
                batch.error = batch.error or error

    def _gather(self, wait: float) -> None:
        """Take in the slices that have ended; wait for the first of them."""
        try:
            while True:
                stream, future = self._ended.get(timeout=wait) if wait else self._ended.get_nowait()
                wait = 0
                self._submitted -= 1
                self._take(self._batches[stream], future)
        except queue.Empty:
            pass

    def _take(self, batch: _Batch, future: Future[SliceResult]) -> None:
        batch.submitted -= 1
        try:
            result = future.result()
        except SluiceError as error:
            batch.error = batch.error or error
        else:
            batch.results.append(result)
            self._account.moved(result.moved)
            if self._each is None and self._limits is not None and not batch.is_failed:
                rest = result.slice.rest(self._limits.slice_bytes)
                if rest is not None:
                    batch.waiting.insert(0, rest)
        if batch.is_failed:
            batch.waiting.clear()

    def _is_over(self) -> bool:
        """Tell whether some step has ended already."""
        return any(not (batch.submitted or batch.waiting) for batch in self._batches.values())

    def _collect(self, *, end: bool = False) -> list[StepResults]:
        """Return steps that are over, and forget them; of others results that are old enough.

        Args:
            end: whether to return all results.
        """
        now, ended = self._clock.monotonic(), []
        for stream, batch in list(self._batches.items()):
            over = not (batch.submitted or batch.waiting)
            due = now - batch.told >= TELL_SECONDS and not batch.is_failed
            if over or (batch.results and (due or end)):
                ended.append(
                    StepResults(stream, batch.results, batch.error if over else None, over)
                )
                batch.results, batch.told = [], now
            if over:
                del self._batches[stream]
        return ended


def _size(work: Slice) -> int:
    return work.size


def _next_size(batch: _Batch) -> int:
    """Return the size of the batch's largest waiting slice; -1 if none waits."""
    return batch.waiting[0].size if batch.waiting else -1
