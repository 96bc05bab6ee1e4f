"""Follow the rows of a result: the last ones that are there, then each as it comes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from sluice.core.query.recent import RowReader, Rows, first_event
from sluice.errors import NoSuchSegment, SegmentTruncated, SourceNotFound
from sluice.stores.reading import joined
from sluice.stores.tails import Arrived, Broken, Ended

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.core.values.model import Segment, StreamName
    from sluice.stores.base import Store
    from sluice.stores.tails import Tails

RECENT: Final = 1 << 20
"""Bytes of a result, in all segments together, that are read back at the beginning."""

_IN_FLIGHT: Final = 4 << 20
"""Bytes that may have come and not been taken."""

_WAIT: Final = 0.5
"""Seconds of a wait for rows, after which the caller has a turn."""

_PACE: Final = 0.05
"""Seconds from one answer to the next while rows come all the time."""


def follow_rows(store: Store, stream: StreamName) -> Iterator[Rows]:
    """Yield the rows of a result for ever, and nothing now and then while none comes.

    The rows of one segment come in their order. Of a stream that was scaled, only the segments
    that take events now are followed, and later those that follow on them.

    Args:
        store: the store.
        stream: the stream that takes the results.

    Raises:
        SourceNotFound: there is no such stream, or not any more.
        EventsDamaged: it has bytes that are no events.
        BackendError: the store does not answer, or refuses.
    """
    with store.tails(most=_IN_FLIGHT) as tails:
        follower = _Follower(store, stream, tails)
        yield follower.begin()
        while True:
            began = time.monotonic()
            rows = follower.take()
            yield rows
            if rows.texts:
                # Rows that come one by one are handed out together.
                time.sleep(max(0.0, _PACE - (time.monotonic() - began)))


class _Follower:
    """The segments of a stream that are followed."""

    def __init__(self, store: Store, stream: StreamName, tails: Tails) -> None:
        self._store = store
        self._stream = stream
        self._tails = tails
        self._readers: dict[str, RowReader] = {}
        self._ended: set[str] = set()

    def begin(self) -> Rows:
        """Follow all segments that take events, and return the last rows that they have."""
        segments = self._segments()
        return _together([self._follow(one, RECENT // len(segments)) for one in segments])

    def take(self) -> Rows:
        """Return the rows that came, after at most half a second."""
        if not self._readers:  # the stream is sealed
            time.sleep(_WAIT)
        found = []
        for event in self._tails.take(_WAIT) if self._readers else ():
            match event:
                case Arrived():
                    found.append(self._readers[event.segment].take(event.data))
                case Ended() | Broken(error=NoSuchSegment()):
                    self._ended.add(event.segment)
                    found += self._go_on(event.segment)
                case Broken(error=SegmentTruncated()):
                    found += self._go_on(event.segment)
                case Broken():
                    raise event.error
        return _together(found)

    def _go_on(self, segment: str) -> list[Rows]:
        """Follow the segments that take events now, in the place of one that broke or ended."""
        del self._readers[segment]
        return [self._follow(one, RECENT) for one in self._segments()]

    def _segments(self) -> Sequence[Segment]:
        described = self._store.describe(self._stream)
        if described is None:
            raise SourceNotFound(f"there is no stream {self._stream}", field="spec.sinks[0]")
        return described.tail

    def _follow(self, segment: Segment, most: int) -> Rows:
        """Follow a segment, unless it is followed. Return its last rows of so many bytes."""
        name = self._store.segment_name(self._stream, segment.id)
        if name in self._readers or name in self._ended:
            return Rows()
        (info,) = self._store.infos([name])
        if info is None:
            raise SourceNotFound(f"there is no segment {name}", field="spec.sinks[0]")
        begin = max(info.start, info.length - most)
        data = joined(self._store.read(name, begin, info.length)) if begin < info.length else b""
        at = 0 if begin == info.start else first_event(data)
        reader = RowReader()
        rows = Rows() if at is None else reader.take(memoryview(data)[at:])
        if info.sealed:
            self._ended.add(name)
        else:
            self._readers[name] = reader
            self._tails.watch(name, info.length)
        return rows


def _together(parts: Sequence[Rows]) -> Rows:
    return Rows(
        tuple(text for part in parts for text in part.texts), sum(part.skipped for part in parts)
    )
