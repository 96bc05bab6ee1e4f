"""The bytes of records in a segment: of a copy's journal, and of the other logs of drivers.

A record is JSON, framed like an event: int32 0, int32 length.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final

from sluice.errors import JournalDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Buffer = bytes | bytearray | memoryview

_HEADER = struct.Struct(">ii")
SHOWN: Final = 200
"""Most characters of a record to quote in a message."""

MOST_RECORD: Final = 8 << 20
"""Bytes of the longest record: stores take appends of up to 8 MiB. The limit also bounds reading: a
record is read as a whole, which blocks other reads, and a hostile server may claim any length."""


def frame(record: Mapping[str, Any]) -> bytes:
    """Return a record's bytes as they are in the segment."""
    body = json.dumps(record, separators=(",", ":")).encode()
    return _HEADER.pack(0, len(body)) + body


def unframe(data: bytes) -> list[dict[str, Any]]:
    """Return the records in `data`, which must be whole frames.

    Raises:
        JournalDamaged: the bytes are not records.
    """
    return [parsed(body, at) for at, body in bodies([data])]


def bodies(pieces: Iterable[Buffer]) -> Iterator[tuple[int, bytes]]:
    """Cut a journal, which comes in pieces, into records: yield the offset and JSON of each.

    Raises:
        JournalDamaged: the bytes are not whole frames.
    """
    left, at = bytearray(), 0
    for piece in pieces:
        left += piece
        begin = 0
        while len(left) - begin >= _HEADER.size:
            kind, length = _HEADER.unpack_from(left, begin)
            if kind != 0 or not 0 <= length <= MOST_RECORD:
                raise _damaged(at)
            end = begin + _HEADER.size + length
            if end > len(left):
                break
            yield at, bytes(left[begin + _HEADER.size : end])
            at += end - begin
            begin = end
        del left[:begin]
    if left:
        raise _damaged(at)


def parsed(body: bytes, at: int) -> dict[str, Any]:
    """Parse a record.

    Args:
        body: its JSON.
        at: its offset, for messages.

    Raises:
        JournalDamaged: the bytes are not a record.
    """
    try:
        record = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _damaged(at) from error
    if not isinstance(record, dict):
        raise _damaged(at)
    return record


def _damaged(at: int) -> JournalDamaged:
    return JournalDamaged(f"the copy's journal is damaged at offset {at}")
