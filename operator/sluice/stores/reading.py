"""Reading a store: its streams, their segments, and the bytes of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from sluice.core.values.model import Segment, SegmentInfo, StreamConfig, StreamName

Buffer = bytes | bytearray | memoryview


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
        """Whether the head is the tail: then it is all that `Topology.generations` would tell."""
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


class SegmentReader(Protocol):
    """The bytes and the attributes of segments, read. Names are full names."""

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


class Topology(Protocol):
    """The streams of a store and their segments, as they are and as they came to be."""

    def describe(self, name: StreamName) -> Stream | None:
        """The stream as it is now; None when it (or its scope) does not exist."""
        ...

    def generations(
        self, name: StreamName, since: Sequence[Segment] = ()
    ) -> tuple[tuple[Segment, ...], ...]:
        """The segments from head to tail as they came to be.

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

    def segment_name(self, stream: StreamName, segment: int) -> str:
        """The full name of a stream's segment."""
        ...
