"""Chunk digests: what makes copies comparable, resumable and splittable.

A segment is divided into chunks of CHUNK bytes at absolute offsets of the source: chunk k is
[k * CHUNK, (k + 1) * CHUNK), cut by the range that is copied. The digest of a range is the SHA-256
over the concatenated SHA-256 digests of its chunks. Since a chunk does not depend on where anybody
started to read, digests made by different tasks, attempts and tools can be put together.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CHUNK = 8 << 20
"""Bytes in a chunk."""


def chunk_of(offset: int) -> int:
    """The chunk that holds the byte at `offset`."""
    return offset // CHUNK


def chunk_start(chunk: int, start: int) -> int:
    """The first offset of `chunk` in a range that begins at `start`."""
    return max(chunk * CHUNK, start)


def chunk_end(chunk: int, end: int) -> int:
    """The offset after `chunk` in a range that ends before `end`."""
    return min((chunk + 1) * CHUNK, end)


def chunks(start: int, end: int) -> range:
    """The chunks of the range [start, end); none when it is empty."""
    return range(start // CHUNK, -(-end // CHUNK)) if start < end else range(0)


def combine(digests: Iterable[bytes]) -> bytes:
    """The digest of a list of digests, in their order."""
    return hashlib.sha256(b"".join(digests)).digest()


class ChunkDigester:
    """Digests of the chunks of [start, end), fed in order from `start` on.

    Args:
        start: where the first byte fed lies; the start of a chunk or of the range.
        end: where the range ends, which closes a last chunk that is not whole.
    """

    def __init__(self, start: int, end: int) -> None:
        self.offset = start
        self.done: dict[int, bytes] = {}
        self._end = end
        self._hash = hashlib.sha256()

    def fork(self) -> ChunkDigester:
        """Another one, that was fed the same bytes."""
        other = ChunkDigester(self.offset, self._end)
        other.done, other._hash = dict(self.done), self._hash.copy()
        return other

    def feed(self, data: memoryview) -> bool:
        """Take the next bytes; True when they end exactly where a chunk does."""
        while data:
            boundary = chunk_end(chunk_of(self.offset), self._end)
            piece = data[: boundary - self.offset]
            self._hash.update(piece)
            self.offset += len(piece)
            data = data[len(piece) :]
            if self.offset == boundary:
                self.done[chunk_of(boundary - 1)] = self._hash.digest()
                self._hash = hashlib.sha256()
                if not data:
                    return True
        return False
