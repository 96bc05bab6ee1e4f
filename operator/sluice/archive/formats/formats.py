"""The three formats behind one way to write a piece of a segment and one to read an object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.archive.names import Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sluice.archive.formats.content import Content
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

    They are put as the iterator is moved on, and are whole and lasting when it gives them. Memory
    is bounded by an object; of EventObjects by a chunk and its index.

    Args:
        form: how.
        objects: where to.
        piece: which bytes.
        blocks: they, cut anywhere.
        most: events that may become objects of their own.

    Raises:
        ProtocolError: the blocks are not as many bytes as the piece has.
        EventsDamaged: the bytes are no events, which only the format Segments can do without.
        SourceUnsupported: an event is too long, likewise.
        TooManyEvents: there are more.
    """
    # Each is imported where it is used: Arrow alone takes 50 MB of memory.
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
    content: Content,
    *,
    start: int,
    end: int,
) -> Iterator[memoryview]:
    """The bytes [start, end) of a segment, which one of its objects holds, with events' headers.

    Args:
        form: how they are held.
        objects: where.
        segment: whose they are.
        content: the object.
        start: first offset; what the object has not of it is left out.
        end: offset after the last one, likewise.

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
