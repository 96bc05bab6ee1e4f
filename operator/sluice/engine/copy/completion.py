"""What a target tells that says of itself that it is whole: metadata only, no stream bytes.

What it says is held against the plan, if that is known, before anybody is told so.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from sluice.core.values import identity
from sluice.core.workloads.answers import Complete, CopyGap
from sluice.errors import StreamNotFound, TargetReplaced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.values.model import Segment, StreamName
    from sluice.engine.append.receipts import Receipt
    from sluice.stores.base import Store
    from sluice.stores.reading import Stream


def whole(
    request: CopyRequest,
    store: Store,
    digest: str,
    *,
    known: StreamPlan | None,
    receipt: Receipt | None = None,
    stream: Stream | None = None,
) -> Complete:
    """What there is to tell of a copy whose target says that it is whole.

    Args:
        request: the copy.
        store: the target store.
        digest: under which it says so.
        known: the plan that was written down, to hold the target against.
        receipt: of a copy that has appended.
        stream: the target as it was seen just now, if anybody looked.

    Raises:
        TargetReplaced: it is not what the plan asked for.
    """
    if receipt is not None:
        return _appended(receipt, known)
    if known is None:
        return _facts(request, store, digest, stream)
    if known.move:
        return _moved(request, known, store, digest, stream)
    return _compared(known, store, digest, stream)


def _appended(receipt: Receipt, known: StreamPlan | None) -> Complete:
    """What was appended to a stream that lives on, so that only the receipt tells."""
    segments = None if known is None else len(known.segments)
    return Complete(
        digest=receipt.digest, bytes=receipt.bytes, events=receipt.events, segments=segments
    )


def _moved(
    request: CopyRequest, plan: StreamPlan, store: Store, digest: str, stream: Stream | None
) -> Complete:
    """A whole target of a move, which has at least what was planned: more came until the end."""
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


def _compared(plan: StreamPlan, store: Store, digest: str, stream: Stream | None) -> Complete:
    """A whole target, held against its plan; one that lived on since cannot be any more."""
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
        return whole  # scaled since, and perhaps truncated to what it was scaled to
    if any(info is None or info.start for info in store.infos(names)):
        return whole
    raise TargetReplaced(
        f"{plan.target} has the mark of a whole copy, and its segments hold "
        f"{[one.bytes for one in told]} bytes of it instead of {wanted}",
        field="spec.target.stream",
    )


def _facts(request: CopyRequest, store: Store, digest: str, stream: Stream | None) -> Complete:
    """A whole target whose plan nobody has any more: what its segments tell of it."""
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
    target: StreamName, stream: Stream | None, store: Store
) -> tuple[tuple[Segment, ...], ...]:
    """A target's segments as scale events made them. StreamNotFound."""
    if stream is not None and stream.is_one_generation:
        return (stream.head,)
    return store.generations(target)


class _Told(NamedTuple):
    """What a segment of the target says.

    Attributes:
        bytes, events: what was published into it; None where nothing of the copy was.
        gap: what its source had lost before that was read.
    """

    bytes: int | None
    events: int | None
    gap: CopyGap | None


def _names(target: StreamName, made: Sequence[Sequence[Segment]], store: Store) -> list[str]:
    """The full names of a target's segments, as scale events made them."""
    return [store.segment_name(target, segment.id) for segments in made for segment in segments]


def _told(copy_id: str, names: Sequence[str], store: Store) -> list[_Told]:
    """What each segment says."""
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
    """The events of all segments that were copied; None if one does not tell."""
    counts = [one.events for one in told if one.bytes is not None]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
