"""What a verification found: a report that anybody can recompute, see docs/verify.md.

Offsets are bytes. Those of the source and of the target are each named; chunks always lie at the
source's offsets. All digests are SHA-256 in hexadecimal digits.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from sluice.core.events.digest import CHUNK, combine
from sluice.core.values.model import Frozen, KeyRange, StreamName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sluice.core.verify.comparison import Comparison, Contents
    from sluice.core.verify.pairing import Extent, Pair, Pairing


class Result(StrEnum):
    """What came of it."""

    EQUAL = "Equal"
    DIFFERENT = "Different"
    INCOMPLETE = "Incomplete"
    """No difference, but the source has not got all of the bytes any more."""


class What(StrEnum):
    """In what two streams differ."""

    BYTES = "Bytes"
    """A byte is another one."""
    MISSING = "Missing"
    """The target has not got bytes of the source."""
    EXTRA = "Extra"
    """The target has bytes that the source has not."""
    SEGMENT_MISSING = "SegmentMissing"
    """No segment of the target takes the keys of this one in its order."""
    SEGMENT_EXTRA = "SegmentExtra"
    """A segment of the target with bytes has none of the source's to go with."""
    KEYS = "KeyRange"
    """The two segments take other keys."""
    EVENT_COUNT = "EventCount"
    """The target's store counts other events than there are."""
    DIGEST = "Digest"
    """The target is not what its copy said of it when it was finished."""


class Difference(Frozen):
    """A difference, and where it begins; `source_index` as in SegmentCheck."""

    what: What
    message: str
    source_index: int | None = None
    segment: int | None = None
    offset: int | None = None
    target_segment: int | None = None
    target_offset: int | None = None


class SegmentSide(Frozen):
    """What one side has of a pair of segments.

    Attributes:
        segment: its id.
        keys: that it takes; None where nobody can tell any more.
        start: first offset read, of this segment.
        end: offset after the last byte read, of this segment.
        events: how many were counted; None where the bytes are no events.
        no_event_at: the first offset at which no whole event begins, though one has to.
        store_events: how many there are in the segment as its store counts; None where that is of
            other bytes.
        digest: over the digests of the chunks.
        chunks: their digests, in order.
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
    """A pair of segments, compared.

    Attributes:
        source_index: the place of the source's stream among the sources.
        equal: whether it has no difference.
        start: first offset of the source that is wanted.
        end: offset after the last one.
        shift: what has to be added to an offset of the source to have the target's.
        gone: bytes of those that the source has no more.
        before: bytes that the target has before them.
        beyond: bytes that the target has after them.
        source: what the source has.
        target: what the target has.
    """

    source_index: int
    equal: bool
    start: int
    end: int
    shift: int
    gone: int
    before: int
    beyond: int
    source: SegmentSide
    target: SegmentSide


class Unpaired(Frozen):
    """A segment that has none to be compared with; `source_index` is None of the target's."""

    source_index: int | None
    segment: int
    keys: KeyRange | None
    start: int
    end: int


class StreamSide(Frozen):
    """One of the streams.

    Attributes:
        store: its address.
        stream: its name.
        begin: where the range begins, as it was asked for; None for the stream's head.
        end: where it ends; None for its tail.
        bytes: that were read.
        events: that were counted; None where some bytes are no events.
        digest: over the segments' digests, in the order of the report.
    """

    store: str
    stream: StreamName
    begin: str | None = None
    end: str | None = None
    bytes: int = 0
    events: int | None = None
    digest: str = ""


class Verification(Frozen):
    """Two streams, compared.

    Attributes:
        name: of the StreamCopy whose streams they are; None of any others.
        result: what came of it.
        source: the stream that tells how it should be; of several the first, with what was read
            of all of them.
        sources: each of them, with what was read of it.
        target: the one that was held against it.
        paired_by: what tells which segments belong together, and which of their bytes.
        recorded_digest: what the copy wrote down on its target when it was finished.
        segments: the pairs, in the order of the source.
        missing: segments that the target has not.
        extra: segments that the source has not.
        differences: the first one first.
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
        """Bytes that could not be compared since the source has them no more."""
        return sum(segment.gone for segment in self.segments)

    @property
    def beyond(self) -> int:
        """Bytes of the target that were not compared with any."""
        more = sum(segment.before + segment.beyond for segment in self.segments)
        return more + sum(segment.end - segment.start for segment in self.extra)


class ReportFile(Frozen):
    """The file that `sluice verify --report` writes.

    Attributes:
        version: of this format.
        sluice: the version of the program.
        made: when, in UTC.
        chunk_bytes: bytes of a chunk.
        verifications: one for each pair of streams.
    """

    version: Literal[1] = 1
    sluice: str
    made: str
    chunk_bytes: int = CHUNK
    verifications: tuple[Verification, ...]


def conclude(
    pairing: Pairing,
    compared: Sequence[tuple[Pair, Comparison]],
    *,
    sources: Sequence[StreamSide],
    target: StreamSide,
    paired_by: Literal["Copy", "Beginnings", "Offsets"],
    name: str | None = None,
    recorded: str | None = None,
    exact: bool = False,
) -> Verification:
    """Say what came of it.

    Args:
        pairing: which segments belong together.
        compared: each pair as it was when its bytes were read, and what was found.
        sources: the one stream, or all that were copied into one.
        target: the other one.
        paired_by: see Verification.
        name: see Verification.
        recorded: see Verification.
        exact: whether nothing may be in the target that is not in the source.
    """
    found = [list(_differences(pair, seen, exact=exact)) for pair, seen in compared]
    segments = [
        _segment(pair, seen, equal=not differences)
        for (pair, seen), differences in zip(compared, found, strict=True)
    ]
    differences = [one for each in found for one in each]
    differences += [_missing(one) for one in pairing.missing]
    read = [
        [s.source for s in segments if s.source_index == place] for place in range(len(sources))
    ]
    differences += [
        _extra(one)
        for one in pairing.extra
        if one.end > one.start and (exact or one.segment in pairing.inner)
    ]
    target_digest = _over(segment.target.digest for segment in segments)
    if recorded is not None and recorded != target_digest:
        differences.append(_not_recorded(recorded, target_digest))
    gone = any(segment.gone for segment in segments)
    result = Result.INCOMPLETE if gone else Result.EQUAL
    return Verification(
        name=name,
        result=Result.DIFFERENT if differences else result,
        source=_summed(sources[0], [segment.source for segment in segments]),
        sources=tuple(map(_summed, sources, read)),
        target=_summed(target, [segment.target for segment in segments]),
        paired_by=paired_by,
        recorded_digest=recorded,
        segments=tuple(segments),
        missing=tuple(_unpaired(one, one.stream) for one in pairing.missing),
        extra=tuple(_unpaired(one, None) for one in pairing.extra),
        differences=tuple(differences),
    )


def _differences(pair: Pair, seen: Comparison, *, exact: bool) -> Iterator[Difference]:
    """In what a pair differs, the first byte first."""
    source, target = seen.source, seen.target

    def at(what: What, offset: int, message: str) -> Difference:
        return Difference(
            what=what,
            message=message,
            source_index=pair.source.stream,
            segment=pair.source.segment,
            offset=offset,
            target_segment=pair.target.segment,
            target_offset=offset + pair.shift,
        )

    keys = pair.source.keys, pair.target.keys
    if keys[0] is not None and keys[1] is not None and not keys[0].is_like(keys[1]):
        said = f"the keys {_range(keys[0])} in the source are {_range(keys[1])} in the target"
        yield at(What.KEYS, pair.start, said)
    if pair.before and exact:
        said = f"{pair.before:,} bytes before those of the source"
        yield at(What.EXTRA, pair.start - pair.before, said)
    head = min(target.start, source.end) - source.start
    if head > 0:
        yield at(What.MISSING, source.start, f"the target lacks {head:,} bytes from here on")
    if seen.first is not None:
        yield at(What.BYTES, seen.first, "the first byte that differs")
    tail = source.end - max(target.end, source.start)
    if tail > 0:
        begin = source.end - tail
        yield at(What.MISSING, begin, f"the target ends here, {tail:,} bytes before the source")
    if pair.beyond and (exact or pair.inner):
        where = "before its next segment" if pair.inner else "after those of the source"
        yield at(What.EXTRA, pair.end, f"the target has {pair.beyond:,} more bytes {where}")
    counts = (pair.source.events if _is_all(pair) else None, target.events)
    if pair.target.events is not None and not (pair.before or pair.beyond):
        known = [count for count in counts if count is not None]
        if known and pair.target.events not in known:
            said = (
                f"the target's store counts {pair.target.events:,} events, there are {known[-1]:,}"
            )
            yield at(What.EVENT_COUNT, pair.start, said)


def _is_all(pair: Pair) -> bool:
    """Whether what is wanted of the source is what its store counts."""
    return (pair.source.start, pair.source.end) == (pair.start, pair.end)


def _segment(pair: Pair, seen: Comparison, *, equal: bool) -> SegmentCheck:
    counted = not (pair.before or pair.beyond)
    return SegmentCheck(
        source_index=pair.source.stream,
        equal=equal,
        start=pair.start,
        end=pair.end,
        shift=pair.shift,
        gone=pair.gone,
        before=pair.before,
        beyond=pair.beyond,
        source=_side(pair.source, seen.source, 0, counted=_is_all(pair)),
        target=_side(pair.target, seen.target, pair.shift, counted=counted),
    )


def _side(one: Extent, contents: Contents, shift: int, *, counted: bool) -> SegmentSide:
    damaged = contents.no_event_at
    return SegmentSide(
        segment=one.segment,
        keys=one.keys,
        start=contents.start + shift,
        end=contents.end + shift,
        events=contents.events,
        no_event_at=None if damaged is None else damaged + shift,
        store_events=one.events if counted else None,
        digest=combine(contents.chunks).hex(),
        chunks=tuple(chunk.hex() for chunk in contents.chunks),
    )


def _summed(stream: StreamSide, segments: Sequence[SegmentSide]) -> StreamSide:
    counts = [segment.events for segment in segments]
    known = [count for count in counts if count is not None]
    return stream.model_copy(
        update={
            "bytes": sum(segment.end - segment.start for segment in segments),
            "events": sum(known) if len(known) == len(counts) else None,
            "digest": _over(segment.digest for segment in segments),
        }
    )


def _over(digests: Iterable[str]) -> str:
    return combine(map(bytes.fromhex, digests)).hex()


def _missing(one: Extent) -> Difference:
    keys = "" if one.keys is None else f" with the keys {_range(one.keys)}"
    return Difference(
        what=What.SEGMENT_MISSING,
        message=f"the target has no segment{keys} for these {one.end - one.start:,} bytes",
        source_index=one.stream,
        segment=one.segment,
        offset=one.start,
    )


def _extra(one: Extent) -> Difference:
    return Difference(
        what=What.SEGMENT_EXTRA,
        message=f"the source has no segment for these {one.end - one.start:,} bytes",
        target_segment=one.segment,
        target_offset=one.start,
    )


def _not_recorded(recorded: str, found: str) -> Difference:
    return Difference(
        what=What.DIGEST,
        message=f"the copy was finished with the digest {recorded}, and the target has {found}",
    )


def _unpaired(one: Extent, source_index: int | None) -> Unpaired:
    bounds = {"start": one.start, "end": one.end}
    return Unpaired(source_index=source_index, segment=one.segment, keys=one.keys, **bounds)


def _range(keys: KeyRange) -> str:
    return f"{keys.low:.4f} to {keys.high:.4f}"
