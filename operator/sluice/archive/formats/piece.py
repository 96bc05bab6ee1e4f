"""Pieces of segments: the input of the writers of all formats, and how they put objects."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.archive.manifest import StoredObject
from sluice.core.archive.names import DataName
from sluice.core.events.digest import CHUNK
from sluice.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sluice.archive.objects.objects import Buffer, Objects
    from sluice.core.archive.names import Format
    from sluice.core.events.grouping import EventStart, Tally

OBJECT: Final = 8 * CHUNK
"""Bytes of a segment in an object. An object ends at a multiple of it, or with the event there."""


class Written(NamedTuple):
    """An object that was put.

    Attributes:
        entry: its entry for a manifest.
        following: where the next event begins; None if the bytes are no events.
    """

    entry: StoredObject
    following: EventStart | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The bytes [start, end) of a segment, which one task writes in order.

    Attributes:
        epoch: epoch of the segment, as the archive counts.
        segment: id of the segment.
        start: first offset.
        end: offset after the last one.
        following: where the first event begins; None if that is not known. Only the format Segments
            allows None, and then counts no events. In other formats it is `start`.
        source: the segment's full name, as event pointers of the source have it.
    """

    epoch: int
    segment: int
    start: int
    end: int
    following: EventStart | None
    source: str = ""

    def checked(self, blocks: Iterable[memoryview]) -> Iterator[memoryview]:
        """Pass the blocks on. ProtocolError if they have more or fewer bytes than the piece."""
        at = self.start
        for block in blocks:
            at += len(block)
            if at > self.end:
                break
            yield block
        if at != self.end:
            raise ProtocolError(
                f"segment {self.segment} gave {at - self.start} bytes and more from offset "
                f"{self.start} on, and {self.end - self.start} were asked for"
            )

    def put(
        self, objects: Objects, form: Format, data: Buffer, *, start: int, end: int, tally: Tally
    ) -> StoredObject:
        """Put an object under its name, and return its entry for a manifest.

        Args:
            objects: the store of objects.
            form: the format of the object.
            data: its bytes.
            start: the first offset of the segment in it.
            end: the offset after the last one.
            tally: the count of its events.
        """
        sha256 = hashlib.sha256(data).hexdigest()
        name = str(DataName(self.epoch, self.segment, start, end, sha256, form))
        objects.put(name, data)
        return StoredObject(
            name=name,
            size=len(data),
            sha256=sha256,
            start=start,
            end=end,
            events=tally.events,
            first=tally.first,
            last=tally.last,
        )
