"""Divide a segment's bytes into groups of events, or count events object by object.

Both depend only on offsets in the segment, never on how blocks divide the bytes. So a run of an
archive that was interrupted makes the same objects again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.events.digest import CHUNK, chunk_of
from sluice.core.events.framing import FRAME, HEADER, EventCounter
from sluice.errors import EventsDamaged, SourceUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_EVENT: Final = 128 << 20
"""Bytes of the longest event that is put into a group, which memory holds as a whole."""


class Group(NamedTuple):
    """Events that follow one another.

    Attributes:
        start: offset of the first event.
        data: the events' bytes, with headers.
        edges: the index in `data` at which each event begins, and that at which the last one ends.
    """

    start: int
    data: bytes
    edges: list[int]

    @property
    def end(self) -> int:
        """The offset after the last event."""
        return self.start + len(self.data)

    @property
    def events(self) -> int:
        """The number of events."""
        return len(self.edges) - 1


def groups(blocks: Iterable[memoryview], start: int) -> Iterator[Group]:
    """Divide the events of consecutive blocks into groups: the events that begin in one chunk each.

    Args:
        blocks: bytes from an event's beginning to an event's end.
        start: offset of the first event.

    Raises:
        EventsDamaged: the bytes are not events, or do not end with one.
        SourceUnsupported: an event is too long.
    """
    data = bytearray()
    edges: list[int] = []
    at = 0
    limit = _next_chunk(start)
    for block in blocks:
        data += block
        while True:
            at = _walk(data, edges, at, limit, start)
            if at < limit or len(data) - at < HEADER:
                break  # the rest is not here yet
            yield Group(start, bytes(memoryview(data)[:at]), [*edges, at])
            del data[:at], edges[:]
            start, at = start + at, 0
            limit = _next_chunk(start)
    if at < len(data):
        raise EventsDamaged(f"no event ends at offset {start + len(data)}")
    if edges:
        yield Group(start, bytes(data), [*edges, at])


def _next_chunk(start: int) -> int:
    """Return the number of bytes from `start` to the beginning of the next chunk."""
    return (chunk_of(start) + 1) * CHUNK - start


def _walk(data: bytearray, edges: list[int], at: int, limit: int, start: int) -> int:
    """Add to `edges` where whole events before `limit` begin; return where the next one begins."""
    unpack = FRAME.unpack_from
    size = len(data)
    last = min(size - HEADER, limit - 1)
    while at <= last:
        (length,) = unpack(data, at)
        if length >> 31:
            raise EventsDamaged(f"no event begins at offset {start + at}")
        after = at + HEADER + length
        if after > size:
            if length > MOST_EVENT:
                raise SourceUnsupported(
                    f"the event at offset {start + at} has {length} bytes",
                    remedy="Take the format Segments, which holds events of any length.",
                )
            break
        edges.append(at)
        at = after
    return at


class Tally(NamedTuple):
    """The events that begin in an object.

    Attributes:
        events: the number of events; None if the bytes are not events.
        first: offset of the first event; None without events.
        last: offset of the last event; None without events.
    """

    events: int | None
    first: int | None = None
    last: int | None = None


class EventStart(NamedTuple):
    """The place where the next event begins.

    Attributes:
        offset: offset of its first byte: behind the bytes so far, or a little before their end if
            they end within the event's header.
        header: the bytes so far of that header.
    """

    offset: int
    header: bytes = b""


class Tallier:
    """Counts events, object by object.

    Args:
        following: where the first event begins; None if that is unknown, and nothing is counted.
        start: offset of the first byte that is fed; None if the first event begins there.
    """

    def __init__(self, following: EventStart | None, start: int | None = None) -> None:
        self._start = following.offset if following else 0
        self._counter = EventCounter() if following else None
        self._skip = 0 if start is None else max(0, self._start - start)
        self._fed = 0
        self._begun = 0
        self._first: int | None = None
        self._header = 0
        if following and following.header:
            self.feed(memoryview(following.header))
            self.end()

    @property
    def following(self) -> EventStart | None:
        """The place of the event after the counted ones; None if the bytes are not events."""
        if self._counter is None:
            return None
        return EventStart(self._start + self._counter.following, self._counter.header)

    def feed(self, block: memoryview) -> None:
        """Take the next bytes of the object."""
        skipped, block = block[: self._skip], block[self._skip :]
        self._skip -= len(skipped)
        if self._counter is None or not block:
            return
        self._fed += len(block)
        try:
            if self._first is None:
                # Complete a header that began in the object before: only a whole one has a length.
                head, block = block[: self._header], block[self._header :]
                self._counter.feed(head)
                self._header -= len(head)
                if self._header:
                    return
                self._first = self._start + self._counter.following
            self._counter.feed(block)
        except EventsDamaged:
            self._counter = None

    def end(self) -> Tally:
        """Return the object's events. The next bytes that are fed belong to the next object."""
        if self._counter is None:
            return Tally(None)
        begun, last = self._counter.events, self._counter.last
        unfinished = self._counter.unfinished
        if unfinished is not None and (unfinished != last or not begun):
            # The object ends with an event whose header is not whole.
            begun, last = begun + 1, unfinished
            self._header = HEADER - (self._fed - unfinished)
        events, self._begun = begun - self._begun, begun
        first, self._first = self._first, None
        return Tally(events, first, self._start + last) if events else Tally(0)
