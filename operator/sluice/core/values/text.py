"""Numbers and names as people read them."""

from __future__ import annotations

import difflib
import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_STEP: Final = 1000
_MINUTE: Final = 60
_HOUR: Final = 3600

EMPTY: Final = "The source, or the part of it that was copied, held no events."
"""The sentence about a copy without a byte: maybe its range is not the one that was meant."""


def size(count: float) -> str:
    """Return a number of bytes in decimal units, with two or three digits: `271 MB`, `1.5 GB`."""
    value, unit = float(count), 0
    while round(value) >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    digits = 1 if unit and round(value, 1) < _STEP / 100 else 0
    return f"{value:.{digits}f} {_UNITS[unit]}"


def rate(bytes_per_second: float) -> str:
    """Return a speed, such as `187 MB/s`."""
    return f"{size(bytes_per_second)}/s"


def duration(seconds: float) -> str:
    """Return seconds as a short text: 3700 -> `1h01m`."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02}s"
    return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m"


def instant(millis: int) -> str:
    """Return milliseconds since 1970 as `2026-05-04T12:00:00.000Z`, or as a number if out of range.

    Milliseconds are always shown, since `--until` finds a run by exactly this time.
    """
    try:
        moment = datetime.fromtimestamp(millis / 1000, UTC).replace(tzinfo=None)
    except (OSError, OverflowError, ValueError):
        return str(millis)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def counted(number: int, noun: str) -> str:
    """Return a number of things, such as `1 event` or `1,500 events`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short_hash(text: str) -> str:
    """Return ten hexadecimal digits that stand for a text in names."""
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a mistyped word resembles most; None if none is close."""
    found = difflib.get_close_matches(word, [*known], n=1)
    return found[0] if found else None


def lost_behind(segment: int, offset: int) -> str:
    """Return the sentence that a segment is gone, and its content from an offset on unknown."""
    return f"Segment {segment} was gone: what it had from offset {offset} on is unknown."
