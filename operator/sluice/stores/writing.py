"""The part of a store that is written to: bytes of segments, and scopes and streams."""

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

    For each writer id, the store keeps the last event number with the data. It refuses an append
    that does not follow this number. So of two appenders with one id, the slower one gets
    InvalidEventNumber.
    """

    @property
    def last(self) -> int | None:
        """The last event number that the store had when this appender was set up; None if none."""
        ...

    @property
    def acknowledged(self) -> int | None:
        """The last event number that the store has confirmed."""
        ...

    @property
    def offset(self) -> int | None:
        """The segment's length right behind the last confirmed block; None before the first one.

        If it is not where the caller expects its block to end, other clients have appended to the
        segment, too.
        """
        ...

    def append(self, data: Buffer, *, event_number: int, events: int = 1) -> None:
        """Send a block. Return while it is in flight, once all in flight fits into the window.

        Args:
            data: the block.
            event_number: a number above that of the block before.
            events: the events in the block, which the store adds to the segment's event count.

        Raises:
            InvalidEventNumber: another writer with this id was faster. Earlier blocks may be
                stored.
            SegmentSealed: the segment takes no more bytes.
            NoSuchSegment: it was deleted.
            StoreUnavailable: the connection broke. It is unknown which blocks the store has.
        """
        ...

    def has_room(self, size: int) -> bool:
        """Tell whether a block of this size can be sent without waiting for confirmations."""
        ...

    def pump(self) -> None:
        """Take in the confirmations that are here, without waiting. Raises as `append`.

        If the store has confirmed nothing for too long though it should, this raises, too.
        """
        ...

    def flush(self) -> None:
        """Wait until everything sent is confirmed. Raises as `append`."""
        ...


class SegmentSink(Protocol):
    """Writes segments: stages bytes where no reader sees them, and merges them at once.

    Names are full names of segments.
    """

    def set_attribute(self, name: str, condition: CompareAndSet) -> bool:
        """Compare and set an attribute; False if it had another value. NoSuchSegment."""
        ...

    def create(self, name: str) -> bool:
        """Make a segment; False when it is there already."""
        ...

    def seal(self, name: str) -> None:
        """Let the segment take no more bytes; sealing twice is fine. NoSuchSegment."""
        ...

    def truncate_segment(self, name: str, offset: int) -> None:
        """Drop a segment's bytes before `offset`. The offsets of all others stay.

        Truncating twice is fine. If more was dropped already, nothing changes.

        Raises:
            NoSuchSegment: there is no such segment.
            StoreRejected: the segment ends before `offset`.
        """
        ...

    def delete(self, name: str, *, length: int | None = None) -> bool:
        """Delete a segment; False if there is none, or if it has another `length`.

        The length is checked directly before the deletion, since stores have no conditional one.

        Make sure beforehand that no driver can merge the segment meanwhile. A deletion that meets
        a merge of the same segment can damage the store.
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

        The same atomic step sets the condition's attribute of `target`, adds `events` to its event
        count, and sets the attributes in `notes` to their values.

        Raises:
            ConditionFailed: the attribute of `target` had another value; nothing changed.
            NoSuchSegment: `target` or `source` does not exist. A repeat of a merge that went
                through may raise this, or succeed: look at the attribute.
            SegmentSealed: `target` takes no more bytes.
        """
        ...

    def appender(self, name: str, *, writer: UUID, window: int) -> AbstractContextManager[Appender]:
        """Open a fenced append with at most `window` bytes in flight."""
        ...

    def append_at(self, name: str, offset: int, data: bytes) -> bool:
        """Append `data` if the segment is exactly `offset` long; False when it is not."""
        ...

    def staging_name(self, stream: StreamName, segment: int, key: str) -> str:
        """Return the name of a staging segment that can be merged into a stream's segment.

        Readers and listings do not see a staging segment. It has no lease.

        Args:
            stream: the stream.
            segment: the id of its segment.
            key: 32 hexadecimal digits that tell staging segments of one segment apart.
        """
        ...

    def place_of(self, key: str) -> float:
        """Return the place of a routing key in [0, 1).

        The segment whose key range has this place takes the key's events, whatever client writes.
        """
        ...

    def is_beside(self, one: int, other: int) -> bool:
        """Tell whether bytes staged for segment `one` can be merged into `other`, or beside it."""
        ...


class Admin(Protocol):
    """Makes, changes and deletes scopes and streams."""

    def create_scope(self, scope: str) -> bool:
        """Make a scope; False when it exists."""
        ...

    def delete_scope(self, scope: str) -> bool:
        """Delete an empty scope; False if there is none.

        Look for streams and key-value tables first: a store may be damaged when it refuses the
        deletion itself. A reader group counts too, since it has an internal stream. Never delete
        that stream alone: the group stays without it, unlisted, and keeps the scope from being
        deleted.

        Raises:
            ScopeNotEmpty: the scope has streams, perhaps internal ones, or key-value tables.
        """
        ...

    def create_stream(self, name: StreamName, config: StreamConfig) -> bool:
        """Make a stream with uniform key ranges; False when it exists. ScopeNotFound."""
        ...

    def update_stream(
        self, name: StreamName, config: StreamConfig, *, until_listed: str | None = None
    ) -> None:
        """Replace the whole configuration, tags included. StreamNotFound.

        The store also scales the stream if it has fewer segments than its policy's least number,
        or another number than a fixed policy wants. Even a change of tags can do this. The store
        refuses to update a sealed stream.

        Args:
            name: the stream.
            config: its new configuration.
            until_listed: a tag that the stream gets by this. The call may return as soon as the
                store lists the stream by it: then the update is certain, but the store may refuse
                another one for some milliseconds. None to wait for the update's end.
        """
        ...

    def scale(self, name: StreamName, sealed: Iterable[int], ranges: Sequence[KeyRange]) -> None:
        """Replace segments by new ones, numbered as `Store.following` says, and wait for the end.

        Args:
            name: the stream.
            sealed: ids of the segments to replace, which take events.
            ranges: key ranges of the new segments, which together take the same keys.

        Raises:
            StoreRejected: some of the segments take no events any more, the policy wants more
                segments, or the stream is sealed.
        """
        ...

    def truncate_stream(self, name: StreamName, cut: Mapping[int, int]) -> None:
        """Drop all bytes before `cut`: offsets in bytes by segment id. StreamNotFound."""
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
        """Return the ids that scale events will give to the segments that they make.

        Args:
            segments: the ids of the stream's latest segments, all made at once.
            made: for each of the next scale events, the key ranges that `scale` will be given.

        Returns:
            For each scale event the ids, in the order of its key ranges.
        """
        ...
