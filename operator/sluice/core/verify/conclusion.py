"""Conclude from what was compared: the report of a verification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sluice.core.events.digest import combine
from sluice.core.verify.followed import breaks_chain, digest_of
from sluice.core.verify.verification import (
    Difference,
    Result,
    SegmentCheck,
    SegmentSide,
    StreamSide,
    Unpaired,
    Verification,
    What,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sluice.core.values.model import KeyRange
    from sluice.core.verify.comparison import Comparison, Contents
    from sluice.core.verify.pairing import Extent, Pair, Pairing


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
    """Make the report from the comparisons.

    Args:
        pairing: the pairing of the segments.
        compared: each pair as it was when its bytes were read, and its comparison.
        sources: the source, or all streams that were copied into the target.
        target: the target.
        paired_by: see Verification.
        name: see Verification.
        recorded: see `recorded_digest` of Verification.
        exact: whether bytes of the target that the source lacks are differences.
    """
    found = [list(_differences(pair, seen, exact=exact)) for pair, seen in compared]
    segments = [
        _segment(pair, seen, equal=not differences)
        for (pair, seen), differences in zip(compared, found, strict=True)
    ]
    differences = _gathered(pairing, compared, found, exact=exact)
    read = [
        [s.source for s in segments if s.source_index == place] for place in range(len(sources))
    ]
    target_digest = _over(segment.target.digest for segment in segments)
    followed = any(pair.proved is not None for pair in pairing.pairs)
    digest = digest_of(compared) if followed else target_digest
    if None not in {recorded, digest} and recorded != digest:
        differences.append(_not_recorded(str(recorded), str(digest)))
    result = Result.INCOMPLETE if any(one.is_lost for one in segments) else Result.EQUAL
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


def _gathered(
    pairing: Pairing,
    compared: Sequence[tuple[Pair, Comparison]],
    found: Sequence[Sequence[Difference]],
    *,
    exact: bool,
) -> list[Difference]:
    """List the differences of all segments: of pairs first, then of those that have no pair.

    Args:
        pairing: the pairing of the segments.
        compared: the pairs and their comparisons.
        found: the differences of each pair.
        exact: see `conclude`.
    """
    differences = [one for each in found for one in each]
    differences += [
        _other_chain(pair)
        for (pair, seen), known in zip(compared, found, strict=True)
        if not known and breaks_chain(pair, seen)
    ]
    differences += [_missing(one) for one in pairing.missing]
    differences += [
        _extra(one)
        for one in pairing.extra
        if one.end > one.start and (exact or one.segment in pairing.inner)
    ]
    return differences


def _differences(pair: Pair, seen: Comparison, *, exact: bool) -> Iterator[Difference]:
    """Yield the differences of a pair, by place."""
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
    if head > 0 and pair.proved is None:
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
    """Tell whether the source's store counts the events of exactly the wanted bytes."""
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
        taken=pair.taken,
        proved=pair.proved,
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


def _other_chain(pair: Pair) -> Difference:
    return Difference(
        what=What.DIGEST,
        message="these are not the bytes that the copy compared while it followed its source",
        source_index=pair.source.stream,
        segment=pair.source.segment,
        offset=pair.start,
        target_segment=pair.target.segment,
        target_offset=pair.start + pair.shift,
    )


def _unpaired(one: Extent, source_index: int | None) -> Unpaired:
    bounds = {"start": one.start, "end": one.end}
    return Unpaired(source_index=source_index, segment=one.segment, keys=one.keys, **bounds)


def _range(keys: KeyRange) -> str:
    return f"{keys.low:.4f} to {keys.high:.4f}"
