"""Remember how far event time has come in each segment of a stream.

A segment that has unread events is behind. Its next events are about as old as the last one that
was read, whatever other segments had. So windows wait for it: a query that reads a backlog finds no
event late because segments were read at different speeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow.compute as pc

from sluice.core.tables.positions import is_finished

if TYPE_CHECKING:
    import pyarrow as pa

    from sluice.core.tables.positions import SegmentPosition, Sizes, StreamPosition


MOST_TIME: Final = 1 << 53
"""The farthest from 1970 that a time may be, in milliseconds. In microseconds, it has 64 bits."""


class EventTimes:
    """The times of the newest events, by segment.

    Attributes:
        newest: the newest time of all, in milliseconds since 1970; None before the first.
    """

    def __init__(self) -> None:
        self._newest: dict[int, int | None] = {}
        self.newest: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the times as JSON values."""
        return {"all": self.newest, "segments": {str(k): v for k, v in self._newest.items()}}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read what `to_json` returned. Raise TypeError or ValueError for anything else."""
        found = cls()
        found.newest = _time(value["all"])
        found._newest = {int(one): _time(time) for one, time in value["segments"].items()}
        return found

    def see(self, segment: int, micros: pa.Array) -> None:
        """Take in the times of events of a segment, in microseconds since 1970. Some may be null.

        A segment whose events have no times is known, and holds nothing back.
        """
        known = self._newest.setdefault(segment, None)
        newest = pc.max(micros).as_py()
        if newest is not None:
            millis = newest // 1000
            self._newest[segment] = millis if known is None else max(millis, known)
            self.newest = millis if self.newest is None else max(millis, self.newest)

    def enter(self, before: StreamPosition, after: StreamPosition) -> None:
        """Go from one position to the next. New segments are as far as those that they replace."""
        now: dict[int, int | None] = {}
        for one in after.segments:
            if one.id in self._newest:
                now[one.id] = self._newest[one.id]
                continue
            old = [two.id for two in before.segments if two.keys.overlaps(one.keys)]
            if all(number in self._newest for number in old):
                times = [self._newest[number] for number in old]
                now[one.id] = min((time for time in times if time is not None), default=None)
        self._newest = now

    def reached(self, place: StreamPosition, sizes: Sizes, *, ended: bool) -> int | None:
        """Return the time up to which all events were read that the stream has now.

        Args:
            place: the position that was read to.
            sizes: the present state of its segments.
            ended: whether no segments follow on those of the position.

        Returns:
            Milliseconds since 1970; None if a segment that is behind was not read yet.
        """
        behind = [one.id for one in place.segments if _is_unread(one, sizes)]
        if not ended:  # those that follow are read once their siblings are read, too
            behind += [one.id for one in place.segments if is_finished(one, sizes)]
        if not all(number in self._newest for number in behind):
            return None
        times = [self._newest[number] for number in behind]
        return min((time for time in times if time is not None), default=self.newest)


def _time(value: Any) -> int | None:
    if value is not None and (type(value) is not int or abs(value) > MOST_TIME):
        raise ValueError("an event has no such time")
    return value


def _is_unread(one: SegmentPosition, sizes: Sizes) -> bool:
    info = sizes.get(one.id)
    return info is None or one.offset < info.length
