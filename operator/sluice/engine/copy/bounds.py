"""Take the bounds of a copy: the bytes of each segment that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.copy.planner import SeenSegment
from sluice.core.values.ranges import between
from sluice.errors import InvalidSpec, SourceReplaced, StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.planner import CopyRequest, RangeEnd, SourceRequest
    from sluice.core.values.model import Segment, SegmentInfo, StreamName
    from sluice.core.values.ranges import SegmentRange
    from sluice.stores.base import Source
    from sluice.stores.reading import Stream

HEAD_TRIES: Final = 5
"""How often bounds are read before a copy fails because its source was truncated meanwhile."""

COUNT_TRIES: Final = 20
"""How often a segment's end and event count are read together before the count stays unknown."""


class _Wanted(NamedTuple):
    """A stretch of a segment that a range asks for, and the number of that range."""

    stretch: SegmentRange
    generation: int
    range: int


class _Measured(NamedTuple):
    """A segment as it is now; `events` is None where the store has no count for its length."""

    info: SegmentInfo
    created: int
    events: int | None


def take_bounds(
    request: CopyRequest, stores: Sequence[Source], streams: Sequence[Stream]
) -> list[SeenSegment]:
    """Return all segments that a request reads, with bounds.

    They are ordered by source, then range, then generation.

    Args:
        request: the copy that is asked for.
        stores: the stores of the sources.
        streams: the sources as they were described just now.

    Raises:
        InvalidSpec: a range does not lie in its stream.
        SourceReplaced: a stream was deleted, or truncated again and again, meanwhile.
    """
    found: list[SeenSegment] = []
    for number, (source, stream) in enumerate(zip(request.sources, streams, strict=True)):
        first = found[-1].generation + 1 if found else 0
        found += [
            segment._replace(source=number, generation=first + segment.generation)
            for segment in bounds_of(source, stores[source.store], stream)
        ]
    return found


def bounds_of(
    source: SourceRequest, store: Source, stream: Stream | None = None
) -> list[SeenSegment]:
    """Return the segments of one source, with bounds, by range and generation.

    Args:
        source: the source.
        store: its store.
        stream: the source as it was described just now, if the caller has that.

    Raises:
        InvalidSpec: a range does not lie in the stream.
        SourceReplaced: the stream was deleted, or truncated again and again, meanwhile.
    """
    for _ in range(HEAD_TRIES - 1):
        try:
            return _look(source, store, stream)
        except SourceReplaced:
            # Its retention may only have truncated it past a segment. Then a new look succeeds.
            stream = store.describe(source.stream)
            if stream is None:
                raise
    return _look(source, store, stream)


def bounds_together(
    streams: Sequence[tuple[StreamName, Stream]], store: Source
) -> list[list[SeenSegment] | None]:
    """Return the segments of whole streams. All bounds are read together, in few calls.

    Args:
        streams: the streams as they were described just now.
        store: their store.

    Returns:
        For each stream its segments, by generation. None for a stream that was deleted or truncated
        since it was described; the caller has to read its bounds separately.
    """
    wanted = [_whole(name, stream, store) for name, stream in streams]
    measured = iter(_measure([name for names, _ in wanted for name in names], store))
    found: list[list[SeenSegment] | None] = []
    for names, stretches in wanted:
        known = [next(measured) for _ in names]
        seen = [
            _seen(_Wanted(stretch, stretch.generation, 0), one, field="")
            for stretch, one in zip(stretches, known, strict=True)
            if one is not None
        ]
        found.append(seen if len(seen) == len(names) > 0 else None)
    return found


def _whole(name: StreamName, stream: Stream, store: Source) -> tuple[list[str], list[SegmentRange]]:
    """Return the full names of a stream's segments, and their stretches; none if it is gone."""
    try:
        generations = _generations(name, stream, store)
    except SourceReplaced:
        return [], []
    stretches = between(generations, None, None, field="")
    return [store.segment_name(name, stretch.segment.id) for stretch in stretches], stretches


def _look(request: SourceRequest, store: Source, stream: Stream | None) -> list[SeenSegment]:
    """Read bounds and event counts of a source's segments once."""
    wanted = _wanted(request, store, stream)
    names = [store.segment_name(request.stream, one.stretch.segment.id) for one in wanted]
    measured = [one for one in _measure(names, store) if one is not None]
    if len(measured) < len(names):
        raise SourceReplaced(f"{request.stream} was deleted while its bounds were taken")
    return [
        _seen(one, known, field=request.field) for one, known in zip(wanted, measured, strict=True)
    ]


def _measure(names: Sequence[str], store: Source) -> list[_Measured | None]:
    """Measure segments: lengths, creation times, and event counts from the store; None if gone.

    A store does not always have a count, and may leave out events that came by transactions. A copy
    that is verified counts events itself. A count belongs to a length only if the segment has that
    length before and after the count is read. So a segment that has grown meanwhile is asked again.
    A segment that is written to without a pause may never stand still: then its count stays
    unknown. An empty segment is not asked. `_seen` drops the counts that do not fit the bounds.

    A scale event may come meanwhile. Bytes of its new segments lie outside of the bounds.
    """
    infos = store.infos(names)
    created: dict[int, int | None] = {}
    events: dict[int, int | None] = {}
    for _ in range(COUNT_TRIES):
        there = [(i, info) for i, info in enumerate(infos) if info is not None]
        young = [i for i, _ in there if i not in created]
        moving = [i for i, info in there if info.start < info.length and i not in events]
        asked = [(i, store.creation_time) for i in young]
        asked += [(i, store.event_count) for i in moving]
        if not asked:
            break
        values = store.attributes([(names[i], attribute) for i, attribute in asked])
        created |= zip(young, values, strict=False)
        if not moving:
            break
        after = store.infos([names[i] for i in moving])
        for i, count, info in zip(moving, values[len(young) :], after, strict=True):
            before = infos[i]
            if info is not None and before is not None and info.length == before.length:
                events[i] = count
            infos[i] = info
    return [
        None if info is None else _Measured(info, created.get(i) or 0, events.get(i))
        for i, info in enumerate(infos)
    ]


def _wanted(request: SourceRequest, store: Source, stream: Stream | None) -> list[_Wanted]:
    """Return the stretches of all ranges, in order. Generations count on from range to range."""
    generations = _generations(request.stream, stream, store)
    found: list[_Wanted] = []
    for number, asked in enumerate(request.ranges):
        field = f"{request.field}.ranges[{number}]"
        begin = _cut(request.stream, asked.begin, store, f"{field}.from")
        end = _cut(request.stream, asked.end, store, f"{field}.to")
        first = found[-1].generation + 1 if found else 0
        found += [
            _Wanted(stretch, first + stretch.generation, number)
            for stretch in between(generations, begin, end, field=field)
        ]
    return found


def _generations(
    name: StreamName, stream: Stream | None, store: Source
) -> tuple[tuple[Segment, ...], ...]:
    """Return a stream's segments by generation. A stream of one generation costs no call.

    Raises:
        SourceReplaced: the stream is gone.
    """
    if stream is not None and stream.is_one_generation:
        return (stream.head,)
    try:
        return store.generations(name)
    except StreamNotFound:
        raise SourceReplaced(f"{name} was deleted while bounds were taken") from None


def _cut(name: StreamName, position: RangeEnd, store: Source, field: str) -> dict[int, int] | None:
    """Return a cut's offsets by segment; None for an edge of the stream."""
    if position.is_edge:
        return None
    if position.text is None:
        return dict(position.offsets or ())
    try:
        stream, offsets = store.read_cut(position.text)
    except InvalidSpec as error:
        raise InvalidSpec(error.message, field=f"{field}.streamCut", remedy=error.remedy) from None
    if stream != name:
        raise InvalidSpec(
            f"this is a cut of {stream}, not of {name}",
            field=f"{field}.streamCut",
            remedy=f"Give a cut of {name}.",
        )
    return offsets


def _seen(one: _Wanted, known: _Measured, *, field: str) -> SeenSegment:
    """Return a segment with the bounds that were asked for.

    The store counts a segment's events from its very beginning. So the count is kept only for a
    whole segment that was never truncated.

    Raises:
        InvalidSpec: the segment does not hold a bound.
    """
    info, created, events = known
    segment, asked = one.stretch.segment, (one.stretch.start, one.stretch.end)
    for offset, side in zip(asked, ("from", "to"), strict=True):
        if offset is None or info.start <= offset <= info.length:
            continue
        what = "begins at" if offset < info.start else "ends at"
        raise InvalidSpec(
            f"offset {offset} of segment {segment.id} is not there: the segment {what} "
            f"{info.start if offset < info.start else info.length}",
            field=f"{field}.ranges[{one.range}].{side}",
            remedy="Give a cut of what the stream holds now.",
        )
    start = info.start if one.stretch.start is None else one.stretch.start
    end = info.length if one.stretch.end is None else one.stretch.end
    part = any(offset is not None and offset not in {info.start, info.length} for offset in asked)
    if start == end:
        events = 0
    elif start > 0 or end < info.length:
        events = None
    return SeenSegment(
        source=0,
        id=segment.id,
        keys=segment.keys,
        generation=one.generation,
        range=one.range if part else None,
        start=start,
        end=end,
        created=created,
        events=events,
    )
