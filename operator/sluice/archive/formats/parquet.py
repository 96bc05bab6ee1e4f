"""The format Parquet: one row for each event, for programs that read archives without Sluice.

The column `event` has the event's own bytes; the other columns give its place in the source. All
events that begin in one chunk of the source are one row group. So memory is bounded by a chunk and
its last event.
"""

from __future__ import annotations

from array import array
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sluice.archive.formats.content import ContentFile, damaged
from sluice.archive.formats.piece import OBJECT, Written
from sluice.core.archive.names import Format
from sluice.core.events.framing import HEADER
from sluice.core.events.grouping import EventStart, Group, Tally, groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sluice.archive.formats.content import Checked
    from sluice.archive.formats.piece import Piece
    from sluice.archive.objects.objects import Objects

LEVEL: Final = 1
"""Level of compression, as in the format Segments."""

SCHEMA: Final = pa.schema(
    [
        pa.field("event", pa.large_binary(), nullable=False),
        pa.field("segment", pa.int64(), nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("length", pa.int32(), nullable=False),
        pa.field("pointer", pa.string(), nullable=False),
    ]
)
"""`offset` is where the event's header begins, `length` the number of its own bytes."""


def write(objects: Objects, piece: Piece, blocks: Iterable[memoryview]) -> Iterator[Written]:
    """Put a piece of whole events into objects, in order. One object is held in memory.

    Args:
        objects: the store of objects.
        piece: which bytes to write.
        blocks: the bytes of the piece, in blocks of any size.

    Raises:
        EventsDamaged: the bytes are no events.
        SourceUnsupported: an event is too long.
    """
    found = groups(piece.checked(blocks), piece.start)
    for _, members in groupby(found, key=lambda group: group.start // OBJECT):
        yield _put(objects, piece, members)


def read(content: Checked, start: int, end: int) -> Iterator[memoryview]:
    """Yield those of the bytes [start, end) that the object holds, a row group at a time.

    Raises:
        ArchiveDamaged: the object is not of this format, or is damaged.
    """
    entry = content.entry
    try:
        yield from _read(content, start, end)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        first = str(error).partition("\n")[0]
        raise damaged(entry, f"is damaged: {first}") from None


def _put(objects: Objects, piece: Piece, members: Iterator[Group]) -> Written:
    sink = pa.BufferOutputStream()
    first = last = None
    end = count = 0
    with pq.ParquetWriter(
        sink,
        SCHEMA,
        compression="zstd",
        compression_level=LEVEL,
        use_dictionary=["segment", "epoch"],
        write_statistics=["segment", "epoch", "offset", "length"],
        write_page_checksum=True,
        store_schema=False,
    ) as writer:
        for group in members:
            writer.write_table(_table(piece, group), row_group_size=group.events)
            first = group.start if first is None else first
            last = group.start + group.edges[-2]
            end, count = group.end, count + group.events
    start = piece.start if first is None else first
    tally = Tally(count, first, last)
    data = memoryview(sink.getvalue()).cast("B")
    entry = piece.put(objects, Format.PARQUET, data, start=start, end=end, tally=tally)
    return Written(entry, EventStart(end))


def _table(piece: Piece, group: Group) -> pa.Table:
    """Make the rows of a group. Arrow copies all events' bytes at once."""
    count = group.events
    edges = pa.py_buffer(array("q", group.edges))
    framed = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), count, [None, edges, pa.py_buffer(group.data)]
    )
    begins = pa.Array.from_buffers(pa.int64(), count, [None, edges])
    offsets = pc.add(begins, pa.scalar(group.start, pa.int64()))
    sizes = pc.binary_length(framed)
    pointers = pc.binary_join_element_wise(
        pc.cast(offsets, pa.string()), pc.cast(sizes, pa.string()), "-"
    )
    columns = {
        # An end is needed: without one, Arrow 26 multiplies the largest number by the rows' count.
        "event": pc.binary_slice(framed, HEADER, len(group.data)),
        "segment": pa.repeat(pa.scalar(piece.segment, pa.int64()), count),
        "epoch": pa.repeat(pa.scalar(piece.epoch, pa.int64()), count),
        "offset": offsets,
        "length": pc.cast(pc.subtract(sizes, pa.scalar(HEADER, sizes.type)), pa.int32()),
        "pointer": pc.binary_join_element_wise(piece.source, pointers, ":"),
    }
    return pa.table(columns, schema=SCHEMA)


def _read(content: Checked, start: int, end: int) -> Iterator[memoryview]:
    entry = content.entry
    with pq.ParquetFile(ContentFile(content), page_checksum_verification=True) as file:
        at = entry.start
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number)
            statistics = rows.column(SCHEMA.get_field_index("offset")).statistics
            if statistics is None or statistics.min != at:
                raise ValueError(f"no row group begins at offset {at}")
            after = _first_of(file, number + 1, entry.end)
            if at < end and start < after:
                data = _raw(file.read_row_group(number, columns=["event", "offset"]), at)
                if len(data) != after - at:
                    raise ValueError(f"the events from offset {at} on do not lead to {after}")
                yield data[max(0, start - at) : end - at]
            at = after
        if at != entry.end:
            raise ValueError(f"it ends at offset {at}")


def _first_of(file: Any, number: int, end: int) -> int:
    """Return the offset where a row group begins, or the object's end."""
    if number == file.num_row_groups:
        return end
    column = file.metadata.row_group(number).column(SCHEMA.get_field_index("offset"))
    return end if column.statistics is None else int(column.statistics.min)


def _raw(table: pa.Table, start: int) -> memoryview:
    """Return the events with their headers, one after the other, as they stood in the segment."""
    events = table.column("event").combine_chunks().cast(pa.large_binary())
    lengths = pc.cast(pc.binary_length(events), pa.int64())
    swapped = array("q", lengths.to_pylist())
    swapped.byteswap()  # a header's two numbers are one in big-endian order
    headers = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(HEADER), len(events), [None, pa.py_buffer(swapped)]
    )
    framed = pc.binary_join_element_wise(
        headers.cast(pa.large_binary()), events, pa.scalar(b"", pa.large_binary())
    )
    _, edges, data = framed.buffers()
    begins = memoryview(edges).cast("q")[: len(events) + 1]
    offsets = table.column("offset").combine_chunks()
    wanted = pc.add(pa.array(begins[:-1], pa.int64()), pa.scalar(start, pa.int64()))
    if not wanted.equals(offsets):
        raise ValueError(f"the events from offset {start} on do not follow one another")
    return memoryview(data)[: begins[-1]]
