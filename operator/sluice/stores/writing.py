"""Writing to a store: bytes for segments, and what becomes of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from uuid import UUID

    from sluice.core.values.model import KeyRange, StreamConfig, StreamName
    from sluice.stores.reading import Buffer


class CompareAndSet(NamedTuple):
    """A compare-and-set on a segment's attribute. `expected` None: it must not be set yet."""

    attribute: UUID
    expected: int | None
    new: int


class Appender(Protocol):
    """An open, fenced append to one segment.

    The store keeps the last event number per writer id with the data and refuses any append that
    does not follow it, so of two appenders with one id the slower gets InvalidEventNumber.
    """

    @property
    def last(self) -> int | None:
        """The last event number the store had when this appender was set up; None if none."""
        ...

    @property
    def acknowledged(self) -> int | None:
        """The last event number the store has confirmed."""
        ...

    def append(self, data: Buffer, *, event_number: int) -> None:
        """Send a block; returns while it is in flight, once no more than the window is.

        Raises:
            InvalidEventNumber: another writer with this id was faster; earlier blocks may be in.
            SegmentSealed: the segment takes no more bytes.
            NoSuchSegment: it was deleted.
            StoreUnavailable: the connection broke; what the store has is unknown.
        """
        ...

    def flush(self) -> None:
        """Wait until everything sent is confirmed. Raises as `append`."""
        ...


class SegmentSink(Protocol):
    """Bytes for segments: staged where no reader sees them, merged at once. Names are full."""

    def set_attribute(self, name: str, condition: CompareAndSet) -> bool:
        """Compare-and-set an attribute; False when it had another value. NoSuchSegment."""
        ...

    def create(self, name: str) -> bool:
        """Make a segment; False when it is there already."""
        ...

    def seal(self, name: str) -> None:
        """Let the segment take no more bytes; sealing twice is fine. NoSuchSegment."""
        ...

    def delete(self, name: str, *, length: int | None = None) -> bool:
        """Delete a segment; False when there is none, or when it has another `length`.

        The length is looked at directly before; a store has no conditional deletion.

        Nobody may be able to merge the segment into another one meanwhile: a store can be damaged
        by a deletion that meets a merge of the same segment. Fence the merge off first.
        """
        ...

    def merge(
        self,
        target: str,
        source: str,
        condition: CompareAndSet,
        *,
        events: int = 0,
        notes: Sequence[tuple[UUID, int]] = (),
    ) -> None:
        """Append the sealed `source` to `target` by metadata; `source` is gone afterwards.

        In the same step the attribute is set, `events` are added to the target's event count, and
        `notes`, attributes with their values, are written.

        Raises:
            ConditionFailed: the attribute of `target` had another value; nothing changed.
            NoSuchSegment: `target` or `source` does not exist (a repeat of a merge that went
                through may say so, or succeed: look at the attribute).
            SegmentSealed: `target` takes no more bytes.
        """
        ...

    def appender(self, name: str, *, writer: UUID, window: int) -> AbstractContextManager[Appender]:
        """A fenced append with at most `window` bytes in flight."""
        ...

    def append_at(self, name: str, offset: int, data: bytes) -> bool:
        """Append `data` if the segment is exactly `offset` long; False when it is not."""
        ...

    def staging_name(self, stream: StreamName, segment: int, key: str) -> str:
        """The name of a segment of our own that can be merged into that one.

        `key` is 32 hexadecimal digits. Neither readers nor listings see it; it has no lease.
        """
        ...

    def is_beside(self, one: int, other: int) -> bool:
        """Whether what is staged for one segment, by its id, can be merged beside the other."""
        ...


class Admin(Protocol):
    """Scopes and streams, made, changed and deleted."""

    def create_scope(self, scope: str) -> bool:
        """Make a scope; False when it exists."""
        ...

    def delete_scope(self, scope: str) -> bool:
        """Delete an empty scope; False when there is none.

        A store may be damaged by a refusal that it gives itself: look for streams before, and for
        key-value tables. A reader group counts too: it has an internal stream. Never delete that
        one alone, for the group stays without it, unseen, and keeps the scope from being deleted.

        Raises:
            ScopeNotEmpty: there are streams in it, internal ones perhaps, or key-value tables.
        """
        ...

    def create_stream(self, name: StreamName, config: StreamConfig) -> bool:
        """Make a stream with uniform key ranges; False when it exists. ScopeNotFound."""
        ...

    def update_stream(self, name: StreamName, config: StreamConfig) -> None:
        """Replace the whole configuration, tags included. StreamNotFound.

        A stream with a fixed number of segments that has another number of them, or fewer than the
        least that its policy wants, is scaled to it, if need be by a change of tags. A sealed
        stream is refused.
        """
        ...

    def scale(self, name: StreamName, sealed: Iterable[int], ranges: Sequence[KeyRange]) -> None:
        """Replace segments by new ones, numbered as `Store.following` says; wait for it.

        Args:
            name: the stream.
            sealed: ids of segments that take events.
            ranges: of the new ones, which take the same keys.

        Raises:
            StoreRejected: some of the segments take no events any more, the policy wants more
                segments, or the stream is sealed.
        """
        ...

    def truncate_stream(self, name: StreamName, cut: Mapping[int, int]) -> None:
        """Drop what lies before `cut`, offsets by segment id. StreamNotFound."""
        ...

    def seal_stream(self, name: StreamName) -> None:
        """Seal a stream; sealing twice is fine. StreamNotFound."""
        ...

    def delete_stream(self, name: StreamName) -> bool:
        """Delete a sealed stream; False when there is none. StreamNotSealed."""
        ...

    def following(
        self, segments: Sequence[int], made: Sequence[Sequence[KeyRange]]
    ) -> list[tuple[int, ...]]:
        """The ids that scale events will give to the segments that they make.

        Args:
            segments: the ids of a stream's segments, all made at once and the latest it has.
            made: the key ranges of those that each of the next scale events makes, as `scale` is
                going to be given them.

        Returns:
            For each scale event the ids, in the order of its key ranges.
        """
        ...
