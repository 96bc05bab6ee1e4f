"""Write a piece of a segment, or read an object, in any of the three formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.archive.names import Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sluice.archive.formats.content import Checked
    from sluice.archive.formats.piece import Piece, Written
    from sluice.archive.objects.objects import Objects
    from sluice.core.archive.manifest import ArchivedSegment


def write(
    form: Format,
    objects: Objects,
    piece: Piece,
    blocks: Iterable[memoryview],
    *,
    most: int | None = None,
) -> Iterator[Written]:
    """Put a piece of a segment into objects, in the order of the stream.

    Objects are put as the iterator advances. Each is complete and durable when it is yielded.
    Memory holds one object at a time, with EventObjects one chunk and its index.

    Args:
        form: the format.
        objects: the store of objects.
        piece: which bytes to write.
        blocks: the bytes of the piece, in blocks of any size.
        most: most events that may become objects of their own.

    Raises:
        ProtocolError: the blocks have more or fewer bytes than the piece.
        EventsDamaged: the bytes are no events. Only the format Segments accepts that.
        SourceUnsupported: an event is too long. Only the format Segments accepts that.
        TooManyEvents: there are more than `most` events.
    """
    # Import each format where it is used: Arrow alone takes 50 MB of memory.
    match form:
        case Format.SEGMENTS:
            from sluice.archive.formats import segments  # noqa: PLC0415

            return segments.write(objects, piece, blocks)
        case Format.PARQUET:
            from sluice.archive.formats import parquet  # noqa: PLC0415

            return parquet.write(objects, piece, blocks)
        case Format.EVENT_OBJECTS:
            from sluice.archive.formats import eventobjects  # noqa: PLC0415

            return eventobjects.write(objects, piece, blocks, most=most)


def read(
    form: Format,
    objects: Objects,
    segment: ArchivedSegment,
    content: Checked,
    *,
    start: int,
    end: int,
) -> Iterator[memoryview]:
    """Yield those of the bytes [start, end) of a segment that an object holds, with event headers.

    Args:
        form: the format of the object.
        objects: the store of objects.
        segment: the segment.
        content: the object.
        start: first offset; it may lie before the object's bytes.
        end: offset after the last byte; it may lie behind the object's bytes.

    Raises:
        ArchiveDamaged: the object is not what its manifest says; the message names it.
    """
    match form:
        case Format.SEGMENTS:
            from sluice.archive.formats import segments  # noqa: PLC0415

            return segments.read(content, start, end)
        case Format.PARQUET:
            from sluice.archive.formats import parquet  # noqa: PLC0415

            return parquet.read(content, start, end)
        case Format.EVENT_OBJECTS:
            from sluice.archive.formats import eventobjects  # noqa: PLC0415

            place = (segment.epoch, segment.id)
            return eventobjects.read(objects, content, *place, start=start, end=end)
