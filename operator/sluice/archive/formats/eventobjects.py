"""The format EventObjects: one object for each event, named after its place in the stream.

An event's object holds the event's own bytes. The events that begin in one chunk of the source have
an index: a data object, listed in the manifest, with the length and SHA-256 of each event. So a
missing or changed event is noticed. The lengths also say where each event begins.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.archive.formats.content import damaged
from sluice.archive.formats.piece import Written
from sluice.core.archive.names import EventName, Format
from sluice.core.events.framing import FRAME, HEADER
from sluice.core.events.grouping import EventStart, Group, Tally, groups
from sluice.errors import ArchiveDamaged, TooManyEvents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sluice.archive.formats.content import Checked
    from sluice.archive.formats.piece import Piece
    from sluice.archive.objects.objects import Objects

_MAGIC: Final = b"sluice-events-1\n"
_RECORD: Final = Struct(">I32s")

_BATCH_EVENTS: Final = 256
_BATCH_BYTES: Final = 8 << 20
"""Most events, and most bytes of events, that are read at a time."""


class IndexedEvent(NamedTuple):
    """An event in an index.

    Attributes:
        offset: offset of its header in the segment.
        length: number of its own bytes, without the header.
        sha256: SHA-256 of its own bytes.
    """

    offset: int
    length: int
    sha256: bytes

    @property
    def end(self) -> int:
        """The offset after the event."""
        return self.offset + HEADER + self.length


def write(
    objects: Objects, piece: Piece, blocks: Iterable[memoryview], *, most: int | None = None
) -> Iterator[Written]:
    """Put each event of a piece into an object, and yield their indices, in order.

    An index is put after its events, so all events of an index exist.

    Args:
        objects: the store of objects.
        piece: which bytes to write.
        blocks: the bytes of the piece, in blocks of any size.
        most: most events that the piece may have; None for no limit.

    Raises:
        EventsDamaged: the bytes are no events.
        SourceUnsupported: an event is too long.
        TooManyEvents: the piece has more than `most` events.
    """
    count = 0
    for group in groups(piece.checked(blocks), piece.start):
        count += group.events
        if most is not None and count > most:
            raise TooManyEvents(
                f"segment {piece.segment} has more than {most} events, each of which would be an "
                "object",
                field="spec.maxEvents",
            )
        yield _put(objects, piece, group)


def read(
    objects: Objects, content: Checked, epoch: int, segment: int, *, start: int, end: int
) -> Iterator[memoryview]:
    """Yield the bytes [start, end) of a segment, as far as they are in the events of an index.

    Each event is compared with the index.

    Raises:
        ArchiveDamaged: the object is no index, or an event is missing or has other bytes.
    """
    wanted = (one for one in index(content) if one.offset < end and start < one.end)
    for batch in _batches(wanted):
        parts: list[bytes] = []
        for body in _bodies(objects, batch, epoch, segment):
            if isinstance(body, ArchiveDamaged):
                raise body
            parts += (FRAME.pack(len(body)), body)
        first = batch[0].offset
        yield memoryview(b"".join(parts))[max(0, start - first) : end - first]


def damages(
    objects: Objects, content: Checked, epoch: int, segment: int
) -> Iterator[ArchiveDamaged]:
    """Yield an error for each damaged event of an index. ArchiveDamaged if that is no index."""
    for batch in _batches(index(content)):
        for body in _bodies(objects, batch, epoch, segment):
            if isinstance(body, ArchiveDamaged):
                yield body


def index(content: Checked) -> Iterator[IndexedEvent]:
    """Yield the events of an index, in order. ArchiveDamaged if it is no index."""
    entry = content.entry
    data = content.range(0, entry.size)
    if not data.startswith(_MAGIC) or (len(data) - len(_MAGIC)) % _RECORD.size:
        raise damaged(entry, "is no index of events")
    at = entry.start
    for length, sha256 in _RECORD.iter_unpack(memoryview(data)[len(_MAGIC) :]):
        event = IndexedEvent(at, length, sha256)
        yield event
        at = event.end
    if at != entry.end:
        raise damaged(entry, f"leads to offset {at}, and not to {entry.end}")


def _put(objects: Objects, piece: Piece, group: Group) -> Written:
    data = memoryview(group.data)
    records = [_MAGIC]
    items: list[tuple[str, memoryview]] = []
    for begin, end in pairwise(group.edges):
        event = data[begin + HEADER : end]
        records.append(_RECORD.pack(len(event), hashlib.sha256(event).digest()))
        place = EventName(piece.epoch, piece.segment, group.start + begin, len(event))
        items.append((str(place), event))
    objects.put_many(items)
    entry = piece.put(
        objects,
        Format.EVENT_OBJECTS,
        b"".join(records),
        start=group.start,
        end=group.end,
        tally=Tally(group.events, group.start, group.start + group.edges[-2]),
    )
    return Written(entry, EventStart(group.end))


def _batches(events: Iterable[IndexedEvent]) -> Iterator[list[IndexedEvent]]:
    """Group events into batches that are read at a time."""
    batch: list[IndexedEvent] = []
    size = 0
    for event in events:
        batch.append(event)
        size += event.length
        if len(batch) == _BATCH_EVENTS or size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _bodies(
    objects: Objects, batch: Sequence[IndexedEvent], epoch: int, segment: int
) -> Iterator[bytes | ArchiveDamaged]:
    """Yield each event's own bytes, or the error if they are missing or others."""
    names = [str(EventName(epoch, segment, one.offset, one.length)) for one in batch]
    for name, event, body in zip(names, batch, objects.get_many(names), strict=True):
        if body is None:
            yield ArchiveDamaged(f"{name} is missing", name=name)
        elif len(body) != event.length or hashlib.sha256(body).digest() != event.sha256:
            yield ArchiveDamaged(f"{name} holds another event", name=name)
        else:
            yield body
