"""An application of two writers and a reader group of two readers, by Pravega's own client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from localstore import ForeignClient
    from localstore.reports import Paced, Read

RATE: Final = 500
"""Events per second of each writer."""
KEYS: Final = 16
QUIET_MS: Final = 4000
"""Time without an event after which a reader has read all that is there."""


class Application:
    """The application's writers and readers, wherever its stream is.

    Attributes:
        written: number of events of each writer, without events that the store refused.
        read: number of events that the readers have read.
    """

    def __init__(self) -> None:
        self.written = [0, 0]
        self.read = 0
        self._digest = 0
        self._next = [(0, 0), (1, 0)]
        """By writer: the seed of its keys, and the number of its next event."""
        self._stop: dict[int, Callable[[], Paced]] = {}

    def write(self, java: ForeignClient, scope: str, stream: str) -> None:
        """Have both writers write to a stream, each from its own next event on.

        A writer may outlive its stream: once that is sealed, its events are refused.
        """
        for writer, (seed, first) in enumerate(self._next):
            self._stop[writer] = java.start_writer(
                *(scope, stream), rate=RATE, keys=KEYS, seed=seed, first=first, outlives=True
            )

    def stop(self, *writers: int) -> None:
        """Stop these writers, or both. The store has confirmed all their events by then."""
        for writer in writers or (0, 1):
            told = self._stop.pop(writer)()
            assert not told.failed, told
            self.written[writer] += told.events
            seed, first = self._next[writer]
            self._next[writer] = (seed, first + told.events)

    def refused(self, events: int) -> None:
        """Stop the first writer, after the store has refused some of its events.

        The store seals segments one after the other. So the accepted events need not be the first
        ones of the writer. The writer goes on with other keys.

        Args:
            events: number of events in the stream, by both writers.
        """
        told = self._stop.pop(0)()
        mine = events - self.written[1] - self.written[0]
        assert told.acknowledged <= mine <= told.events, (told, mine)
        self.written[0] += mine
        self._next[0] = (2, 0)

    def take(self, java: ForeignClient, scope: str, group: str, *, events: int = 0) -> None:
        """Have both readers of a group read, and close.

        Args:
            java: the client of the stream's store.
            scope: the group's scope.
            group: the group.
            events: number of events for each reader; if left out, all until the stream is quiet.
        """
        until = {"events": events} if events else {"quiet": QUIET_MS}
        scripts = [
            [("readGroup", {"scope": scope, "group": group, "reader": name, **until})]
            for name in ("one", "two")
        ]
        for (answer,) in java.together(scripts):
            self.read += int(answer["events"])
            self._digest += int(str(answer["digest"]), 16)

    def check(self, whole: Read) -> None:
        """Check that a stream has every event once, in order, and that the readers had the same.

        Args:
            whole: the stream, read from its beginning to its end.
        """
        assert whole.clean, whole
        assert whole.events == sum(self.written)
        assert (self.read, f"{self._digest % (1 << 64):016x}") == (whole.events, whole.digest)
