"""Walking through the frames of events without decoding them.

An event lies in a segment as int32 0, int32 length, then that many bytes; a segment is nothing but
events. The walk goes over blocks cut anywhere and remembers only where it stands.
"""

from __future__ import annotations

from struct import Struct

from sluice.errors import EventsDamaged

HEADER = 8
_HEADER = Struct(">q")
_LONGEST = (1 << 31) - 1
"""Most bytes of an event. The two numbers of a header, read as one, are its length."""


class EventCounter:
    """Counts the events in consecutive blocks of a segment, from an event's beginning on."""

    def __init__(self) -> None:
        self.events = 0
        self._fed = 0
        self._skip = 0
        self._header = b""

    @property
    def between_events(self) -> bool:
        """Whether the bytes so far end exactly where an event does."""
        return self._skip == 0 and not self._header

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
            self._skip = take + _checked(length, before + take - HEADER)
            self._header = b""
            self.events += 1
        at = self._skip
        unpack = _HEADER.unpack_from
        events = 0
        last = size - HEADER
        while at <= last:
            (length,) = unpack(block, at)
            if not 0 <= length <= _LONGEST:
                _checked(length, before + at)
            at += HEADER + length
            events += 1
        self.events += events
        if at < size:
            self._header = bytes(block[at:])
            self._skip = 0
        else:
            self._skip = at - size


def _checked(length: int, at: int) -> int:
    """An event's length, if it can be one."""
    if not 0 <= length <= _LONGEST:
        raise EventsDamaged(f"no event begins {at} bytes after the first one")
    return length
