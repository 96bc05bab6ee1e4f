"""Decide the next step of a copy that appends to an existing stream, from what the stores hold.

As in `core.copy.next_step`, `next_step` is pure, and each step is safe to repeat and to do late.
Bytes are staged and verified in the same way. They become readable by transactions of the store,
one for each generation of the source. To open a transaction, the target is scaled to the
generation's key ranges for a moment. So each segment's bytes have a place of their own among those
of live writers.

    PlanPlacement -> Stage -> Transfer -> Stitch -> Verify -> AcquireScaling -> RecordLayout
      -> ((RelaxPolicy ->) Reshape -> Open) for each generation
      -> RestoreLayout -> RestorePolicy -> ReleaseScaling -> MergeIntoTransaction
      -> RecordDecision -> Commit -> RecordCommitted -> WriteReceipt (-> Seal) -> DeleteJournal
      -> Done
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.append_progress import Roll
from sluice.core.copy.missing_journal import without_journal
from sluice.core.copy.next_staging_step import stage
from sluice.core.copy.steps import (
    AcquireScaling,
    Commit,
    DeleteJournal,
    Done,
    MergeIntoTransaction,
    Open,
    PlanPlacement,
    RecordCommitted,
    RecordDecision,
    RecordLayout,
    RelaxPolicy,
    ReleaseScaling,
    Reshape,
    Restart,
    RestoreLayout,
    RestorePolicy,
    Seal,
    WriteReceipt,
)
from sluice.core.values import identity
from sluice.core.values.model import TransactionState
from sluice.errors import (
    CopyAborted,
    OutcomeUnknown,
    StoreBusy,
    StoreUnavailable,
    TargetReplaced,
    TargetSealed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.copy.observed import Observed, SeenTarget
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.steps import Step
    from sluice.core.values.model import KeyRange, Segment

_GONE = frozenset({TransactionState.ABORTING, TransactionState.ABORTED, TransactionState.UNKNOWN})


def has_ranges(one: Sequence[KeyRange], other: Sequence[KeyRange]) -> bool:
    """Tell whether key ranges, both in order, are equal but for rounding."""
    return len(one) == len(other) and all(a.is_like(b) for a, b in zip(one, other, strict=True))


def has_layout(segments: Sequence[Segment], ranges: Sequence[KeyRange]) -> bool:
    """Tell whether segments take these key ranges; both in key order."""
    return has_ranges([segment.keys for segment in segments], ranges)


def layout_of(plan: StreamPlan, generation: int) -> tuple[KeyRange, ...]:
    """Return the key ranges that the source had in a generation."""
    return tuple(plan.segments[i].keys for i in plan.active[generation])


def is_loosened(target: SeenTarget, copy_id: str) -> bool:
    """Tell whether this copy has replaced the target's own scaling policy for the moment."""
    return any(tag.startswith(identity.TAG_APPENDING + copy_id) for tag in target.tags)


def is_reshaped(plan: StreamPlan, roll: Roll, target: SeenTarget) -> bool:
    """Tell whether the target has key ranges that this copy gave it for a moment.

    A user may scale the target meanwhile. So key ranges that are neither the copy's nor the
    recorded ones stay as they are.
    """
    if roll.layout is None or has_layout(target.tail, roll.layout):
        return False
    return any(has_layout(target.tail, layout_of(plan, number)) for number in plan.filled)


def next_step(plan: StreamPlan, seen: Observed) -> Step:
    """Decide the next step of an append whose plan is recorded, or that is done.

    Raises:
        CopyAborted: the copy was aborted.
        TargetLost: the store has lost what was there.
        TargetReplaced: the target is gone.
        TargetSealed: the target takes no more events, and not all bytes are appended.
        StoreBusy: another copy scales the target at the moment.
        StoreUnavailable: the observation lacks the transactions or the source.
        OutcomeUnknown: the store has forgotten how a transaction ended.
        SourceNotFound, SourceReplaced, SourceTruncated: the source changed under the copy.
    """
    roll = Roll() if seen.journal is None else seen.journal.roll
    back = _back(plan, seen, roll)
    if back is not None:
        return back
    if seen.roll.digest is not None:
        return _tidy(plan, seen, seen.roll.digest)
    if seen.journal is None:
        raise without_journal(plan, seen)
    if roll.aborted:
        raise CopyAborted(f"the copy of {plan.origin} to {plan.target} was aborted while it ran")
    if seen.target is None:
        raise TargetReplaced(f"{plan.target} was deleted while a copy was to be appended to it")
    due = _due(plan, roll)
    if roll.decided and due:
        return _finish(plan, due, seen.roll.states)
    if seen.target.sealed and due:
        raise TargetSealed(f"{plan.target} was sealed", field="spec.target.stream")
    return _fill(plan, seen, roll, due)


def _tidy(plan: StreamPlan, seen: Observed, digest: str) -> Step:
    """Return the next step once all is appended.

    The journal is deleted only when the target is sealed, if it is to be: without a journal nothing
    is done to the target any more.
    """
    if seen.journal is None:
        return Done(digest)
    if plan.seal and seen.target is not None and not seen.target.sealed:
        return Seal()
    return DeleteJournal()


def _due(plan: StreamPlan, roll: Roll) -> list[int]:
    """Return the generations that are not appended yet."""
    return [number for number in plan.filled if number not in roll.committed]


def _is_lost(seen: Observed, roll: Roll) -> bool:
    """Tell whether the store has dropped a transaction."""
    return any(seen.roll.states.get(number) in _GONE for number in roll.transactions)


def _back(plan: StreamPlan, seen: Observed, roll: Roll) -> Step | None:
    """Return the next step that restores the target's key ranges and policy, if it is time.

    That is the case once no more transactions have to be opened: all are open, or they are lost, or
    the copy is done or aborted.
    """
    target = seen.target
    if target is None or target.sealed:
        return None
    over = seen.roll.digest is not None or roll.aborted or _is_lost(seen, roll)
    if not over and any(number not in roll.transactions for number in _due(plan, roll)):
        return None
    if is_reshaped(plan, roll, target):
        # The target may have had fewer segments before than its policy wants at least.
        few = len(roll.layout or ()) < target.least
        return RelaxPolicy() if few else RestoreLayout(target.segments)
    if is_loosened(target, plan.copy_id):
        return RestorePolicy()
    return ReleaseScaling() if seen.roll.turn == plan.copy_id else None


def _finish(plan: StreamPlan, due: Sequence[int], states: Mapping[int, TransactionState]) -> Step:
    """Return the next step once the commit is decided. Transactions are committed in order."""
    first = states.get(due[0])
    if first is None:
        raise StoreUnavailable(f"the transactions of {plan.target} were not observed")
    committed = []
    for number in due:
        if states.get(number) is not TransactionState.COMMITTED:
            break
        committed.append(number)
    if committed:
        return RecordCommitted(tuple(committed))
    if first is TransactionState.UNKNOWN:
        raise OutcomeUnknown(
            f"{plan.target} may have been appended to: the store does not know any more what "
            "became of the transaction"
        )
    if first in _GONE:
        return Restart(keep=False)
    return Commit(tuple(due))


def _fill(plan: StreamPlan, seen: Observed, roll: Roll, due: Sequence[int]) -> Step:
    """Return the next step until the commit is decided."""
    if seen.journal is None or seen.journal.target is None:
        return PlanPlacement()
    if not due:
        return WriteReceipt()
    if _is_lost(seen, roll) or seen.roll.misplaced:
        return Restart(keep=not _is_lost(seen, roll))
    return _put(plan, seen, roll, due)


def _put(plan: StreamPlan, seen: Observed, roll: Roll, due: Sequence[int]) -> Step:
    """Return the next step until all bytes that are due are in transactions."""
    todo = [
        (i, plan.segments[i], seen.segments[i])
        for number in due
        for i in plan.generations[number]
        if plan.segments[i].length and seen.segments[i].published is None
    ]
    unverified = [one for one in todo if one[2].verified != one[1].length]
    if unverified:
        return stage(plan, seen, unverified)
    missing = [number for number in due if number not in roll.transactions]
    if missing:
        return _open(plan, seen, roll, missing[0])
    if todo:
        return MergeIntoTransaction(tuple(i for i, _, _ in todo))
    return RecordDecision()


def _open(plan: StreamPlan, seen: Observed, roll: Roll, generation: int) -> Step:
    """Return the next step towards an open transaction with a generation's key ranges."""
    target = seen.target
    if seen.roll.turn is None:
        return AcquireScaling()
    if seen.roll.turn != plan.copy_id:
        raise StoreBusy(f"another copy is being appended to {plan.target} at this moment")
    if roll.layout is None or target is None:
        return RecordLayout()
    wanted = layout_of(plan, generation)
    if has_layout(target.tail, wanted):
        return Open(generation)
    if len(wanted) < target.least:
        return RelaxPolicy()
    return Reshape(generation, target.segments)
