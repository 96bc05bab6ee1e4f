"""The answers of the foreign client."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Written:
    """The result of a write.

    Attributes:
        events: number of written events, all acknowledged.
        bytes: bytes of their payloads.
        seconds: duration in seconds.
    """

    events: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Paced:
    """The result of a background writer.

    Attributes:
        events: number of written events.
        acknowledged: number of events that the store confirmed.
        failed: number of events that the store refused.
        seconds: duration in seconds.
        p50_ms: median time to an acknowledgement, in ms.
        p99_ms: 99th percentile of that time, in ms.
        max_ms: maximum of that time, in ms.
    """

    events: int
    acknowledged: int
    failed: int
    seconds: float
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True)
class Delays:
    """The times from the writing of events to their reading.

    Attributes:
        events: number of events.
        p50_ms: their median, in ms.
        p99_ms: 99th percentile, in ms.
        max_ms: maximum, in ms.
    """

    events: int
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True)
class Read:
    """The events that a reader group read.

    Attributes:
        events: number of read events.
        bytes: bytes of their payloads.
        keys: number of different routing keys in the payloads.
        keys_from_zero: number of keys whose very first event was read.
        out_of_order: number of events that came after a later event of their key.
        duplicates: number of events whose number had come before.
        missing: count of numbers between a key's first and last that did not come.
        foreign: number of events that the foreign client did not write.
        digest: sum of all payloads' hashes, independent of the order of reading.
        seconds: duration in seconds.
    """

    events: int
    bytes: int
    keys: int
    keys_from_zero: int
    out_of_order: int
    duplicates: int
    missing: int
    foreign: int
    digest: str
    seconds: float

    @property
    def clean(self) -> bool:
        """Tell whether every key's events came once each, in order and without a gap."""
        return not (self.out_of_order or self.duplicates or self.missing or self.foreign)


@dataclass(frozen=True)
class Visible:
    """The events that a batch client finds now.

    Attributes:
        events: number of events.
        bytes: bytes in the segments, including the events' 8-byte headers.
    """

    events: int
    bytes: int


@dataclass(frozen=True)
class Segment:
    """One segment.

    Attributes:
        id: number in the low 32 bits, epoch of creation above.
        start: first offset that is not truncated.
        end: offset after the last byte.
        low: lower end of the key range, if the segment is at the tail.
        high: upper end of the key range, likewise.
    """

    id: int
    start: int
    end: int
    low: float | None
    high: float | None

    @property
    def number(self) -> int:
        """The segment's number in the stream."""
        return self.id & 0xFFFF_FFFF

    @property
    def epoch(self) -> int:
        """The epoch of the segment's creation."""
        return self.id >> 32


@dataclass(frozen=True)
class Info:
    """A stream as the client sees it.

    Attributes:
        sealed: whether the stream is sealed.
        head: head stream cut as text.
        tail: tail stream cut as text.
        segments: segments by id: all with bytes, and those at the tail.
    """

    sealed: bool
    head: str
    tail: str
    segments: tuple[Segment, ...]

    def segment(self, segment_id: int) -> Segment:
        """Return a segment by its id."""
        return next(segment for segment in self.segments if segment.id == segment_id)


@dataclass(frozen=True)
class Copied:
    """The result of a copy by the official client.

    Attributes:
        events: number of copied events.
        bytes: bytes of their payloads.
        seconds: duration in seconds, without creating the target.
        megabytes_per_second: speed in MB/s.
        cpu_seconds: CPU time of the client's process in seconds.
    """

    events: int
    bytes: int
    seconds: float
    megabytes_per_second: float
    cpu_seconds: float
