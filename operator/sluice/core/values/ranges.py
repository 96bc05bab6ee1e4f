"""Ranges of a stream: from one cut to another, through all scale events between them.

A cut is a position in a stream: an offset in each of some segments that together take every key
exactly once. Generations are a stream's segments as scale events made them, see `stores.reading`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.core.values.model import break_in
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.values.model import Segment

    Cut = Mapping[int, int]
    """Offsets in bytes, by segment id."""


class SegmentRange(NamedTuple):
    """The part of a segment that lies in a range.

    Attributes:
        segment: the segment.
        generation: its generation within the range, from 0.
        start: first offset; None for the first readable one.
        end: offset after the last byte; None for the segment's end when the bounds are taken.
    """

    segment: Segment
    generation: int
    start: int | None = None
    end: int | None = None


class _Placed(NamedTuple):
    """A segment, and the index of its generation in the stream."""

    segment: Segment
    made: int


def between(
    generations: Sequence[Sequence[Segment]], begin: Cut | None, end: Cut | None, *, field: str
) -> list[SegmentRange]:
    """Return the segments from one cut to another, by generation.

    Args:
        generations: the stream's segments.
        begin: where the range begins; None for the stream's head.
        end: where it ends; None for its tail.
        field: the range's field in the spec, for errors.

    Raises:
        InvalidSpec: a cut is not a cut of this stream, or the end is before the beginning. The
            error names the field of the cut; the remedy for a wrong cut says how to get one.
    """
    placed = [_Placed(segment, made) for made, new in enumerate(generations) for segment in new]
    first = _segments(placed, begin, f"{field}.from") if begin is not None else None
    last = _segments(placed, end, f"{field}.to") if end is not None else None
    kept = [
        one
        for one in placed
        if not (first and _is_before(one, first)) and not (last and _is_after(one, last))
    ]
    for one in first or ():
        backwards = (begin or {}).get(one.segment.id, 0) > (end or {}).get(
            one.segment.id, float("inf")
        )
        if one not in kept or backwards:
            raise InvalidSpec(
                f"in segment {one.segment.id} the range ends before it begins",
                field=f"{field}.to",
                remedy="Give a later end, or change the two.",
            )
    if any(one not in kept for one in last or ()):
        raise InvalidSpec(
            "the range ends before it begins",
            field=f"{field}.to",
            remedy="Give a later end, or change the two.",
        )
    beginning = list(first) if first is not None else [one for one in kept if one.made == 0]
    later = [one for one in kept if one not in beginning]
    numbers = {made: i for i, made in enumerate(sorted({one.made for one in later}), start=1)}
    beginning.sort(key=lambda one: one.segment.keys.low)
    return [
        SegmentRange(
            segment=one.segment,
            generation=0 if one in beginning else numbers[one.made],
            start=(begin or {}).get(one.segment.id),
            end=(end or {}).get(one.segment.id),
        )
        for one in (*beginning, *later)
    ]


def _segments(placed: Sequence[_Placed], cut: Cut, field: str) -> list[_Placed]:
    """Return the segments of a cut, in key order, or raise InvalidSpec if it is not a cut."""
    known = {one.segment.id: one for one in placed}
    unknown = sorted(set(cut) - set(known))
    remedy = "Take the cut from the stream itself, as with getStreamInfo of Pravega's client."
    if unknown:
        raise InvalidSpec(
            f"the stream has no segment {unknown[0]}, or it was truncated",
            field=field,
            remedy=remedy,
        )
    found = sorted((known[number] for number in cut), key=lambda one: one.segment.keys.low)
    broken = break_in(one.segment.keys for one in found)
    if broken is not None:
        what = "takes no events of" if broken[1] > broken[0] else "takes twice"
        raise InvalidSpec(
            f"the cut is no position in the stream: it {what} the keys from "
            f"{min(broken):.4f} to {max(broken):.4f}",
            field=field,
            remedy=remedy,
        )
    if any(_is_before(one, found) and _is_after(one, found) for one in placed):
        raise InvalidSpec(
            "the cut is no position in the stream: to come to one of its segments, one has to have "
            "read past another",
            field=field,
            remedy=remedy,
        )
    return found


def _is_before(one: _Placed, cut: Sequence[_Placed]) -> bool:
    """Tell whether a segment, or a part of its keys, was replaced before a cut."""
    return any(
        other.made > one.made and other.segment.keys.overlaps(one.segment.keys) for other in cut
    )


def _is_after(one: _Placed, cut: Sequence[_Placed]) -> bool:
    """Tell whether a segment, or a part of its keys, was made after a cut."""
    return any(
        other.made < one.made and other.segment.keys.overlaps(one.segment.keys) for other in cut
    )
