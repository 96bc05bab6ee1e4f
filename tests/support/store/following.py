"""A record of everything that followed segments deliver."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sluice.stores.tails import Arrived, Broken, Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluice.errors import BackendError
    from sluice.stores.tails import Tails


class Heard:
    """The bytes, ends and errors of some segments. Each arrival is checked for gaps.

    Attributes:
        data: the bytes by segment.
        ended: the ends of segments.
        broken: the errors of segments, in the order in which they came.
        tails: the source of all these.
    """

    def __init__(self, tails: Tails, begun: Mapping[str, int]) -> None:
        self.data: defaultdict[str, bytearray] = defaultdict(bytearray)
        self.ended: dict[str, int] = {}
        self.broken: list[tuple[str, BackendError]] = []
        self.tails = tails
        self._begun: dict[str, int] = {}
        for name, offset in begun.items():
            self.watch(name, offset)

    @property
    def bytes(self) -> int:
        """The number of bytes that came."""
        return sum(map(len, self.data.values()))

    def has(self, count: int) -> bool:
        """Tell whether exactly `count` bytes came."""
        return self.bytes == count

    def watch(self, name: str, offset: int) -> None:
        """Follow one more segment."""
        self._begun[name] = offset
        self.tails.watch(name, offset)

    def until(self, over: Callable[[], bool]) -> None:
        """Take until a condition holds. The test's time-out is the only limit."""
        while not over():
            for event in self.tails.take(1):
                self._note(event)

    def until_all_ended(self) -> None:
        """Take until every segment has ended or failed."""
        self.until(lambda: len(self.ended) + len(self.broken) == len(self._begun))

    def _note(self, event: Arrived | Ended | Broken) -> None:
        name = event.segment
        if isinstance(event, Broken):
            self.broken.append((name, event.error))
            return
        assert name not in self.ended
        assert event.offset == self._begun[name] + len(self.data[name])
        if isinstance(event, Arrived):
            self.data[name] += event.data
        else:
            self.ended[name] = event.offset
