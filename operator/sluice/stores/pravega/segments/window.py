"""Bound the bytes that an append keeps in flight, by the store's speed."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

STALL = 1.0
"""An acknowledgement that takes longer, in seconds, shows that the store is overloaded."""

_GROWTH = 8
"""The window grows by one part in so many of the bytes that are confirmed in time."""


class _Sent(NamedTuple):
    number: int
    size: int
    at: float


class InFlightWindow:
    """Bounds the bytes that are sent and not yet confirmed.

    A store that gets bytes faster than it can write them slows down, and then breaks. So a late
    acknowledgement halves the window, down to one block at a time. Blocks sent before a halving
    say nothing about the smaller window, and do not halve it again. Bytes that are confirmed in
    time let the window grow back slowly.

    Args:
        limit: bytes in flight at most. A larger block is still sent alone.
        stall: an acknowledgement that takes longer, in seconds, is late.
    """

    def __init__(self, limit: int, *, stall: float = STALL) -> None:
        self._most = limit
        self._stall = stall
        self._sent: deque[_Sent] = deque()
        self._halved_at = float("-inf")
        self.limit = limit
        self.in_flight = 0

    def has_room(self, size: int) -> bool:
        """Tell whether a block of this size may be sent now."""
        return not self._sent or self.in_flight + size <= self.limit

    @property
    def oldest(self) -> float | None:
        """When the first block was sent that is not confirmed; None if there is none."""
        return self._sent[0].at if self._sent else None

    def sent(self, number: int, size: int, now: float) -> None:
        """Note that a block was sent. Numbers rise; `now` is a monotonic time in seconds."""
        self._sent.append(_Sent(number, size, now))
        self.in_flight += size

    def acknowledged(self, number: int, now: float) -> None:
        """Note that all blocks up to this number are confirmed, and adapt the window."""
        confirmed, latest, wait = 0, float("-inf"), 0.0
        while self._sent and self._sent[0].number <= number:
            block = self._sent.popleft()
            confirmed += block.size
            latest = block.at
            wait = max(wait, now - block.at)
        self.in_flight -= confirmed
        if wait <= self._stall:
            self.limit = min(self._most, self.limit + confirmed // _GROWTH)
        elif latest >= self._halved_at:
            self.limit = max(self.limit // 2, 1)
            self._halved_at = now
