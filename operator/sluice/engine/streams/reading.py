"""Read the events of a stream, or of a range of it, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.core.copy.planner import Range, SourceRequest
from sluice.core.events.decoding import decoded
from sluice.engine.copy.bounds import bounds_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.core.values.model import StreamName
    from sluice.stores.base import Source

WHOLE = Range()


class Event(NamedTuple):
    """An event of a stream.

    Attributes:
        segment: the id of its segment.
        offset: where it begins in the segment, in bytes.
        data: its bytes.
    """

    segment: int
    offset: int
    data: bytes


def events_of(store: Source, stream: StreamName, range_: Range = WHOLE) -> Iterator[Event]:
    """Read the events that a stream holds now, segment after segment.

    Events of one routing key come in their order: a segment comes after those that it replaced.

    Raises:
        StreamNotFound: there is no such stream.
        InvalidSpec: the range does not lie in the stream.
        SegmentTruncated: the store has deleted bytes that were not read yet.
        EventsDamaged: the stream does not hold events, or the range begins within one.
    """
    request = SourceRequest(stream=stream, ranges=(range_,), field="")
    for segment in bounds_of(request, store):
        name = store.segment_name(stream, segment.id)
        blocks = (block.data for block in store.read(name, segment.start, segment.end))
        for offset, data in decoded(blocks, segment.start):
            yield Event(segment.id, offset, data)
