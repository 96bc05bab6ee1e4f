"""What a stream store in memory holds, and what becomes of calls to it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from sluice.core.model import KeyRange, Segment, StreamConfig, StreamName

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
    """A stream's configuration and segments; `before` are older ones that are readable still."""

    config: StreamConfig
    segments: tuple[Segment, ...]
    sealed: bool = False
    epoch: int = 0
    before: tuple[Segment, ...] = ()


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
        self.rescales = False  # whether an update brings a fixed number of segments about
        self.refusals = 0  # to delete a scope, which damage the real store
        self.kept: set[str] = set()  # deleted names, which the store gives back only much later

    def bytes_of(self, name: StreamName) -> list[bytes]:
        """The readable bytes of each segment of a stream, in key order."""
        stream = self.streams[name]
        return [
            bytes(self.segments[segment_name(name, segment.id)].data) for segment in stream.segments
        ]

    def scale(self, name: StreamName, count: int, *, truncate: bool = False) -> None:
        """Give a stream so many new segments, and drop the old ones if it is truncated as well."""
        stream = self.streams[name]
        stream.epoch += 1
        old = stream.segments
        stream.segments = self.new_segments(name, count, epoch=stream.epoch)
        if truncate:
            for segment in (*stream.before, *old):
                self.segments.pop(segment_name(name, segment.id), None)
            stream.before = ()
        else:
            stream.before = stream.before or old

    def new_segments(self, name: StreamName, count: int, *, epoch: int) -> tuple[Segment, ...]:
        """Segments with uniform key ranges."""
        first = epoch * EPOCH + self.numbers[name]
        self.numbers[name] += count
        segments = tuple(
            Segment(id=first + i, keys=KeyRange(low=i / count, high=(i + 1) / count))
            for i in range(count)
        )
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
            for segment in (*stream.before, *stream.segments)
        }
        return sorted(set(self.segments) - owned)


def segment_name(stream: StreamName, segment: int) -> str:
    """The name of a stream's segment."""
    return f"{stream}/{segment}"
