"""Run rounds of slices within the limits: decide where, how many at once, and how fast."""

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
    """Return how many tasks a round has at a rate: as many as get one unit of bytes per second.

    A task can end only where a unit ends, and a new limit holds from the next round on. So a unit
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


class Rounds:
    """A runner of rounds.

    Args:
        executor: runs tasks side by side.
        slow: runs slices at a low rate, and follows the limits by itself; None for `executor`.
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

        A slice that copies ends when its time is over. It may have twice the bytes of a round, to
        make up for the time between rounds. A slice that verifies ends only after its bytes, so it
        gets its share of a round.
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
        """Return the first of the slices, as many as make a round."""
        tasks = tasks_at(limits.bytes_per_second, self.executor(limits).slots, self._unit)
        return take(slices, ROUND_SLICES * tasks * limits.slice_bytes, lambda work: work.size)

    def run(self, slices: Sequence[Slice], limits: Limits) -> list[SliceResult]:
        """Share slices out among tasks, and run them. Raises what `Executor.run` raises."""
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
