"""One segment that is followed, as a session has it."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from sluice.core.follow.cutting import Cutter

if TYPE_CHECKING:
    from sluice.core.follow.cutting import Cut, EventPiece
    from sluice.core.follow.rows import Row
    from sluice.engine.follow.large_event import LargeEvent
    from sluice.errors import EventsDamaged
    from sluice.stores.writing import Appender

HELD: Final = 32 << 20
"""Bytes that wait for the ends of their events, at most: others are read again with the end."""


class Line:
    """One segment that is followed.

    Args:
        row: the segment.
        source: the full name of the source's segment.
        target: the full name of the target's segment.
        position: the source offset to continue at.
        longest: most bytes of an event that is appended; longer ones are staged and merged.

    Attributes:
        row, source, target: as given.
        cutter: cuts what comes.
        shift: the difference between target and source offsets.
        appender: appends to the target; None until something is appended.
        start: the source offset at which the session began.
        read: the source offset up to which bytes came.
        sent: the source offset up to which bytes were sent.
        confirmed: the source offset up to which the store has confirmed bytes.
        compared: the source offset up to which bytes were compared since `start`.
        queue: what came and was not sent, since too many bytes are not confirmed.
        damage: why nothing behind the queue can be followed, if that is so.
        end: the source offset at which the segment ends, once it is known.
        again: when the source's segment is to be read again; None while it is read.
        large: the event on its way that is longer than one append takes, if there is one.
        opened: what is open for this segment.
        since: when bytes were confirmed last, or sent with none on their way before.
        known: whether the source's segment was found to be the planned one since bytes came.
        ended: whether it is followed to its sealed end.
    """

    def __init__(self, row: Row, source: str, target: str, position: int, *, longest: int) -> None:
        self.row = row
        self.source = source
        self.target = target
        self.cutter = Cutter(source, position, plain=row.plain, longest=longest)
        self.shift = row.shift(position)
        self.appender: Appender | None = None
        self.queue: deque[Cut | EventPiece] = deque()
        self.damage: EventsDamaged | None = None
        self.end: int | None = None
        self.again: float | None = None
        self.large: LargeEvent | None = None
        self.opened = ExitStack()
        self.start = self.read = self.sent = self.confirmed = self.compared = position
        self.since = 0.0
        self.known = False
        self.ended = False

    @property
    def is_waiting(self) -> bool:
        """Whether bytes are not confirmed, or not even sent."""
        return bool(self.queue) or self.sent > self.confirmed

    def has_room(self) -> bool:
        """Tell whether the first of the queue can be sent without waiting for confirmations."""
        size = self.queue[0].size
        if self.large is not None:
            return self.large.has_room(size)
        return self.appender is None or self.appender.has_room(size)

    def pump(self) -> None:
        """Take in confirmations that are here, without waiting. Raises as `Appender.pump`."""
        for sink in (self.appender, self.large):
            if sink is not None:
                sink.pump()

    @property
    def has_moved(self) -> bool:
        """Whether the store has confirmed or staged bytes since `start`."""
        return self.confirmed > self.start or (self.large is not None and self.large.moved)
