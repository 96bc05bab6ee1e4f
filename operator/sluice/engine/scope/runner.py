"""Runs the plan of a scope: many streams at once, the small ones without an executor.

Workers, threads of this process, do the streams' steps. What a step moves is moved by the worker
itself if it is little; else the stream waits for a round, which the main thread runs, as only that
one may talk to the executor. What came of each stream is written down in the scope's log.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from sluice.core.scope.scope import StreamState
from sluice.core.values.retry import Patience
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.scope_log import ScopeState
from sluice.engine.rounds.dispatch import Rounds
from sluice.engine.rounds.limits import Limits
from sluice.engine.rounds.throttle import RateLimiter
from sluice.engine.rounds.work import StreamRun
from sluice.engine.scope.listener import SilentScope
from sluice.engine.scope.moving import delete_source_scope
from sluice.engine.scope.object_log import log_of
from sluice.engine.scope.queue import CalledOff, Halted, Halting, StreamQueue
from sluice.engine.scope.report import ScopeReport, may_pass, result_of
from sluice.engine.scope.streams import ScopeStreams
from sluice.errors import CopyAborted, NoSuchSegment, SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.scope.scope import StreamResult
    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.rounds.executor import Executor
    from sluice.engine.rounds.slices import Slice, SliceResult
    from sluice.engine.rounds.work import Clock, CopyRun
    from sluice.engine.scope.listener import ScopeListener

POLL: Final = 0.5
"""Seconds after which limits are asked again while there is no round."""

ENDING_SECONDS: Final = 10.0
"""How long workers may take to end their step when all is to end."""

_GONE = (NoSuchSegment, CopyAborted)
"""Somebody has ended the copy, or aborted it: each stream sees by itself which."""

R = TypeVar("R")


class ScopeRunner:
    """Runs a scope's copy.

    Args:
        plan: what to copy; another one takes its place if that is the one written down.
        sources: what is read, as the plan numbers it.
        target: what is written to.
        executor: where large slices run. Used by the calling thread only, and not before it has
            something to run.
        limits: asked by the calling thread, before every round and every POLL seconds.
        listener: hears of every step and of every stream that ends.
        clock: time.
        patience: see CopyRunner; of each stream.
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
        self._log = log_of(target, plan.scope.scope_id, plan.scope.target)
        self._streams = ScopeStreams(plan, sources, target, clock)
        self._queue = StreamQueue((), self._begin, clock)
        self._pace = RateLimiter(self._rate, clock)
        self._rounds = Rounds(executor, unit=self._streams.unit, clock=clock)
        self._threads: list[threading.Thread] = []
        self._outcomes: dict[int, Sequence[SliceResult] | SluiceError] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        # With the lock:
        self._results: dict[int, StreamResult] = {}
        self._unwritten: dict[int, StreamResult] = {}
        self._given_up: dict[int, Trouble] = {}
        self._failed = False
        self._in_a_row = 0
        self._hurried = False

    def run(self) -> ScopeReport:
        """Run until each stream has ended, or nothing more can be done now.

        Returns:
            What came of each stream, and why it is not over if it is not.

        Raises:
            SparkLost, Terminated: and whatever else is no error of the copy. All streams are left
                as the next driver finds them.
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
        """Make sure of scope and plan; what is written down already is not done again."""
        if self._scope.make_scope and self._plan.items:
            self._patiently(self._streams.make_scope)
        recorded = self._patiently(lambda: self._log.begin(self._plan))
        self._plan = recorded.placed(self._plan)
        self._scope = recorded.scope
        state = self._log.loaded
        if state is not None:
            self._results.update(state.results)
        ended = (*self._results.values(), *self._scope.settled)
        self._failed = any(result.state is StreamState.FAILED for result in ended)
        left = self._left()
        if (state is not None and state.stopped) or (self._failed and self._limits.stop_at_failure):
            left = []
        self._streams = ScopeStreams(self._plan, self._sources, self._target, self._clock)
        self._patiently(lambda: self._streams.hold(left))
        self._queue = StreamQueue(left, self._begin, self._clock)

    def _supervise(self) -> None:
        """Let workers work, and run rounds, until nothing is left to do."""
        while True:
            self._limits = self._ask()
            self._queue.allow(self._limits.parallelism)
            self._hire()
            self._streams.hold_on(self._queue.waiting)
            runs = self._queue.collect(POLL)
            if runs is None:
                self._dismiss()
                return
            if runs:
                self._limits = self._ask()
                self._round(runs)

    def _left(self) -> list[int]:
        """The places of the streams without a result."""
        return [place for place in range(len(self._plan.items)) if place not in self._results]

    def _hire(self) -> None:
        """Have as many workers as there may be streams in work."""
        wanted = min(self._limits.parallelism, len(self._plan.items))
        while len(self._threads) < wanted:
            number = len(self._threads) + 1
            worker = threading.Thread(target=self._work, name=f"stream-{number}", daemon=True)
            worker.start()
            self._threads.append(worker)

    def _round(self, runs: list[CopyRun]) -> None:
        """Run slices of these streams, and give those to the workers of which there were some."""
        limits = self._rounds.fitted(self._limits)
        if self._rounds.is_slow(limits):
            self._queue.put_all(runs)  # their workers move the bytes
            return
        slices = [one for run in runs for one in run.slices(limits, self._rounds.executor(limits))]
        chosen = self._rounds.choose(slices, limits)
        concerned = {work.stream for work in chosen}
        for run in runs:
            if run.copy.number not in concerned:
                self._queue.want_round(run)
        error: SluiceError | None = None
        results: list[SliceResult] = []
        try:
            results = self._rounds.run(chosen, limits)
        except SluiceError as raised:
            error = raised
        for run in runs:
            if run.copy.number in concerned:
                own = [one for one in results if one.slice.stream == run.copy.number]
                self._outcomes[run.copy.number] = error or own
                self._queue.put(run)

    def _let_go(self) -> None:
        """Let workers end, and leave nothing changed in targets that are somebody's."""
        self._queue.halt()
        self._dismiss()
        for run in self._queue.left():
            run.let_go()

    def _dismiss(self) -> None:
        """Wait until workers have ended; one that takes too long is left alone."""
        end = time.monotonic() + ENDING_SECONDS
        for worker in self._threads:
            worker.join(max(0.0, end - time.monotonic()))

    def _finish(self, trouble: Trouble | None) -> ScopeReport:
        """Write down the end, delete the source's scope after a move, and report."""
        trouble = trouble or next(iter(self._given_up.values()), None)
        kept: str | None = None
        try:
            self._patiently(self._write)
            stopped = trouble is None and len(self._results) < len(self._plan.items)
            if stopped:
                self._patiently(self._write_stopped)
                self._streams.release(self._left())
                trouble = self._why_stopped()
            if trouble is None and self._scope.move and self._is_whole():
                source = self._sources[0]
                kept = self._patiently(lambda: delete_source_scope(self._plan, source))
        except SluiceError as error:
            stopped, trouble = False, trouble or Trouble.of(error)
        return ScopeReport(
            plan=self._plan, results=self._all(stopped=stopped), trouble=trouble, kept=kept
        )

    def _all(self, *, stopped: bool) -> tuple[StreamResult, ...]:
        """The results of all streams; of those that were given up for now it is said why."""
        written = self._log.loaded
        if written is not None and written.run == self._scope.run:
            self._results.update(written.results)
        streams = ScopeState(self._plan, self._results, stopped).streams
        return tuple(
            result.model_copy(update={"trouble": self._given_up[place]})
            if place in self._given_up and result.state is StreamState.PLANNED
            else result
            for place, result in enumerate(streams)
        )

    def _why_stopped(self) -> Trouble | None:
        """Why streams were not begun, unless it was for one that has failed."""
        if any(one.state is StreamState.FAILED for one in self._all(stopped=True)):
            return None
        error = CopyAborted(f"the copy of scope {self._scope.source} was aborted while it ran")
        return Trouble.of(error)

    def _is_whole(self) -> bool:
        """Whether every stream is copied."""
        return all(one.state is StreamState.COPIED for one in self._all(stopped=False))

    def _patiently(self, action: Callable[[], R]) -> R:
        """Do something for the whole; a store that is away is waited for."""
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
        return StreamRun(
            self._streams.undertaking(place),
            listener=Halting(self._listener, self._queue),
            clock=self._clock,
            patience=0.0 if self._hurried else self._patience,
            late=True,
            permit=self._permit,
        )

    def _permit(self) -> None:
        """Let no stream be begun of a copy that was ended meanwhile.

        Raises:
            CalledOff: another driver has stopped it, or somebody is about to abort it.
            CopyAborted: it was aborted.
        """
        state = self._log.load()
        if state is None:
            raise CopyAborted(f"the copy of scope {self._scope.source} was aborted while it ran")
        if state.stopped or state.run != self._scope.run:
            raise CalledOff

    def _work(self) -> None:
        """What a worker does: one stream after the other."""
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
        """Do a stream's steps until it has ended, waits, or needs a round."""
        before = run.moves
        outcome = self._outcomes.pop(run.copy.number, None)
        if isinstance(outcome, SluiceError):
            run.failed(outcome)
        elif outcome is not None:
            run.absorb(outcome)
        slices: list[Slice] = []
        while run.report is None and run.not_before <= self._clock.monotonic():
            limits = self._limits
            inline = self._streams.inline(run.copy, limits.parallelism, self._pace)
            slices = run.advance(limits, inline)
            if slices and not self._rounds.is_inline(slices, limits):
                break
            if slices:
                run.absorb(inline.run([slices]))
                slices = []
        if run.moves > before:
            with self._lock:
                self._in_a_row = 0
        if run.report is not None:
            self._ended(run.copy.number, result_of(run.copy.plan, run.report))
        if slices:
            self._queue.want_round(run)
        else:
            self._queue.put(run)

    def _rate(self) -> int | None:
        """What all workers together may move in a second; raises if they are to end."""
        self._queue.check()
        return self._limits.bytes_per_second

    def _ended(self, place: int, result: StreamResult) -> None:
        """Take in what came of a stream."""
        with self._lock:
            if result.trouble is not None and may_pass(result.trouble):
                self._given_up[place] = result.trouble
                self._in_a_row += 1
            else:
                self._results[place] = self._unwritten[place] = result
                self._in_a_row = 0
                self._failed = self._failed or result.state is StreamState.FAILED
            many = self._in_a_row >= self._limits.parallelism
            if many:
                self._in_a_row = 0
            if self._failed and self._limits.stop_at_failure:
                self._queue.close()
        if place in self._results:
            self._streams.release([place])
        if many:
            self._end_or_hurry()
        self._listener.ended(result)
        try:
            self._write()
        except SluiceError as error:
            if not error.retryable:
                raise

    def _end_or_hurry(self) -> None:
        """Begin no other stream if a store is away, for it would try the patience of all.

        If both answer, only these streams cannot be copied now, and they are always the first ones:
        the others have their turn, each for a moment, else they would not have one in any attempt.
        """
        try:
            self._streams.probe()
        except SluiceError:
            self._queue.close()
        self._hurried = True

    def _write(self) -> None:
        """Write down what is not written down; what came meanwhile goes with the next record."""
        with self._writing:
            with self._lock:
                results = dict(self._unwritten)
            if not results:
                return
            with suppress(*_GONE):
                self._log.ended(results)
            with self._lock:
                for place in results:
                    del self._unwritten[place]

    def _write_stopped(self) -> None:
        with suppress(*_GONE):
            self._log.stopped()
