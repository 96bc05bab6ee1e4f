"""Cut the bytes of a live segment into blocks of whole events.

A reader of the target must never see a part of an event: it would wait for the rest. Bytes arrive
in pieces that end anywhere, so the beginning of an event waits here for its end. An event that is
longer than one append takes does not wait here: its pieces are handed on one by one, to be staged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.events.framing import HEADER, EventCounter
from sluice.errors import EventsDamaged

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK: Final = 1 << 20
"""Most bytes of a block, unless one event is longer."""

LONGEST: Final = 8 << 20
"""Most bytes of an event, with its header, that is appended: stores take appends of up to 8 MiB."""


class Cut(NamedTuple):
    """A block of whole events.

    Attributes:
        data: its bytes; empty if they were let go, and have to be read again.
        end: the source offset behind it.
        events: the number of its events.
        start: the source offset of its first byte.
    """

    data: bytes
    end: int
    events: int
    start: int

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return self.end - self.start


class EventPiece(NamedTuple):
    """A part of an event that is longer than one append takes. Its pieces come in order.

    Attributes:
        data: its bytes.
        end: the source offset behind them.
        start: the source offset at which the event begins.
        behind: the source offset behind the event.
    """

    data: bytes
    end: int
    start: int
    behind: int

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return len(self.data)


class Cutter:
    """Cuts a segment into blocks of whole events.

    Args:
        name: the segment, for errors.
        start: the offset at which an event begins, or will begin.
        plain: whether the segment has plain bytes in place of events, which may be cut anywhere.
        longest: most bytes of an event that is not handed on in pieces.
    """

    def __init__(
        self, name: str, start: int, *, plain: bool = False, longest: int = LONGEST
    ) -> None:
        self._name = name
        self._start = start
        self._plain = plain
        self._longest = longest
        self._block = min(BLOCK, longest)  # so no block has a whole event that is longer
        self._counter = EventCounter()
        self._fed = 0
        self._cut = 0
        self._given = 0
        self._rest = bytearray()
        self._let_go = False

    @property
    def begun(self) -> int | None:
        """The source offset of the event whose end has not come yet; None between two events."""
        begun = None if self._plain else self._counter.unfinished
        return None if begun is None else self._start + begun

    @property
    def rest(self) -> int:
        """The bytes that wait for the end of their event."""
        return len(self._rest)

    def let_go(self) -> bool:
        """Keep no bytes of the event that has begun: when it is whole, it has to be read again.

        Returns:
            Whether this was done. It is not while the event's header is not whole.
        """
        if self._counter.unfinished is None or self._counter.header:
            return False
        self._let_go = True
        self._rest.clear()
        return True

    def feed(self, data: bytes) -> Iterator[Cut | EventPiece]:
        """Take the next bytes. Yield the blocks that are whole by then, and pieces of long events.

        Raises:
            EventsDamaged: no event begins where one has to.
        """
        view = memoryview(data)
        while view:
            piece = view[: self._block if self._plain else self._next()]
            view = view[len(piece) :]
            if self._plain:
                self._fed += len(piece)
                end = self._start + self._fed
                yield Cut(bytes(piece), end, 1, end - len(piece))
                continue
            long, damage = self._long, self._walk(piece)
            if long is None and (cut := self._whole(damaged=damage is not None)) is not None:
                yield cut
            if damage is not None:
                raise damage
            long = long or self._long
            if long is not None:
                yield self._piece(*long)

    def _next(self) -> int:
        """Return the bytes to walk next: up to the end of the event that has begun, or a block."""
        counter = self._counter
        if counter.between_events:
            return self._block
        if counter.header:
            return HEADER - len(counter.header)
        left = counter.following - self._fed
        return left if self._long is None else min(left, self._block)

    def _walk(self, piece: memoryview) -> EventsDamaged | None:
        """Walk on through the next bytes. Return the error, if no event begins in them."""
        self._fed += len(piece)
        self._rest += piece
        try:
            self._counter.feed(piece)
        except EventsDamaged:
            return EventsDamaged(
                f"no event begins at offset {self._start + self._counter.last} of {self._name}",
                remedy="All events before it are in the target. Following takes streams of events, "
                "and streams that had plain bytes when the copy began.",
            )
        return None

    @property
    def _long(self) -> tuple[int, int] | None:
        """The bounds of the event that has begun, if it is to be handed on in pieces."""
        counter = self._counter
        if counter.unfinished is None or counter.header:
            return None
        begin, end = counter.last, counter.following
        return (begin, end) if end - begin > self._longest else None

    def _piece(self, begin: int, end: int) -> EventPiece:
        """Return the bytes that are here of the event [begin, end), which is long."""
        data = bytes(self._rest)
        self._rest.clear()
        self._cut += len(data)
        self._given += self._cut == end
        at = self._start
        return EventPiece(data, at + self._cut, at + begin, at + end)

    def _whole(self, *, damaged: bool) -> Cut | None:
        """Return all whole events that were not given out yet.

        Args:
            damaged: whether the last bytes are no event.
        """
        counter = self._counter
        unfinished = counter.last if damaged else counter.unfinished
        upto = self._fed if unfinished is None else unfinished
        if upto == self._cut:
            return None
        begun = unfinished is not None and not damaged and not counter.header
        events = counter.events - begun - self._given
        start, self._cut = self._cut, upto
        block = bytes(self._rest[: upto - start])
        del self._rest[: upto - start]
        if self._let_go:  # then the block is one event, whose end nothing has followed yet
            block, self._let_go = b"", False
            self._rest.clear()
        self._given += events
        return Cut(block, self._start + upto, events, self._start + start)
