"""Find the segment of a routing key, as Pravega's clients do."""

from __future__ import annotations

import struct
from typing import Final

import mmh3

_SEED: Final = 1_741_865_571
"""Java's `"EventRouter".hashCode()`, the seed that clients take (`StreamSegments.HASHER`)."""

_ONE: Final = 0x3FF0_0000_0000_0000
"""The bits of the double 1.0, in whose mantissa the leading bits of the hash go."""


def place_of(key: str) -> float:
    """Return the place of a routing key in [0, 1), as `HashHelper.hashToRange` computes it."""
    leading = mmh3.hash64(key.encode("utf-16-le"), _SEED, signed=False)[0] >> 12
    (shifted,) = struct.unpack(">d", struct.pack(">Q", _ONE + leading))
    return float(shifted) - 1.0
