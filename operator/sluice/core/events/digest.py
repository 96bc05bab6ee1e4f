"""Chunk digests: they make copies comparable, resumable and divisible.

A segment is divided into chunks of CHUNK bytes at absolute offsets of the source: chunk k is
[k * CHUNK, (k + 1) * CHUNK), cut by the range that is copied. The digest of a range is the SHA-256
over the concatenated SHA-256 digests of its chunks. Since chunks do not depend on where a reader
started, digests made by different tasks, attempts and tools can be combined.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CHUNK = 8 << 20
"""Bytes in a chunk."""


def chunk_of(offset: int) -> int:
    """Return the number of the chunk that holds the byte at `offset`."""
    return offset // CHUNK


def chunk_start(chunk: int, start: int) -> int:
    """Return the first offset of `chunk` in a range that begins at `start`."""
    return max(chunk * CHUNK, start)


def chunk_end(chunk: int, end: int) -> int:
    """Return the offset after `chunk` in a range that ends before `end`."""
    return min((chunk + 1) * CHUNK, end)


def chunks(start: int, end: int) -> range:
    """Return the numbers of the chunks of [start, end); none if the range is empty."""
    return range(start // CHUNK, -(-end // CHUNK)) if start < end else range(0)


def combine(digests: Iterable[bytes]) -> bytes:
    """Return the digest of a list of digests, in their order."""
    return hashlib.sha256(b"".join(digests)).digest()


class ChunkDigester:
    """Digests of the chunks of [start, end), fed in order from `start` on.

    Args:
        start: offset of the first byte that is fed; the start of a chunk or of the range.
        end: offset at which the range ends, which also ends a last chunk that is not whole.
    """

    def __init__(self, start: int, end: int) -> None:
        self.offset = start
        self.done: dict[int, bytes] = {}
        self._end = end
        self._hash = hashlib.sha256()

    def fork(self) -> ChunkDigester:
        """Return an independent digester that has been fed the same bytes."""
        other = ChunkDigester(self.offset, self._end)
        other.done, other._hash = dict(self.done), self._hash.copy()
        return other

    def feed(self, data: memoryview) -> bool:
        """Take the next bytes; return True if they end exactly where a chunk does."""
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
