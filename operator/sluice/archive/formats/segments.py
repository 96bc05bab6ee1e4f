"""The format Segments: raw bytes in frames of zstd, with an index at the end.

An object has Zstandard's seekable format: a frame for each chunk of the source, then a skippable
frame with the compressed and uncompressed size of each. So `zstd -d` gives the bytes of the
segment, events with their headers, and any chunk can be read by itself.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

import zstandard

from sluice.archive.formats.content import damaged
from sluice.archive.formats.piece import OBJECT, Written
from sluice.core.archive.names import Format
from sluice.core.events.digest import CHUNK, chunk_end, chunk_of
from sluice.core.events.grouping import EventStart, Tallier, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sluice.archive.formats.content import Checked
    from sluice.archive.formats.piece import Piece
    from sluice.archive.objects.objects import Objects

LEVEL: Final = 1
"""Level of compression: the fastest one, since archiving should be as fast as copying."""

_SKIPPABLE: Final = Struct("<II")
_ENTRY: Final = Struct("<II")
_FOOTER: Final = Struct("<IBI")
_MAGIC: Final = 0x184D2A5E
_SEEKABLE: Final = 0x8F92EAB1
_FED: Final = 1 << 18
"""Bytes to decompress at once: a whole frame's output would need newly mapped memory each time."""

_TAIL: Final = 4096
"""Bytes that are read first, more than the index of an object of this size has."""


class _Frame(NamedTuple):
    """A frame: its place and size in the object, and the bytes of the segment that it holds."""

    at: int
    size: int
    start: int
    end: int


def write(objects: Objects, piece: Piece, blocks: Iterable[memoryview]) -> Iterator[Written]:
    """Put a piece into objects, in order. One object at a time is held in memory.

    Args:
        objects: the store of objects.
        piece: which bytes to write.
        blocks: the bytes of the piece, in blocks of any size.
    """
    writer = _Writer(objects, piece)
    for block in piece.checked(blocks):
        yield from writer.feed(block)


def read(content: Checked, start: int, end: int) -> Iterator[memoryview]:
    """Yield those of the bytes [start, end) that the object holds, frame by frame.

    Raises:
        ArchiveDamaged: the object is not of this format, or is damaged.
    """
    decompressor = zstandard.ZstdDecompressor()
    for frame in _index(content):
        if frame.start < end and start < frame.end:
            at = frame.start
            for block in _decompressed(content, frame, decompressor):
                if own := memoryview(block)[max(0, start - at) : max(0, end - at)]:
                    yield own
                at += len(block)


class _Writer:
    """The object that is being filled."""

    def __init__(self, objects: Objects, piece: Piece) -> None:
        self._objects = objects
        self._piece = piece
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self._tallier = Tallier(piece.following, piece.start)
        self._start = self._at = piece.start
        self._chunk = memoryview(bytearray(CHUNK))  # reused: new memory would have to be mapped
        self._filled = 0
        self._frames: list[bytes] = []
        self._sizes: list[tuple[int, int]] = []

    def feed(self, block: memoryview) -> Iterator[Written]:
        """Add bytes, and yield the objects that they complete."""
        while block:
            boundary = chunk_end(chunk_of(self._at), self._piece.end)
            own, block = block[: boundary - self._at], block[boundary - self._at :]
            self._tallier.feed(own)
            self._chunk[self._filled : self._filled + len(own)] = own
            self._filled += len(own)
            self._at += len(own)
            if self._at == boundary:
                self._close_frame()
                if self._at % OBJECT == 0 or self._at == self._piece.end:
                    yield self._put()

    def _close_frame(self) -> None:
        frame = self._compressor.compress(self._chunk[: self._filled])
        self._frames.append(frame)
        self._sizes.append((len(frame), self._filled))
        self._filled = 0

    def _put(self) -> Written:
        table = b"".join(_ENTRY.pack(*sizes) for sizes in self._sizes)
        footer = _FOOTER.pack(len(self._sizes), 0, _SEEKABLE)
        head = _SKIPPABLE.pack(_MAGIC, len(table) + len(footer))
        data = b"".join((*self._frames, head, table, footer))
        start, self._start = self._start, self._at
        self._frames.clear()
        self._sizes.clear()
        tally, following = self._tallier.end(), self._tallier.following
        if self._at == self._piece.end and following != EventStart(self._at):
            tally, following = Tally(None), None  # no event ends here, so these are no events
        entry = self._piece.put(
            self._objects, Format.SEGMENTS, data, start=start, end=self._at, tally=tally
        )
        return Written(entry, following)


def _index(content: Checked) -> list[_Frame]:
    """Read the index of an object, and return its frames in order."""
    entry = content.entry
    tail = content.range(max(0, entry.size - _TAIL), entry.size)
    if len(tail) < _FOOTER.size:
        raise damaged(entry, "is damaged: it is too short")
    count, descriptor, magic = _FOOTER.unpack_from(tail, len(tail) - _FOOTER.size)
    if magic != _SEEKABLE or descriptor:
        raise damaged(entry, "is damaged: it does not end with an index")
    size = _SKIPPABLE.size + count * _ENTRY.size + _FOOTER.size
    if size > entry.size:
        raise damaged(entry, "is damaged: its index is longer than itself")
    if size > len(tail):
        tail = content.range(entry.size - size, entry.size)
    table = tail[len(tail) - size + _SKIPPABLE.size : len(tail) - _FOOTER.size]
    frames = []
    at, offset = 0, entry.start
    for compressed, raw in _ENTRY.iter_unpack(table):
        if not 0 < raw <= CHUNK:
            raise damaged(entry, f"is damaged: its index has a frame of {raw} bytes")
        frames.append(_Frame(at, compressed, offset, offset + raw))
        at, offset = at + compressed, offset + raw
    if at != entry.size - size or offset != entry.end:
        raise damaged(entry, "is damaged: its index is not that of these bytes")
    return frames


def _decompressed(
    content: Checked, frame: _Frame, decompressor: zstandard.ZstdDecompressor
) -> Iterator[bytes]:
    """Yield the bytes of a frame, in blocks. Its checksum and length are compared at the end."""
    entry = content.entry
    data = memoryview(content.range(frame.at, frame.at + frame.size))
    wanted = frame.end - frame.start
    stream = decompressor.decompressobj()
    try:
        if zstandard.frame_content_size(data) != wanted:
            raise damaged(entry, f"is damaged: a frame has not the {wanted} bytes of its index")
        for at in range(0, len(data), _FED):
            if block := stream.decompress(data[at : at + _FED]):
                yield block
    except zstandard.ZstdError as error:
        raise damaged(entry, f"is damaged at byte {frame.at}: {error}") from None
    if not stream.eof or stream.unused_data:
        raise damaged(entry, f"is damaged at byte {frame.at}: a frame has another length")
