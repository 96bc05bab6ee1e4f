"""Check a target that is marked complete, and report what it holds.

Only metadata is read, no stream bytes. If the plan is known, the target is compared with it before
the copy is reported as complete.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from sluice.core.values import identity
from sluice.core.workloads.answers import Complete, CopyGap
from sluice.engine.positions.position_map import position_map
from sluice.errors import InvalidSpec, StreamNotFound, TargetReplaced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.values.model import Segment, StreamName
    from sluice.engine.append.receipts import Receipt
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import SegmentReader, Stream, Topology


def whole(
    request: CopyRequest,
    store: Store,
    digest: str,
    *,
    known: StreamPlan | None,
    receipt: Receipt | None = None,
    stream: Stream | None = None,
) -> Complete:
    """Check a target that is marked complete, and return what it holds.

    Args:
        request: the copy.
        store: the target store.
        digest: the digest in the target's mark.
        known: the recorded plan to compare the target with, if there is one.
        receipt: the receipt of a copy that has appended.
        stream: the target as it was described just now, if the caller has that.

    Raises:
        TargetReplaced: the target does not hold what the plan asked for.
    """
    if receipt is not None:
        return _appended(receipt, known)
    if request.follow:
        return _followed(request, store, digest)
    if known is None:
        return _facts(request, store, digest, stream)
    if known.move:
        return _moved(request, known, store, digest, stream)
    return _compared(known, store, digest, stream)


def _appended(receipt: Receipt, known: StreamPlan | None) -> Complete:
    """Return what was appended, from the receipt: the stream itself goes on changing."""
    segments = None if known is None else len(known.segments)
    return Complete(
        digest=receipt.digest,
        bytes=receipt.bytes,
        events=receipt.events,
        segments=segments,
        appended=True,
    )


def _followed(request: CopyRequest, store: Store, digest: str) -> Complete:
    """Return what the target of a copy holds that has followed its source to its end.

    Bytes that its retention has taken since count as well, where their segment is left.
    """
    try:
        mapped = position_map(request.copy_id, request.target, store, follow=True)
    except (StreamNotFound, InvalidSpec):  # deleted, or made again, since it was described
        return Complete(digest=digest)
    places = list(dict.fromkeys(one.target for one in mapped))
    names = [store.segment_name(request.target, place) for place in places]
    counts = store.attributes([(name, store.event_count) for name in names])
    known = [count for count in counts if count is not None]
    return Complete(
        digest=digest,
        bytes=sum(one.end - one.start for one in mapped),
        events=sum(known) if len(known) == len(counts) else None,
        segments=len(places),
        gaps=tuple(
            CopyGap(one.stream, one.source, one.start - one.lost, one.start)
            for one in mapped
            if one.lost
        ),
    )


def _moved(
    request: CopyRequest, plan: StreamPlan, store: Source, digest: str, stream: Stream | None
) -> Complete:
    """Check the complete target of a move. It holds at least the plan's bytes.

    Events may have come to the source until it was sealed, so the target may hold more.
    """
    found = _facts(request, store, digest, stream)
    lost = sum(gap.length for gap in found.gaps)
    segments = found.segments or 0
    if segments >= len(plan.segments) and (found.bytes or 0) + lost < plan.bytes:
        raise TargetReplaced(
            f"{plan.target} has the mark of a whole copy, and holds {found.bytes} bytes of it "
            f"instead of at least {plan.bytes - lost}",
            field="spec.target.stream",
        )
    return found


def _compared(plan: StreamPlan, store: Source, digest: str, stream: Stream | None) -> Complete:
    """Compare a complete target with its plan.

    A target that was scaled, truncated or deleted since cannot be compared. It counts as complete.
    """
    whole = Complete(digest=digest, bytes=plan.bytes, segments=len(plan.segments))
    try:
        made = _made(plan.target, stream, store)
    except StreamNotFound:
        return whole
    names = _names(plan.target, made, store)
    told = _told(plan.copy_id, names, store)
    copied = [one for one in told if one.bytes is not None]
    gaps = [one.gap if plan.on_truncation == "Record" else None for one in copied]
    wanted = [
        segment.length - (gap.length if gap else 0)
        for segment, gap in zip_longest(plan.segments, gaps[: len(plan.segments)])
    ]
    if [one.bytes for one in copied] == wanted:
        torn = [CopyGap(one.source, one.id, one.end, None) for one in plan.segments if one.torn]
        found = (*filter(None, gaps), *torn)
        return replace(whole, bytes=sum(wanted), events=_events(told), gaps=found)
    if [len(segments) for segments in made] != [len(places) for places in plan.generations]:
        return whole  # scaled since, and perhaps truncated to its newer segments
    if any(info is None or info.start for info in store.infos(names)):
        return whole
    raise TargetReplaced(
        f"{plan.target} has the mark of a whole copy, and its segments hold "
        f"{[one.bytes for one in told]} bytes of it instead of {wanted}",
        field="spec.target.stream",
    )


def _facts(request: CopyRequest, store: Source, digest: str, stream: Stream | None) -> Complete:
    """Return what a complete target's segments say, without its plan."""
    try:
        made = _made(request.target, stream, store)
    except StreamNotFound:
        return Complete(digest=digest)
    told = _told(request.copy_id, _names(request.target, made, store), store)
    return Complete(
        digest=digest,
        bytes=sum(one.bytes or 0 for one in told),
        events=_events(told),
        segments=len(told),
        gaps=tuple(one.gap for one in told if one.gap is not None),
    )


def _made(
    target: StreamName, stream: Stream | None, store: Topology
) -> tuple[tuple[Segment, ...], ...]:
    """Return a target's segments by generation. StreamNotFound if it is gone."""
    if stream is not None and stream.is_one_generation:
        return (stream.head,)
    return store.generations(target)


class _Told(NamedTuple):
    """The attributes that publishing has set on a segment of the target.

    Attributes:
        bytes, events: what was published into it; None where the copy published nothing.
        gap: bytes that the source had lost before they were read.
    """

    bytes: int | None
    events: int | None
    gap: CopyGap | None


def _names(target: StreamName, made: Sequence[Sequence[Segment]], store: Topology) -> list[str]:
    """Return the full names of a target's segments, by generation."""
    return [store.segment_name(target, segment.id) for segments in made for segment in segments]


def _told(copy_id: str, names: Sequence[str], store: SegmentReader) -> list[_Told]:
    """Read the attributes of each segment."""
    asked = (
        identity.publish_attribute(copy_id),
        identity.events_attribute(copy_id),
        *identity.origin_attributes(copy_id),
        identity.gap_attributes(copy_id)[0],
    )
    values = iter(store.attributes([(name, attribute) for name in names for attribute in asked]))
    found = []
    for _ in names:
        size, events, source, segment, start, lost = (next(values) for _ in asked)
        gap = None
        if source is not None and segment is not None and start is not None and lost:
            gap = CopyGap(source, segment, start - lost, start)
        found.append(_Told(size, events, gap))
    return found


def _events(told: Sequence[_Told]) -> int | None:
    """Return the number of events of all copied segments; None if one has no count."""
    counts = [one.events for one in told if one.bytes is not None]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
