"""Read a segment from a run of any format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.archive.formats import formats
from sluice.archive.formats.content import Checked
from sluice.errors import ArchiveDamaged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.archive.objects.objects import Objects
    from sluice.core.archive.manifest import ArchivedSegment
    from sluice.core.archive.names import Format


def read_segment(
    objects: Objects, form: Format, segment: ArchivedSegment, start: int, end: int
) -> Iterator[memoryview]:
    """Yield the bytes [start, end) of a segment as they stood in the source, in order.

    Each object is compared with its SHA-256 before any of its bytes is yielded. One object at a
    time is held in memory.

    Raises:
        ArchiveDamaged: an object is missing or has other bytes, or the run lacks these bytes.
    """
    at = start
    for stretch in segment.stretches:
        for entry in stretch.objects:
            if not (entry.start <= at < min(end, entry.end)):
                continue
            content = Checked(objects, entry)
            for block in formats.read(form, objects, segment, content, start=at, end=end):
                yield block
                at += len(block)
    if at < end:
        raise ArchiveDamaged(f"the run has no byte {at} of segment {segment.id}")
