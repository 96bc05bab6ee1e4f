"""Scopes of a model store whose streams are followed while a test changes them."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Any

from sluice.engine.scope.following.runner import FollowRunner
from sluice.engine.scope.following.turns import LookPace
from sluice.engine.scope.planning import resolve_scope
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from support.engine.plans import ADDRESS
from support.engine.scope_drivers import InWork, SharedStore
from support.engine.scope_requests import REQUEST, in_source, in_target, log_of
from support.engine.sources import events_of
from support.model import EVENT_COUNT, Fate, World, segment_name
from support.until import TIGHT, until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.scope.request import ScopeRequest
    from sluice.core.values.wish import Wish
    from sluice.engine.scope.report import ScopeReport

FOLLOW = REQUEST.model_copy(update={"follow": True})
SHORT = LookPace(turn=1.0, linger=2.0, look=0.02, listing=1.0, rest=40.0, again=(2.0,))
KEY = "only the owner knows"


class Killed(BaseException):
    """The exception that ends a killed driver."""


class FastClock:
    """A clock that runs faster than real time."""

    def __init__(self, times: float = 20) -> None:
        self._times = times

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic() * self._times

    def sleep(self, seconds: float) -> None:
        """See Clock."""
        time.sleep(seconds / self._times)


class HeldClock(FastClock):
    """A fast clock that stands still after a while, until the test lets it go on.

    A busy machine may stop a test's threads for long. With this clock, the pause between two events
    of a source still stays short.

    Args:
        seconds: seconds of this clock until it stands still.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._from = (0.0, super().monotonic())  # replaced as a whole: other threads read it

    def monotonic(self) -> float:
        """See Clock."""
        passed, since = self._from
        return passed + min(super().monotonic() - since, self._seconds)

    def go_on(self) -> None:
        """Let the clock go on for `seconds` again."""
        self._from = (self.monotonic(), super().monotonic())

    def let_go(self) -> None:
        """Let the clock go on, and never stand still again."""
        self.go_on()
        self._seconds = math.inf


class Follower:
    """A driver of a scope in a thread of its own.

    Args:
        world: the world.
        request: the copy.
        gate: callback before each call to the store, with the call's text; returns its fate.
        wish: how the copy is to end.
        how: further arguments of `FollowRunner`.
    """

    def __init__(
        self,
        world: World,
        *,
        request: ScopeRequest = FOLLOW,
        gate: Callable[[str], Fate] = lambda _: Fate.DONE,
        wish: Wish | None = None,
        **how: Any,
    ) -> None:
        self.dead = False
        self.report: ScopeReport | None = None
        self.error: BaseException | None = None
        self.listener = InWork()
        self._gate = gate
        store = SharedStore(world, self._call)
        plan = resolve_scope(request, source=(ADDRESS, store), target=(ADDRESS, store)).plan
        self.runner = FollowRunner(
            plan,
            sources=[store],
            target=store,
            executor=InlineExecutor([store], store),
            limits=self._limits,
            listener=self.listener,
            wish=wish,
            **{
                "clock": FastClock(),
                "pace": SHORT,
                "following": {"every": 1.0},
                "patience": 0.2,
                "key": KEY,
            }
            | how,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _call(self, what: str) -> Fate:
        if self.dead:
            raise Killed
        if what.startswith("take"):
            time.sleep(0.005)  # the model's tails never wait
        return self._gate(what)

    def _limits(self) -> Limits:
        if self.dead:
            raise Killed
        return Limits(parallelism=4)

    def _run(self) -> None:
        try:
            self.report = self.runner.run()
        except BaseException as error:  # noqa: BLE001 - tests look at it
            self.error = error

    def kill(self) -> None:
        """End the driver at its next call."""
        self.dead = True
        self.join()

    def join(self) -> ScopeReport | None:
        """Wait for the driver's end, and return its report."""
        until("the driver ends", lambda: not self._thread.is_alive(), poll=TIGHT, seconds=60)
        return self.report


def write(world: World, stream: str, sizes: Sequence[int], seed: int = 7) -> None:
    """Write events to the first segment of a source."""
    there = world.segments[segment_name(in_source(stream), 0)]
    there.data += events_of(sizes, seed)
    there.attributes[EVENT_COUNT] += len(sizes)


def wish(world: World, wanted: Wish, key: str = KEY) -> None:
    """Record a wish in the scope's log, as another process does."""
    log = log_of(world)
    log.load()
    log.wish(wanted, key)


def arrived(world: World, *streams: str) -> None:
    """Wait until the targets have all bytes of their sources."""
    for stream in streams:
        until(
            f"{stream} has arrived",
            lambda name=stream: _arrived(world, name),
            poll=TIGHT,
            seconds=20,
        )


def _arrived(world: World, stream: str) -> bool:
    target = in_target(stream)
    there = target in world.streams and segment_name(target, 0) in world.segments
    return there and world.bytes_of(target) == world.bytes_of(in_source(stream))
