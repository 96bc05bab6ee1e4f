"""What a writer of any format is given, and how it cuts it into objects."""

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
    from sluice.core.events.grouping import Following, Tally

OBJECT: Final = 8 * CHUNK
"""Bytes of a segment in an object. Objects end at multiples of it, or with the event there."""


class Written(NamedTuple):
    """An object that was put.

    Attributes:
        entry: what a manifest says of it.
        following: where the next event begins; None where the bytes are no events.
    """

    entry: StoredObject
    following: Following | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bytes of a segment that are written by one task, one after the other: [start, end).

    Attributes:
        epoch: of the segment, as the archive counts.
        segment: its id.
        start: first offset.
        end: offset after the last one.
        following: where the first event begins; None where nobody knows. Only the format Segments
            can do without, and does not count events then; in the others it is the beginning.
        source: the segment's full name, as event pointers of the source have it.
    """

    epoch: int
    segment: int
    start: int
    end: int
    following: Following | None
    source: str = ""

    def checked(self, blocks: Iterable[memoryview]) -> Iterator[memoryview]:
        """The blocks, which have to be as many bytes as the piece has."""
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
        """Put an object under its name.

        Args:
            objects: where.
            form: what it is.
            data: its bytes.
            start: the first offset of the segment in it.
            end: the offset after the last one.
            tally: its events.
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
