"""The report of a verification, which users can recompute; see docs/verify.md.

Offsets are bytes. The texts say whether they are the source's or the target's; chunks always lie at
the source's offsets. All digests are SHA-256 in hexadecimal digits.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from sluice.core.events.digest import CHUNK
from sluice.core.values.model import Frozen, KeyRange, StreamName


class Result(StrEnum):
    """The result of a verification."""

    EQUAL = "Equal"
    DIFFERENT = "Different"
    INCOMPLETE = "Incomplete"
    """No difference was found, but the source does not have all of the bytes any more."""


class What(StrEnum):
    """The kind of a difference between two streams."""

    BYTES = "Bytes"
    """A byte differs."""
    MISSING = "Missing"
    """The target lacks bytes of the source."""
    EXTRA = "Extra"
    """The target has bytes that the source lacks."""
    SEGMENT_MISSING = "SegmentMissing"
    """The target has no segment with the keys of this source segment, in its order."""
    SEGMENT_EXTRA = "SegmentExtra"
    """The source has no segment for a target segment that holds bytes."""
    KEYS = "KeyRange"
    """The two segments take different keys."""
    EVENT_COUNT = "EventCount"
    """The target's store counts another number of events than there are."""
    DIGEST = "Digest"
    """The target's digest is not the one that the copy recorded at its end."""


class Difference(Frozen):
    """A difference, and the place where it begins; `source_index` as in SegmentCheck."""

    what: What
    message: str
    source_index: int | None = None
    segment: int | None = None
    offset: int | None = None
    target_segment: int | None = None
    target_offset: int | None = None


class SegmentSide(Frozen):
    """One side of a pair of segments. Offsets are this segment's own.

    Attributes:
        segment: its id.
        keys: the keys that it takes; None if they are unknown, as the segment is gone.
        start: first offset read.
        end: offset after the last byte read.
        events: number of events that were counted; None if the bytes are not events.
        no_event_at: the first offset at which a whole event has to begin and does not; None if
            the bytes are events.
        store_events: number of events as its store counts; None if the store cannot tell, or counts
            other bytes than those read.
        digest: the digest over the digests of the chunks.
        chunks: the digests of the chunks, in order.
    """

    segment: int
    keys: KeyRange | None
    start: int
    end: int
    events: int | None
    no_event_at: int | None
    store_events: int | None
    digest: str
    chunks: tuple[str, ...]


class SegmentCheck(Frozen):
    """The comparison of a pair of segments.

    Attributes:
        source_index: the index of the source's stream among the sources.
        equal: whether no difference was found.
        start: first offset of the source that is wanted.
        end: offset after the last wanted byte.
        shift: the difference between an offset in the target and the same one in the source.
        gone: number of wanted bytes that the source has no more.
        before: number of bytes that the target has before the wanted ones.
        beyond: number of bytes that the target has after the wanted ones.
        taken: of a copy that follows its source, the number of wanted bytes that the target's
            retention has taken.
        proved: of such a copy, the source offset up to which it has compared the bytes itself.
        source: the source's side.
        target: the target's side.
    """

    source_index: int
    equal: bool
    start: int
    end: int
    shift: int
    gone: int
    before: int
    beyond: int
    taken: int = 0
    proved: int | None = None
    source: SegmentSide
    target: SegmentSide

    @property
    def is_lost(self) -> bool:
        """Whether the source lacks bytes that no one has compared."""
        return self.gone > 0 and (self.proved is None or self.source.start > self.proved)


class Unpaired(Frozen):
    """A segment without a partner; `source_index` is None for a segment of the target."""

    source_index: int | None
    segment: int
    keys: KeyRange | None
    start: int
    end: int


class StreamSide(Frozen):
    """One of the compared streams.

    Attributes:
        store: its store's address.
        stream: its name.
        begin: where the range begins, as it was requested; None for the stream's head.
        end: where the range ends; None for the stream's tail.
        bytes: number of bytes that were read.
        events: number of events that were counted; None if some bytes are not events.
        digest: the digest over the segments' digests, in the order of the report.
    """

    store: str
    stream: StreamName
    begin: str | None = None
    end: str | None = None
    bytes: int = 0
    events: int | None = None
    digest: str = ""


class Verification(Frozen):
    """The comparison of two streams, or of a copy's sources and its target.

    Attributes:
        name: the name of the StreamCopy whose streams they are; None for other streams.
        result: the result.
        source: the reference stream. If there are several, the first one, with the counts and the
            digest over all of them.
        sources: each source, with its own counts and digest.
        target: the stream that was compared with the sources.
        paired_by: how segments and their bytes were paired: by the copy's records, or as
            Alignment says.
        recorded_digest: the digest that the copy recorded on its target at its end.
        segments: the pairs, in the order of the source.
        missing: segments of the sources without a partner in the target.
        extra: segments of the target without a partner in the sources.
        differences: the differences: first those of the pairs, by pair and by place.
    """

    name: str | None
    result: Result
    source: StreamSide
    sources: tuple[StreamSide, ...]
    target: StreamSide
    paired_by: Literal["Copy", "Beginnings", "Offsets"]
    recorded_digest: str | None
    segments: tuple[SegmentCheck, ...]
    missing: tuple[Unpaired, ...]
    extra: tuple[Unpaired, ...]
    differences: tuple[Difference, ...]

    @property
    def gone(self) -> int:
        """The number of bytes that were not compared since the source has them no more."""
        return sum(segment.gone for segment in self.segments)

    @property
    def taken(self) -> int:
        """The number of bytes that the retention of a target has taken that follows its source."""
        return sum(segment.taken for segment in self.segments)

    @property
    def is_proved(self) -> bool:
        """Whether a copy compared all bytes that the source has no more, while it followed it."""
        return not any(one.is_lost for one in self.segments)

    @property
    def beyond(self) -> int:
        """The number of bytes of the target that were not compared."""
        more = sum(segment.before + segment.beyond for segment in self.segments)
        return more + sum(segment.end - segment.start for segment in self.extra)


class ReportFile(Frozen):
    """The file that `sluice verify --report` writes.

    Attributes:
        version: the version of this format.
        sluice: the version of the program.
        made: the time at which it was made, in UTC.
        chunk_bytes: bytes of a chunk.
        verifications: the comparisons, one for each target.
    """

    version: Literal[1] = 1
    sluice: str
    made: str
    chunk_bytes: int = CHUNK
    verifications: tuple[Verification, ...]
