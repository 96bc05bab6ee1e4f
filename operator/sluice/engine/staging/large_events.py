"""Staging segments of single events, which are longer than one append takes.

Such an event of a followed source is staged by itself, and merged on the condition that the target
has all before it. Its staging segment is named by where the event begins. That is the position of
the target's segment until then, so the names of what a driver has left follow from the positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.follow.position import position_of
from sluice.core.values import identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.core.values.model import StreamName
    from sluice.stores.base import Store
    from sluice.stores.writing import SegmentSink


def event_name(
    copy_id: str, target: StreamName, segment: int, start: int, store: SegmentSink
) -> str:
    """Return the full name of the staging segment of one event.

    Args:
        copy_id: the copy.
        target: its target stream.
        segment: id of the target's segment.
        start: the source offset at which the event begins.
        store: the target store.
    """
    return store.staging_name(target, segment, identity.event_key(copy_id, start))


def clear_events(
    copy_id: str, target: StreamName, places: Iterable[tuple[int, int]], store: Store
) -> int:
    """Delete what is staged of single events.

    None of them may be merged any more: the positions of their segments are other numbers, for
    good. So a deletion meets no merge.

    Args:
        copy_id: the copy.
        target: its target stream.
        places: id of the target's segment, and source offset at which the event begins, each.
        store: the target store.

    Returns:
        How many segments were deleted.
    """
    names = [event_name(copy_id, target, *place, store) for place in places]
    there = [name for name, info in zip(names, store.infos(names), strict=True) if info]
    return sum(store.delete(name) for name in there)


def sweep_events(copy_id: str, target: StreamName, segments: Sequence[int], store: Store) -> int:
    """Delete what is staged of single events at the ends of segments that are halted.

    Args:
        copy_id: the copy. It has ended, or is about to.
        target: its target stream.
        segments: ids of the target's segments.
        store: the target store.

    Returns:
        How many segments were deleted.
    """
    _, origin, _ = identity.origin_attributes(copy_id)
    names = [store.segment_name(target, segment) for segment in segments]
    sources = store.attributes([(name, origin) for name in names])
    known = [
        (segment, name, source)
        for segment, name, source in zip(segments, names, sources, strict=True)
        if source is not None
    ]
    asked = [(name, identity.position_attribute(copy_id, source)) for _, name, source in known]
    positions = [position_of(value) for value in store.attributes(asked)]
    places = [
        (segment, position.offset)
        for (segment, *_), position in zip(known, positions, strict=True)
        if position is not None and position.halted
    ]
    return clear_events(copy_id, target, places, store)
