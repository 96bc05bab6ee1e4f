"""Actors in a model world, moved one call at a time.

The engine is plain sequential code, so each driver of a copy runs in a greenlet of its own. Every
call to the store hands control back to the scheduler, which decides whose call is next and what
becomes of it: done, lost before it arrived, or done with its answer lost. A killed driver just
never comes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenlet import GreenletExit, getcurrent, greenlet

from support.model import Fate, ModelStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.model import World


class Actor:
    """A driver or an abort in a greenlet, moved call by call.

    Args:
        name: how the history calls it.
        world: where it acts.
        body: what it does, given its store and itself as its clock.

    Attributes:
        pending: the call that waits for `move`.
        result: what the body returned.
        error: what it raised.
        killed: whether it was.
    """

    def __init__(
        self, name: str, world: World, body: Callable[[ModelStore, Actor], object]
    ) -> None:
        self.name = name
        self.result: object = None
        self.error: Exception | None = None
        self.pending = ""
        self.killed = False
        self._world = world
        self._fate = Fate.DONE
        self._now = 0.0
        self._scheduler = getcurrent()
        self._greenlet = greenlet(lambda: self._run(body))

    @property
    def alive(self) -> bool:
        """Whether there is something left to do."""
        return not self._greenlet.dead

    def move(self, fate: Fate = Fate.DONE) -> None:
        """Let the call that waits meet its fate, and run up to the next call."""
        self._fate = fate
        self._scheduler = getcurrent()
        self._greenlet.switch()

    def kill(self) -> None:
        """End it where it is: no cleanup of its own runs against the store."""
        self._world.history.append(f"{self.name}: killed")
        self.killed = True
        self._greenlet.throw(GreenletExit)

    def monotonic(self) -> float:
        """The actor's clock."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Let time pass without waiting."""
        self._now += seconds

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
        self.pending = what
        self._scheduler.switch()
        self._world.history.append(f"{self.name}: {what}: {self._fate.value}")
        return self._fate
