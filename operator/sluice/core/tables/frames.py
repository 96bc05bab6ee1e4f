"""Divide bytes of a segment where events begin, without decoding them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.core.events.framing import FRAME, HEADER
from sluice.errors import EventsDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable


class AdmittedEvents(NamedTuple):
    """The offset after the last event that a limit admits, and the number of events before it."""

    end: int
    events: int


def admitted(
    blocks: Iterable[tuple[int, memoryview]],
    start: int,
    *,
    end: int,
    most_bytes: int | None = None,
    most_events: int | None = None,
) -> AdmittedEvents:
    """Count the events that a limit admits.

    The first event is always admitted, however long it is, so that a reader gets on.

    Args:
        blocks: the bytes from `start` on, in blocks with their offsets.
        start: offset of the first event.
        end: the offset after the last byte. An event that is not whole there is not admitted.
        most_bytes: most bytes of the events, with their headers.
        most_events: most events.

    Raises:
        EventsDamaged: no event begins where one has to.
    """
    at, events, header = start, 0, b""
    limit = end if most_bytes is None else min(end, start + most_bytes)
    for offset, data in blocks:
        while at < limit:
            index = at - offset + len(header)
            header += bytes(data[index : index + HEADER - len(header)])
            if len(header) < HEADER:
                break  # the rest is in the next block, or the event begins behind this one
            (length,) = FRAME.unpack(header)
            if length >> 31:
                raise EventsDamaged(f"no event begins at offset {at}")
            after, header = at + HEADER + length, b""
            if after > end or (events and after > limit):
                return AdmittedEvents(at, events)
            at, events = after, events + 1
            if events == most_events:
                return AdmittedEvents(at, events)
        if at >= limit:
            break
    return AdmittedEvents(at, events)
