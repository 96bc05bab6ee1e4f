"""Walking through the frames of events without decoding them.

An event lies in a segment as int32 0, int32 length, then that many bytes; a segment is nothing but
events. The walk goes over blocks cut anywhere and remembers only where it stands.
"""

from __future__ import annotations

from struct import Struct

from sluice.errors import EventsDamaged

HEADER = 8
_LENGTH = Struct(">i")


class EventCounter:
    """Counts the events in consecutive blocks of a segment, from an event's beginning on."""

    def __init__(self) -> None:
        self.events = 0
        self._skip = 0
        self._header = b""

    @property
    def between_events(self) -> bool:
        """Whether the bytes so far end exactly where an event does."""
        return self._skip == 0 and not self._header

    def feed(self, block: memoryview) -> None:
        """Take the next bytes.

        Raises:
            EventsDamaged: an event has a negative length.
        """
        size = len(block)
        if self._header:
            take = min(HEADER - len(self._header), size)
            self._header += bytes(block[:take])
            if len(self._header) < HEADER:
                return
            self._skip = take + self._length(self._header, 4)
            self._header = b""
        at = self._skip
        unpack = _LENGTH.unpack_from
        events = 0
        last = size - HEADER
        while at <= last:
            (length,) = unpack(block, at + 4)
            if length < 0:
                raise EventsDamaged(f"an event has the length {length}: the segment is damaged")
            at += HEADER + length
            events += 1
        self.events += events
        if at < size:
            self._header = bytes(block[at:])
            self._skip = 0
        else:
            self._skip = at - size

    def _length(self, header: bytes, at: int) -> int:
        (length,) = _LENGTH.unpack_from(header, at)
        if length < 0:
            raise EventsDamaged(f"an event has the length {length}: the segment is damaged")
        self.events += 1
        return int(length)
