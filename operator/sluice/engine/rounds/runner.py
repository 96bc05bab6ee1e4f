"""Run the work of many streams in shared rounds, until each stream is done or given up."""

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
    """A runner of the work of several streams.

    Args:
        works: the work of each stream; each one's `number` is its place.
        executor: runs slices.
        limits: returns the present limits; called before every round.
        listener: called at every step and retry.
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
        """Run until each stream is done or has failed for good.

        Returns:
            A report for each stream of the plan, in order. The report of a failed stream has its
            error; the other streams go on.
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
        """Advance all streams that are not waiting. If all are, sleep until the first is due."""
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
        """Run a round of slices, and give each stream its results."""
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
