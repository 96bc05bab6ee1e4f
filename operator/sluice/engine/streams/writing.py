"""Write events to a stream, as its other writers do."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from sluice.core.events.decoding import encoded
from sluice.errors import SegmentSealed, StoreUnavailable, StreamNotFound, TargetSealed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sluice.core.values.model import Segment, StreamName
    from sluice.stores.base import Store

BATCH: Final = 1000
"""Events that are appended together, segment by segment."""

_WINDOW: Final = 1 << 20
"""Bytes in flight."""

_PAUSES: Final = (0.2, 1.0, 3.0, 10.0)
"""Seconds before each new try after a connection was lost."""


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
        sleep: waits for some seconds.

    Raises:
        StreamNotFound: there is no such stream.
        TargetSealed: the stream is sealed.
    """

    def __init__(
        self, store: Store, stream: StreamName, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._store = store
        self._stream = stream
        self._sleep = sleep
        self._writer = uuid4()
        self._stored: defaultdict[int, int] = defaultdict(int)
        self._tail = self._look()

    @property
    def stored(self) -> dict[int, int]:
        """Events written, by segment."""
        return {segment: count for segment, count in sorted(self._stored.items()) if count}

    def write(self, events: Iterable[Routed]) -> None:
        """Append events in order. Return when the store has all of them.

        If `events` raises an error, those before it are stored first.

        Raises:
            TargetSealed: the stream was sealed before the last event.
            StoreUnavailable: the store was away for too long. Some events may be stored.
        """
        batch: list[Routed] = []
        try:
            for event in events:
                batch.append(event)
                if len(batch) == BATCH:
                    full, batch = batch, []
                    self._append(full)
        finally:
            self._append(batch)

    def _append(self, events: Sequence[Routed]) -> None:
        while events:
            routed: defaultdict[int, list[Routed]] = defaultdict(list)
            for event in events:
                routed[self._segment(event.place)].append(event)
            events = [
                event for segment, own in routed.items() for event in self._append_to(segment, own)
            ]
            if events:  # a segment was sealed: its keys are in other segments now
                self._tail = self._look()

    def _append_to(self, segment: int, events: Sequence[Routed]) -> Sequence[Routed]:
        """Append events to a segment. Return those that it does not take, since it is sealed."""
        before = self._stored[segment]
        for pause in (*_PAUSES, None):
            try:
                done = self._try(segment, events, before)
            except StoreUnavailable:
                if pause is None:
                    raise
                self._sleep(pause)
            else:
                self._stored[segment] = before + done
                return events[done:]
        raise AssertionError  # pragma: no cover - the last try raises

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
