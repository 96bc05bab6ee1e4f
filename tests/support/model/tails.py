"""Segments of a model store that are followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.errors import NoSuchSegment, SegmentTruncated, StoreUnavailable
from sluice.stores.tails import Arrived, Broken, Ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.model.world import World

_Event = Arrived | Ended | Broken


class ModelTails:
    """A `sluice.stores.tails.Tails` that never waits.

    Args:
        world: the world whose segments it reads.
        call: makes one call to the store; see `ModelStore`.
        block: most bytes of a segment that come at a time.
    """

    def __init__(
        self,
        world: World,
        call: Callable[[str, Callable[[], list[_Event]]], list[_Event]],
        block: int,
    ) -> None:
        self._world = world
        self._call = call
        self._block = block
        self._offsets: dict[str, int] = {}
        self._paused: set[str] = set()

    def watch(self, name: str, offset: int) -> None:
        """See Tails."""
        if name in self._offsets or offset < 0:
            raise ValueError(f"{name} cannot be watched from {offset} on")
        self._offsets[name] = offset

    def pause(self, name: str) -> None:
        """See Tails."""
        self._paused.add(name)

    def resume(self, name: str) -> None:
        """See Tails."""
        self._paused.discard(name)

    def take(self, seconds: float) -> list[_Event]:  # noqa: ARG002 - time stands still here
        """See Tails. One call reads all segments."""
        if not self._offsets:
            return []
        try:
            came = self._call(f"take {len(self._offsets)}", self._look)
        except StoreUnavailable as error:
            came = [Broken(name, error) for name in self._offsets]
        for event in came:
            if isinstance(event, Arrived):
                self._offsets[event.segment] = event.offset + len(event.data)
            else:
                del self._offsets[event.segment]
        return came

    def close(self) -> None:
        """See Tails."""
        self._offsets.clear()

    def _look(self) -> list[_Event]:
        return [
            event
            for name, at in self._offsets.items()
            if name not in self._paused
            for event in self._events(name, at)
        ]

    def _events(self, name: str, at: int) -> list[_Event]:
        there = self._world.segments.get(name)
        if there is None:
            return [Broken(name, NoSuchSegment(f"no segment {name}", segment=name))]
        if at < there.start:
            error = SegmentTruncated(
                f"{name} begins at {there.start}", segment=name, start_offset=there.start
            )
            return [Broken(name, error)]
        assert at <= len(there.data), f"{name} has no byte {at}"
        data = bytes(there.data[at : at + self._block])
        events: list[_Event] = [Arrived(name, at, data)] if data else []
        if there.sealed and at + len(data) == len(there.data):
            events.append(Ended(name, len(there.data)))
        return events
