"""The contents of a stream store in memory, and the fates of calls to it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING
from uuid import UUID

from sluice.core.values.model import KeyRange, Segment, StreamConfig, StreamName, TransactionState

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from sluice.core.values.groups import GroupConfig, GroupName, GroupState

EVENT_COUNT = UUID(int=1)
CREATION_TIME = UUID(int=2)
EPOCH = 1 << 32


class Fate(Enum):
    """The fate of a call."""

    DONE = "done"
    REQUEST_LOST = "request lost"
    REPLY_LOST = "reply lost"


@dataclass
class ModelSegment:
    """A segment's bytes and attributes, of which some are the last event numbers of writers."""

    data: bytearray = field(default_factory=bytearray)
    start: int = 0
    sealed: bool = False
    attributes: dict[UUID, int] = field(default_factory=dict)


@dataclass
class ModelTransaction:
    """A transaction: the segments beside which it was opened, and the layout they belong to."""

    key: str
    layout: int
    segments: tuple[Segment, ...]
    state: TransactionState = TransactionState.OPEN


@dataclass
class ModelStream:
    """A stream's configuration and segments.

    Attributes:
        segments: the segments that take events.
        made: all readable segments: the oldest ones, then those of each scale event.
        ever: all segments that ever existed, in the same order.
        layout: number of scale events. Segments that a commit adds keep an earlier layout.
        committing: transactions in the order in which their commits were decided.
    """

    config: StreamConfig
    segments: tuple[Segment, ...]
    sealed: bool = False
    epoch: int = 0
    layout: int = 0
    made: list[tuple[Segment, ...]] = field(default_factory=list)
    ever: list[tuple[Segment, ...]] = field(default_factory=list)
    transactions: dict[str, ModelTransaction] = field(default_factory=dict)
    committing: list[ModelTransaction] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Set the history of a new stream."""
        self.made = self.made or [self.segments]
        self.ever = self.ever or [self.segments]

    @property
    def past(self) -> set[int]:
        """The ids of all segments that ever existed."""
        return {segment.id for made in self.ever for segment in made}

    def add(self, made: tuple[Segment, ...]) -> None:
        """Record the segments that a scale event has made."""
        self.made.append(made)
        self.ever.append(made)

    def since(self, begin: Sequence[Segment]) -> tuple[tuple[Segment, ...], ...]:
        """Return `begin`, which took events at one time, and each later generation of segments."""
        last = max(
            place for place, made in enumerate(self.ever) if any(one in begin for one in made)
        )
        return (tuple(begin), *self.ever[last + 1 :])

    @property
    def readable(self) -> list[Segment]:
        """All segments, the oldest first."""
        return [segment for made in self.made for segment in made]


@dataclass
class ModelGroup:
    """A reader group: its configuration and start, and its position; None before its first record.

    A group is made at the controller, and its first record is written after that.
    """

    config: GroupConfig
    state: GroupState | None
    start: dict[StreamName, dict[int, int]] = field(default_factory=dict)
    identity: UUID | None = None


class World:
    """The state that all actors share: scopes, streams, segments, and the history of calls."""

    def __init__(self) -> None:
        self.scopes: set[str] = {"in", "out"}
        self.streams: dict[StreamName, ModelStream] = {}
        self.tables: set[StreamName] = set()  # key-value tables, which have names as streams do
        self.segments: dict[str, ModelSegment] = {}
        self.groups: dict[GroupName, ModelGroup] = {}
        self.numbers: defaultdict[StreamName, int] = defaultdict(int)
        self.time = 1_000
        self.history: list[str] = []
        self.merged: set[str] = set()
        self.refusals = 0  # refused deletions of scopes, which damage the real store
        self.opened = 0  # number of transactions
        self.backwards = False  # whether the last of several new segments gets the first number
        self.kept: set[str] = set()  # deleted names, which the store frees only much later

    def bytes_of(self, name: StreamName) -> list[bytes]:
        """Return the bytes of each readable segment of a stream, in the order of scale events."""
        return [
            bytes(self.segments[segment_name(name, segment.id)].data)
            for segment in self.streams[name].readable
        ]

    def lose(self) -> None:
        """Lose all data, as a store in memory does when it is started again."""
        for everything in (self.scopes, self.streams, self.segments, self.groups, self.kept):
            everything.clear()

    def scale(self, name: StreamName, count: int, *, truncate: bool = False) -> None:
        """Give a stream `count` new segments. With `truncate`, drop the old ones."""
        stream = self.streams[name]
        self.replace(name, {segment.id for segment in stream.segments}, uniform(count))
        if truncate:
            self.truncate(name)

    def replace(self, name: StreamName, sealed: Container[int], ranges: Sequence[KeyRange]) -> None:
        """Replace segments of a stream by new ones."""
        stream = self.streams[name]
        stream.epoch += 1
        stream.layout += 1
        made = self.new_segments(name, ranges, epoch=stream.epoch)
        for segment in stream.segments:
            if segment.id in sealed:
                self.segments[segment_name(name, segment.id)].sealed = True
        kept = [segment for segment in stream.segments if segment.id not in sealed]
        stream.segments = tuple(sorted((*kept, *made), key=lambda segment: segment.keys.low))
        stream.add(made)

    def commit(self, name: StreamName) -> None:
        """Make the decided commits, those of the oldest layout first."""
        stream = self.streams[name]
        while stream.committing:
            layout = min(transaction.layout for transaction in stream.committing)
            batch = [one for one in stream.committing if one.layout == layout]
            stream.committing = [one for one in stream.committing if one.layout != layout]
            into = stream.segments
            if layout != stream.layout:
                into = self._again(name, batch[0].segments)
            for transaction in batch:
                for segment, opened in zip(into, transaction.segments, strict=True):
                    data = self.segments.pop(transaction_name(name, opened.id, transaction.key))
                    self.segments[segment_name(name, segment.id)].data += data.data
                transaction.state = TransactionState.COMMITTED
            if layout != stream.layout:
                for segment in (*into, *stream.segments):
                    self.segments[segment_name(name, segment.id)].sealed = True
                stream.add(into)
                stream.segments = self._again(name, stream.segments)
                stream.add(stream.segments)

    def _again(self, name: StreamName, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """Make segments of a new epoch with the numbers and keys of others."""
        stream = self.streams[name]
        stream.epoch += 1
        made = []
        for old in segments:
            segment = Segment(id=stream.epoch * EPOCH + old.id % EPOCH, keys=old.keys)
            self._new_segment(segment_name(name, segment.id))
            made.append(segment)
        return tuple(made)

    def drop(self, name: StreamName, transaction: ModelTransaction) -> None:
        """Abort an open transaction, as the store does when its lease ends."""
        assert transaction.state is TransactionState.OPEN
        transaction.state = TransactionState.ABORTED
        for segment in transaction.segments:
            self.segments.pop(transaction_name(name, segment.id, transaction.key))

    def open(self, name: StreamName) -> ModelTransaction:
        """Open a transaction. The keys count up across all streams."""
        stream = self.streams[name]
        self.opened += 1
        opened = ModelTransaction(f"{self.opened:032x}", stream.layout, stream.segments)
        stream.transactions[opened.key] = opened
        for segment in opened.segments:
            self._new_segment(transaction_name(name, segment.id, opened.key))
        return opened

    def truncate(self, name: StreamName) -> None:
        """Drop all segments of a stream that no longer take events."""
        stream = self.streams[name]
        for segment in stream.readable:
            if segment not in stream.segments:
                self.segments.pop(segment_name(name, segment.id), None)
        stream.made = [stream.segments]

    def new_segments(
        self, name: StreamName, ranges: Sequence[KeyRange], *, epoch: int
    ) -> tuple[Segment, ...]:
        """Make segments with these key ranges."""
        first = epoch * EPOCH + self.numbers[name]
        self.numbers[name] += len(ranges)
        places = self.numbered(ranges) if epoch else range(len(ranges))
        segments = tuple(
            Segment(id=first + place, keys=keys)
            for place, keys in sorted(zip(places, ranges, strict=True))
        )
        for segment in segments:
            self._new_segment(segment_name(name, segment.id))
        return segments

    def numbered(self, ranges: Sequence[KeyRange]) -> list[int]:
        """Return the place of each range's segment in the numbering of a scale event."""
        places = range(len(ranges))
        return [*reversed(places)] if self.backwards else [*places]

    def _new_segment(self, name: str) -> None:
        self.time += 1
        self.segments[name] = ModelSegment(attributes={CREATION_TIME: self.time, EVENT_COUNT: 0})

    def staging(self) -> list[str]:
        """Return the names of all segments that belong to no stream."""
        owned = {
            segment_name(name, segment.id)
            for name, stream in self.streams.items()
            for segment in stream.readable
        }
        owned |= {
            transaction_name(name, segment.id, transaction.key)
            for name, stream in self.streams.items()
            for transaction in stream.transactions.values()
            for segment in transaction.segments
        }
        return sorted(set(self.segments) - owned)


def uniform(count: int) -> list[KeyRange]:
    """Return the key ranges of a new stream."""
    return [KeyRange(low=i / count, high=(i + 1) / count) for i in range(count)]


def segment_name(stream: StreamName, segment: int) -> str:
    """Return the name of a stream's segment."""
    return f"{stream}/{segment}"


def transaction_name(stream: StreamName, segment: int, key: str) -> str:
    """Return the name of a transaction's segment, or of another keyed segment, beside a segment."""
    return f"{segment_name(stream, segment)}#{key}"


def number_of(name: str) -> int:
    """Return the number of the stream's segment that a segment is, or lies beside.

    This number alone decides the container of a segment, and only segments in one container can be
    merged.
    """
    return int(name.rpartition("/")[2].partition("#")[0]) % EPOCH
