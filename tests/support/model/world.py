"""What a stream store in memory holds, and what becomes of calls to it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING
from uuid import UUID

from sluice.core.model import KeyRange, Segment, StreamConfig, StreamName

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

EVENT_COUNT = UUID(int=1)
CREATION_TIME = UUID(int=2)
EPOCH = 1 << 32


class Fate(Enum):
    """What becomes of a call."""

    DONE = "done"
    REQUEST_LOST = "request lost"
    REPLY_LOST = "reply lost"


@dataclass
class ModelSegment:
    """A segment's bytes, attributes and writers."""

    data: bytearray = field(default_factory=bytearray)
    start: int = 0
    sealed: bool = False
    attributes: dict[UUID, int] = field(default_factory=dict)
    writers: dict[UUID, int] = field(default_factory=dict)


@dataclass
class ModelStream:
    """A stream's configuration and segments.

    `segments` take events; `made` are all that are readable: the oldest, then what each scale event
    made. `past` are the ids of all that there ever were.
    """

    config: StreamConfig
    segments: tuple[Segment, ...]
    sealed: bool = False
    epoch: int = 0
    made: list[tuple[Segment, ...]] = field(default_factory=list)
    past: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """A stream that was just made."""
        self.made = self.made or [self.segments]
        self.past |= {segment.id for segment in self.segments}

    @property
    def readable(self) -> list[Segment]:
        """All segments, the oldest first."""
        return [segment for made in self.made for segment in made]


class World:
    """What all actors see: scopes, streams, segments, and the history of calls."""

    def __init__(self) -> None:
        self.scopes: set[str] = {"in", "out"}
        self.streams: dict[StreamName, ModelStream] = {}
        self.segments: dict[str, ModelSegment] = {}
        self.numbers: defaultdict[StreamName, int] = defaultdict(int)
        self.time = 1_000
        self.history: list[str] = []
        self.merged: set[str] = set()
        self.refusals = 0  # to delete a scope, which damage the real store
        self.kept: set[str] = set()  # deleted names, which the store gives back only much later

    def bytes_of(self, name: StreamName) -> list[bytes]:
        """The bytes of each readable segment of a stream, as scale events made them."""
        return [
            bytes(self.segments[segment_name(name, segment.id)].data)
            for segment in self.streams[name].readable
        ]

    def scale(self, name: StreamName, count: int, *, truncate: bool = False) -> None:
        """Give a stream so many new segments, and drop the old ones if it is truncated as well."""
        stream = self.streams[name]
        self.replace(name, {segment.id for segment in stream.segments}, uniform(count))
        if truncate:
            self.truncate(name)

    def replace(self, name: StreamName, sealed: Container[int], ranges: Sequence[KeyRange]) -> None:
        """Replace segments of a stream by new ones."""
        stream = self.streams[name]
        stream.epoch += 1
        made = self.new_segments(name, ranges, epoch=stream.epoch)
        for segment in stream.segments:
            if segment.id in sealed:
                self.segments[segment_name(name, segment.id)].sealed = True
        kept = [segment for segment in stream.segments if segment.id not in sealed]
        stream.segments = tuple(sorted((*kept, *made), key=lambda segment: segment.keys.low))
        stream.made.append(made)
        stream.past |= {segment.id for segment in made}

    def truncate(self, name: StreamName) -> None:
        """Drop all segments of a stream that take events no more."""
        stream = self.streams[name]
        for segment in stream.readable:
            if segment not in stream.segments:
                self.segments.pop(segment_name(name, segment.id), None)
        stream.made = [stream.segments]

    def new_segments(
        self, name: StreamName, ranges: Sequence[KeyRange], *, epoch: int
    ) -> tuple[Segment, ...]:
        """Segments with these key ranges."""
        first = epoch * EPOCH + self.numbers[name]
        self.numbers[name] += len(ranges)
        segments = tuple(Segment(id=first + i, keys=keys) for i, keys in enumerate(ranges))
        for segment in segments:
            self.time += 1
            self.segments[segment_name(name, segment.id)] = ModelSegment(
                attributes={CREATION_TIME: self.time, EVENT_COUNT: 0}
            )
        return segments

    def staging(self) -> list[str]:
        """Names of all segments that belong to no stream."""
        owned = {
            segment_name(name, segment.id)
            for name, stream in self.streams.items()
            for segment in stream.readable
        }
        return sorted(set(self.segments) - owned)


def uniform(count: int) -> list[KeyRange]:
    """The key ranges of a new stream."""
    return [KeyRange(low=i / count, high=(i + 1) / count) for i in range(count)]


def segment_name(stream: StreamName, segment: int) -> str:
    """The name of a stream's segment."""
    return f"{stream}/{segment}"
