"""Positions in a stream that a reader of tables goes through, from the head to the tail.

A position is a cut: an offset in each of some segments that together take each key exactly once.
It also has the key ranges of its segments, so that the segments after it are found even if its own
ones are truncated away. Scale events are passed one after the other, each when all segments that it
replaced are read to their ends. So the events of one key come in order, position after position.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationError

from sluice.core.values.model import Frozen, KeyRange, Segment, StreamName, break_in
from sluice.core.values.ranges import between
from sluice.errors import InvalidSpec, SourceTruncated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sluice.core.values.model import SegmentInfo
    from sluice.core.values.ranges import SegmentRange

    Generations = Sequence[Sequence[Segment]]
    """A stream's segments, as `stores.reading.Topology.generations` returns them."""

    Sizes = Mapping[int, SegmentInfo | None]
    """The present state of segments, by id; None for segments that are gone."""

TRUNCATED_REMEDY: Final = (
    "Lengthen the stream's retention, and begin at another position. With an archive of the stream "
    "beside it, events that the stream no longer has come from there."
)


class SegmentPosition(Frozen):
    """A position in a segment: the bytes before `offset` were read."""

    id: int
    keys: KeyRange
    offset: int


class StreamPosition(Frozen):
    """A position in a stream.

    Attributes:
        stream: the stream.
        segments: the position in each segment, by key range.
    """

    stream: StreamName
    segments: tuple[SegmentPosition, ...]

    @property
    def offsets(self) -> dict[int, int]:
        """The offsets in bytes, by segment id."""
        return {one.id: one.offset for one in self.segments}

    @property
    def cut(self) -> list[Segment]:
        """The segments, without offsets."""
        return [Segment(id=one.id, keys=one.keys) for one in self.segments]

    def at(self, offsets: Mapping[int, int]) -> StreamPosition:
        """Return the position with these offsets; other segments keep theirs."""
        moved = tuple(
            one.model_copy(update={"offset": offsets.get(one.id, one.offset)})
            for one in self.segments
        )
        return self.model_copy(update={"segments": moved})

    def to_json(self) -> dict[str, Any]:
        """Return the position as objects, texts and whole numbers of JSON.

        Edges of key ranges are texts: each program that reads JSON gives them back as they are.
        """
        return {
            "stream": str(self.stream),
            "segments": {
                str(one.id): {
                    "offset": one.offset,
                    "low": repr(one.keys.low),
                    "high": repr(one.keys.high),
                }
                for one in self.segments
            },
        }

    @classmethod
    def from_json(cls, value: object) -> StreamPosition:
        """Read what `to_json` returned.

        Raises:
            InvalidSpec: the value is no position.
        """
        try:
            return _parsed(value)
        except (AttributeError, KeyError, TypeError, ValueError, ValidationError):
            raise InvalidSpec(
                "this is no position in a stream", field="position", remedy="Take one of Sluice's."
            ) from None


def _parsed(value: Any) -> StreamPosition:
    scope, _, stream = value["stream"].partition("/")
    segments = [
        SegmentPosition(
            id=int(number),
            keys=KeyRange(low=float(one["low"]), high=float(one["high"])),
            offset=one["offset"],
        )
        for number, one in value["segments"].items()
    ]
    found = position(StreamName(scope=scope, stream=stream), segments)
    if not stream or any(min(one.id, one.offset) < 0 for one in segments):
        raise ValueError(value)
    if break_in(one.keys for one in found.segments) is not None:
        raise ValueError(value)
    return found


def position(stream: StreamName, segments: Sequence[SegmentPosition]) -> StreamPosition:
    """Return the position in these segments."""
    ordered = tuple(sorted(segments, key=lambda one: one.keys.low))
    return StreamPosition(stream=stream, segments=ordered)


class EventStretch(NamedTuple):
    """The bytes [start, end) of a segment, which begin and end where events do."""

    segment: int
    start: int
    end: int


def stretches(
    generations: Generations, begin: StreamPosition, end: StreamPosition, sizes: Sizes
) -> list[EventStretch]:
    """Return the bytes from one position to another, which the stream still has.

    A segment comes after those that it replaced. Segments without bytes are left out.

    Args:
        generations: the stream's segments, from those of `begin` on.
        begin: where to begin.
        end: where to end.
        sizes: the present state of the segments.

    Raises:
        InvalidSpec: the end is before the beginning, or one of them is no position in the stream.
        SourceTruncated: bytes between them are gone.
    """
    found = []
    for part in between(generations, begin.offsets, end.offsets, field="position"):
        stretch = _stretch(part, sizes.get(part.segment.id), begin.stream)
        if stretch.start < stretch.end:
            found.append(stretch)
    return found


def _stretch(part: SegmentRange, info: SegmentInfo | None, stream: StreamName) -> EventStretch:
    number, start = part.segment.id, part.start or 0
    end = part.end if part.end is not None else None if info is None else info.length
    if end is None:
        raise truncated(stream, number, start)
    if start < end and (info is None or info.start > start):
        raise truncated(stream, number, start, info)
    if info is not None and end > info.length:
        raise InvalidSpec(
            f"segment {number} of {stream} ends at offset {info.length}, before {end}",
            field="position",
            remedy="Check that the position is one of this stream.",
        )
    return EventStretch(number, start, end)


def truncated(
    stream: StreamName, segment: int, offset: int, info: SegmentInfo | None = None
) -> SourceTruncated:
    """Return the error for bytes that are gone.

    Args:
        stream: the stream.
        segment: the id of the segment.
        offset: the first offset that is gone.
        info: the segment as it is now; None if it is gone.
    """
    now = "it is deleted" if info is None else f"it begins at {info.start} now"
    return SourceTruncated(
        f"segment {segment} of {stream} has no events from offset {offset} on any more: {now}",
        remedy=TRUNCATED_REMEDY,
    )


def entered(
    place: StreamPosition,
    generations: Generations,
    sizes: Sizes,
    *,
    until: StreamPosition | None = None,
) -> StreamPosition:
    """Replace segments that are read to their ends by those that scale events made of them.

    Args:
        place: the position.
        generations: the stream's segments, from those of the position on.
        sizes: the present state of the segments.
        until: a position that is not passed; None for none.

    Raises:
        InvalidSpec: the position is none in these segments, or `until` is before it.
    """
    now = {one.id: one for one in place.segments}
    last = None if until is None else until.offsets
    parts = between(generations, place.offsets, last, field="position")
    later = (part for part in parts if part.segment.id not in now)
    for _, made in groupby(later, key=lambda part: part.generation):
        new = [part.segment for part in made]
        old = [one for one in now.values() if any(one.keys.overlaps(keys.keys) for keys in new)]
        if not all(is_finished(one, sizes) for one in old):
            break  # scale events are passed one after the other: so each position was a cut once
        for one in old:
            del now[one.id]
        now |= {one.id: SegmentPosition(id=one.id, keys=one.keys, offset=0) for one in new}
    return position(place.stream, list(now.values()))


def is_finished(place: SegmentPosition, sizes: Sizes) -> bool:
    """Tell whether a segment takes no more events, and was read to its end."""
    info = sizes.get(place.id)
    return info is not None and info.sealed and place.offset >= info.length


def moved(
    place: StreamPosition,
    sizes: Sizes,
    admit: Callable[[Mapping[int, EventStretch]], Mapping[int, int]],
    *,
    until: StreamPosition | None = None,
) -> StreamPosition:
    """Return the position as far on in its own segments as the caller admits.

    Args:
        place: the position.
        sizes: the present state of its segments.
        admit: returns the ends of these stretches that may be read, by segment.
        until: a position that is not passed; None for none.

    Raises:
        SourceTruncated: bytes after the position are gone.
    """
    limits = {} if until is None else until.offsets
    there = {}
    for one in place.segments:
        info = sizes.get(one.id)
        end = limits.get(one.id, one.offset if info is None else info.length)
        if info is None or info.start > one.offset:
            if end <= one.offset and one.id in limits:
                continue
            raise truncated(place.stream, one.id, one.offset, info)
        if one.offset < min(end, info.length):
            there[one.id] = EventStretch(one.id, one.offset, min(end, info.length))
    return place.at(admit(there))
