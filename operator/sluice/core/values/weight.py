"""Estimate the memory that JSON takes once it is read: up to seventy times its length."""

from __future__ import annotations

from typing import Final

_EACH: Final = ((b"{", 184), (b"[", 88), (b",", 48), (b":", 80), (b'"', 30))
"""Most bytes that CPython 3.11 takes for each sign: for a dictionary and a list, for each further
value, for a key's place in its dictionary, and for half the head of a string (two quotes)."""

_WIDEST: Final = 4
"""Bytes of each character of a string that has a character outside Unicode's first plane."""


def weight_of_json(data: bytes) -> int:
    """Return the most bytes of memory that parsing this JSON takes, without parsing it."""
    narrow = data.isascii() and b"\\u" not in data
    signs = sum(data.count(sign) * weight for sign, weight in _EACH)
    return len(data) * (1 if narrow else _WIDEST) + signs
