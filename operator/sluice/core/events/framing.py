"""Walk through the frames of events without decoding them.

An event lies in a segment as int32 0, int32 length, then that many bytes. A segment of a stream
holds nothing but events. Blocks may be cut anywhere; the walk remembers only its position.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from sluice.errors import EventsDamaged

HEADER: Final = 8
"""Bytes of the header before an event's own bytes."""

FRAME: Final = Struct(">q")
"""The two numbers of a header, read as one: the event's length, as the first number is 0."""

_RUN: Final = (16, 1 << 12)
"""Fewest and most headers to compare at once: more would not stay in the processor's cache."""

_APART: Final = (1 << 8, 1 << 16)
"""Fewest and most bytes to walk event by event before the next search for equally long events."""


class EventCounter:
    """Counts the events in consecutive blocks of a segment, from an event's beginning on.

    Positions are in bytes after the first event's beginning.

    Attributes:
        events: the number of events whose whole header was fed.
        last: the position of the last of these events; after an error, of the bytes that are not an
            event.
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
        """The position of the event after the counted ones."""
        return self._fed + self._skip - len(self._header)

    @property
    def header(self) -> bytes:
        """The bytes so far of a header that is not whole yet."""
        return self._header

    @property
    def unfinished(self) -> int | None:
        """The position of the event whose end was not fed yet; None between two events."""
        if self.between_events:
            return None
        return self._fed - len(self._header) if self._header else self.last

    def feed(self, block: memoryview) -> None:
        """Take the next bytes.

        Raises:
            EventsDamaged: no event begins where one has to.
        """
        before = self._fed
        size = len(block)
        self._fed += size
        if self._header:
            take = min(HEADER - len(self._header), size)
            self._header += bytes(block[:take])
            if len(self._header) < HEADER:
                return
            (length,) = FRAME.unpack(self._header)
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
        """Go from event to event up to index `last`; return the index of the next event."""
        unpack = FRAME.unpack_from
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
        """Count a row of equally long events at once, by comparing their headers.

        The first bytes of all headers are compared together, then all second bytes, and so on: a
        few calls count thousands of events. If such rows are short, the next search comes later.

        Returns:
            The index of the event after the row.
        """
        header = bytes(block[at : at + HEADER])
        (length,) = FRAME.unpack(header)
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
    """Return an event's length, or raise EventsDamaged if the number cannot be one."""
    if length >> 31:
        raise EventsDamaged(f"no event begins {at} bytes after the first one")
    return length
