"""Run the work of many streams side by side, until each stream is done or given up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic

from sluice.core.events.digest import CHUNK
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.scheduler import Scheduler
from sluice.engine.tasks.work import P, R, Silent, StreamRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.engine.tasks.clock import Clock
    from sluice.engine.tasks.executor import Executor
    from sluice.engine.tasks.scheduler import StepResults
    from sluice.engine.tasks.work import Listener, Work


class Runner(Generic[P, R]):
    """A runner of the work of several streams.

    Args:
        works: the work of each stream; each one's `number` is its place.
        executor: runs slices.
        limits: returns the present limits; called every TICK seconds and
            whenever a slice has ended.
        listener: called at every step and retry.
        clock: time.
        patience: seconds without progress after which a failing stream is given up; None for
            each error category's own.
        slow, unit: see Scheduler.
    """

    def __init__(
        self,
        works: Sequence[Work[P, R]],
        *,
        executor: Executor,
        limits: Callable[[], Limits] = Limits,
        listener: Listener | None = None,
        clock: Clock = time,
        patience: float | None = None,
        slow: Executor | None = None,
        unit: int = CHUNK,
    ) -> None:
        self._scheduler = Scheduler(executor, slow=slow, unit=unit, clock=clock)
        self._limits = limits
        self._clock = clock
        self._runs = [
            StreamRun(one, listener=listener or Silent(), clock=clock, patience=patience)
            for one in works
        ]

    def run(self) -> list[R]:
        """Run until each stream is done or has failed for good.

        Returns:
            A report for each stream of the plan, in order. The report of a failed stream has its
            error; the other streams go on.
        """
        try:
            while any(run.report is None for run in self._runs):
                self._turn()
        except BaseException:
            self._absorb(self._scheduler.stop())
            for run in self._runs:
                if run.report is None:
                    run.let_go()
            raise
        return [run.report for run in self._runs if run.report is not None]

    def _turn(self) -> None:
        """Advance all streams that wait for nothing, and take in what tasks have done.

        If all streams wait for their next try, sleep until the first is due.
        """
        limits = self._scheduler.fitted(self._limits())
        now = self._clock.monotonic()
        idle = [one for one in self._runs if one.report is None and not self._scheduler.has(one)]
        for run in idle:
            if run.not_before <= now:
                slices = run.advance(limits, self._scheduler.executor(limits))
                if slices:
                    self._scheduler.add(slices, limits)
        if not self._scheduler.is_idle:
            self._absorb(self._scheduler.turn(limits))
        elif idle and (due := min(one.not_before for one in idle)) > now:
            self._clock.sleep(due - now)

    def _absorb(self, ended: Sequence[StepResults]) -> None:
        """Give each stream the results of its slices."""
        for one in ended:
            run = self._runs[one.stream]
            if one.over:
                run.absorb(one.results, one.error)
            elif (error := run.take(one.results)) is not None:
                self._scheduler.fail(one.stream, error)
