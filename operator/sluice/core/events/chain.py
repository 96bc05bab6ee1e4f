"""Chain digests: the digest of a segment that goes on.

The digest of a bounded range is a digest of the digests of all its chunks (`core.events.digest`),
which grows with the range. A chain has the same length for any range: each whole chunk k adds
`chain(k) = SHA-256(chain(k - 1) || SHA-256 of the chunk)`, and the first one follows the empty
chain. Chunks are cut at absolute offsets of the source, as everywhere.
"""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING, NamedTuple

from sluice.core.events.digest import chunk_end, chunk_of, chunk_start, chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Link(NamedTuple):
    """The digest of a segment's bytes up to an offset.

    Attributes:
        offset: the source offset behind the last byte.
        chain: the chain of the whole chunks; empty before the first one.
        rest: SHA-256 of the bytes of a chunk that is not whole yet; empty if there are none.
        held: the number of these bytes.
    """

    offset: int
    chain: bytes = b""
    rest: bytes = b""
    held: int = 0

    @property
    def digest(self) -> bytes:
        """The digest of all bytes up to the offset."""
        return hashlib.sha256(self.chain + self.rest).digest()


class Chain:
    """A chain that is fed a segment's bytes in order.

    Args:
        link: where the chain begins.
        held: the bytes of the link's chunk that is not whole yet.

    Raises:
        ValueError: `held` are not the link's bytes.
    """

    def __init__(self, link: Link, held: Iterable[memoryview] = ()) -> None:
        self._offset = link.offset
        self._chain = link.chain
        self._hash = hashlib.sha256()
        self._held = 0
        for data in held:
            self._hash.update(data)
            self._held += len(data)
        if self.link != link:
            raise ValueError("these are not the bytes of the link")

    @property
    def link(self) -> Link:
        """The digest of the bytes so far."""
        rest = self._hash.digest() if self._held else b""
        return Link(self._offset, self._chain, rest, self._held)

    def feed(self, data: memoryview) -> None:
        """Take the next bytes."""
        while data:
            end = chunk_end(chunk_of(self._offset), sys.maxsize)
            piece = data[: end - self._offset]
            self._hash.update(piece)
            self._held += len(piece)
            self._offset += len(piece)
            data = data[len(piece) :]
            if self._offset == end:
                self._close()

    def leap(self, to: int) -> None:
        """Go on at a later offset: the source has lost the bytes before it.

        A chunk that has bytes, and whose end is lost, is whole with the bytes that it has.
        """
        if self._held and chunk_of(to) != chunk_of(self._offset):
            self._close()
        self._offset = to

    def _close(self) -> None:
        self._chain = hashlib.sha256(self._chain + self._hash.digest()).digest()
        self._hash = hashlib.sha256()
        self._held = 0


def resumed(link: Link) -> Link:
    """Return a link from which a chain goes on without the bytes of the chunk that is not whole.

    That chunk counts as whole with these bytes, as in `Chain.leap`: no store has them any more.
    """
    if not link.held:
        return link
    return Link(link.offset, hashlib.sha256(link.chain + link.rest).digest())


def linked(start: int, end: int, known: Mapping[int, bytes], chain: bytes = b"") -> Link | None:
    """Return the link of a range whose chunks were hashed one by one.

    Args:
        start: first offset of the range.
        end: offset behind its last byte.
        known: SHA-256 of its chunks; the last one may not be whole.
        chain: the chain before the range.

    Returns:
        None if the digest of a chunk is missing.
    """
    for chunk in chunks(start, end):
        if chunk not in known:
            return None
        if chunk == chunk_of(end):  # it is not whole
            return Link(end, chain, known[chunk], end - chunk_start(chunk, start))
        chain = hashlib.sha256(chain + known[chunk]).digest()
    return Link(end, chain)
