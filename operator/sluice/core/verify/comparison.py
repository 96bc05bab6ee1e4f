"""Compare the bytes of two segments, fed side by side, without keeping them.

All offsets are the source's. The two sides need not come in equal blocks, nor begin or end
together: see `in_step`. As long as both sides are equal from the first byte on, digests and counts
of events are computed once for both.
"""

from __future__ import annotations

import copy
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.events.digest import ChunkDigester, chunks
from sluice.core.events.framing import EventCounter
from sluice.errors import EventsDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sluice.core.verify.pairing import Pair


class Contents(NamedTuple):
    """The facts about the bytes of one side.

    Attributes:
        start: first offset read.
        end: offset after the last byte read.
        chunks: SHA-256 of each chunk, see `core.events.digest`.
        events: number of events; None if the bytes are not events.
        no_event_at: the first offset at which a whole event has to begin and does not; None if
            the bytes are events.
    """

    start: int
    end: int
    chunks: tuple[bytes, ...]
    events: int | None
    no_event_at: int | None


class ComparedBytes(NamedTuple):
    """The next bytes from offset `at` on: of one side only, or equally many of both."""

    at: int
    source: memoryview
    target: memoryview


def in_step(
    source: Iterable[tuple[int, memoryview]], target: Iterable[tuple[int, memoryview]]
) -> Iterator[ComparedBytes]:
    """Divide two rows of blocks, each without gaps, into steps from offset to offset.

    Args:
        source: blocks with their offsets. A block is valid until the next one is taken.
        target: the blocks of the other side, also with the source's offsets.
    """
    sides = (iter(source), iter(target))
    one, two = map(_next, sides)
    while (at := min(one.at, two.at)) < _NEVER:
        ends = (side.at + len(side.data) if side.at == at else side.at for side in (one, two))
        length = min(ends) - at
        yield ComparedBytes(at, one.before(at + length), two.before(at + length))
        one = one.after(at + length) or _next(sides[0])
        two = two.after(at + length) or _next(sides[1])


class _Block(NamedTuple):
    """Bytes from an offset on; none if the offset is _NEVER."""

    at: int
    data: memoryview

    def before(self, offset: int) -> memoryview:
        """Return the bytes before an offset."""
        return self.data[: max(0, offset - self.at)]

    def after(self, offset: int) -> _Block | None:
        """Return the bytes from an offset on; None if there are none."""
        rest = self.data[max(0, offset - self.at) :]
        return _Block(max(self.at, offset), rest) if rest else None


_NEVER: Final = sys.maxsize


def _next(blocks: Iterator[tuple[int, memoryview]]) -> _Block:
    """Return the next block that is not empty."""
    full = (_Block(at, data) for at, data in blocks if data)
    return next(full, _Block(_NEVER, memoryview(b"")))


class Comparison:
    """The comparison of a pair's bytes, which are fed as `in_step` yields them.

    Attributes:
        first: offset of the first byte that both sides have and that differs; None if no byte does.
    """

    def __init__(self, pair: Pair) -> None:
        self.first: int | None = None
        self._source = _Tally(*pair.of_source)
        # None as long as both sides are equal: then the source's tally holds for the target too.
        apart = pair.of_source != pair.of_target
        self._target = _Tally(*pair.of_target) if apart else None

    def feed(self, step: ComparedBytes) -> None:
        """Take the next bytes."""
        # Comparing bytes, even copied first, is 20 times as fast as comparing memoryviews.
        same = bytes(step.source) == bytes(step.target)
        if not same and self._target is None:
            self._target = self._source.fork()
        if not same and self.first is None and step.source and step.target:
            self.first = step.at + _first_difference(step.source, step.target)
        self._source.feed(step.source)
        if self._target is not None:
            self._target.feed(step.target)

    @property
    def source(self) -> Contents:
        """The facts about the source, once all steps are fed."""
        return self._source.contents

    @property
    def target(self) -> Contents:
        """The facts about the target, once all steps are fed."""
        return (self._source if self._target is None else self._target).contents


def _first_difference(one: memoryview, other: memoryview) -> int:
    """Return the index of the first byte that differs between two equally long blocks."""
    bits = int.from_bytes(one, "big") ^ int.from_bytes(other, "big")
    return len(one) - (bits.bit_length() + 7) // 8


class _Tally:
    """Digests and events of the bytes [start, end) of one side."""

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end
        self._digester = ChunkDigester(start, end)
        self._counter = EventCounter()
        self._no_event_at: int | None = None

    def fork(self) -> _Tally:
        """Return an independent tally that has been fed the same bytes."""
        other = _Tally(self._start, self._end)
        other._digester = self._digester.fork()
        other._counter = copy.copy(self._counter)
        other._no_event_at = self._no_event_at
        return other

    def feed(self, data: memoryview) -> None:
        self._digester.feed(data)
        if self._no_event_at is None and data:
            try:
                self._counter.feed(data)
            except EventsDamaged:
                self._no_event_at = self._start + self._counter.last

    @property
    def contents(self) -> Contents:
        damaged = self._no_event_at
        if damaged is None and self._counter.unfinished is not None:
            damaged = self._start + self._counter.unfinished
        return Contents(
            start=self._start,
            end=self._end,
            chunks=tuple(self._digester.done[i] for i in chunks(self._start, self._end)),
            events=self._counter.events if damaged is None else None,
            no_event_at=damaged,
        )
