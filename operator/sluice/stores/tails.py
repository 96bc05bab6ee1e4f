"""The part of a store that follows live segments: bytes are handed out as they are appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sluice.errors import BackendError


class Arrived(NamedTuple):
    """The bytes [offset, offset + len(data)) of a segment. They come in order, without a gap."""

    segment: str
    offset: int
    data: bytes


class Ended(NamedTuple):
    """A segment is sealed, and all bytes up to its end at `offset` were handed out.

    It is not watched any more.
    """

    segment: str
    offset: int


class Broken(NamedTuple):
    """A segment cannot be read on. It is not watched any more; watch it again to go on.

    Attributes:
        segment: the segment's full name.
        error: SegmentTruncated with the first offset that is still there, NoSuchSegment,
            StoreUnavailable, PermissionDenied, or another reason.
    """

    segment: str
    error: BackendError


class Tails(Protocol):
    """Reads many segments on, and waits at their ends. One thread uses it.

    Names are full names of segments.
    """

    def watch(self, name: str, offset: int) -> None:
        """Read a segment from `offset` on. Does not wait for the store.

        Raises:
            ValueError: the segment is watched already, the offset is negative, or the name is none.
        """
        ...

    def pause(self, name: str) -> None:
        """Ask for no more of a segment. One block may come still. Pausing twice is fine."""
        ...

    def resume(self, name: str) -> None:
        """Read a segment on that was paused; else nothing happens."""
        ...

    def take(self, seconds: float) -> list[Arrived | Ended | Broken]:
        """Return all that came. Wait at most `seconds` if nothing is here.

        A segment at its tail is asked for more by the next call, so that more comes together. All
        that are asked have a moment to answer. If a segment store has to be found or connected to,
        that may take the time-out of a call besides.
        """
        ...

    def close(self) -> None:
        """Hang up. Closing twice is fine."""
        ...


class TailReader(Protocol):
    """A store whose live segments can be followed."""

    def tails(self, *, most: int) -> AbstractContextManager[Tails]:
        """Follow segments in the block.

        Args:
            most: bytes that are asked for, or came and were not taken, at most. Each segment may
                ask for a few KiB in any case.
        """
        ...
