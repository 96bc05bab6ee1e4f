"""What the foreign client answers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Written:
    """The result of a write.

    Attributes:
        events: Events written, all acknowledged.
        bytes: Their payloads' bytes.
        seconds: How long it took.
    """

    events: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Paced:
    """How a background writer fared.

    Attributes:
        events: Events written.
        acknowledged: Those the store confirmed.
        failed: Those it refused.
        seconds: How long it wrote.
        p50_ms: Median time to an acknowledgement.
        p99_ms: Time that 99 % of them took at most.
        max_ms: The longest.
    """

    events: int
    acknowledged: int
    failed: int
    seconds: float
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True)
class Read:
    """What a reader group found between the head and the tail.

    Attributes:
        events: Events read.
        bytes: Their payloads' bytes.
        keys: Different routing keys in the payloads.
        keys_from_zero: Keys whose first event of all was found.
        out_of_order: Events that came after a later one of their key.
        duplicates: Events whose number had come before.
        missing: Numbers between a key's first and last that did not come.
        foreign: Events that are not of the foreign client's making.
        digest: Sum of all payloads' hashes, independent of the order of reading.
        seconds: How long it took.
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
        """Whether every key's events came once each and in order, without a gap."""
        return not (self.out_of_order or self.duplicates or self.missing or self.foreign)


@dataclass(frozen=True)
class Visible:
    """What a batch client finds now.

    Attributes:
        events: Events.
        bytes: Bytes in the segments, the events' 8-byte headers included.
    """

    events: int
    bytes: int


@dataclass(frozen=True)
class Segment:
    """One segment.

    Attributes:
        id: Number in the low 32 bits, epoch of creation above.
        start: First offset not truncated.
        end: Offset after the last byte.
        low: Lower end of its key range, if it is written to now.
        high: Upper end.
    """

    id: int
    start: int
    end: int
    low: float | None
    high: float | None

    @property
    def number(self) -> int:
        """Its number in the stream."""
        return self.id & 0xFFFF_FFFF

    @property
    def epoch(self) -> int:
        """The epoch it was made in."""
        return self.id >> 32


@dataclass(frozen=True)
class Info:
    """A stream as the client sees it.

    Attributes:
        sealed: Whether it is sealed.
        head: Head stream cut as text.
        tail: Tail stream cut as text.
        segments: By id: all that hold something, and those now at the tail.
    """

    sealed: bool
    head: str
    tail: str
    segments: tuple[Segment, ...]

    def segment(self, segment_id: int) -> Segment:
        """Gives one segment by its id."""
        return next(segment for segment in self.segments if segment.id == segment_id)


@dataclass(frozen=True)
class Copied:
    """The result of a copy by the official client.

    Attributes:
        events: Events copied.
        bytes: Their payloads' bytes.
        seconds: How long it took, without making the target.
        megabytes_per_second: The speed.
        cpu_seconds: CPU time of the client's process.
    """

    events: int
    bytes: int
    seconds: float
    megabytes_per_second: float
    cpu_seconds: float
