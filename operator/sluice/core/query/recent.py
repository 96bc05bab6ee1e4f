"""Read rows of a result as they come, from any offset of a segment on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, Final, NamedTuple

from sluice.core.events.framing import FRAME, HEADER
from sluice.errors import EventsDamaged

MOST_ROW: Final = 64 << 10
"""Bytes of the longest row that is shown."""

_EXACT: Final = 1 << 53
"""Whole numbers up to this one are exact in JavaScript."""

_MARK: Final = b"\0\0\0\0"
"""The first bytes of an event's header. JSON has no such bytes."""

_MARKS: Final = 16
"""Marks that are tried: the first ones may be in the rest of a header."""


def first_event(data: bytes) -> int | None:
    """Return the index at which an event begins, from which on events follow up to the end.

    Args:
        data: bytes up to the end of an event, from anywhere in a segment of a result.

    Returns:
        None if there is no such index.
    """
    found = -1
    for _ in range(_MARKS):
        found = data.find(_MARK, found + 1)
        if found < 0:
            return None
        # A mark may begin some bytes before the header does, behind zeros of the one before.
        for at in range(found, found + HEADER):
            if _fits(data, at):
                return at
    return None


def _fits(data: bytes, at: int) -> bool:
    """Tell whether whole events that may be rows follow each other from an index to the end."""
    if len(data) - at < HEADER:
        return False
    while at < len(data):
        if len(data) - at < HEADER:
            return False
        (length,) = FRAME.unpack_from(data, at)
        end = at + HEADER + length
        if length >> 31 or end > len(data) or data[at + HEADER : at + HEADER + 1] != b"{":
            return False
        at = end
    return True


class Rows(NamedTuple):
    """Rows that came.

    Attributes:
        texts: the rows as JSON, as browsers read it exactly.
        skipped: the number of rows that are too long to be shown, or no rows.
    """

    texts: tuple[bytes, ...] = ()
    skipped: int = 0


class ResultReader:
    """Reads the rows of one segment from blocks that may be cut anywhere."""

    def __init__(self) -> None:
        self._left = bytearray()
        self._skip = 0

    def take(self, data: bytes | memoryview) -> Rows:
        """Return the rows that are whole with these bytes.

        Raises:
            EventsDamaged: the bytes are no events.
        """
        # The bytes of a row that is not shown are not kept until its end comes.
        passed = min(self._skip, len(data))
        self._skip -= passed
        left = self._left
        left += data[passed:]
        texts, skipped, at = [], 0, 0
        while len(left) - at >= HEADER:
            (length,) = FRAME.unpack_from(left, at)
            if length >> 31:
                raise EventsDamaged("the stream has bytes that are no events")
            end = at + HEADER + length
            if length > MOST_ROW:
                skipped += 1
                self._skip = max(0, end - len(left))
                at = min(end, len(left))
                continue
            if end > len(left):
                break
            shown = _shown(bytes(left[at + HEADER : end]))
            if shown is None:
                skipped += 1
            else:
                texts.append(shown)
            at = end
        del left[:at]
        return Rows(tuple(texts), skipped)


def _shown(event: bytes) -> bytes | None:
    """Return a row as JSON without line breaks that browsers read exactly; None if it is no row."""
    try:
        row = json.loads(event, parse_float=_number)
        if not isinstance(row, dict):
            return None
        return json.dumps(_exact(row), separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None


def _number(text: str) -> float | str:
    """Return a number; its text if a browser would round it."""
    number = float(text)
    written = repr(number)
    return number if written == text or Decimal(written) == Decimal(text) else text


def _exact(value: Any) -> Any:
    """Return a value without numbers that browsers cannot read, or would round."""
    if isinstance(value, Mapping):
        return {name: _exact(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_exact(one) for one in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        return str(value)
    return value
