"""Pair the segments of two streams that have to hold the same bytes.

Each segment of the source is paired with a segment of the target. The target of a copy says which
segments belong together, even if the copy has several sources. In any other two streams, segments
with the same keys belong together, in the order in which scale events made them. Offsets are the
source's, unless the text says otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from sluice.core.copy.planner import SeenSegment
    from sluice.core.events import chain
    from sluice.core.values.model import KeyRange


class Alignment(StrEnum):
    """Which bytes of two paired segments are compared if no copy made the target."""

    BEGINNINGS = "Beginnings"
    """Compare the first byte with the first byte, and so on."""
    OFFSETS = "Offsets"
    """Compare bytes with the same offset."""


class Extent(NamedTuple):
    """The bytes of a segment to compare, [start, end) in its own offsets.

    Attributes:
        segment: the segment's id.
        keys: the keys that it takes; None if they are unknown, as the segment is gone.
        start: first offset.
        end: offset after the last byte.
        generation: the number of the scale event that made it, see `stores.reading`.
        events: number of events in exactly these bytes, as the store counts; None if it cannot.
        stream: the index of its stream among the sources of a copy.
    """

    segment: int
    keys: KeyRange | None
    start: int
    end: int
    generation: int = 0
    events: int | None = None
    stream: int = 0

    @classmethod
    def of(cls, seen: SeenSegment, stream: int = 0) -> Extent:
        """Return the extent of a segment whose bounds were taken."""
        return cls(seen.id, seen.keys, seen.start, seen.end, seen.generation, seen.events, stream)

    def is_before(self, other: Extent) -> bool:
        """Tell whether readers have to read this segment before another one of the same stream."""
        return (
            self.stream == other.stream
            and self.keys is not None
            and other.keys is not None
            and self.generation < other.generation
            and self.keys.overlaps(other.keys)
        )


class SegmentLink(NamedTuple):
    """A copy's record about a target segment: it has [start, end) of a source segment.

    `stream` is the index of the source; `source` and `target` are ids of segments.

    Attributes:
        at: the offset of the first byte in the target.
        proved: of a copy that follows its source, the source offset up to which it has compared the
            bytes; None for other copies.
        recorded: the digest of the bytes up to there, as the copy has recorded it.
    """

    stream: int
    source: int
    start: int
    end: int
    target: int
    at: int = 0
    proved: int | None = None
    recorded: chain.Link | None = None


class Pair(NamedTuple):
    """The wanted bytes [start, end) of a source segment, and their place in a target segment.

    Attributes:
        source: the bytes that the source has; fewer than wanted if it was truncated since.
        target: the bytes that the target has.
        start: first offset wanted.
        end: offset after the last byte wanted.
        shift: the difference between an offset in the target and the same one in the source.
        inner: whether a later segment of the target is paired too. Then extra bytes here would lie
            between bytes of the source.
        proved, recorded: see Link. If the copy has compared the bytes, the retention of either
            stream may have taken the first ones since.
        only: whether these are all bytes of the target's segment that the copy has put there.
    """

    source: Extent
    target: Extent
    start: int
    end: int
    shift: int
    inner: bool = False
    proved: int | None = None
    recorded: chain.Link | None = None
    only: bool = True

    @property
    def taken(self) -> int:
        """The number of wanted bytes that the retention of a target has taken, if it follows."""
        return 0 if self.proved is None else self.of_target[0] - self.start

    @property
    def of_source(self) -> tuple[int, int]:
        """The bounds of the wanted bytes that the source has."""
        return _within(self.source.start, self.source.end, self.start, self.end)

    @property
    def of_target(self) -> tuple[int, int]:
        """The bounds of the wanted bytes that the target has."""
        first, last = self.target.start - self.shift, self.target.end - self.shift
        return _within(first, last, self.start, self.end)

    @property
    def gone(self) -> int:
        """The number of wanted bytes that the source has no more."""
        first, last = self.of_source
        return self.end - self.start - (last - first)

    @property
    def beyond(self) -> int:
        """The number of bytes that the target has after the wanted ones."""
        return max(0, self.target.end - max(self.target.start, self.end + self.shift))

    @property
    def before(self) -> int:
        """The number of bytes that the target has before the wanted ones."""
        return max(0, min(self.target.end, self.start + self.shift) - self.target.start)


class Pairing(NamedTuple):
    """The pairing of two streams' segments.

    Attributes:
        pairs: the pairs, in the order of the source.
        missing: segments of the source without a partner in the target.
        extra: segments of the target without a partner in the source.
        inner: the ids of extra segments that a later, paired segment of the target follows.
    """

    pairs: tuple[Pair, ...]
    missing: tuple[Extent, ...]
    extra: tuple[Extent, ...]
    inner: frozenset[int]


def pair_by_keys(
    source: Sequence[Extent], target: Sequence[Extent], alignment: Alignment
) -> Pairing:
    """Pair segments with the same keys, in the order in which they were made.

    Each segment of the source gets the first segment of the target that has its keys, has no
    partner yet, and is of a later generation than the partners of all segments that have to be read
    before.
    """
    found: dict[int, Extent] = {}
    taken: set[int] = set()
    for i, one in enumerate(source):
        least = max((found[j].generation + 1 for j in found if source[j].is_before(one)), default=0)
        for other in target:
            fits = other.generation >= least and other.segment not in taken
            if fits and _same_keys(one, other):
                found[i] = other
                taken.add(other.segment)
                break
    pairs = [
        Pair(
            source=source[i],
            target=other,
            start=source[i].start,
            end=source[i].end,
            shift=other.start - source[i].start if alignment is Alignment.BEGINNINGS else 0,
        )
        for i, other in found.items()
    ]
    missing = [one for i, one in enumerate(source) if i not in found]
    return _pairing(pairs, missing, target)


def pair_by_copy(
    links: Sequence[SegmentLink],
    source: Sequence[Extent],
    target: Sequence[Extent],
    *,
    whole: Container[int],
) -> Pairing:
    """Pair segments by the copy's records on its target.

    Args:
        links: the records of the target's segments.
        source: the sources' segments that still exist.
        target: the target's segments.
        whole: the indexes of the sources that were copied as a whole, not by ranges. Of these, each
            segment before a copied one must have been copied as well.
    """
    origin = {(one.stream, one.segment): one for one in source}
    place = {one.segment: one for one in target}
    parts: defaultdict[int, list[SegmentLink]] = defaultdict(list)
    for link in links:
        parts[link.target].append(link)
    pairs = [
        Pair(
            source=origin.get((link.stream, link.source), _gone(link)),
            target=_part(place[link.target], link, parts[link.target]),
            start=link.start,
            end=link.end,
            shift=link.at - link.start,
            proved=link.proved,
            recorded=link.recorded,
            only=len(parts[link.target]) == 1,
        )
        for link in links
        if link.target in place
    ]
    linked = {(pair.source.stream, pair.source.segment) for pair in pairs}
    missing = [
        one
        for one in source
        if one.stream in whole
        and (one.stream, one.segment) not in linked
        and any(one.is_before(pair.source) for pair in pairs)
    ]
    return _pairing(pairs, missing, target)


def _part(whole: Extent, link: SegmentLink, parts: Sequence[SegmentLink]) -> Extent:
    """Return the part of a target's segment that a record is about, of several in order."""
    if len(parts) == 1:
        return whole
    number = parts.index(link)
    end = whole.end if link is parts[-1] else min(whole.end, parts[number + 1].at)
    start = whole.start if link is parts[0] else max(whole.start, link.at)
    return whole._replace(start=min(start, end), end=end, events=None)


def _gone(link: SegmentLink) -> Extent:
    """Return an empty extent for a source's segment that is gone."""
    return Extent(link.source, None, link.end, link.end, stream=link.stream)


def _pairing(pairs: Sequence[Pair], missing: Sequence[Extent], target: Sequence[Extent]) -> Pairing:
    """Return the pairing, with the extra segments, and with `inner` by the target's order."""
    paired = [pair.target for pair in pairs]
    ids = {one.segment for one in paired}
    extra = [one for one in target if one.segment not in ids]

    def goes_on(one: Extent) -> bool:
        return any(one.is_before(other) for other in paired)

    return Pairing(
        pairs=tuple(pair._replace(inner=goes_on(pair.target)) for pair in pairs),
        missing=tuple(missing),
        extra=tuple(extra),
        inner=frozenset(one.segment for one in extra if goes_on(one)),
    )


def _same_keys(one: Extent, other: Extent) -> bool:
    return one.keys is not None and other.keys is not None and one.keys.is_like(other.keys)


def _within(first: int, last: int, start: int, end: int) -> tuple[int, int]:
    """Return the part of [first, last) within [start, end); an empty range there if none is."""
    begin = min(max(first, start), end)
    return begin, max(begin, min(last, end))
