"""Rounds of slices at the limits that hold: where they run, how many at once, how fast."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluice.core.events.digest import CHUNK
from sluice.core.values.bucket import Account
from sluice.core.values.rounds import share_out, take
from sluice.engine.rounds.executor import is_small

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.engine.rounds.executor import Executor
    from sluice.engine.rounds.limits import Limits
    from sluice.engine.rounds.slices import Slice, SliceResult
    from sluice.engine.rounds.work import Clock

ROUND_SLICES: Final = 2
"""Slices of full size for each task of a round."""


def tasks_at(rate: float | None, slots: int, unit: int = CHUNK) -> int:
    """How many tasks a round has at a rate: as many as get a unit of bytes a second each.

    A task ends where a unit does, and a new limit holds from the next round on: so units are short.
    """
    return slots if rate is None else max(1, min(slots, int(rate // unit)))


def is_slow(limits: Limits, unit: int = CHUNK) -> bool:
    """Whether a rate is so low that it is no task's: it would take long to the end of a unit.

    Then the driver's process moves the bytes, where a new limit is seen at once, and one does.
    """
    rate = limits.bytes_per_second
    return rate is not None and rate < 2 * unit


class Rounds:
    """Runs rounds.

    Args:
        executor: where tasks run side by side.
        slow: where they run at a low rate, which keeps to the limits by itself; None for the same.
        unit: bytes after which a task can end.
        clock: time.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        slow: Executor | None = None,
        unit: int = CHUNK,
        clock: Clock = time,
    ) -> None:
        self._executor = executor
        self._slow = slow
        self._unit = unit
        self._clock = clock
        self._account = Account()

    def is_slow(self, limits: Limits) -> bool:
        """Whether no tasks run at these limits."""
        return is_slow(limits, self._unit)

    def is_inline(self, slices: Sequence[Slice], limits: Limits) -> bool:
        """Whether a thread that works on one of many streams moves these bytes itself."""
        return self.is_slow(limits) or is_small(sum(work.size for work in slices), limits)

    def executor(self, limits: Limits) -> Executor:
        """Where slices run at these limits."""
        return self._slow if self._slow is not None and self.is_slow(limits) else self._executor

    def fitted(self, limits: Limits) -> Limits:
        """The same limits, with slices that fit their rate.

        Those whose time ends them have bytes enough to make up for what was not moved before.
        """
        rate = limits.bytes_per_second
        if rate is None:
            return limits
        tasks = tasks_at(rate, self.executor(limits).slots, self._unit)
        round_ = int(rate * limits.slice_seconds)
        return replace(
            limits,
            slice_bytes=min(limits.slice_bytes, max(self._unit, 2 * round_)),
            verify_bytes=min(limits.slice_bytes, max(self._unit, round_ // tasks // ROUND_SLICES)),
        )

    def choose(self, slices: Sequence[Slice], limits: Limits) -> list[Slice]:
        """Those of the slices, in their order, that make a round."""
        tasks = tasks_at(limits.bytes_per_second, self.executor(limits).slots, self._unit)
        return take(slices, ROUND_SLICES * tasks * limits.slice_bytes, lambda work: work.size)

    def run(self, slices: Sequence[Slice], limits: Limits) -> list[SliceResult]:
        """Run slices, shared out among tasks. Raises as Executor."""
        executor, limit = self.executor(limits), limits.bytes_per_second
        tasks = tasks_at(limit, executor.slots, self._unit)
        shares = share_out(slices, tasks, lambda work: work.size)
        begun = self._clock.monotonic()
        rate = self._account.rate(limit, begun, limits.slice_seconds)
        each = None if rate is None else rate / len(shares)
        timed = [
            [replace(work, rate=each, seconds=limits.slice_seconds) for work in share]
            for share in shares
        ]
        results = executor.run(timed)
        self._account.moved(sum(result.moved for result in results))
        return results
