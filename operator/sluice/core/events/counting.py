"""Count a segment's events in stretches that tasks read side by side.

Only the segment's first byte certainly begins an event; from there each header tells where the next
event is. So that tasks need not wait for each other, a task guesses: it counts its stretch from the
first place that looks like a row of events. When counts are added up, a stretch's count holds only
if it began exactly where the stretch before it ended. Otherwise the stretch is counted again from
there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.events.framing import FRAME, HEADER, EventCounter
from sluice.errors import EventsDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable

_WINDOW: Final = 1 << 20
"""Bytes that are searched at a time. Bytes pass for a row of events if header leads to header up to
the end of such a window."""

_STEPS: Final = 1 << 20
"""Most headers to look at in search of the first event."""

_LIKELY: Final = re.compile(rb"(?s)(?=\0{5}(?!\0{3}).{3})")
"""The header of an event of 1 to 2^24 - 1 bytes, as the first of a row; later events may be longer.
A header of zeros, that of an empty event, does not pass for a sign of events."""


class Counted(NamedTuple):
    """Events that begin in a stretch of a segment.

    Attributes:
        first: offset of the first event.
        events: the number of events; None if some bytes are not events.
        following: offset of the next event: behind the stretch, or at its end.
    """

    first: int
    events: int | None
    following: int


class CountedStretch(NamedTuple):
    """The bytes [start, end) of a segment, with the count; None where no events were found."""

    start: int
    end: int
    counted: Counted | None


class Total(NamedTuple):
    """The number of events of a whole segment; None if its bytes are not events."""

    events: int | None


class StretchToRecount(NamedTuple):
    """A stretch that has to be counted again, from its first event on."""

    stretch: CountedStretch
    first: int


def add_up(stretches: Iterable[CountedStretch]) -> Total | StretchToRecount:
    """Add up the counts of the consecutive stretches of a whole segment.

    Every guess is checked. If the events of the last stretch do not end with the segment, that
    stretch is counted again too, from the offset where its events are known to begin.

    Returns:
        The total, or the first stretch that has to be counted again.
    """
    row = sorted(stretches)
    total = 0
    at = row[0].start if row else 0
    for stretch in row:
        last = stretch is row[-1]
        if at >= stretch.end and not (last and at > stretch.end):
            continue  # one event covers the whole stretch
        counted = stretch.counted
        if counted is None or counted.first != at:
            return StretchToRecount(stretch, at)
        if counted.events is None:
            return Total(None)
        total += counted.events
        at = counted.following
    return Total(total)


class StretchCounter:
    """Counts the events that begin in [start, end).

    Args:
        start: offset at which the stretch begins.
        end: offset after its last byte.
        limit: offset at which the segment ends. Feed bytes up to `reach`, since a header that
            begins in the stretch may end behind it.
        first: offset of the first event, if it is known: then feed bytes from there. Otherwise
            feed bytes from `start`.
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
            EventsDamaged: no event begins at an offset where one has to; the message names it.
        """
        if self._search is not None:
            found = self._search.feed(block)
            if found is None:
                return
            self._take(found)
            return
        self._count(block)

    def finish(self) -> Counted | None:
        """Return the count; None if no events were found.

        Raises:
            EventsDamaged: as `feed`, or the last event does not end with the segment.
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
        """End the search, and begin to count with the row of events if one was found."""
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
    """Return the index of the first byte that seems to begin a row of events; None if none does.

    Only as many blocks are consumed as the search needs.
    """
    search = _Search()
    for block in blocks:
        found = search.feed(block)
        if found is not None:
            return found.at
    last = search.finish()
    return None if last is None else last.at


class _Row(NamedTuple):
    """A possible first header of a row of events: its place, and the bytes from there on."""

    at: int
    data: bytes


class _Search:
    """A search for the first place from which on bytes are events, a window at a time."""

    def __init__(self) -> None:
        self._window = bytearray()
        self._before = 0
        self._steps = _STEPS

    def feed(self, block: memoryview) -> _Row | None:
        """Take the next bytes; return the row once one is found."""
        if self._steps <= 0:
            return None
        self._window += block
        return self.finish() if len(self._window) >= _WINDOW else None

    def finish(self) -> _Row | None:
        """Search the bytes at hand for a row, and drop the bytes that cannot begin one."""
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
        """Tell whether headers follow one another from `at` to the end of the window or beyond."""
        last = len(self._window) - HEADER
        while at <= last:
            (length,) = FRAME.unpack_from(self._window, at)
            self._steps -= 1
            if length >> 31 or self._steps <= 0:
                return False
            at += HEADER + length
        return True
