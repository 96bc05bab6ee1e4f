"""Bound the bytes that are asked for of many segments that are read side by side."""

from __future__ import annotations

from typing import Final

from sluice.stores.pravega.segments.reader import BLOCK

LEAST: Final = 4 << 10
"""Bytes that each segment may ask for, however many segments there are."""

MOST: Final = 32 << 20
"""Bytes that all segments ask for at most: a connection keeps no more than twice as much early."""

_AT_TAIL: Final = 64 << 10
"""Bytes that a segment asks for at most while it is read up to its tail."""


class Portion:
    """The bytes that one segment asks for.

    Attributes:
        size: bytes that are asked for, or came and were not taken.
        behind: whether the segment has more bytes than it asked for.
    """

    __slots__ = ("behind", "size")

    def __init__(self) -> None:
        self.size = 0
        self.behind = False


class Portions:
    """Shares bytes out among segments: half to all of them, and half to those that are behind.

    Most segments wait at their tails, where little comes at a time. A segment that is behind asks
    for large blocks.

    Args:
        most: bytes for all segments together. Each of them may ask for `LEAST` in any case.
    """

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"at least one byte has to be let in, not {most}")
        self._share = min(most, MOST) // 2
        self._free = min(most, MOST)
        self._behind = 0

    def take(self, portion: Portion, segments: int) -> int:
        """Replace a segment's portion by the next one. Return its size.

        Args:
            portion: what the segment has.
            segments: how many segments there are.
        """
        self._free += portion.size
        size = max(LEAST, min(_AT_TAIL, self._share // max(1, segments)))
        if portion.behind:
            size = max(size, min(BLOCK, self._share // max(1, self._behind)))
        portion.size = min(size, max(LEAST, self._free))
        self._free -= portion.size
        return portion.size

    def set_behind(self, portion: Portion, *, behind: bool) -> None:
        """Note whether a segment has more bytes than it asked for."""
        self._behind += behind - portion.behind
        portion.behind = behind

    def give_back(self, portion: Portion) -> None:
        """Take a segment's portion away."""
        self._free += portion.size
        portion.size = 0
        self.set_behind(portion, behind=False)
