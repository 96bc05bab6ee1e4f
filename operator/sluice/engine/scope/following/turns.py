"""Share out the time of the threads that follow streams: whose turn is over, and who rests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sluice.core.copy.steps import Follow
from sluice.engine.scope.following.parking import REST_SECONDS
from sluice.engine.scope.queue import Halting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.copy.steps import Step
    from sluice.engine.scope.queue import StreamQueue
    from sluice.engine.tasks.work import Listener, Work


class LookPace(NamedTuple):
    """How often what is looked at, in seconds.

    Attributes:
        turn: a stream is followed for so long at least, before others that wait go first.
        linger: without bytes for so long, a stream is parked. Until then, bytes take milliseconds.
        look: between two looks at parked streams, and at how the copy is to end.
        listing: between two lists of the scope's streams.
        rest: a parked stream is looked at after so long anyhow.
        again: after so long a stream is begun anew that was given up for now: the first time, and
            so on. The last one holds for all further times.
    """

    turn: float = 1.0
    linger: float = 5.0
    look: float = 1.0
    listing: float = 30.0
    rest: float = REST_SECONDS
    again: Sequence[float] = (30.0, 60.0, 120.0, 300.0, 600.0)


PACE: Final = LookPace()


class Rested(BaseException):
    """The end of a stream's turn. It is not an error, so no error handler may catch it.

    Args:
        parked: whether the stream waits until something comes; see `FollowQueue.rest`.
    """

    def __init__(self, *, parked: bool) -> None:
        super().__init__()
        self.parked = parked


class Turns(Halting):
    """A listener that ends a stream's turn before it is followed further.

    Args:
        listener: the listener to pass steps and retries on to.
        queue: the queue.
        check: raises if the turn is over.
    """

    def __init__(
        self, listener: Listener, queue: StreamQueue, check: Callable[[Work[Any, Any]], None]
    ) -> None:
        super().__init__(listener, queue)
        self._check = check

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """End the turn, or pass the step on; see Halting."""
        if isinstance(step, Follow):
            self._queue.check()
            self._check(copy)
        super().step(copy, step)
