"""Walking through the frames of events without decoding them.

An event lies in a segment as int32 0, int32 length, then that many bytes; a segment is nothing but
events. The walk goes over blocks cut anywhere and remembers only where it stands.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from sluice.errors import EventsDamaged

HEADER: Final = 8
"""Bytes before an event's own."""

_HEADER: Final = Struct(">q")
"""The two numbers of a header, read as one, are the event's length."""

_RUN: Final = (16, 1 << 12)
"""Fewest and most headers that are compared at once: more would not stay in the cache."""

_APART: Final = (1 << 8, 1 << 16)
"""Fewest and most bytes walked event by event before a run of equal ones is looked for again."""


class EventCounter:
    """Counts the events in consecutive blocks of a segment, from an event's beginning on.

    Attributes:
        events: how many have begun, and have their whole header here.
        last: where the last one of them begins, or what is no event, in bytes after the first one's
            beginning.
    """

    def __init__(self) -> None:
        self.events = 0
        self.last = 0
        self._fed = 0
        self._skip = 0
        self._header = b""
        self._apart = _APART[0]

    @property
    def between_events(self) -> bool:
        """Whether the bytes so far end exactly where an event does."""
        return self._skip == 0 and not self._header

    @property
    def following(self) -> int:
        """Where the event after the counted ones begins, in bytes after the first one's."""
        return self._fed + self._skip - len(self._header)

    @property
    def header(self) -> bytes:
        """What is here of a header that is not whole yet."""
        return self._header

    @property
    def unfinished(self) -> int | None:
        """Where the event begins whose end is not here yet, as `last`; None between two events."""
        if self.between_events:
            return None
        return self._fed - len(self._header) if self._header else self.last

    def feed(self, block: memoryview) -> None:
        """Take the next bytes.

        Raises:
            EventsDamaged: where an event has to begin there is none.
        """
        before = self._fed
        size = len(block)
        self._fed += size
        if self._header:
            take = min(HEADER - len(self._header), size)
            self._header += bytes(block[:take])
            if len(self._header) < HEADER:
                return
            (length,) = _HEADER.unpack(self._header)
            self.last = before + take - HEADER
            self._skip = take + _checked(length, self.last)
            self._header = b""
            self.events += 1
        at = self._skip
        last = size - HEADER
        while at <= last:
            at = self._walk(block, at, min(last, at + self._apart), before)
            if at <= last:
                at = self._run(block, at, last, before)
        if at < size:
            self._header = bytes(block[at:])
            self._skip = 0
        else:
            self._skip = at - size

    def _walk(self, block: memoryview, at: int, last: int, before: int) -> int:
        """Go from event to event while they begin at `last` or before it; where the next begins."""
        unpack = _HEADER.unpack_from
        events = 0
        length = 0
        while at <= last:
            (length,) = unpack(block, at)
            if length >> 31:
                self.last = before + at
                _checked(length, self.last)
            at += HEADER + length
            events += 1
        self.events += events
        if events:
            self.last = before + at - HEADER - length
        return at

    def _run(self, block: memoryview, at: int, last: int, before: int) -> int:
        """Count equally long events at once: one is there, and its header stands again and again.

        All headers' first bytes are taken together, then all second ones, and so on: a few calls
        for thousands of events. Where there are few, the next look is put off.
        """
        header = bytes(block[at : at + HEADER])
        (length,) = _HEADER.unpack(header)
        self.last = before + at
        step = HEADER + _checked(length, self.last)
        there = (last - at) // step + 1
        wanted = count = min(there, _RUN[0])
        while count == wanted and wanted:
            for i in reversed(range(HEADER)):
                column = bytes(block[at + i : at + (count - 1) * step + i + 1 : step])
                count -= len(column.lstrip(header[i : i + 1]))
            self.events += count
            at += count * step
            self.last = before + at - step
            there -= count
            if count == wanted:
                wanted = count = min(there, wanted * 8, _RUN[1])
                self._apart = _APART[0]
        self._apart = min(self._apart * 2, _APART[1])
        return at


def _checked(length: int, at: int) -> int:
    """An event's length, if it can be one."""
    if length >> 31:
        raise EventsDamaged(f"no event begins {at} bytes after the first one")
    return length
