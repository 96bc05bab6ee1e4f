"""Which bytes of one stream have to be those of another, where the two are to hold the same.

Each segment of the source is paired with one of the target. A copy of ours says by itself which
ones belong together, also where it is of several streams; of any two streams, those do that take
the same keys, in the order in which scale events made them. Offsets are the source's, unless it
says otherwise.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from sluice.core.copy.planner import SeenSegment
    from sluice.core.values.model import KeyRange


class Alignment(StrEnum):
    """Which bytes of two paired segments are compared where no copy tells."""

    BEGINNINGS = "Beginnings"
    """The first one with the first one."""
    OFFSETS = "Offsets"
    """Those of the same offset."""


class Extent(NamedTuple):
    """The bytes of a segment that count, [start, end) in its own offsets.

    Attributes:
        segment: its id.
        keys: that it takes; None where nobody can tell any more.
        start: first offset.
        end: offset after the last byte.
        generation: which scale event of its stream made it, see `stores.base`.
        events: how many there are in exactly these bytes, as the store counts; None if it cannot.
        stream: the place of its stream among the sources of a copy.
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
        """A segment whose bounds were taken."""
        return cls(seen.id, seen.keys, seen.start, seen.end, seen.generation, seen.events, stream)

    def is_before(self, other: Extent) -> bool:
        """Whether one has to read this segment before the other one of the same stream."""
        return (
            self.stream == other.stream
            and self.keys is not None
            and other.keys is not None
            and self.generation < other.generation
            and self.keys.overlaps(other.keys)
        )


class Link(NamedTuple):
    """What a copy says of a segment of its target: it begins with [start, end) of a source's."""

    stream: int
    source: int
    start: int
    end: int
    target: int


class Pair(NamedTuple):
    """The bytes [start, end) of a source segment, and where a target segment is to have them.

    Attributes:
        source: what the source has; less than is wanted where it was truncated since.
        target: what the target has.
        start: first offset wanted.
        end: offset after the last byte wanted.
        shift: what has to be added to an offset of the source.
        inner: whether the target goes on after this segment with one that is paired too, so that
            more bytes here would stand between those of the source.
    """

    source: Extent
    target: Extent
    start: int
    end: int
    shift: int
    inner: bool = False

    @property
    def of_source(self) -> tuple[int, int]:
        """What the source has of the wanted bytes."""
        return _within(self.source.start, self.source.end, self.start, self.end)

    @property
    def of_target(self) -> tuple[int, int]:
        """What the target has of them."""
        first, last = self.target.start - self.shift, self.target.end - self.shift
        return _within(first, last, self.start, self.end)

    @property
    def gone(self) -> int:
        """How many of the wanted bytes the source has no more."""
        first, last = self.of_source
        return self.end - self.start - (last - first)

    @property
    def beyond(self) -> int:
        """How many bytes the target has after the wanted ones."""
        return max(0, self.target.end - max(self.target.start, self.end + self.shift))

    @property
    def before(self) -> int:
        """How many bytes the target has before the wanted ones."""
        return max(0, min(self.target.end, self.start + self.shift) - self.target.start)


class Pairing(NamedTuple):
    """Two streams, held against each other.

    Attributes:
        pairs: in the order of the source.
        missing: segments of the source that the target has not.
        extra: segments of the target that the source has not.
        inner: those of the extra ones after which the target goes on with one that is paired.
    """

    pairs: tuple[Pair, ...]
    missing: tuple[Extent, ...]
    extra: tuple[Extent, ...]
    inner: frozenset[int]


def pair_by_keys(
    source: Sequence[Extent], target: Sequence[Extent], alignment: Alignment
) -> Pairing:
    """Pair segments that take the same keys, in the order in which they came to be.

    Each segment of the source gets the first one of the target's that takes its keys, is not
    another's yet, and does not come before one that has to be read earlier.
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
    links: Sequence[Link],
    source: Sequence[Extent],
    target: Sequence[Extent],
    *,
    whole: Container[int],
) -> Pairing:
    """Pair what a copy says that belongs together.

    Args:
        links: what the target's segments say.
        source: what there is of the sources' segments still.
        target: the target's segments.
        whole: the sources of which the copy has all that they had: then what lies before a segment
            that was copied was copied as well.
    """
    origin = {(one.stream, one.segment): one for one in source}
    place = {one.segment: one for one in target}
    pairs = [
        Pair(
            source=origin.get((link.stream, link.source), _gone(link)),
            target=place[link.target],
            start=link.start,
            end=link.end,
            shift=-link.start,
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


def _gone(link: Link) -> Extent:
    """A segment of a source that is not there any more."""
    return Extent(link.source, None, link.end, link.end, stream=link.stream)


def _pairing(pairs: Sequence[Pair], missing: Sequence[Extent], target: Sequence[Extent]) -> Pairing:
    """The pairs, and what is left over, with what is known of the order in the target."""
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
    """What of [first, last) lies within [start, end); empty, but within, if nothing does."""
    begin = min(max(first, start), end)
    return begin, max(begin, min(last, end))
