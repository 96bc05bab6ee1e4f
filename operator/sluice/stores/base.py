"""What Sluice needs of a stream store.

Two small protocols: a `Catalog` knows streams, `Segments` moves their bytes. Both block, raise the
errors of `sluice.errors` only, and put a deadline on every call, so the engine above them is plain
sequential code that a test can run against a model. A `Store` is both, made by `connect`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from sluice.stores.groups import ReaderGroups
from sluice.stores.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from uuid import UUID

    from sluice.core.values.model import (
        KeyRange,
        Segment,
        SegmentInfo,
        StoreHealth,
        StreamConfig,
        StreamName,
    )

    Told = Callable[[str, float], None]
    """Told of each call to what serves a catalog: its name, and how many seconds it took."""

Buffer = bytes | bytearray | memoryview


class CompareAndSet(NamedTuple):
    """A compare-and-set on a segment's attribute. `expected` None: it must not be set yet."""

    attribute: UUID
    expected: int | None
    new: int


class Stream(NamedTuple):
    """A stream as its catalog describes it.

    `head` are the segments that hold the oldest readable bytes, `tail` those that are (or, in a
    sealed stream, were) written last. They are equal unless the stream was scaled. Sorted by key
    range.
    """

    config: StreamConfig
    head: tuple[Segment, ...]
    tail: tuple[Segment, ...]
    sealed: bool

    @property
    def is_one_generation(self) -> bool:
        """Whether the head is the tail: then it is all that `Catalog.generations` would tell."""
        return self.head == self.tail


class Block(NamedTuple):
    """Bytes read at `offset` of a segment. `data` is valid until the next one is asked for."""

    offset: int
    data: memoryview


def joined(blocks: Iterable[Block]) -> bytes:
    """The bytes of all blocks. Of a store that tells them one by one they take no more room."""
    data = bytearray()
    for block in blocks:
        data += block.data
    return bytes(data)


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


class Flow(Protocol):
    """How fast somebody wants to read."""

    def ready(self) -> bool:
        """Whether bytes may be asked for now, without waiting."""
        ...

    def take(self, most: int) -> int:
        """Wait until bytes may be asked for; how many of `most` may be."""
        ...

    def spend(self, count: int) -> None:
        """Wait until all of so many bytes may be handed on, however many were asked for."""
        ...


class Segments(Protocol):
    """The bytes of a store's segments, and their attributes. Names are full names."""

    def infos(self, names: Sequence[str]) -> list[SegmentInfo | None]:
        """Each segment as it is now, None where there is none. Asked for in one go."""
        ...

    def attributes(self, asked: Sequence[tuple[str, UUID]]) -> list[int | None]:
        """Attribute values, None where the segment or the value does not exist."""
        ...

    def digests(self, name: str) -> Mapping[int, bytes]:
        """SHA-256 of the segment's chunks as somebody wrote them down, by number.

        Whoever reads other bytes has not got what was written. A live store knows none. Of an
        archive the chunks are cut as the segment's readable bytes are.
        """
        ...

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

    def read(
        self,
        name: str,
        start: int,
        end: int,
        *,
        flow: Flow | None = None,
        ahead: int | None = None,
    ) -> Iterator[Block]:
        """The bytes [start, end) in order, read ahead; `end` must not be beyond the length.

        Args:
            name: the segment.
            start: first offset, in bytes.
            end: offset behind the last byte.
            flow: how fast; None for as fast as they come. Bytes count when they are asked for.
            ahead: bytes that are asked for and not handed on, at most, but for one block; None for
                what the store deems good.

        Raises:
            SegmentTruncated: with the first offset that is still there.
            NoSuchSegment: the segment is not there, or was deleted meanwhile.
        """
        ...

    def appender(self, name: str, *, writer: UUID, window: int) -> AbstractContextManager[Appender]:
        """A fenced append with at most `window` bytes in flight."""
        ...

    def append_at(self, name: str, offset: int, data: bytes) -> bool:
        """Append `data` if the segment is exactly `offset` long; False when it is not."""
        ...


class Catalog(Protocol):
    """The streams of a store."""

    def describe(self, name: StreamName) -> Stream | None:
        """The stream as it is now; None when it (or its scope) does not exist."""
        ...

    def generations(
        self, name: StreamName, since: Sequence[Segment] = ()
    ) -> tuple[tuple[Segment, ...], ...]:
        """The segments from head to tail as they came to be: see Stream.

        Args:
            name: the stream.
            since: segments that took events all at once at some time, to begin with in place of the
                head. What came after them is told whether it is truncated away or not.

        Returns:
            First those of the head, by key range. Then, for each scale event since, those that it
            made, in the order of their ids; each takes the keys of segments that are before it.

        Raises:
            StreamNotFound: there is no such stream.
        """
        ...

    def had(self, name: StreamName, segment: int) -> bool:
        """Whether a stream has or had a segment of this id, which may be truncated away.

        A stream that was deleted and made again under the same name has other ids.
        """
        ...

    def configuration(self, name: StreamName) -> StreamConfig | None:
        """A stream's configuration, None without a stream. Less work than `describe`."""
        ...

    def scope_exists(self, scope: str) -> bool:
        """Whether there is such a scope."""
        ...

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

    def list_scopes(self) -> list[str]:
        """Names of all scopes, sorted, without the store's own."""
        ...

    def list_streams(
        self,
        scope: str,
        tag: str | None = None,
        *,
        internal: bool = False,
        most: int | None = None,
    ) -> list[str]:
        """Names of a scope's streams, sorted.

        Args:
            scope: the scope.
            tag: what they have; internal streams are never found by it.
            internal: whether internal streams, whose names begin with `_`, count too; except for
                those that the store makes and deletes together with another stream.
            most: more need not be looked for once there are so many: for those who only want to
                know whether there are. What the store makes with streams may then be among them.

        Raises:
            ScopeNotFound: there is no such scope.
        """
        ...

    def list_key_value_tables(self, scope: str) -> list[str]:
        """Names of a scope's key-value tables that one may read, sorted.

        They have no streams, not even internal ones, and may have names that streams have too.

        Raises:
            ScopeNotFound: there is no such scope.
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


class Store(Catalog, Segments, Transactions, ReaderGroups, Protocol):
    """A stream store: its catalog, its segments, transactions between the two, and who reads."""

    def probe(self) -> StoreHealth:
        """Ask whether the store is there, knows us, and speaks a protocol that we speak.

        Raises:
            BackendError: it is not, does not, or does not.
        """
        ...

    @property
    def event_count(self) -> UUID:
        """The attribute under which this store counts a segment's events."""
        ...

    @property
    def creation_time(self) -> UUID:
        """The attribute that holds a segment's creation time."""
        ...

    def is_original(self, segment: int) -> bool:
        """Whether a stream was made with this segment, rather than scaled to it.

        Only such a segment's creation time is that of its stream.
        """
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

    def read_cut(self, text: str) -> tuple[StreamName, dict[int, int]]:
        """The stream and the offsets by segment id of a cut as the store's clients write it.

        Raises:
            InvalidSpec: it is none.
        """
        ...

    def write_cut(self, stream: StreamName, cut: Mapping[int, int]) -> str:
        """A cut as the store's clients read it."""
        ...

    def segment_name(self, stream: StreamName, segment: int) -> str:
        """The full name of a stream's segment."""
        ...

    def staging_name(self, stream: StreamName, segment: int, key: str) -> str:
        """The name of a segment of our own that can be merged into that one.

        `key` is 32 hexadecimal digits. Neither readers nor listings see it; it has no lease.
        """
        ...

    def is_beside(self, one: int, other: int) -> bool:
        """Whether what is staged for one segment, by its id, can be merged beside the other."""
        ...

    def close(self) -> None:
        """Close every connection. The store may be used again: it connects anew."""
        ...
