"""Runs a whole plan: rounds of slices over all its streams, until each is done or given up."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from sluice.core.retry import Patience
from sluice.core.rounds import share_out, take
from sluice.core.steps import Done, Transfer, Verify
from sluice.engine.abort import abort
from sluice.engine.planning import check_plan
from sluice.engine.report import StreamReport
from sluice.engine.stream import Limits, StreamCopy
from sluice.errors import (
    UNDECIDED,
    Category,
    ConditionFailed,
    CopyAborted,
    NoSuchSegment,
    SegmentSealed,
    SegmentTruncated,
    SluiceError,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.plan import Plan
    from sluice.core.steps import Step
    from sluice.engine.executor import Executor
    from sluice.engine.slices import Slice, SliceResult
    from sluice.stores.base import Store

MOVED_ON = (NoSuchSegment, SegmentSealed, SegmentTruncated, ConditionFailed)
"""Refusals that mean the world is not as it was observed: looking again says how it is."""

CLEANED = (Category.SPEC, Category.INTEGRITY)
"""Failures of these categories take their staging and their unpublished target with them."""

KEPT = (CopyAborted, *UNDECIDED)
"""Failures that leave all as it is: there is nothing any more, or a person has to decide first."""

ROUND_SLICES = 2
"""Slices of full size for each slot in a round."""


R = TypeVar("R")


class Clock(Protocol):
    """Time, so that tests can own it."""

    def monotonic(self) -> float:
        """Seconds since some moment."""
        ...

    def sleep(self, seconds: float, /) -> None:
        """Wait."""
        ...


class Listener(Protocol):
    """Hears what a copy does. Called from the copy's thread."""

    def step(self, copy: StreamCopy, step: Step) -> None:
        """A step begins."""

    def retry(self, copy: StreamCopy, error: SluiceError, delay: float) -> None:
        """A step failed and is tried again after `delay` seconds."""


class Silent:
    """A listener that does not care."""

    def step(self, copy: StreamCopy, step: Step) -> None:
        """See Listener."""

    def retry(self, copy: StreamCopy, error: SluiceError, delay: float) -> None:
        """See Listener."""


@dataclass(slots=True)
class _Run:
    """A stream's copy within this run."""

    copy: StreamCopy
    patience: Patience
    not_before: float = 0.0
    surprises: int = 0
    last: Step | None = None
    repeats: int = 0
    began: bool = False
    pending: Transfer | Verify | None = None
    report: StreamReport | None = None


class CopyRunner:
    """Runs a plan's copies.

    Args:
        plan: what to copy.
        sources: the stores to read from, as the plan numbers them.
        target: the store to write to.
        executor: where slices run.
        limits: asked before every round.
        listener: hears of every step.
        clock: time.
        patience: seconds without progress after which a failing stream is given up; None for
            each error category's own.
        keep_sources: whether the sources of moves are not deleted.
    """

    MOST_SURPRISES = 5
    MOST_REPEATS = 3

    def __init__(
        self,
        plan: Plan,
        *,
        sources: Sequence[Store],
        target: Store,
        executor: Executor,
        limits: Callable[[], Limits] = Limits,
        listener: Listener | None = None,
        clock: Clock = time,
        patience: float | None = None,
        keep_sources: bool = False,
    ) -> None:
        self._target = target
        self._executor = executor
        self._limits = limits
        self._listener = listener or Silent()
        self._clock = clock
        self._runs = [
            _Run(StreamCopy(stream, number, sources, target, keep=keep_sources), Patience(patience))
            for number, stream in enumerate(plan.streams)
        ]

    def run(self) -> list[StreamReport]:
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
                    self._let_go(run)
            raise
        return [run.report for run in self._runs if run.report is not None]

    def _turn(self, active: list[_Run]) -> None:
        """Go on with all that can be gone on with, or wait."""
        limits = self._limits()
        now = self._clock.monotonic()
        ready = [run for run in active if run.not_before <= now]
        if not ready:
            self._clock.sleep(min(run.not_before for run in active) - now)
            return
        slices: list[Slice] = []
        for run in ready:
            slices += self._guarded(run, partial(self._advance, run, limits)) or []
        if slices:
            self._round(slices, limits)

    def _advance(self, run: _Run, limits: Limits) -> list[Slice]:
        """Do a stream's steps up to the next that moves bytes; its slices, none at the end."""
        copy = run.copy
        if not run.began:
            self._begin(run)
        while run.report is None:
            step = copy.look()
            self._listener.step(copy, step)
            run.repeats = run.repeats + 1 if step == run.last else 0
            run.last = step
            if isinstance(step, Done):
                run.report = copy.finished(step.digest)
            elif isinstance(step, Transfer | Verify):
                run.pending = step
                slices = copy.slices(step, limits, self._executor.slots)
                if slices:
                    return slices
                copy.absorb(step, [])
            else:
                if run.repeats > self.MOST_REPEATS:
                    raise StoreUnavailable(f"{type(step).__name__} was done and shows no effect")
                copy.perform(step)
                if not run.repeats:
                    run.patience.advanced()
        return []

    def _begin(self, run: _Run) -> None:
        """Take up the copy: refuse a target that is not ours, and make sure of the plan."""
        copy = run.copy
        digest = check_plan(copy.plan, self._target)
        if digest is None:
            copy.plan = copy.ledger.begin(copy.plan)
        run.began = True

    def _round(self, slices: list[Slice], limits: Limits) -> None:
        """Run slices, and let each stream absorb its results."""
        most = ROUND_SLICES * self._executor.slots * limits.slice_bytes
        chosen = take(slices, most, lambda work: work.size)
        concerned = [self._runs[number] for number in sorted({work.stream for work in chosen})]
        tasks = share_out(chosen, self._executor.slots, lambda work: work.size)
        results: list[SliceResult] = []
        try:
            results = self._executor.run(tasks)
        except SluiceError as error:
            for run in concerned:
                self._failed(run, error)
            return
        for run in concerned:
            own = [result for result in results if result.slice.stream == run.copy.number]
            self._guarded(run, partial(self._absorb, run, own))

    def _absorb(self, run: _Run, results: list[SliceResult]) -> None:
        """Take in a round's results; the first error of a slice counts as the stream's."""
        step, run.pending = run.pending, None
        if step is not None:
            run.copy.absorb(step, results)
        if any(result.moved for result in results):
            run.patience.advanced()
        error = next((result.error for result in results if result.error is not None), None)
        if error is not None:
            raise error
        run.surprises = 0

    def _guarded(self, run: _Run, action: Callable[[], R]) -> R | None:
        """Do something for one stream; its errors are that stream's alone."""
        try:
            return action()
        except MOVED_ON as error:
            run.surprises += 1
            if run.surprises > self.MOST_SURPRISES:
                self._failed(run, error)
        except SluiceError as error:
            self._failed(run, error)
        return None

    def _failed(self, run: _Run, error: SluiceError) -> None:
        """Try again later, or give the stream up."""
        now = self._clock.monotonic()
        delay = run.patience.delay(error, now)
        if delay is None:
            run.report = self._given_up(run, error)
        else:
            run.not_before = now + delay
            self._listener.retry(run.copy, error, delay)

    def _given_up(self, run: _Run, error: SluiceError) -> StreamReport:
        """The report of a copy that failed for good.

        What only a person can mend (the spec, the data) leaves nothing behind. What may pass (a
        store that is down, a wrong password) keeps what is staged, so that the copy goes on.
        """
        plan = run.copy.plan
        cleaned = False
        if run.began and error.category in CLEANED and not isinstance(error, KEPT):
            try:
                abort(plan.copy_id, plan.target, self._target)
                cleaned = True
            except SluiceError as further:
                error.add_note(f"cleaning up failed as well: {further}")
        if not cleaned:
            self._let_go(run)
        return StreamReport.failed(plan, error, cleaned=cleaned)

    def _let_go(self, run: _Run) -> None:
        """Leave nothing changed in a target that is somebody's; the next driver tries it too."""
        if run.began:
            with suppress(SluiceError):
                run.copy.let_go()
