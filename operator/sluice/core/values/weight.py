"""How much memory JSON takes once it is read: up to seventy times as much as it is long."""

from __future__ import annotations

from typing import Final

_EACH: Final = ((b"{", 184), (b"[", 88), (b",", 48), (b":", 80), (b'"', 30))
"""Bytes that CPython 3.11 takes at most: for a dictionary and a list, for each further value, for
a key's place in its dictionary, and for the head of a string, which has two quotes."""

_WIDEST: Final = 4
"""Bytes of a character in a string in which one lies outside Unicode's first plane."""


def weight_of_json(data: bytes) -> int:
    """Bytes of memory that reading this JSON takes at most, told without reading it."""
    narrow = data.isascii() and b"\\u" not in data
    signs = sum(data.count(sign) * weight for sign, weight in _EACH)
    return len(data) * (1 if narrow else _WIDEST) + signs
