"""The segments of a run as they are restored: cut into pieces where bytes were lost.

Bytes that were lost before they could be archived leave a gap, with bytes on both sides of it if
that was between two runs. A segment has no gaps, so what follows on one is restored as a segment of
its own that takes the same keys, as if the stream had been scaled there.
"""

from __future__ import annotations

import hashlib
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from sluice.core.archive.manifest import Gap, Stretch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.core.archive.manifest import ArchivedSegment, Manifest


class RestoredSegment(NamedTuple):
    """What a segment has from a gap on, or from its beginning, up to the next gap.

    Attributes:
        segment: of which it is a piece.
        id: the segment's; of one behind a gap a number that no segment has.
        start: first offset that was to be archived.
        first: first offset that is there; `end` where nothing is.
        end: offset after the last one.
        stretch: what there is.
        sealed: whether it takes no more bytes.
    """

    segment: ArchivedSegment
    id: int
    start: int
    first: int
    end: int
    stretch: Stretch | None
    sealed: bool


def pieces_of(run: Manifest) -> tuple[tuple[RestoredSegment, ...], ...]:
    """The pieces of a run, as scale events would have made them.

    Returns:
        First those that the stream begins with, by key range. Then, for each scale event and each
        gap that is to be gone over, those that follow on others, by their ids.
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
    """The pieces of a segment, one after the other."""
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
    """The number of a piece behind a gap: the same in all runs, and higher than any segment's."""
    place = hashlib.sha256(f"{segment.id}/{start}".encode()).digest()
    return 1 << 62 | int.from_bytes(place[:8], "big") >> 2


def _edges(segment: ArchivedSegment) -> Iterator[tuple[int, int, int, Stretch | None]]:
    """Where pieces begin, where what there is of them begins and ends, and that."""
    rows: Sequence[Stretch | Gap] = sorted(
        (*segment.stretches, *segment.gaps), key=lambda one: one.start
    )
    lost: int | None = None
    for row in rows:
        if isinstance(row, Stretch):
            yield row.start if lost is None else lost, row.start, row.end, row
            lost = None
        elif lost is None:
            lost = row.start
    if lost is not None:
        yield lost, segment.end, segment.end, None
    elif not rows:
        yield segment.start, segment.start, segment.end, None
