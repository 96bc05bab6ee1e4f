"""Cut the bytes of a live segment into blocks of whole events.

A reader of the target must never see a part of an event: it would wait for the rest. Bytes arrive
in pieces that end anywhere, so the beginning of an event waits here for its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.events.framing import HEADER, EventCounter
from sluice.core.values.text import size
from sluice.errors import EventsDamaged, SourceUnsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK: Final = 1 << 20
"""Most bytes of a block, unless one event is longer."""

LONGEST: Final = 8 << 20
"""Most bytes of an event, with its header: stores take appends of up to 8 MiB."""


class Cut(NamedTuple):
    """A block of whole events.

    Attributes:
        data: its bytes.
        end: the source offset behind it.
        events: the number of its events.
    """

    data: bytes
    end: int
    events: int


class Cutter:
    """Cuts a segment into blocks of whole events.

    Args:
        name: the segment, for errors.
        start: the offset at which an event begins, or will begin.
    """

    def __init__(self, name: str, start: int) -> None:
        self._name = name
        self._start = start
        self._counter = EventCounter()
        self._fed = 0
        self._cut = 0
        self._given = 0
        self._rest = bytearray()

    @property
    def rest(self) -> int:
        """The bytes of an event whose end has not come yet."""
        return len(self._rest)

    def feed(self, data: bytes) -> Iterator[Cut]:
        """Take the next bytes, and yield the blocks that are whole by then.

        Raises:
            EventsDamaged: no event begins where one has to.
            SourceUnsupported: an event is longer than one append takes.
        """
        view = memoryview(data)
        while view:
            piece = view[: self._next()]
            view = view[len(piece) :]
            try:
                self._counter.feed(piece)
            except EventsDamaged:
                raise EventsDamaged(
                    f"no event begins at offset {self._start + self._counter.last} of {self._name}"
                ) from None
            self._fed += len(piece)
            self._rest += piece
            self._check()
            cut = self._whole()
            if cut is not None:
                yield cut

    def _next(self) -> int:
        """Return the bytes to walk next: up to the end of the event that has begun, or a block."""
        counter = self._counter
        if counter.between_events:
            return BLOCK
        if counter.header:
            return HEADER - len(counter.header)
        return counter.following - self._fed

    def _check(self) -> None:
        counter = self._counter
        if counter.unfinished is None or counter.header:
            return
        length = counter.following - counter.last
        if length > LONGEST:
            raise SourceUnsupported(
                f"the event at offset {self._start + counter.last} of {self._name} has "
                f"{size(length)}, and following takes events of at most {size(LONGEST)}",
                field="spec.source.stream",
                remedy="Copy the stream without following it.",
            )

    def _whole(self) -> Cut | None:
        """Return all whole events that were not given out yet."""
        counter = self._counter
        upto = self._fed if counter.unfinished is None else counter.unfinished
        if upto == self._cut:
            return None
        begun = counter.unfinished is not None and not counter.header
        events = counter.events - begun - self._given
        block = bytes(self._rest[: upto - self._cut])
        del self._rest[: len(block)]
        self._cut = upto
        self._given += events
        return Cut(block, self._start + upto, events)
