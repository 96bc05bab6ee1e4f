"""Segments to archive: bytes of events, and functions that write them in any format."""

from __future__ import annotations

import random
import struct
from itertools import pairwise
from typing import TYPE_CHECKING

from sluice.archive.formats import formats
from sluice.archive.formats.content import Checked
from sluice.archive.formats.piece import Piece
from sluice.core.archive.manifest import ArchivedSegment
from sluice.core.events.grouping import EventStart
from sluice.core.values.model import KeyRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sluice.archive.objects.objects import Objects
    from sluice.core.archive.manifest import StoredObject
    from sluice.core.archive.names import Format

SEGMENT = ArchivedSegment(
    epoch=3,
    id=(3 << 32) + 7,
    keys=KeyRange(low=0, high=1),
    created=1,
    start=0,
    end=0,
    sealed=False,
)


def framed(events: Iterable[bytes]) -> bytes:
    """Return events as they lie in a segment."""
    return b"".join(struct.pack(">ii", 0, len(event)) + event for event in events)


def many_events(seed: int, sizes: Iterable[int]) -> list[bytes]:
    """Return events of these sizes, with random bytes."""
    chance = random.Random(seed)  # noqa: S311 - no secrets
    return [chance.randbytes(size) for size in sizes]


def blocks(data: bytes, cuts: Iterable[int]) -> Iterator[memoryview]:
    """Return the data in blocks cut at these places. Blocks may be empty."""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return (memoryview(data)[start:end] for start, end in pairwise(edges))


def write(
    form: Format,
    objects: Objects,
    data: bytes,
    start: int,
    *,
    cuts: Iterable[int] = (),
    whole: bool = True,
    most: int | None = None,
) -> list[StoredObject]:
    """Archive these bytes of SEGMENT from offset `start` on."""
    piece = Piece(
        epoch=SEGMENT.epoch,
        segment=SEGMENT.id,
        start=start,
        end=start + len(data),
        following=EventStart(start) if whole else None,
        source="a/b/7.#epoch.3",
    )
    written = formats.write(form, objects, piece, blocks(data, cuts), most=most)
    return [one.entry for one in written]


def read(
    form: Format,
    objects: Objects,
    entries: Sequence[StoredObject],
    start: int = 0,
    end: int = 1 << 62,
) -> bytes:
    """Return the bytes [start, end) of SEGMENT from the objects."""
    return b"".join(
        bytes(block)
        for entry in entries
        for block in formats.read(
            form, objects, SEGMENT, Checked(objects, entry), start=start, end=end
        )
    )
