"""How many bytes an append keeps in flight."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

STALL = 1.0
"""Seconds to an acknowledgement from which the store is taken to be overloaded."""

_GROWTH = 8
"""The window grows by this fraction of the bytes that are confirmed in time."""


class _Sent(NamedTuple):
    number: int
    size: int
    at: float


class InFlightWindow:
    """Bounds the bytes that are sent and not yet confirmed.

    A store that is written to faster than it can keep up slows down, and then breaks. So a
    late acknowledgement halves the window, down to one block at a time; blocks that were sent
    before a halving tell nothing about the smaller window and do not halve it again. Confirmed in
    time, bytes let it grow back slowly.

    Args:
        limit: bytes in flight at most; a larger block still goes alone.
        stall: seconds from which an acknowledgement is late.
    """

    def __init__(self, limit: int, *, stall: float = STALL) -> None:
        self._most = limit
        self._stall = stall
        self._sent: deque[_Sent] = deque()
        self._halved_at = float("-inf")
        self.limit = limit
        self.in_flight = 0

    def has_room(self, size: int) -> bool:
        """Whether a block of this size may be sent now."""
        return not self._sent or self.in_flight + size <= self.limit

    def sent(self, number: int, size: int, now: float) -> None:
        """Take note of a block. Numbers rise; `now` is a monotonic time in seconds."""
        self._sent.append(_Sent(number, size, now))
        self.in_flight += size

    def acknowledged(self, number: int, now: float) -> None:
        """Take note that every block up to this number is confirmed."""
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
