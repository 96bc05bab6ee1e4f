"""Decode events from the bytes of a segment, and encode them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.events.framing import FRAME, HEADER
from sluice.errors import EventsDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_EVENT: Final = 128 << 20
"""Bytes of the longest event that is decoded, which has to fit into memory."""


def encoded(event: bytes) -> bytes:
    """Return an event with its header, as it lies in a segment."""
    return FRAME.pack(len(event)) + event


def decoded(blocks: Iterable[memoryview], start: int) -> Iterator[tuple[int, bytes]]:
    """Decode the events in consecutive blocks, which begin where an event does.

    Args:
        blocks: the bytes. A block is not used after the next one is asked for.
        start: the offset of the first byte.

    Yields:
        The offset of each event's header, and the event's own bytes.

    Raises:
        EventsDamaged: no event begins where one has to, an event is longer than MOST_EVENT, or the
            bytes end within an event.
    """
    pending = bytearray()
    for block in blocks:
        pending += block
        at = 0
        while len(pending) - at >= HEADER:
            (length,) = FRAME.unpack_from(pending, at)
            if length >> 31:
                raise EventsDamaged(f"no event begins at {start}")
            if length > MOST_EVENT:
                raise EventsDamaged(
                    f"the event that begins at {start} has {length:,} bytes, "
                    f"and events of at most {MOST_EVENT:,} are read"
                )
            end = at + HEADER + length
            if len(pending) < end:
                break
            yield start, bytes(memoryview(pending)[at + HEADER : end])
            start += end - at
            at = end
        del pending[:at]
    if pending:
        raise EventsDamaged(f"the bytes end within the event that begins at {start}")
