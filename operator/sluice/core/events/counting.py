"""Counting a segment's events by stretches that are read side by side.

Where events begin is known at the segment's first byte only; from there each header tells where the
next one is. So that nobody has to wait, a stretch in the midst is counted from the first place that
looks like a row of events. Put together, a count holds only if it began exactly where the stretch
before it led; one that did not is taken again from there.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.events.framing import HEADER, EventCounter
from sluice.errors import EventsDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable

_WINDOW: Final = 1 << 20
"""Bytes in which events are looked for at a time; from the first to the last one of them must be
events what is taken for a row of them."""

_STEPS: Final = 1 << 20
"""Most headers that are looked at to find the first one."""

_LIKELY: Final = re.compile(rb"(?s)(?=\0{5}(?!\0{3}).{3})")
"""The header of an event of 1 to 2^24 - 1 bytes; others can follow. Zeros are no sign of events."""

_LENGTH: Final = Struct(">q")


class Counted(NamedTuple):
    """Events that begin in a stretch of a segment.

    Attributes:
        first: where the first one begins.
        events: how many there are; None where some bytes are no events.
        following: where the one after them begins: behind the stretch, or at its end.
    """

    first: int
    events: int | None
    following: int


class CountedStretch(NamedTuple):
    """The bytes [start, end) of a segment, with what was counted if there was anything."""

    start: int
    end: int
    counted: Counted | None


class Total(NamedTuple):
    """The events of a whole segment; None where its bytes are no events."""

    events: int | None


class Recount(NamedTuple):
    """A stretch that has to be counted again, from its first event on."""

    stretch: CountedStretch
    first: int


def add_up(stretches: Iterable[CountedStretch]) -> Total | Recount:
    """The events of consecutive stretches that are a whole segment, the first one's first.

    Nothing is taken on trust: where the events of the last stretch do not end with it, it is
    counted again too, from where its events are known to begin.
    """
    row = sorted(stretches)
    total = 0
    at = row[0].start if row else 0
    for stretch in row:
        last = stretch is row[-1]
        if at >= stretch.end and not (last and at > stretch.end):
            continue  # an event reaches over all of it
        counted = stretch.counted
        if counted is None or counted.first != at:
            return Recount(stretch, at)
        if counted.events is None:
            return Total(None)
        total += counted.events
        at = counted.following
    return Total(total)


class StretchCounter:
    """Counts the events that begin in [start, end).

    Args:
        start: where the stretch begins.
        end: offset after its last byte.
        limit: where the segment ends. Bytes are fed up to `reach`, since a header that begins in
            the stretch may end behind it.
        first: where the first event begins, if that is known: what is fed begins there. Otherwise
            it begins at `start`.
    """

    def __init__(self, start: int, end: int, limit: int, first: int | None) -> None:
        self.begin = start if first is None else first
        self.reach = min(end + HEADER - 1, limit)
        self._known = first is not None
        self._whole = end == limit
        self._search = None if self._known else _Search()
        self._counter = EventCounter()
        self._first: int | None = self.begin

    def feed(self, block: memoryview) -> None:
        """Take the next bytes.

        Raises:
            EventsDamaged: no event begins where one has to; the message says at which offset.
        """
        if self._search is not None:
            found = self._search.feed(block)
            if found is None:
                return
            self._take(found)
            return
        self._count(block)

    def finish(self) -> Counted | None:
        """What was counted; None where no events were found.

        Raises:
            EventsDamaged: as `feed`, or the last event does not end where the segment does.
        """
        if self._search is not None:
            self._take(self._search.finish())
        if self._first is None:
            return None
        following = self._first + self._counter.following
        if self._whole and not (self._counter.between_events and following == self.reach):
            if self._known:
                raise EventsDamaged(f"no event ends at offset {self.reach}")
            return None
        return Counted(self._first, self._counter.events, following)

    def _take(self, found: _Row | None) -> None:
        """Begin to count with a row of events, if one was found."""
        self._search = None
        self._first = None
        if found is not None:
            self._first = self.begin + found.at
            self._count(memoryview(found.data))

    def _count(self, block: memoryview) -> None:
        if self._first is None:
            return
        try:
            self._counter.feed(block)
        except EventsDamaged:
            if self._known:
                at = self.begin + self._counter.last
                raise EventsDamaged(f"no event begins at offset {at}") from None
            self._first = None


def first_event(blocks: Iterable[memoryview]) -> int | None:
    """Where what looks like a row of events begins, after the first byte; None where nothing does.

    No more of the blocks is taken than it needs.
    """
    search = _Search()
    for block in blocks:
        found = search.feed(block)
        if found is not None:
            return found.at
    last = search.finish()
    return None if last is None else last.at


class _Row(NamedTuple):
    """What may be the first header of a row of events, and the bytes from there on."""

    at: int
    data: bytes


class _Search:
    """Looks for the first place in bytes from which on they are events, a window at a time."""

    def __init__(self) -> None:
        self._window = bytearray()
        self._before = 0
        self._steps = _STEPS

    def feed(self, block: memoryview) -> _Row | None:
        """Take the next bytes; the row, once there is one."""
        if self._steps <= 0:
            return None
        self._window += block
        return self.finish() if len(self._window) >= _WINDOW else None

    def finish(self) -> _Row | None:
        """Look in what is there; what can begin no row is let go."""
        for found in _LIKELY.finditer(self._window):
            if self._leads_on(found.start()):
                at = found.start()
                return _Row(self._before + at, bytes(self._window[at:]))
            if self._steps <= 0:
                self._window.clear()
                return None
        done = max(0, len(self._window) - HEADER + 1)
        del self._window[:done]
        self._before += done
        return None

    def _leads_on(self, at: int) -> bool:
        """Whether from here on header follows header, to the end of the window or behind it."""
        last = len(self._window) - HEADER
        while at <= last:
            (length,) = _LENGTH.unpack_from(self._window, at)
            self._steps -= 1
            if length >> 31 or self._steps <= 0:
                return False
            at += HEADER + length
        return True
