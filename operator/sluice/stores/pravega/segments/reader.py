"""Read a segment's bytes in order, with several reads on their way at a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from sluice.errors import ProtocolError, StoreRejected
from sluice.stores.pravega.wire.messages import ReadSegment, SegmentRead
from sluice.stores.pravega.wire.refusals import Refusal, error_of
from sluice.stores.reading import Block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.stores.pravega.wire.connection import Connection
    from sluice.stores.reading import Flow

BLOCK: Final = 1 << 20
"""Bytes asked for at a time."""

DEPTH: Final = 4
"""Reads on their way at a time, to begin with."""

MOST_DEPTH: Final = 16
"""Most reads on their way at a time, where the caller sets no limit."""


class Depth:
    """The number of reads that are on their way at a time.

    It doubles while more than half of the time is spent waiting for replies: then the store or the
    network has a delay that more reads would hide.

    Args:
        first: the number to begin with.
        most: the largest number.
    """

    def __init__(self, first: int, most: int) -> None:
        self.now = min(first, most)
        self._most = most
        self._begin()

    def add(self, waited: float, passed: float) -> None:
        """Take in a reply.

        Args:
            waited: seconds that were spent waiting for it.
            passed: seconds since the reply before it.
        """
        self._waited += waited
        self._passed += passed
        self._replies += 1
        if self._replies == 2 * self.now:
            if 2 * self._waited > self._passed:
                self.now = min(2 * self.now, self._most)
            self._begin()

    def _begin(self) -> None:
        self._waited = self._passed = 0.0
        self._replies = 0


def read_blocks(
    connection: Connection,
    name: str,
    start: int,
    end: int,
    *,
    token: Callable[[], str],
    timeout: float,
    block: int = BLOCK,
    depth: Depth,
    flow: Flow | None = None,
) -> Iterator[Block]:
    """Read the bytes [start, end) of a segment over a connection of this call's own.

    Replies may be short and, from the store's long-term storage, in another order. After a short
    reply the rest is asked for again. An early reply is copied and kept until its turn. Data that
    come in order, as nearly always, are handed on without a copy.

    Args:
        connection: the connection, which no other caller uses meanwhile.
        name: the segment's full name.
        start: first offset, in bytes.
        end: offset behind the last byte.
        token: returns a valid token.
        timeout: seconds to wait for each reply.
        block: bytes asked for at a time.
        depth: how many reads are on their way at a time.
        flow: the speed; None for as fast as possible.

    Raises:
        SegmentTruncated, NoSuchSegment: see `SegmentReader.read`.
        StoreRejected: the segment ends before `end`.
        StoreUnavailable, StoreTimeout, StoreMoving, TokenExpired: another try may do.
    """
    waiting: dict[int, tuple[int, int]] = {}
    early: dict[int, bytes] = {}

    def ask(offset: int, length: int) -> None:
        request = connection.next_request()
        waiting[request] = (offset, length)
        connection.send(ReadSegment(name, offset, length, token(), request), timeout)

    asked = position = start
    last = time.monotonic()
    while position < end:
        if position in early:
            kept = early.pop(position)
            yield Block(position, memoryview(kept))
            position += len(kept)
            continue
        # Early replies count too, or one slow read would let all the others pile up here.
        # If no bytes may be asked for now, receive the replies that are on their way first.
        while (
            asked < end
            and len(waiting) + len(early) < depth.now
            and (length := _allowed(min(block, end - asked), flow, patient=not waiting))
        ):
            ask(asked, length)
            asked += length
        began = time.monotonic()
        reply = connection.receive(timeout)
        now = time.monotonic()
        depth.add(now - began, now - last)
        last = now
        if isinstance(reply, Refusal):
            raise error_of(reply, name)
        offset, length = waiting.pop(getattr(reply, "request", 0), (-1, 0))
        if not isinstance(reply, SegmentRead) or reply.offset != offset:
            raise ProtocolError(f"{connection.peer} answered another read than was asked")
        data = reply.data[:length]  # asked for fewer than 8 bytes, the store may answer with 8
        size = len(data)
        if not size:
            raise StoreRejected(f"{name} ends at byte {offset}, before byte {end}")
        if size < length:
            ask(offset + size, length - size)
        if offset == position:
            yield Block(offset, data)
            position += size
        else:
            early[offset] = bytes(data)


def _allowed(most: int, flow: Flow | None, *, patient: bool) -> int:
    """Return how many bytes may be asked for now. Wait for some if `patient`, else 0 if none."""
    if flow is None:
        return most
    return flow.take(most) if patient or flow.ready() else 0
