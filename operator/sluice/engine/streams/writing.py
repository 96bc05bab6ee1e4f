"""Write events to a stream, as its other writers do."""

from __future__ import annotations

import time
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from uuid import UUID, uuid4

from sluice.core.events.decoding import encoded
from sluice.errors import (
    BackendError,
    SegmentSealed,
    SluiceError,
    StoreBusy,
    StreamNotFound,
    TargetSealed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sluice.core.values.model import Segment, StreamName
    from sluice.stores.base import Store

BATCH: Final = 1000
"""Most events that are appended together, segment by segment."""

BATCH_BYTES: Final = 4 << 20
"""Bytes from which on events are appended, however few they are. This bounds memory."""

MOST_EVENT: Final = 8 << 20
"""Bytes of the longest event that Pravega's clients write (`Serializer.MAX_EVENT_SIZE`)."""

_WINDOW: Final = 1 << 20
"""Bytes in flight."""

_PAUSES: Final = (0.2, 1.0, 3.0, 10.0, 20.0, 30.0)
"""Seconds before each new try: a store that starts anew is away for about half a minute."""


_T = TypeVar("_T")


def patiently(call: Callable[[], _T], sleep: Callable[[float], None] = time.sleep) -> _T:
    """Repeat a call while it fails in a way that may pass. Raise its last error after a minute."""
    for pause in _PAUSES:
        try:
            return call()
        except BackendError as error:
            if not error.retryable:
                raise
        sleep(pause)
    return call()


class Routed(NamedTuple):
    """An event to write.

    Attributes:
        place: the place of its routing key in [0, 1).
        data: its bytes.
    """

    place: float
    data: bytes


class EventWriter:
    """A writer of events to one stream. Each event is stored once, whatever happens to connections.

    The store notes the number of the last event of this writer with each segment. So the writer
    finds out which events a segment has, also after a lost connection, and after the segment was
    sealed by a scale event.

    Args:
        store: the stream's store.
        stream: the stream.
        writer: the identity of an earlier writer of the same events, after which this one goes on;
            a new one if left out. No event must be routed to another segment than it was then.
        sleep: waits for some seconds.

    Attributes:
        whole: the number of events that are surely stored, from the first one on.

    Raises:
        StreamNotFound: there is no such stream.
        TargetSealed: the stream is sealed.
    """

    def __init__(
        self,
        store: Store,
        stream: StreamName,
        *,
        writer: UUID | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._stream = stream
        self._sleep = sleep
        self._writer = writer or uuid4()
        self._stored: defaultdict[int, int] = defaultdict(int)
        self._tail = self._patiently(self._look)
        self.whole = 0

    @property
    def stored(self) -> dict[int, int]:
        """Events written, by segment."""
        return {segment: count for segment, count in sorted(self._stored.items()) if count}

    def write(self, events: Iterable[Routed]) -> None:
        """Append events in order. Return when the store has all of them.

        If `events` raises an error of Sluice, those before it are stored first.

        Raises:
            TargetSealed: the stream was sealed before the last event.
            StoreUnavailable: the store was away for too long. Some events of the last batch may be
                stored.
        """
        batch: list[Routed] = []
        size = 0
        try:
            for event in events:
                batch.append(event)
                size += len(event.data)
                if len(batch) == BATCH or size >= BATCH_BYTES:
                    full, batch, size = batch, [], 0
                    self._append(full)
        except SluiceError:
            self._append(batch)
            raise
        self._append(batch)

    def _append(self, batch: Sequence[Routed]) -> None:
        events, pauses = batch, iter(_PAUSES)
        while events:
            routed: defaultdict[int, list[Routed]] = defaultdict(list)
            for event in events:
                routed[self._segment(event.place)].append(event)
            events = [
                event for segment, own in routed.items() for event in self._append_to(segment, own)
            ]
            if events:  # a segment was sealed: its keys are in other segments now, or will be soon
                before, self._tail = self._tail, self._patiently(self._look)
                if self._tail == before:
                    self._wait(pauses)
        self.whole += len(batch)

    def _append_to(self, segment: int, events: Sequence[Routed]) -> Sequence[Routed]:
        """Append events to a segment. Return those that it does not take, since it is sealed."""
        before = self._stored[segment]
        done = self._patiently(partial(self._try, segment, events, before))
        self._stored[segment] = before + done
        return events[done:]

    def _patiently(self, call: Callable[[], _T]) -> _T:
        return patiently(call, self._sleep)

    def _wait(self, pauses: Iterator[float]) -> None:
        """Wait until the store may have ended a scale event.

        Raises:
            StoreBusy: that takes too long.
        """
        pause = next(pauses, None)
        if pause is None:
            raise StoreBusy(f"{self._stream} has sealed segments, and no others in their place")
        self._sleep(pause)

    def _try(self, segment: int, events: Sequence[Routed], before: int) -> int:
        """Append the events that a segment lacks. Return how many of them it has."""
        name = self._store.segment_name(self._stream, segment)
        try:
            with self._store.appender(name, writer=self._writer, window=_WINDOW) as appender:
                has = (appender.last or 0) - before
                for number, event in enumerate(events[has:], before + has + 1):
                    appender.append(encoded(event.data), event_number=number)
                appender.flush()
        except SegmentSealed:
            with self._store.appender(name, writer=self._writer, window=_WINDOW) as appender:
                return (appender.last or 0) - before
        return len(events)

    def _segment(self, place: float) -> int:
        """Return the segment that takes the keys at a place."""
        for segment in self._tail:
            if place < segment.keys.high:
                return segment.id
        return self._tail[-1].id

    def _look(self) -> tuple[Segment, ...]:
        stream = self._store.describe(self._stream)
        if stream is None:
            raise StreamNotFound(f"there is no stream {self._stream}")
        if stream.sealed:
            raise TargetSealed(f"{self._stream} is sealed, so it takes no events")
        return stream.tail
