"""The part of a store that is read: streams, their segments, and the bytes of segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from sluice.core.values.model import Segment, SegmentInfo, StreamConfig, StreamName

Buffer = bytes | bytearray | memoryview


class Stream(NamedTuple):
    """A stream as its store's catalog describes it.

    Attributes:
        config: its configuration.
        head: the segments that hold the oldest readable bytes, by key range.
        tail: the segments that take events, by key range; in a sealed stream, the last ones that
            did. Head and tail are equal unless the stream was scaled.
        sealed: whether the stream is sealed.
    """

    config: StreamConfig
    head: tuple[Segment, ...]
    tail: tuple[Segment, ...]
    sealed: bool

    @property
    def is_one_generation(self) -> bool:
        """Whether the head is the tail, so that `Topology.generations` would return only it."""
        return self.head == self.tail


class Block(NamedTuple):
    """Bytes read at `offset` of a segment. `data` is valid until the next block is asked for."""

    offset: int
    data: memoryview


def joined(blocks: Iterable[Block]) -> bytes:
    """Return the bytes of all blocks in one piece.

    Each block is copied as it comes, so the blocks need not all be in memory besides.
    """
    data = bytearray()
    for block in blocks:
        data += block.data
    return bytes(data)


class Flow(Protocol):
    """The speed at which a reader wants to read."""

    def ready(self) -> bool:
        """Tell whether bytes may be asked for now, without waiting."""
        ...

    def take(self, most: int) -> int:
        """Wait until bytes may be asked for. Return how many, at most `most`."""
        ...

    def spend(self, count: int) -> None:
        """Wait until so many bytes may be handed on, however many were asked for."""
        ...


class SegmentReader(Protocol):
    """Reads the bytes and attributes of segments. Names are full names of segments."""

    def infos(self, names: Sequence[str]) -> list[SegmentInfo | None]:
        """Return the present state of each segment; None for a missing one. Asks all in one go."""
        ...

    def attributes(self, asked: Sequence[tuple[str, UUID]]) -> list[int | None]:
        """Return values of attributes; None where the segment or the value does not exist."""
        ...

    def digests(self, name: str) -> Mapping[int, bytes]:
        """Return the recorded SHA-256 of the segment's chunks, by the chunks' numbers.

        Bytes with another digest are not those that were written. A live store records none. In an
        archive, chunks are cut as the segment's readable bytes are.
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
        """Read the bytes [start, end) in order, ahead of the caller.

        Args:
            name: the segment.
            start: first offset, in bytes.
            end: offset behind the last byte; must not be beyond the segment's length.
            flow: the speed; None for as fast as possible. Bytes count when they are asked for.
            ahead: bytes that may be asked for and not handed on yet, apart from one block; None
                for the store's default.

        Raises:
            SegmentTruncated: bytes are gone; the error has the first offset that is still there.
            NoSuchSegment: the segment does not exist, or was deleted meanwhile.
        """
        ...


class Topology(Protocol):
    """The streams of a store and their segments, present and past."""

    def describe(self, name: StreamName) -> Stream | None:
        """Return the stream as it is now; None if it or its scope does not exist."""
        ...

    def generations(
        self, name: StreamName, since: Sequence[Segment] = ()
    ) -> tuple[tuple[Segment, ...], ...]:
        """Return the segments from head to tail, by the scale events that made them.

        Args:
            name: the stream.
            since: segments that took events at the same time once. If given, they take the place
                of the head; later segments are returned even if they are truncated away.

        Returns:
            First the segments of the head, by key range. Then, for each later scale event, the
            segments that it made, by id. Each takes the keys of segments before it.

        Raises:
            StreamNotFound: there is no such stream.
        """
        ...

    def had(self, name: StreamName, segment: int) -> bool:
        """Tell whether a stream has or had a segment of this id, which may be truncated away.

        A stream that was deleted and made again under the same name has other ids.
        """
        ...

    def configuration(self, name: StreamName) -> StreamConfig | None:
        """Return a stream's configuration; None if there is no stream. Cheaper than `describe`."""
        ...

    def scope_exists(self, scope: str) -> bool:
        """Tell whether there is such a scope."""
        ...

    def list_scopes(self) -> list[str]:
        """Return the names of all scopes, sorted, without the store's internal scopes."""
        ...

    def list_streams(
        self,
        scope: str,
        tag: str | None = None,
        *,
        internal: bool = False,
        most: int | None = None,
    ) -> list[str]:
        """Return the names of a scope's streams, sorted.

        Args:
            scope: the scope.
            tag: list only streams with this tag; internal streams are never found by it.
            internal: whether internal streams, whose names begin with `_`, count too. Streams that
                the store makes and deletes together with another stream do not count.
            most: stop after so many names, for callers that only ask whether there are any.
                Streams that the store makes together with another one may then be among them.

        Raises:
            ScopeNotFound: there is no such scope.
        """
        ...

    def list_key_value_tables(self, scope: str) -> list[str]:
        """Return the names of a scope's key-value tables that the user may read, sorted.

        Tables have no streams, not even internal ones. A table and a stream may have one name.

        Raises:
            ScopeNotFound: there is no such scope.
        """
        ...

    @property
    def event_count(self) -> UUID:
        """The attribute in which this store counts a segment's events."""
        ...

    @property
    def creation_time(self) -> UUID:
        """The attribute that holds a segment's creation time."""
        ...

    def is_original(self, segment: int) -> bool:
        """Tell whether the stream was made with this segment, and not scaled to it later.

        Only such a segment has its stream's creation time.
        """
        ...

    def segment_name(self, stream: StreamName, segment: int) -> str:
        """Return the full name of a stream's segment."""
        ...
