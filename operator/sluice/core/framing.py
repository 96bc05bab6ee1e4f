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
    """Counts the events in consecutive blocks of a segment, from an event's beginning on.

    Attributes:
        events: how many have begun.
        last: where the last one of them begins, or what is no event, in bytes after the first one's
            beginning.
    """

    def __init__(self) -> None:
        self.events = 0
        self.last = 0
        self._fed = 0
        self._skip = 0
        self._header = b""

    @property
    def between_events(self) -> bool:
        """Whether the bytes so far end exactly where an event does."""
        return self._skip == 0 and not self._header

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
        unpack = _HEADER.unpack_from
        events = 0
        length = 0
        last = size - HEADER
        while at <= last:
            (length,) = unpack(block, at)
            if not 0 <= length <= _LONGEST:
                self.last = before + at
                _checked(length, self.last)
            at += HEADER + length
            events += 1
        self.events += events
        if events:
            self.last = before + at - HEADER - length
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
