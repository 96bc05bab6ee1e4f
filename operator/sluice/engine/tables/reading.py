"""Read a stream from one position to another, and find the next position to read to."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sluice.core.events.grouping import groups
from sluice.core.tables.decoding import Origin
from sluice.core.tables.frames import admitted
from sluice.core.tables.positions import EventStretch, entered, is_finished, moved, stretches
from sluice.errors import EventsDamaged, SourceUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from sluice.core.tables.decoding import Decoder
    from sluice.core.tables.positions import Sizes, StreamPosition
    from sluice.engine.tables.source import TableSource


class Limit(NamedTuple):
    """The most that is read at a time; None for no limit."""

    bytes: int | None = None
    events: int | None = None


NO_LIMIT = Limit()


def stretches_between(
    source: TableSource, begin: StreamPosition, end: StreamPosition
) -> list[EventStretch]:
    """Return the bytes from one position to another, in an order that keeps that of each key.

    Raises:
        InvalidSpec: the end is before the beginning, or one of them is no position in the stream.
        SourceReplaced: the stream was deleted, and perhaps made again.
        SourceTruncated: bytes between them are gone.
    """
    if begin == end:
        return []
    if begin.cut == end.cut:  # so it is most often, and no scale event is looked at
        sizes = source.infos([one.id for one in begin.segments])
        if None not in sizes.values():
            return stretches([begin.cut], begin, end, sizes)
    generations = source.generations(begin)
    sizes = source.infos([one.id for made in generations for one in made])
    return stretches(generations, begin, end, sizes)


def next_position(
    source: TableSource,
    begin: StreamPosition,
    limit: Limit = NO_LIMIT,
    *,
    until: StreamPosition | None = None,
) -> StreamPosition:
    """Return the position up to which the stream can be read next.

    Between the two, no key has events of more than one segment. The segments that a scale event
    made are entered at their beginnings, once those before them are read to their ends.

    Args:
        source: the stream.
        begin: where to begin.
        limit: the most to read. The first event of a segment is admitted, however long it is.
        until: a position that is not passed; None for the present tail.

    Raises:
        SourceReplaced: the stream was deleted, and perhaps made again.
        SourceTruncated: bytes after the position are gone.
        EventsDamaged: the stream does not hold events.
    """
    sizes: Sizes = source.infos([one.id for one in begin.segments])
    place, sizes = _entered(source, begin, sizes, until)
    end = moved(place, sizes, partial(_admit, source, limit), until=until)
    return _entered(source, end, sizes, until)[0]


def _entered(
    source: TableSource, place: StreamPosition, sizes: Sizes, until: StreamPosition | None
) -> tuple[StreamPosition, Sizes]:
    """Enter the segments that follow on those that are finished. Most often there are none."""
    if place == until or not any(is_finished(one, sizes) for one in place.segments):
        return place, sizes
    generations = source.generations(place)
    sizes = source.infos([one.id for made in generations for one in made])
    return entered(place, generations, sizes, until=until), sizes


def _admit(
    source: TableSource, limit: Limit, there: Mapping[int, EventStretch]
) -> Mapping[int, int]:
    """Return how far each segment is read, so that all together keep to the limit.

    The segments have equal shares. What a segment leaves of its share goes to the others. Those
    that are behind most come first if there are more segments than events.
    """
    ends = {}
    left_bytes, left_events = limit
    waiting = sorted(there.values(), key=lambda one: one.end - one.start)[-(left_events or 0) :]
    for number, one in enumerate(waiting):
        others = len(waiting) - number
        share_bytes = None if left_bytes is None else max(1, left_bytes // others)
        share_events = None if left_events is None else max(1, left_events // others)
        end, events = _reach(source, one, share_bytes, share_events)
        ends[one.segment] = end
        if left_bytes is not None:
            left_bytes = max(0, left_bytes - (end - one.start))
        if left_events is not None:
            left_events = max(0, left_events - events)
    return ends


def _reach(
    source: TableSource, stretch: EventStretch, most_bytes: int | None, most_events: int | None
) -> tuple[int, int]:
    """Return the offset up to which a stretch is read, and the number of its events if limited."""
    number, start, end = stretch
    if most_events is None and (most_bytes is None or end - start <= most_bytes):
        return end, 0
    with _named(source, number):
        reach = admitted(
            source.read(number, start, end),
            start,
            end=end,
            most_bytes=most_bytes,
            most_events=most_events,
        )
    return reach.end, reach.events


@contextmanager
def _named(source: TableSource, segment: int) -> Iterator[None]:
    """Name the segment in errors about its events."""
    try:
        yield
    except EventsDamaged as error:
        raise EventsDamaged(f"segment {segment} of {source.stream}: {error.message}") from None


def batches(
    source: TableSource, parts: Iterable[EventStretch], decoder: Decoder
) -> Iterator[pa.RecordBatch]:
    """Read stretches one after the other, in batches of at most 8 MiB and an event.

    Raises:
        SourceTruncated: bytes are gone.
        EventsDamaged: the bytes are no events, or do not end with one.
        MalformedEvents: events do not fit, and that is to fail.
        SourceUnsupported: an event is too long for a table.
    """
    for number, start, end in parts:
        origin = Origin(number, source.segment_name(number))
        blocks = (block.data for block in source.read(number, start, end))
        try:
            with _named(source, number):
                for group in groups(blocks, start):
                    yield decoder.decode(group, origin)
        except SourceUnsupported as error:
            error.remedy = "Read the positions before and behind it, or the event by the command."
            raise


def size_between(source: TableSource, begin: StreamPosition, end: StreamPosition) -> int:
    """Return the number of bytes from one position to another. Errors as `stretches_between`."""
    return sum(one.end - one.start for one in stretches_between(source, begin, end))
