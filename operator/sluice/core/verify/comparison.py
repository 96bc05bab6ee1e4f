"""Comparing the bytes of two segments, fed side by side, without keeping any.

All offsets are the source's. The two need not come in equal blocks, nor begin or end together: see
`in_step`. As long as they are the same from the first byte on, digests are made and events are
counted once for both.
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
    """What was found in the bytes of one side.

    Attributes:
        start: first offset read.
        end: offset after the last byte read.
        chunks: SHA-256 of each chunk, see `core.events.digest`.
        events: how many there are; None where the bytes are no events.
        no_event_at: the first offset at which no whole event begins, though one has to.
    """

    start: int
    end: int
    chunks: tuple[bytes, ...]
    events: int | None
    no_event_at: int | None


class Step(NamedTuple):
    """The next bytes of one side, or as many of both, from offset `at` on."""

    at: int
    source: memoryview
    target: memoryview


def in_step(
    source: Iterable[tuple[int, memoryview]], target: Iterable[tuple[int, memoryview]]
) -> Iterator[Step]:
    """Two rows of blocks, each without gaps, as steps from offset to offset.

    Args:
        source: blocks with their offsets. One is valid until the next is asked for.
        target: the same of the other side, also with the source's offsets.
    """
    sides = (iter(source), iter(target))
    one, two = map(_next, sides)
    while (at := min(one.at, two.at)) < _NEVER:
        ends = (side.at + len(side.data) if side.at == at else side.at for side in (one, two))
        length = min(ends) - at
        yield Step(at, one.before(at + length), two.before(at + length))
        one = one.after(at + length) or _next(sides[0])
        two = two.after(at + length) or _next(sides[1])


class _Block(NamedTuple):
    """Bytes from an offset on; at _NEVER there are none."""

    at: int
    data: memoryview

    def before(self, offset: int) -> memoryview:
        """What lies before an offset."""
        return self.data[: max(0, offset - self.at)]

    def after(self, offset: int) -> _Block | None:
        """What lies after an offset; None where nothing is left."""
        rest = self.data[max(0, offset - self.at) :]
        return _Block(max(self.at, offset), rest) if rest else None


_NEVER: Final = sys.maxsize


def _next(blocks: Iterator[tuple[int, memoryview]]) -> _Block:
    """The next block that holds anything."""
    full = (_Block(at, data) for at, data in blocks if data)
    return next(full, _Block(_NEVER, memoryview(b"")))


class Comparison:
    """Compares a pair's bytes, fed as `in_step` gives them.

    Attributes:
        first: offset of the first byte that both sides have and that differs; None without one.
    """

    def __init__(self, pair: Pair) -> None:
        self.first: int | None = None
        self._source = _Tally(*pair.of_source)
        # The target's is the source's own until they part: None.
        apart = pair.of_source != pair.of_target
        self._target = _Tally(*pair.of_target) if apart else None

    def feed(self, step: Step) -> None:
        """Take the next bytes."""
        # Memoryviews are compared byte by byte; bytes, though copied first, are 20 times as fast.
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
        """What was found in the source, once all is fed."""
        return self._source.contents

    @property
    def target(self) -> Contents:
        """What was found in the target."""
        return (self._source if self._target is None else self._target).contents


def _first_difference(one: memoryview, other: memoryview) -> int:
    """The place of the first byte that differs in two that are equally long."""
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
        """Another one, that was fed the same bytes."""
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
