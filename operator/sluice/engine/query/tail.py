"""Follow the rows of a result: the last ones that are there, then each as it comes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.pace.bucket import TokenBucket
from sluice.core.query.recent import ResultReader, Rows, first_event
from sluice.core.values import identity
from sluice.errors import (
    NoSuchSegment,
    SegmentTruncated,
    SourceNotFound,
    SourceReplaced,
    TargetExists,
)
from sluice.stores.reading import joined
from sluice.stores.tails import Arrived, Broken, Ended

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.core.values.model import Segment, StreamName
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import Stream, Topology
    from sluice.stores.tails import Tails

RECENT: Final = 1 << 20
"""Bytes of a result, in all segments together, that are read back at once."""

_IN_FLIGHT: Final = 4 << 20
"""Bytes that may have come and not been taken."""

_WAIT: Final = 0.5
"""Seconds of a wait for rows, after which the caller has a turn."""

_RATE: Final = 20.0
"""Answers a second while rows come all the time. After a quiet second, so many more are not held
up: a store may hand out the rows of one batch in pieces."""

_AGAIN: Final = 1.0
"""Seconds from one look to the next for segments that follow on those that ended."""

_WHOLE: Final = 1 - 1e-6
"""The part of all keys from which on all of them count as followed."""


def check_result(store: Topology, stream: StreamName, query_id: str) -> Stream:
    """Check that a stream is the result of a query, and return it.

    Raises:
        SourceNotFound: there is no such stream.
        TargetExists: the query did not make it.
    """
    described = store.describe(stream)
    if described is None:
        raise SourceNotFound(f"there is no stream {stream}", field="spec.sinks[0].stream")
    if f"{identity.TAG_QUERY}{query_id}" not in described.config.tags:
        raise TargetExists(
            f"{stream} exists, and this query did not make it", field="spec.sinks[0].stream"
        )
    return described


def follow_rows(store: Store, stream: StreamName, query_id: str) -> Iterator[Rows]:
    """Yield the rows of a result for ever, and nothing now and then while none comes.

    The rows of one segment come in their order. Of a stream that was scaled, only the segments
    that take events now are followed. Each of those that follow on them is read from its beginning,
    once all before it that had its keys are read.

    Args:
        store: the store.
        stream: the stream that takes the results.
        query_id: the identity of the query.

    Raises:
        SourceNotFound: there is no such stream, or not any more.
        SourceReplaced: it was deleted, and made again.
        TargetExists: the query did not make it.
        EventsDamaged: it has bytes that are no events.
        BackendError: the store does not answer, or refuses.
    """
    with store.tails(most=_IN_FLIGHT) as tails:
        follower = _Follower(store, stream, query_id, tails)
        pace = TokenBucket(time.monotonic())
        yield follower.join()
        while True:
            # Rows that come one by one all the time are handed out together.
            if wait := pace.wait(_RATE, time.monotonic()):
                time.sleep(wait)
            rows = follower.take()
            if rows.texts:
                pace.take(1)
            yield rows


class _Followed(NamedTuple):
    """A segment that is followed."""

    segment: Segment
    reader: ResultReader


class _Follower:
    """The segments of a stream that are followed, by their full names."""

    def __init__(self, store: Source, stream: StreamName, query_id: str, tails: Tails) -> None:
        self._store = store
        self._stream = stream
        self._query = query_id
        self._tails = tails
        self._followed: dict[str, _Followed] = {}
        self._ended: set[int] = set()
        self._next = 0.0

    def take(self) -> Rows:
        """Return the rows that came, after about half a second at most."""
        found = []
        if not self._is_whole and time.monotonic() >= self._next:
            found.append(self.join())
        if not self._followed:
            time.sleep(_WAIT)
        for event in self._tails.take(_WAIT) if self._followed else ():
            match event:
                case Arrived():
                    found.append(self._followed[event.segment].reader.take(event.data))
                case Ended() | Broken(error=NoSuchSegment()):
                    self._ended.add(self._leave(event.segment))
                case Broken(error=SegmentTruncated()):
                    self._leave(event.segment)
                case Broken():
                    raise event.error
        return _together(found)

    @property
    def _is_whole(self) -> bool:
        """Whether the segments that are followed have all keys."""
        ranges = (one.segment.keys for one in self._followed.values())
        return sum(keys.high - keys.low for keys in ranges) >= _WHOLE

    def _leave(self, name: str) -> int:
        """Follow a segment no more, and return its id. Look for what follows on it at once."""
        self._next = 0.0
        return self._followed.pop(name).segment.id

    def join(self) -> Rows:
        """Follow the segments that take events now. Return the last rows of each new one."""
        self._next = time.monotonic() + _AGAIN
        described = check_result(self._store, self._stream, self._query)
        if self._ended and not self._store.had(self._stream, max(self._ended)):
            raise SourceReplaced(f"{self._stream} was deleted, and made again")
        new = [one for one in described.tail if self._may_follow(one)]
        return _together([self._follow(one, RECENT // len(new)) for one in new])

    def _may_follow(self, segment: Segment) -> bool:
        """Tell whether a segment is new, and all before it that had its keys are read."""
        before = (one.segment for one in self._followed.values())
        return segment.id not in self._ended and not any(
            segment.keys.overlaps(one.keys) for one in before
        )

    def _follow(self, segment: Segment, most: int) -> Rows:
        """Follow a segment, and return its last rows of so many bytes."""
        name = self._store.segment_name(self._stream, segment.id)
        (info,) = self._store.infos([name])
        if info is None:
            raise SourceNotFound(f"there is no segment {name}", field="spec.sinks[0].stream")
        begin = max(info.start, info.length - most)
        data = joined(self._store.read(name, begin, info.length)) if begin < info.length else b""
        at = 0 if begin == info.start else first_event(data)
        reader = ResultReader()
        rows = Rows() if at is None else reader.take(memoryview(data)[at:])
        if info.sealed:
            self._ended.add(segment.id)
        else:
            self._followed[name] = _Followed(segment, reader)
            self._tails.watch(name, info.length)
        return rows


def _together(parts: Sequence[Rows]) -> Rows:
    return Rows(
        tuple(text for part in parts for text in part.texts), sum(part.skipped for part in parts)
    )
