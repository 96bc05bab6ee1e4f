"""Run the plan of a scope whose streams are followed, and take in those that it gets later.

Each stream is copied as any, and then followed, by the same few threads. One more thread looks
after streams that are parked, lists the scope, and passes on how the copy is to end.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from sluice.core.copy.plan import StreamPlan
from sluice.core.follow.ending import is_time
from sluice.core.values.wish import Wish
from sluice.engine.access.source_runs import live, writable
from sluice.engine.follow.watch import wall_clock
from sluice.engine.follow.work import FollowWork
from sluice.engine.scope.following.joining import Joiner
from sluice.engine.scope.following.parking import Parking
from sluice.engine.scope.following.queue import FollowQueue
from sluice.engine.scope.following.turns import PACE, LookPace, Rested, Turns
from sluice.engine.scope.runner import ENDING_SECONDS, ScopeRunner
from sluice.errors import InvalidSpec, SluiceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.scope.scope import StreamResult
    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.core.workloads.scope_log import ScopeState
    from sluice.engine.access.source_runs import Place
    from sluice.engine.scope.queue import StreamQueue
    from sluice.engine.tasks.clock import Clock
    from sluice.engine.tasks.limits import Limits
    from sluice.engine.tasks.work import CopyRun, Work

WORKERS: Final = 32
"""Threads that follow streams. A stream whose store hangs takes one until the call has failed."""

AHEAD: Final = 2 << 20
"""Bytes that one stream asks for ahead, at most."""

ASKED: Final = 1000
"""Segments of parked streams that are asked about in a second, at most."""


_log = structlog.get_logger()


class FollowRunner(ScopeRunner):
    """A runner for a scope whose streams are followed.

    Args:
        plan: as for `ScopeRunner`. Its scope names the request by which streams join.
        sources, target: the places, which are live stores.
        wish: how the copy is to end, to be recorded; None for no other wish than the recorded one.
        key: the key by which wishes of the copy's owner to seal sources are known.
        pace: how often what is looked at.
        clock: time.
        following: further arguments of `FollowWork`.
        how: further arguments of `ScopeRunner`.
    """

    def __init__(
        self,
        plan: ScopeCopyPlan,
        *,
        sources: Sequence[Place],
        target: Place,
        wish: Wish | None = None,
        key: str = "",
        pace: LookPace = PACE,
        clock: Clock = time,
        following: Mapping[str, Any] | None = None,
        **how: Any,
    ) -> None:
        super().__init__(plan, sources=sources, target=target, clock=clock, **how)
        request = plan.scope.following
        if request is None:
            raise InvalidSpec("the plan of a scope that is followed has no request")
        self._queue = self._lanes = FollowQueue((), self._begin, clock)
        self._store = live(target)
        self._joiner = Joiner(request, writable(live(sources[0])), self._store)
        self._parking = Parking(live(sources[0]), self._store, pace.rest)
        self._pacing = pace
        self._following = following or {}
        self._given = wish
        self._key = key
        self._wish = Wish()
        self._others = False  # whether others are to seal the sources
        self._wished = 0  # how often the wish has changed
        self._heard: dict[int, int] = {}  # the same, as a stream knows it
        self._idle = False
        self._began = clock.monotonic()
        self._listed = clock.monotonic()
        self._works: dict[int, FollowWork] = {}
        self._turns: dict[int, float] = {}
        self._given_up: dict[int, int] = {}
        self._ending = threading.Event()

    # -- the calling thread

    def _start(self) -> None:
        """Begin as any copy, take in what the scope has by now, and record the wish."""
        super()._start()
        if self._scope.make_scope and not self._plan.items:
            self._patiently(self._streams.make_scope)
        self._patiently(self._list)
        if self._given is not None:
            given = self._given
            self._patiently(lambda: self._log.wish(given, self._key))
        state = self._log.loaded
        if state is not None:
            self._patiently(lambda: self._hear(state))

    def _queued(self, places: Sequence[int]) -> StreamQueue:
        self._lanes = FollowQueue(places, self._begin, self._clock)
        state = self._log.loaded
        self._lanes.waits = state is not None and not (state.is_over or self._plan.items)
        return self._lanes

    def _supervise(self) -> None:
        tending = threading.Thread(target=self._tend, name="scope-tend", daemon=True)
        tending.start()
        try:
            super()._supervise()
        finally:
            self._ending.set()
            tending.join(ENDING_SECONDS)

    @property
    def _wanted(self) -> int:
        return min(max(self._limits.parallelism, WORKERS), max(1, len(self._plan.items)))

    # -- workers

    def _begin(self, place: int) -> CopyRun:
        item = self._plan.items[place]
        if not isinstance(item, StreamPlan):
            raise TypeError(f"{item.name} is archived, and not followed")
        self._works[place] = work = FollowWork(
            item,
            [live(one) for one in self._sources],
            self._store,
            number=place,
            limits=self._share,
            wishing=partial(self._wishing, place),
            key=self._key,
            clock=self._clock,
            ahead=AHEAD,
            leave=partial(self._leaves, place),
            **self._following,
        )
        return self._run_of(work, Turns(self._listener, self._lanes, self._check_turn))

    def _go_on(self, run: CopyRun) -> None:
        place = run.copy.number
        self._turns.pop(place, None)
        try:
            super()._go_on(run)
        except Rested as rested:
            self._given_up.pop(place, None)
            self._results.revived(place)
            self._results.moved()
            self._lanes.rest(run, parked=rested.parked)

    def _ended(self, place: int, result: StreamResult) -> None:
        """Take in the result of a stream. One that is given up for now is begun anew later."""
        final = self._results.add(place, result)
        self._works.pop(place, None)
        self._heard.pop(place, None)
        if self._is_stopped_by_failure():
            self._queue.close()
        if not final:
            times = self._given_up[place] = self._given_up.get(place, 0) + 1
            again = self._pacing.again
            self._lanes.again(place, again[min(times, len(again)) - 1])
        self._listener.ended(result)
        try:
            self._results.write()
        except SluiceError as error:
            if not error.retryable:
                raise

    def _check_turn(self, work: Work[Any, Any]) -> None:
        """Raise Rested if a stream that is followed lets its thread go."""
        place = work.number
        self._lanes.followed(place)
        standing = work.standing if isinstance(work, FollowWork) else None
        if standing is None or not isinstance(work, FollowWork):
            return
        quiet = work.quiet
        told = standing.compared or quiet < self._pacing.rest
        lets_go = quiet >= self._pacing.linger or self._lanes.is_wanted()
        if standing.at_rest and told and lets_go:
            raise Rested(parked=True)
        if self._is_turn_over(place):
            raise Rested(parked=False)
        # Looks may take long where a store is slow, and each turn has to follow for a while.
        self._turns.setdefault(place, self._clock.monotonic())

    def _is_turn_over(self, place: int) -> bool:
        since = self._turns.get(place)
        over = since is not None and self._clock.monotonic() - since >= self._pacing.turn
        return over and self._lanes.is_wanted()

    def _leaves(self, place: int, quiet: float) -> bool:
        """Tell whether a thread is to end following a stream for now; see `FollowedTarget`."""
        news = self._heard.get(place) != self._wished
        return news or quiet >= self._pacing.linger or self._is_turn_over(place)

    def _wishing(self, place: int) -> Wish | None:
        """Return how a stream is to end. The whole has to be idle, not one stream.

        None where another process is to seal the sources. It has a key of its own, and its wishes
        in the streams' journals must stay.
        """
        self._heard[place] = self._wished
        if self._others:
            return None
        return self._wish if self._idle else self._wish.model_copy(update={"idle_seconds": None})

    def _share(self) -> Limits:
        """Return a stream's share of the limits.

        Raises:
            Halted: all work is to end.
        """
        self._queue.check()
        limits, rate = self._limits, self._limits.bytes_per_second
        return replace(
            limits,
            bytes_per_second=None if rate is None else max(1, rate // max(1, self._lanes.busy)),
            in_flight_bytes=limits.in_flight_bytes // WORKERS,
        )

    # -- the thread that looks after the whole

    def _tend(self) -> None:
        while not self._ending.wait(max(self._pacing.look, self._parking.asked / ASKED)):
            try:
                self._look()
            except SluiceError as error:
                _log.warning("the scope was not looked at", reason=error.reason, error=str(error))
            except BaseException as error:  # noqa: BLE001 - the calling thread raises it
                self._queue.drop(None, error)
                return

    def _look(self) -> None:
        """Take in what others have recorded and what the scope has, and rouse streams."""
        now = self._clock.monotonic()
        state = self._log.load()
        if state is None or state.stopped or state.run != self._scope.run:
            self._queue.close()
            self._lanes.end_waiting()
            self._rouse()  # each one sees by its journal whether it goes on
            return
        if not state.live and self._lanes.came_live(len(state.begun.items)):
            self._log.live()
        self._take_in(state.plan)
        self._hear(state)
        if now - self._listed >= self._pacing.listing and self._wish.cutover == "None":
            self._list()
        ends = self._wish.cutover != "None" or is_time(self._wish, wall_clock())
        idle = self._wish.idle_seconds
        if idle is not None and not self._idle and self._is_idle(idle, now):
            self._idle, self._wished = True, self._wished + 1
        if ends or self._idle:
            self._rouse()
            if not self._plan.items:
                self._log.stopped()
        else:
            self._lanes.rouse(self._parking.stirred(self._lanes.parked(), now))

    def _rouse(self) -> None:
        self._lanes.rouse([run.copy.number for run, _ in self._lanes.parked()])

    def _hear(self, state: ScopeState) -> None:
        """Pass a new wish on. A stream that the scope has by then is cut over, too."""
        wish = state.wish
        others = wish.cutover == "SealAndDrain" and not state.may_seal(self._key)
        if others:
            wish = wish.model_copy(update={"cutover": "None"})
        if (wish, others) == (self._wish, self._others):
            return
        if wish.cutover != "None":
            self._list()
        self._wish, self._others, self._idle = wish, others, False
        self._wished += 1
        self._rouse()

    def _list(self) -> None:
        """List the scope: streams join, and those that are gone are looked at."""
        self._listed = self._clock.monotonic()
        state = self._log.loaded
        if state is None or state.is_over:
            return
        listed = self._joiner.look(state.plan)
        if listed.joining is not None:
            self._take_in(self._log.join(listed.joining, state.known))
        self._lanes.rouse(listed.gone)

    def _take_in(self, plan: ScopeCopyPlan) -> None:
        """Begin the streams that have joined."""
        before = len(self._plan.items)
        if len(plan.items) == before and len(plan.scope.settled) == len(self._plan.scope.settled):
            return
        self._plan = plan.placed(self._plan)
        self._results.extend(self._plan)
        joined = range(before, len(plan.items))
        if joined:
            self._listener.joined([plan.items[place].name for place in joined])
        self._lanes.join(joined)

    def _is_idle(self, seconds: int, now: float) -> bool:
        """Tell whether nothing has come in any stream for so long."""
        if not self._lanes.begun or now - self._began < seconds:
            return False
        works = list(self._works.values())
        return all(
            work.quiet >= seconds and work.standing is not None and work.standing.at_rest
            for work in works
        )
