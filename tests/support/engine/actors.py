"""Actors in a model world, moved one call at a time.

The engine is plain sequential code, so each driver of a copy runs in a greenlet of its own. Every
call to the store hands control back to the scheduler. The scheduler decides whose call is next, and
its fate: done, lost before it arrived, or done with its answer lost. A killed driver never resumes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenlet import GreenletExit, getcurrent, greenlet

from support.model import Fate, ModelStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.model import World


WAITED = 1.0
"""Seconds that an actor waits for bytes, each time, by its own clock."""


class Time:
    """The time that passes for actors.

    Attributes:
        now: the seconds that have passed.
    """

    def __init__(self) -> None:
        self.now = 0.0


class Actor:
    """A driver or an abort in a greenlet, moved call by call.

    Args:
        name: the actor's name in the history.
        world: the world in which it acts.
        body: its work, given its store and itself as its clock.
        time: its time; None for one of its own, which stands still while others wait.

    Attributes:
        pending: the call that waits for `move`.
        since: the time at which it began to wait.
        result: the return value of the body.
        error: the exception that the body raised.
        killed: whether the actor was killed.
    """

    def __init__(
        self,
        name: str,
        world: World,
        body: Callable[[ModelStore, Actor], object],
        *,
        time: Time | None = None,
    ) -> None:
        self.name = name
        self.result: object = None
        self.error: Exception | None = None
        self.pending = ""
        self.killed = False
        self._world = world
        self._fate = Fate.DONE
        self._time = Time() if time is None else time
        self.since = self._time.now
        self._scheduler = getcurrent()
        self._greenlet = greenlet(lambda: self._run(body))

    @property
    def alive(self) -> bool:
        """Tell whether there is something left to do."""
        return not self._greenlet.dead

    def move(self, fate: Fate = Fate.DONE) -> None:
        """Let the waiting call meet its fate, and run up to the next call."""
        self._fate = fate
        self._scheduler = getcurrent()
        self._greenlet.switch()

    def kill(self) -> None:
        """End the actor where it is. Its cleanup does not reach the store."""
        self._world.history.append(f"{self.name}: killed")
        self.killed = True
        self._greenlet.throw(GreenletExit)

    @property
    def waits(self) -> float:
        """The seconds for which the pending call waits."""
        return self._time.now - self.since

    def monotonic(self) -> float:
        """Return the time of the actor's clock, in seconds."""
        return self._time.now

    def sleep(self, seconds: float) -> None:
        """Let time pass without waiting."""
        self._time.now += seconds

    def _run(self, body: Callable[[ModelStore, Actor], object]) -> None:
        try:
            self.result = body(ModelStore(self._world, self._gate), self)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        end = self.error if self.error is not None else self.result
        self._world.history.append(f"{self.name}: ended: {end!r}")

    def _gate(self, what: str) -> Fate:
        if self.killed:
            raise GreenletExit
        self.pending, self.since = what, self._time.now
        self._scheduler.switch()
        if what.startswith("take"):
            self._time.now += WAITED
        self._world.history.append(f"{self.name}: {what}: {self._fate.value}")
        return self._fate
