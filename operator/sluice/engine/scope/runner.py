"""Run the plan of a scope: many streams at once, the small ones without an executor.

Workers, which are threads of this process, do the streams' steps. A worker moves few bytes itself.
With more bytes it hands the stream over to the main thread, which has the slices run as tasks. The
result of each stream is recorded in the scope's log.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sluice.core.pace.retry import Patience
from sluice.core.scope.scope import StreamState
from sluice.core.values.trouble import Trouble
from sluice.engine.scope.listener import SilentScope
from sluice.engine.scope.moving import delete_source_scope
from sluice.engine.scope.object_log import log_of
from sluice.engine.scope.queue import CalledOff, Halted, Halting, StreamQueue
from sluice.engine.scope.report import ScopeReport, result_of
from sluice.engine.scope.results import Results
from sluice.engine.scope.streams import ScopeStreams
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.scheduler import TICK, Scheduler
from sluice.engine.tasks.throttle import RateLimiter
from sluice.engine.tasks.work import StreamRun
from sluice.errors import CopyAborted, SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.scope.scope import StreamResult
    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.scope.listener import ScopeListener
    from sluice.engine.tasks.clock import Clock
    from sluice.engine.tasks.executor import Executor
    from sluice.engine.tasks.scheduler import StepResults
    from sluice.engine.tasks.slices import Slice
    from sluice.engine.tasks.work import CopyRun, Listener, Work

POLL: Final = 0.5
"""Seconds after which the limits are read again while no task runs."""

ENDING_SECONDS: Final = 10.0
"""Seconds that workers may take to end their step when all work is to end."""

R = TypeVar("R")


class ScopeRunner:
    """A runner for a scope's copy.

    Args:
        plan: what to copy. A plan that is already recorded in the log replaces it.
        sources: the places to read from, as the plan numbers them.
        target: the place to write to.
        executor: runs large slices. Only the calling thread uses it, and only once there is
            something to run.
        limits: gives the limits; called by the calling thread every POLL seconds, or oftener.
        listener: hears of every step and of every stream that ends.
        clock: time.
        patience: see Runner; it counts for each stream.
    """

    def __init__(
        self,
        plan: ScopeCopyPlan,
        *,
        sources: Sequence[Place],
        target: Place,
        executor: Executor,
        limits: Callable[[], Limits] = Limits,
        listener: ScopeListener | None = None,
        clock: Clock = time,
        patience: float | None = None,
    ) -> None:
        self._plan = plan
        self._scope = plan.scope
        self._sources = sources
        self._target = target
        self._ask = limits
        self._listener = listener or SilentScope()
        self._clock = clock
        self._patience = patience
        self._limits = Limits()
        self._log = log_of(target, plan.scope.scope_id, plan.scope)
        self._streams = ScopeStreams(plan, sources, target, clock)
        self._queue = StreamQueue((), self._begin, clock)
        self._pace = RateLimiter(self._rate, clock)
        self._scheduler = Scheduler(executor, unit=self._streams.unit, clock=clock, wake=self._wake)
        self._threads: list[threading.Thread] = []
        self._large: dict[int, CopyRun] = {}  # whose slices the scheduler has
        self._step_results: dict[int, StepResults] = {}
        self._results = Results(plan, self._log)
        self._hurried = False

    def run(self) -> ScopeReport:
        """Run until each stream has ended, or nothing more can be done now.

        Returns:
            The result of each stream, and why the copy is not over if it is not.

        Raises:
            SparkLost, Terminated: as do all errors that are not the copy's. All streams are left in
                a state that the next driver can go on with.
        """
        trouble: Trouble | None = None
        try:
            self._start()
            self._supervise()
        except SluiceError as error:
            self._let_go()
            trouble = Trouble.of(error)
        except BaseException:
            self._let_go()
            raise
        return self._finish(trouble)

    # -- the calling thread

    def _start(self) -> None:
        """Make the target's scope, record the plan, and queue the streams without a result."""
        if self._scope.make_scope and self._plan.items:
            self._patiently(self._streams.make_scope)
        recorded = self._patiently(lambda: self._log.begin(self._plan))
        self._plan = recorded.placed(self._plan)
        self._scope = recorded.scope
        state = self._log.loaded
        self._results = Results(self._plan, self._log)
        left = self._results.left
        if (state is not None and state.stopped) or self._is_stopped_by_failure():
            left = []
        self._streams = ScopeStreams(self._plan, self._sources, self._target, self._clock)
        self._patiently(lambda: self._streams.hold(left))
        self._queue = self._queued(left)

    def _queued(self, places: Sequence[int]) -> StreamQueue:
        """Return the queue of the streams at these places."""
        return StreamQueue(places, self._begin, self._clock)

    def _supervise(self) -> None:
        """Keep workers and tasks busy until nothing is left to do."""
        while True:
            self._limits = self._ask()
            self._queue.allow(self._limits.parallelism)
            self._hire()
            self._streams.hold_on(self._queue.waiting)
            runs = self._queue.collect(POLL if self._scheduler.is_idle else TICK)
            if runs is None:
                self._dismiss()
                return
            if runs or not self._scheduler.is_idle:
                self._limits = self._ask()
                self._schedule(runs)

    def _hire(self) -> None:
        """Start as many workers as there may be streams in work."""
        while len(self._threads) < self._wanted:
            number = len(self._threads) + 1
            worker = threading.Thread(target=self._work, name=f"stream-{number}", daemon=True)
            worker.start()
            self._threads.append(worker)

    @property
    def _wanted(self) -> int:
        """How many workers there may be."""
        return min(self._limits.parallelism, len(self._plan.items))

    def _schedule(self, runs: list[CopyRun]) -> None:
        """Have slices of these streams run, and give streams back whose slices have ended."""
        if not self._scheduler.is_slow(self._limits):
            limits = self._scheduler.fitted(self._limits)
            for run in runs:
                slices = run.slices(limits, self._scheduler.executor(limits))
                if slices:
                    self._large[run.copy.number] = run
                    self._scheduler.add(slices, limits)
                else:
                    self._queue.put(run)
        else:
            limits = self._limits
            for run in runs:
                self._queue.put(run)  # a worker moves the bytes
        for one in self._scheduler.turn(limits, wait=0):
            run = self._large[one.stream]
            if one.over:
                self._step_results[one.stream] = one
                self._queue.put(self._large.pop(one.stream))
            elif (error := run.take(one.results)) is not None:
                self._scheduler.fail(one.stream, error)

    def _wake(self) -> None:
        """Have the calling thread see that a task has ended."""
        self._queue.wake()

    def _let_go(self) -> None:
        """End the workers. Have unfinished streams release their leases and what they changed."""
        self._queue.halt()
        for one in self._scheduler.stop():
            self._large[one.stream].take(one.results)
        self._dismiss()
        for run in self._queue.left():
            run.let_go()

    def _dismiss(self) -> None:
        """Wait until the workers have ended, but not for workers that take too long."""
        end = time.monotonic() + ENDING_SECONDS
        for worker in self._threads:
            worker.join(max(0.0, end - time.monotonic()))

    def _finish(self, trouble: Trouble | None) -> ScopeReport:
        """Record the end, delete the source's scope after a move, and return the report."""
        trouble = trouble or self._results.trouble
        kept: str | None = None
        try:
            self._patiently(self._results.write)
            left = self._results.left
            stopped = trouble is None and bool(left)
            if stopped:
                self._patiently(self._results.write_stopped)
                self._streams.release(left)
                trouble = self._why_stopped()
            if trouble is None and self._scope.move and self._results.is_whole:
                source = self._sources[0]
                kept = self._patiently(lambda: delete_source_scope(self._plan, source))
        except SluiceError as error:
            stopped, trouble = False, trouble or Trouble.of(error)
        return ScopeReport(
            plan=self._plan, results=self._results.all(stopped=stopped), trouble=trouble, kept=kept
        )

    def _why_stopped(self) -> Trouble | None:
        """Return why streams were not begun; None if the failure of a stream was the reason."""
        failed = any(one.state is StreamState.FAILED for one in self._results.all(stopped=True))
        if failed and self._scope.following is None:
            return None
        error = CopyAborted(f"the copy of scope {self._scope.source} was aborted while it ran")
        return Trouble.of(error)

    def _patiently(self, action: Callable[[], R]) -> R:
        """Do a call for the whole copy, and repeat it for a while if a store is away."""
        patience = Patience(self._patience)
        while True:
            self._limits = self._ask()
            try:
                return action()
            except SluiceError as error:
                delay = patience.delay(error, self._clock.monotonic())
                if delay is None:
                    raise
            self._clock.sleep(delay)

    # -- workers

    def _begin(self, place: int) -> CopyRun:
        return self._run_of(self._streams.undertaking(place), Halting(self._listener, self._queue))

    def _run_of(self, work: Work[Any, Any], listener: Listener) -> CopyRun:
        return StreamRun(
            work,
            listener=listener,
            clock=self._clock,
            patience=0.0 if self._hurried else self._patience,
            permit=self._permit,
        )

    def _permit(self) -> None:
        """Raise if no stream may be begun any more, since the copy was ended meanwhile.

        Raises:
            CalledOff: another driver stopped the copy, or an abort of it has begun.
            CopyAborted: the copy was aborted, or the log is lost.
            TargetLost: the store has lost what was there.
        """
        state = self._log.load()
        if state is None:
            raise self._streams.without_log()
        if state.stopped or state.run != self._scope.run:
            raise CalledOff

    def _work(self) -> None:
        """Do the steps of one stream after the other, as a worker."""
        run: CopyRun | None = None
        try:
            while (run := self._queue.take()) is not None:
                try:
                    self._go_on(run)
                except CalledOff:
                    self._queue.call_off(run)
        except Halted:
            self._queue.drop(run)
        except BaseException as error:  # noqa: BLE001 - the calling thread raises it
            self._queue.drop(run, error)

    def _go_on(self, run: CopyRun) -> None:
        """Do a stream's steps until it has ended, waits, or needs tasks."""
        before = run.moves
        ended = self._step_results.pop(run.copy.number, None)
        if ended is not None:
            run.absorb(ended.results, ended.error)
        slices: list[Slice] = []
        while run.report is None and run.not_before <= self._clock.monotonic():
            limits = self._limits
            inline = self._streams.inline(run.copy, limits.parallelism, self._pace)
            slices = run.advance(limits, inline)
            if slices and not self._scheduler.is_inline(slices, limits):
                break
            if slices:
                run.absorb(inline.run(slices))
                slices = []
        if run.moves > before:
            self._results.moved()
        if run.report is not None:
            self._ended(run.copy.number, result_of(run.copy.plan, run.report))
        if slices:
            self._queue.hand_over(run)
        else:
            self._queue.put(run)

    def _rate(self) -> int | None:
        """Return how many bytes all workers together may move in a second; None for no limit.

        Raises:
            Halted: all work is to end. Workers that wait for their share call this again and again.
        """
        self._queue.check()
        return self._limits.bytes_per_second

    def _ended(self, place: int, result: StreamResult) -> None:
        """Take in the result of a stream."""
        final = self._results.add(place, result)
        if self._is_stopped_by_failure():
            self._queue.close()
        if final:
            self._streams.release([place])
        if self._results.gave_up(self._limits.parallelism):
            self._end_or_hurry()
        self._listener.ended(result)
        try:
            self._results.write()
        except SluiceError as error:
            if not error.retryable:
                raise

    def _is_stopped_by_failure(self) -> bool:
        """Tell whether no other stream is to be begun, since one has failed.

        Where streams are followed, one never ends the others.
        """
        stops = self._limits.stop_at_failure and self._scope.following is None
        return stops and self._results.has_failed

    def _end_or_hurry(self) -> None:
        """Begin no other stream if a store is away. Otherwise begin the others with no patience.

        If a store is away, each further stream would only wait until its patience ends. If all
        stores answer, only these streams cannot be copied now. They come first in every attempt.
        So the others are begun, but none is tried again, or they would have no turn in any attempt.
        """
        try:
            self._streams.probe()
        except SluiceError:
            self._queue.close()
        self._hurried = True
