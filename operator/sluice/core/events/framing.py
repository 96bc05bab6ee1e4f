"""Walk through the frames of events without decoding them.

An event lies in a segment as int32 0, int32 length, then that many bytes. A segment of a stream
holds nothing but events. Blocks may be cut anywhere; a counter remembers only its position.

The walk runs in C, without the GIL, if `_framing.c` was compiled (`docker/compile.py`). Otherwise
it runs in Python, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from sluice.errors import EventsDamaged

HEADER: Final = 8
"""Bytes of the header before an event's own bytes."""

FRAME: Final = Struct(">q")
"""The two numbers of a header, read as one: the event's length, as the first number is 0."""

_RUN: Final = (16, 1 << 12)
"""Fewest and most headers to compare at once: more would not stay in the processor's cache."""

_APART: Final = (1 << 10, 1 << 16)
"""Fewest and most bytes to walk event by event before the next search for equally long events."""

Walk = Callable[[memoryview, int], tuple[int, int, int]]
"""See `walk_in_python`."""


def walk_in_python(block: memoryview, at: int, /) -> tuple[int, int, int]:
    """Walk from the event that begins at index `at`, as far as whole headers are in the block.

    Returns:
        The number of events whose header was read; the index of the last of them, or -1; the index
        at which the walk ended. If a whole header would fit there, no event begins there: the bytes
        are damaged. Otherwise the next event begins there, which may be far behind the block.

    Raises:
        ValueError: `at` is negative.
    """
    if at < 0:
        raise ValueError("the walk begins before the block")
    unpack = FRAME.unpack_from
    last = len(block) - HEADER
    events, begun, apart = 0, -1, _APART[0]
    while True:
        near = min(last, at + apart)
        while at <= near:
            (length,) = unpack(block, at)
            if length >> 31:
                return events, begun, at
            begun = at
            at += HEADER + length
            events += 1
        if at > last:
            return events, begun, at
        row, step = _row(block, at, last)
        if row:
            events += row
            at += row * step
            begun = at - step
        # If such rows are short, the next search comes later.
        apart = _APART[0] if row >= _RUN[0] else min(apart * 16, _APART[1])


def _row(block: memoryview, at: int, last: int) -> tuple[int, int]:
    """Count a row of equally long events from `at` on, by comparing their headers.

    The first bytes of all headers are compared together, then all second bytes, and so on: a few
    calls count thousands of events.

    Returns:
        The number of events, 0 if none begins at `at`; and the bytes from one to the next.
    """
    header = bytes(block[at : at + HEADER])
    (length,) = FRAME.unpack(header)
    if length >> 31:
        return 0, 0
    step = HEADER + length
    row, wanted = 0, _RUN[0]
    while compared := min((last - at) // step + 1, wanted):
        equal = compared
        for i in reversed(range(HEADER)):
            column = bytes(block[at + i : at + (equal - 1) * step + i + 1 : step])
            equal -= len(column.lstrip(header[i : i + 1]))
        row += equal
        at += equal * step
        if equal < compared:
            break
        wanted = min(wanted * 8, _RUN[1])
    return row, step


try:
    from sluice.core.events._framing import walk
except ImportError:
    walk = walk_in_python

LANGUAGE: Final = "Python" if walk is walk_in_python else "C"
"""The language in which the walk runs, for logs."""


class EventCounter:
    """Counts the events in consecutive blocks of a segment, from an event's beginning on.

    Positions are in bytes after the first event's beginning.

    Args:
        walk: the walk through the headers of a block.

    Attributes:
        events: the number of events whose whole header was fed.
        last: the position of the last of these events; after an error, of the bytes that are not an
            event.
    """

    def __init__(self, walk: Walk = walk) -> None:
        self.events = 0
        self.last = 0
        self._walk = walk
        self._fed = 0
        self._skip = 0
        self._header = b""

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
            if length >> 31:
                raise self._damaged()
            self._skip = take + length
            self._header = b""
            self.events += 1
        events, last, at = self._walk(block, self._skip)
        self.events += events
        if events:
            self.last = before + last
        if at <= size - HEADER:
            self.last = before + at
            raise self._damaged()
        if at < size:
            self._header = bytes(block[at:])
            self._skip = 0
        else:
            self._skip = at - size

    def _damaged(self) -> EventsDamaged:
        return EventsDamaged(f"no event begins {self.last} bytes after the first one")
