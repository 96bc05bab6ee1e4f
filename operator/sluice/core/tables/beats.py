"""Decide when event time goes on by the clock, because a stream is idle.

A reader whose stream has been idle for long enough plans a beat: the time to which time has gone
on. The beat is a part of the offset, so a batch that is repeated has it again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

OFFSET_FIELD: Final = "beat"
"""The field of an offset with the time of the last beat, in milliseconds since 1970."""

_LATEST: Final = 253_402_300_799_000
"""The last second that a time can have, in milliseconds since 1970. A checkpoint may be damaged."""


class Beats:
    """Decides when a beat is due.

    Args:
        after_ms: for how long no event has to come.
        clock: gives the time, in seconds since 1970.
    """

    def __init__(self, after_ms: int, clock: Callable[[], float] = time.time) -> None:
        self._after = after_ms
        self._clock = clock
        self._idle_since: float | None = None

    def after(self, start: dict[str, Any], planned: dict[str, Any]) -> dict[str, Any]:
        """Return the offset up to which the next batch reads, with its beat.

        Args:
            start: the offset where the batch begins.
            planned: the position where it ends, without a beat.
        """
        last = beat_of(start)
        now = self._clock()
        idle = all(start.get(part) == value for part, value in planned.items())
        if not idle or self._idle_since is None or now < self._idle_since:
            self._idle_since = now
        beat = round(now * 1000) - self._after
        due = idle and (now - self._idle_since) * 1000 >= self._after
        if due and beat - last >= self._after:
            last = beat
        return planned | ({OFFSET_FIELD: last} if last else {})


def beat_of(offset: dict[str, Any]) -> int:
    """Return the time of the last beat before an offset, in milliseconds; 0 if there was none."""
    found = offset.get(OFFSET_FIELD, 0)
    return found if isinstance(found, int) and 0 <= found <= _LATEST else 0
