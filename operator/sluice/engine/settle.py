"""What the operator asks of a copy's stores, and does there itself: metadata only, no stream bytes.

A driver reports nothing that counts. Whether a target is whole is seen in the target, and compared
with the plan, before anybody is told so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.core import identity
from sluice.core.model import StoreAddress
from sluice.core.plan import Plan
from sluice.core.reconcile.world import UNVERIFIED, Complete, Planned
from sluice.engine.abort import abort, finish_abort, sweep
from sluice.engine.copy import CopyRunner
from sluice.engine.ledger import Ledger
from sluice.engine.planning import resolve
from sluice.errors import AbortRefused, InfrastructureError, StreamNotFound, TargetReplaced

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        return _facts(request, target[1], digest)
    return _compared(known, target[1], digest)


def _appended(receipt: Receipt, known: StreamPlan | None) -> Complete:
    """What was appended to a stream that lives on, so that only the receipt tells."""
    segments = None if known is None else len(known.segments)
    return Complete(
        digest=receipt.digest, bytes=receipt.bytes, events=receipt.events, segments=segments
    )


def _compared(plan: StreamPlan, store: Store, digest: str) -> Complete:
    """A whole target, held against its plan; one that lived on since cannot be any more."""
    whole = Complete(
        digest=digest, bytes=plan.bytes, events=plan.events, segments=len(plan.segments)
    )
    try:
        made = store.generations(plan.target)
    except StreamNotFound:
        return whole
    if [len(segments) for segments in made] != [len(places) for places in plan.generations]:
        return whole  # scaled since, and perhaps truncated to what it was scaled to
    segments = [segment.id for generation in made for segment in generation]
    names = [store.segment_name(plan.target, segment) for segment in segments]
    if any(info is None or info.start for info in store.infos(names)):
        return whole
    attribute = identity.publish_attribute(plan.copy_id)
    values = store.attributes([(name, attribute) for name in names])
    wanted = [segment.length for segment in plan.segments]
    if [value or 0 for value in values] != wanted:
        raise TargetReplaced(
            f"{plan.target} has the mark of a whole copy, and its segments hold {values} bytes of "
            f"it instead of {wanted}",
            field="spec.target.stream",
        )
    if whole.events is not None:
        return whole
    counts = store.attributes([(name, store.event_count) for name in names])
    # A store counts nothing for a segment that nothing was written to.
    untold = any(count is None and size for count, size in zip(counts, wanted, strict=True))
    return replace(whole, events=None if untold else sum(count or 0 for count in counts))


def _facts(request: CopyRequest, store: Store, digest: str) -> Complete:
    """A whole target whose plan nobody has any more: what its segments tell of it."""
    try:
        made = store.generations(request.target)
    except StreamNotFound:
        return Complete(digest=digest)
    segments = [segment.id for generation in made for segment in generation]
    names = [store.segment_name(request.target, segment) for segment in segments]
    attribute = identity.publish_attribute(request.copy_id)
    published = [value or 0 for value in store.attributes([(name, attribute) for name in names])]
    infos = store.infos(names)
    events = None
    if published == [info.length if info else 0 for info in infos]:  # nobody wrote to it since
        counts = store.attributes([(name, store.event_count) for name in names])
        events = sum(count or 0 for count in counts)
    return Complete(digest=digest, bytes=sum(published), events=events, segments=len(names))


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
    try:
        if abort(request.copy_id, request.target, target):
            return "what was staged was dropped"
    except AbortRefused:
        _finish(request, sources=sources, target=target)
        return "publishing had begun and was finished"
    swept = 0
    if request.append or _ours(request, target):
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


def _finish(request: CopyRequest, *, sources: Sequence[Store] | None, target: Store) -> None:
    """Publish what is left to publish."""
    journal = Ledger(target, request.copy_id, request.target).load()
    if journal is None:
        return
    nowhere = StoreAddress(uri="tcp://unused:0")
    count = 1 + max(source.store for source in journal.plan.sources)
    plan = Plan(sources=(nowhere,) * count, target=nowhere, streams=(journal.plan,))
    runner = CopyRunner(
        plan,
        sources=sources or [target] * count,
        target=target,
        executor=_NoSlices(),
        patience=PUBLISH_PATIENCE,
    )
    for report in runner.run():
        if report.error is not None:
            raise InfrastructureError(
                f"publishing could not be finished: {report.error.message}",
                remedy=report.error.remedy,
            )
