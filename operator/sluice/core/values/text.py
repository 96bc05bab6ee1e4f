"""Numbers and names as people read them."""

from __future__ import annotations

import hashlib
from typing import Final

_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_STEP: Final = 1000


def size(count: float) -> str:
    """A number of bytes in decimal units, two or three digits: `271 MB`, `1.5 GB`."""
    value, unit = float(count), 0
    while round(value) >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    digits = 1 if unit and round(value, 1) < _STEP / 100 else 0
    return f"{value:.{digits}f} {_UNITS[unit]}"


def rate(bytes_per_second: float) -> str:
    """A speed: `187 MB/s`."""
    return f"{size(bytes_per_second)}/s"


def short_hash(text: str) -> str:
    """Ten hexadecimal digits that stand for a text in names."""
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def lost_behind(segment: int, offset: int) -> str:
    """That nobody knows what a segment had from an offset on."""
    return f"Segment {segment} was gone, and nobody knows what it had from offset {offset} on."
