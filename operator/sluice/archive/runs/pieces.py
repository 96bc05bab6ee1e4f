"""Cut the segments of a run into pieces for a restore, where bytes were lost.

Bytes that were lost before they could be archived leave a gap. If they were lost between two runs,
the gap has bytes on both sides. A restored segment can have no gaps. So the bytes after a gap are
restored as another segment with the same keys, as if the stream had been scaled there.
"""

from __future__ import annotations

import hashlib
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from sluice.core.archive.manifest import Gap, ObjectStretch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.core.archive.manifest import ArchivedSegment, Manifest


class RestoredSegment(NamedTuple):
    """A piece of a segment: from its beginning or a gap on, up to the next gap.

    Attributes:
        segment: the archived segment.
        id: the segment's id; for a piece after a gap, a number that no segment has.
        start: first offset that was to be archived.
        first: first offset that the archive holds; `end` if it holds none.
        end: offset after the last one.
        stretch: the archived bytes; None if there are none.
        sealed: whether it takes no more bytes.
    """

    segment: ArchivedSegment
    id: int
    start: int
    first: int
    end: int
    stretch: ObjectStretch | None
    sealed: bool


def pieces_of(run: Manifest) -> tuple[tuple[RestoredSegment, ...], ...]:
    """Return the pieces of a run by generation, as scale events would have made them.

    Returns:
        First the pieces that the stream begins with, by key range. Then, for each scale event and
        for each gap, the pieces that follow on others, by the ids of their segments.
    """
    generations: list[list[RestoredSegment]] = []
    for _, made in groupby(run.segments, key=lambda one: one.epoch):
        cut = [list(_cut(one)) for one in made]
        generations += [
            [one[number] for one in cut if number < len(one)]
            for number in range(max(map(len, cut)))
        ]
    generations[0].sort(key=lambda one: one.segment.keys.low)
    return tuple(map(tuple, generations))


def _cut(segment: ArchivedSegment) -> Iterator[RestoredSegment]:
    """Yield the pieces of a segment, in order."""
    edges = list(_edges(segment))
    for number, (start, first, end, stretch) in enumerate(edges):
        yield RestoredSegment(
            segment=segment,
            id=_number(segment, start) if number else segment.id,
            start=start,
            first=first,
            end=end,
            stretch=stretch,
            sealed=segment.sealed or number < len(edges) - 1,
        )


def _number(segment: ArchivedSegment, start: int) -> int:
    """Return the id of a piece after a gap: the same in all runs, and higher than any segment's."""
    place = hashlib.sha256(f"{segment.id}/{start}".encode()).digest()
    return 1 << 62 | int.from_bytes(place[:8], "big") >> 2


def _edges(segment: ArchivedSegment) -> Iterator[tuple[int, int, int, ObjectStretch | None]]:
    """Yield each piece's start, first archived offset, end, and archived bytes."""
    rows: Sequence[ObjectStretch | Gap] = sorted(
        (*segment.stretches, *segment.gaps), key=lambda one: one.start
    )
    lost: int | None = None
    for row in rows:
        if isinstance(row, ObjectStretch):
            yield row.start if lost is None else lost, row.start, row.end, row
            lost = None
        elif lost is None:
            lost = row.start
    if lost is not None:
        yield lost, segment.end, segment.end, None
    elif not rows:
        yield segment.start, segment.start, segment.end, None
