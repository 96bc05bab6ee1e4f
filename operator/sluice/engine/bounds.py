"""Taking bounds: which bytes of which segments a copy is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.planner import SeenSegment
from sluice.core.ranges import between
from sluice.errors import InvalidSpec, SourceReplaced, StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.model import SegmentInfo, StreamName
    from sluice.core.planner import CopyRequest, Position, SourceRequest
    from sluice.core.ranges import Stretch
    from sluice.stores.base import Store

HEAD_TRIES: Final = 5
"""How often the bounds are taken anew because the source was truncated meanwhile."""

COUNT_TRIES: Final = 20
"""How often a bound and the event count are asked for together before the count is left open."""


class _Wanted(NamedTuple):
    """A stretch of a range, and the number of the range."""

    stretch: Stretch
    generation: int
    range: int


def take_bounds(request: CopyRequest, stores: Sequence[Store]) -> list[SeenSegment]:
    """The segments that a request is of, with bounds, by sources, ranges and generations.

    Raises:
        InvalidSpec: a range is none of its stream.
        SourceReplaced: a stream was deleted, or truncated again and again, meanwhile.
    """
    found: list[SeenSegment] = []
    for number, source in enumerate(request.sources):
        first = found[-1].generation + 1 if found else 0
        found += [
            segment._replace(source=number, generation=first + segment.generation)
            for segment in bounds_of(source, stores[source.store])
        ]
    return found


def bounds_of(source: SourceRequest, store: Store) -> list[SeenSegment]:
    """The segments of one source, with bounds, by ranges and generations.

    Raises:
        InvalidSpec: a range is none of the stream.
        SourceReplaced: the stream was deleted, or truncated again and again, meanwhile.
    """
    for _ in range(HEAD_TRIES - 1):
        try:
            return _look(source, store)
        except SourceReplaced:
            # It may only have been truncated past a segment, as its retention does.
            if store.describe(source.stream) is None:
                raise
    return _look(source, store)


def _look(request: SourceRequest, store: Store) -> list[SeenSegment]:
    """One look at the segments: their bounds, and how many events the store says are in them.

    It cannot always tell, and may not count those that came by a transaction; a copy that is
    verified counts them itself. A count belongs to a bound only if the segment has the same length
    before and after it is asked for, so segments that moved meanwhile are asked for again. One that
    is written without a pause may never hold still: its count is not known. Nor is a truncated
    segment's, which includes what is gone, nor that of a part of a segment.

    What is written after a scale event that comes meanwhile is behind the bounds.
    """
    wanted = _wanted(request, store)
    names = [store.segment_name(request.stream, one.stretch.segment.id) for one in wanted]
    infos = _infos(request.stream, names, store)
    events: dict[int, int | None] = {}
    for _ in range(COUNT_TRIES):
        moving = [i for i in range(len(names)) if i not in events]
        if not moving:
            break
        counts = store.attributes([(names[i], store.event_count) for i in moving])
        after = _infos(request.stream, [names[i] for i in moving], store)
        for i, count, info in zip(moving, counts, after, strict=True):
            if info.length == infos[i].length:
                events[i] = count
            infos[i] = info
    created = store.attributes([(segment, store.creation_time) for segment in names])
    return [
        _seen(one, info, when or 0, events.get(i), field=request.field)
        for i, (one, info, when) in enumerate(zip(wanted, infos, created, strict=True))
    ]


def _wanted(request: SourceRequest, store: Store) -> list[_Wanted]:
    """The stretches of all ranges, in order; generations count through."""
    try:
        generations = store.generations(request.stream)
    except StreamNotFound:
        raise SourceReplaced(f"{request.stream} was deleted while bounds were taken") from None
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


def _cut(name: StreamName, position: Position, store: Store, field: str) -> dict[int, int] | None:
    """A cut's offsets; None for an edge of the stream."""
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


def _seen(
    one: _Wanted, info: SegmentInfo, created: int, events: int | None, *, field: str
) -> SeenSegment:
    """A segment with the bounds that are asked for, if it has such bytes."""
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


def _infos(name: StreamName, segments: Sequence[str], store: Store) -> list[SegmentInfo]:
    """The segments as they are now; SourceReplaced if one is gone."""
    found = [info for info in store.infos(segments) if info is not None]
    if len(found) < len(segments):
        raise SourceReplaced(f"{name} was deleted while its bounds were taken")
    return found
