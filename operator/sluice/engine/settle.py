"""What the operator asks of a copy's stores, and does there itself: metadata only, no stream bytes.

A driver reports nothing that counts. Whether a target is whole is seen in the target, and compared
with the plan, before anybody is told so.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from sluice.core import identity
from sluice.core.model import StoreAddress
from sluice.core.plan import Plan
from sluice.core.positions import MappedSegment, MappedSource, PositionMap
from sluice.core.reconcile.world import UNVERIFIED, Complete, Gap, Planned
from sluice.engine import appends
from sluice.engine.abort import abort, finish_abort, sweep
from sluice.engine.copy import CopyRunner
from sluice.engine.ledger import Ledger
from sluice.engine.planning import resolve
from sluice.engine.positions import position_map
from sluice.errors import (
    AbortRefused,
    InfrastructureError,
    InvalidSpec,
    StreamNotFound,
    TargetReplaced,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.model import Segment, StreamName
    from sluice.core.plan import StreamPlan
    from sluice.core.planner import CopyRequest
    from sluice.core.reconcile.world import Answer
    from sluice.engine.receipts import Receipt
    from sluice.engine.slices import Slice, SliceResult
    from sluice.stores.base import Store


PUBLISH_PATIENCE = 20.0
"""Seconds for which the store may fail while publishing is finished, before the next try."""


def ask(
    request: CopyRequest,
    *,
    sources: Sequence[tuple[StoreAddress, Store]],
    target: tuple[StoreAddress, Store],
    known: StreamPlan | None,
) -> Answer:
    """Whether the copy's target is whole, and otherwise the plan. Nothing is changed.

    Args:
        request: what is wanted.
        sources: the stores to read from, each with its address.
        target: the target store and its address.
        known: the plan that was written down, to compare a whole target with.

    Raises:
        SpecError, BackendError, IntegrityError: as `resolve`; TargetReplaced also where the target
            says that it is whole and is not what the plan asked for.
    """
    found = resolve(request, [store for _, store in sources], target[1])
    if found.plan is not None:
        addresses = tuple(address for address, _ in sources)
        plan = Plan(sources=addresses, target=target[0], streams=(found.plan,))
        return Planned(plan=plan, recorded=found.recorded)
    digest = found.digest or UNVERIFIED
    if found.receipt is not None:
        return _appended(found.receipt, known)
    if known is None:
        whole = _facts(request, target[1], digest)
    elif known.move:
        whole = _moved(request, known, target[1], digest)
    else:
        whole = _compared(known, target[1], digest)
    return replace(whole, positions=positions(request, target[1]))


def positions(request: CopyRequest, store: Store) -> PositionMap | None:
    """The map of a whole target; None where no copied segment of it is left, or it is gone."""
    try:
        mapped = position_map(request.copy_id, request.target, store)
    except (StreamNotFound, InvalidSpec):  # deleted, or made anew, since it was found whole
        return None
    if not mapped:
        return None
    return PositionMap(
        target=str(request.target),
        same_positions=all(one.shift == 0 and one.source == one.target for one in mapped),
        sources=tuple(
            MappedSource(
                stream=str(source.stream),
                segments=tuple(
                    MappedSegment(
                        segment=one.source,
                        start=one.start,
                        end=one.end,
                        target_segment=one.target,
                        shift=one.shift,
                    )
                    for one in mapped
                    if one.stream == number
                ),
            )
            for number, source in enumerate(request.sources)
        ),
    )


def _appended(receipt: Receipt, known: StreamPlan | None) -> Complete:
    """What was appended to a stream that lives on, so that only the receipt tells."""
    segments = None if known is None else len(known.segments)
    return Complete(
        digest=receipt.digest, bytes=receipt.bytes, events=receipt.events, segments=segments
    )


def _moved(request: CopyRequest, plan: StreamPlan, store: Store, digest: str) -> Complete:
    """A whole target of a move, which has at least what was planned: more came until the end."""
    found = _facts(request, store, digest)
    lost = sum(gap.length for gap in found.gaps)
    segments = found.segments or 0
    if segments >= len(plan.segments) and (found.bytes or 0) + lost < plan.bytes:
        raise TargetReplaced(
            f"{plan.target} has the mark of a whole copy, and holds {found.bytes} bytes of it "
            f"instead of at least {plan.bytes - lost}",
            field="spec.target.stream",
        )
    return found


def _compared(plan: StreamPlan, store: Store, digest: str) -> Complete:
    """A whole target, held against its plan; one that lived on since cannot be any more."""
    whole = Complete(digest=digest, bytes=plan.bytes, segments=len(plan.segments))
    try:
        made = store.generations(plan.target)
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
        return replace(
            whole, bytes=sum(wanted), events=_events(told), gaps=tuple(filter(None, gaps))
        )
    if [len(segments) for segments in made] != [len(places) for places in plan.generations]:
        return whole  # scaled since, and perhaps truncated to what it was scaled to
    if any(info is None or info.start for info in store.infos(names)):
        return whole
    raise TargetReplaced(
        f"{plan.target} has the mark of a whole copy, and its segments hold "
        f"{[one.bytes for one in told]} bytes of it instead of {wanted}",
        field="spec.target.stream",
    )


def _facts(request: CopyRequest, store: Store, digest: str) -> Complete:
    """A whole target whose plan nobody has any more: what its segments tell of it."""
    try:
        made = store.generations(request.target)
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


class _Told(NamedTuple):
    """What a segment of the target says.

    Attributes:
        bytes, events: what was published into it; None where nothing of the copy was.
        gap: what its source had lost before that was read.
    """

    bytes: int | None
    events: int | None
    gap: Gap | None


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
            gap = Gap(source, segment, start - lost, start)
        found.append(_Told(size, events, gap))
    return found


def _events(told: Sequence[_Told]) -> int | None:
    """The events of all segments that were copied; None if one does not tell."""
    counts = [one.events for one in told if one.bytes is not None]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def abandon(request: CopyRequest, *, sources: Sequence[Store] | None, target: Store) -> str:
    """Leave nothing unpublished of a copy: end it, or finish it where publishing has begun.

    Safe to repeat. No driver of the copy must run.

    Args:
        request: the copy.
        sources: the stores to read from, if they can be reached; they are only looked at.
        target: the target store.

    Returns:
        What was done, for people.
    """
    finish_abort(request.copy_id, request.target, target)
    journal = Ledger(target, request.copy_id, request.target).load() if request.move else None
    try:
        if abort(request.copy_id, request.target, target):
            if journal is not None and journal.drained is not None:
                return f"what was staged was dropped; {request.origin} is sealed and stays so"
            return "what was staged was dropped"
    except AbortRefused:
        return _finish(request, sources=sources, target=target)
    if not (request.append or _ours(request, target)):
        return "nothing was left"
    journal = Ledger(target, request.copy_id, request.target).load()
    if journal is not None and journal.target is not None:  # whole, but not sealed yet, say
        return _finish(request, sources=sources, target=target)
    swept = sweep(request.copy_id, request.target, target)
    return f"{swept} left-over segments were dropped" if swept else "nothing was left"


def _ours(request: CopyRequest, target: Store) -> bool:
    stream = target.describe(request.target)
    return stream is not None and identity.is_ours(stream.config.tags, request.copy_id)


class _NoSlices:
    """An executor for what is left when publishing has begun: metadata."""

    slots = 1

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """See Executor."""
        raise InfrastructureError(f"{len(tasks)} tasks would have to move bytes")


def _finish(request: CopyRequest, *, sources: Sequence[Store] | None, target: Store) -> str:
    """Publish what is left to publish, and what follows on that; what was done, for people."""
    done = "publishing had begun and was finished"
    ledger = Ledger(target, request.copy_id, request.target)
    journal = ledger.load()
    if journal is None:
        return done
    if journal.plan.append and appends.leave_beginning(journal.plan, ledger, target):
        return "a beginning is appended and stays; a copy of this name would append the rest"
    nowhere = StoreAddress(uri="tcp://unused:0")
    count = 1 + max(source.store for source in journal.plan.sources)
    plan = Plan(sources=(nowhere,) * count, target=nowhere, streams=(journal.plan,))
    runner = CopyRunner(
        plan,
        sources=sources or [target] * count,
        target=target,
        executor=_NoSlices(),
        patience=PUBLISH_PATIENCE,
        keep_sources=True,
    )
    for report in runner.run():
        if report.error is not None:
            raise InfrastructureError(
                f"publishing could not be finished: {report.error.message}",
                remedy=report.error.remedy,
            )
    return done
