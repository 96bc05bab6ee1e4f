"""Runs the work of many streams: rounds of slices over all, until each is done or given up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic

from sluice.core.events.digest import CHUNK
from sluice.engine.rounds.dispatch import Rounds
from sluice.engine.rounds.limits import Limits
from sluice.engine.rounds.work import P, R, Silent, StreamRun
from sluice.errors import SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.engine.rounds.executor import Executor
    from sluice.engine.rounds.slices import Slice
    from sluice.engine.rounds.work import Clock, Listener, Work


class Runner(Generic[P, R]):
    """Does what is to be done for several streams.

    Args:
        works: what, numbered by their places.
        executor: where slices run.
        limits: asked before every round.
        listener: hears of every step.
        clock: time.
        patience: seconds without progress after which a failing stream is given up; None for
            each error category's own.
        slow, unit: see Rounds.
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
        self._rounds = Rounds(executor, slow=slow, unit=unit, clock=clock)
        self._limits = limits
        self._clock = clock
        self._runs = [
            StreamRun(one, listener=listener or Silent(), clock=clock, patience=patience)
            for one in works
        ]

    def run(self) -> list[R]:
        """Run to the end.

        Returns:
            A report for each stream of the plan, in order; a stream that failed for good has its
            error in the report. Others go on.
        """
        try:
            while active := [run for run in self._runs if run.report is None]:
                self._turn(active)
        except BaseException:
            for run in self._runs:
                if run.report is None:
                    run.let_go()
            raise
        return [run.report for run in self._runs if run.report is not None]

    def _turn(self, active: list[StreamRun[P, R]]) -> None:
        """Go on with all that can be gone on with, or wait."""
        limits = self._rounds.fitted(self._limits())
        now = self._clock.monotonic()
        ready = [run for run in active if run.not_before <= now]
        if not ready:
            self._clock.sleep(min(run.not_before for run in active) - now)
            return
        slices: list[Slice] = []
        for run in ready:
            slices += run.advance(limits, self._rounds.executor(limits))
        if slices:
            self._round(slices, limits)

    def _round(self, slices: list[Slice], limits: Limits) -> None:
        """Run slices, and let each stream absorb its results."""
        chosen = self._rounds.choose(slices, limits)
        concerned = [self._runs[number] for number in sorted({work.stream for work in chosen})]
        try:
            results = self._rounds.run(chosen, limits)
        except SluiceError as error:
            for run in concerned:
                run.failed(error)
            return
        for run in concerned:
            run.absorb([one for one in results if one.slice.stream == run.copy.number])
