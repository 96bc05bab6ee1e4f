"""What a copy does next that appends to a stream that is there, decided from what stores hold.

As `core.copying`, and with the same words: `next_step` is pure, each step is safe to repeat and to
do late. Bytes are staged and verified in the same way. They become readable by transactions of the
store, one for each generation of the source: the target is scaled to a generation's key ranges for
as long as it takes to open one, so that each segment's bytes have a place of their own among those
of its live writers.

    Foresee -> Stage -> Transfer -> Stitch -> Verify
      -> (Loosen -> Reshape -> Open) for each generation -> Return -> Tighten
      -> Join -> Decide -> Commit -> Note -> Certify -> Forget -> Done
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core import identity
from sluice.core.copying import stage
from sluice.core.model import TransactionState
from sluice.core.steps import (
    Certify,
    Commit,
    Decide,
    Done,
    Foresee,
    Forget,
    Join,
    Loosen,
    Note,
    Open,
    Remember,
    Reshape,
    Restart,
    Return,
    Tighten,
)
from sluice.errors import CopyAborted, OutcomeUnknown, StoreUnavailable, TargetReplaced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.copying import Observed, SeenTarget
    from sluice.core.model import KeyRange, Segment
    from sluice.core.plan import StreamPlan
    from sluice.core.rolling import Roll
    from sluice.core.steps import Step

_GONE = frozenset({TransactionState.ABORTING, TransactionState.ABORTED, TransactionState.UNKNOWN})


def has_layout(segments: Sequence[Segment], ranges: Sequence[KeyRange]) -> bool:
    """Whether segments take these key ranges; both in key order."""
    return len(segments) == len(ranges) and all(
        segment.keys.is_like(keys) for segment, keys in zip(segments, ranges, strict=True)
    )


def layout_of(plan: StreamPlan, generation: int) -> tuple[KeyRange, ...]:
    """The key ranges that the source had in a generation."""
    return tuple(plan.segments[i].keys for i in plan.active[generation])


def is_loosened(target: SeenTarget, copy_id: str) -> bool:
    """Whether the target has another policy than its own because of this copy."""
    return any(tag.startswith(identity.TAG_APPENDING + copy_id) for tag in target.tags)


def is_reshaped(plan: StreamPlan, roll: Roll, target: SeenTarget) -> bool:
    """Whether the target has key ranges that this copy gave it for a moment.

    Somebody who scales it in that moment knows better, so what is neither ours nor what was before
    is left alone.
    """
    if roll.layout is None or has_layout(target.tail, roll.layout):
        return False
    return any(has_layout(target.tail, layout_of(plan, number)) for number in plan.filled)


def next_step(plan: StreamPlan, seen: Observed) -> Step:
    """The next step of an append whose plan is recorded, or that is done.

    Raises:
        CopyAborted: somebody ended this copy.
        TargetReplaced: the target is gone.
        OutcomeUnknown: the store has forgotten what became of a transaction.
        SourceNotFound, SourceReplaced, SourceTruncated: the source changed under the copy.
    """
    roll = seen.journal.roll if seen.journal is not None else None
    done = seen.roll.digest
    if roll is not None and seen.target is not None:
        back = _back(
            plan, roll, seen.target, over=done is not None or roll.aborted or _opened(plan, seen)
        )
        if back is not None:
            return back
    if done is not None:
        if seen.target is not None and is_loosened(seen.target, plan.copy_id):
            return Tighten()
        return Done(done) if seen.journal is None else Forget()
    if seen.journal is None or roll is None or roll.aborted:
        raise CopyAborted(f"the copy of {plan.source} to {plan.target} was aborted while it ran")
    if seen.target is None:
        raise TargetReplaced(f"{plan.target} was deleted while a copy was to be appended to it")
    if seen.journal.target is None:
        return Foresee()
    due = [number for number in plan.filled if number not in roll.committed]
    if not due:
        return Certify()
    if roll.decided:
        return _finish(plan, due, seen.roll.states)
    if any(seen.roll.states.get(number) in _GONE for number in roll.transactions):
        return Restart(keep=False)
    return _fill(plan, seen, roll, due)


def _opened(plan: StreamPlan, seen: Observed) -> bool:
    """Whether no transaction is to be opened any more, or not with what there is."""
    roll = seen.journal.roll if seen.journal is not None else None
    if roll is None:
        return True
    due = [number for number in plan.filled if number not in roll.committed]
    lost = any(seen.roll.states.get(number) in _GONE for number in roll.transactions)
    return lost or all(number in roll.transactions for number in due)


def _back(plan: StreamPlan, roll: Roll, target: SeenTarget, *, over: bool) -> Step | None:
    """What gives the target back the key ranges and the policy that it had, if it is time."""
    if not over or target.sealed:
        return None
    if is_reshaped(plan, roll, target):
        return Return(target.segments)
    return Tighten() if is_loosened(target, plan.copy_id) else None


def _finish(plan: StreamPlan, due: Sequence[int], states: Mapping[int, TransactionState]) -> Step:
    """The next step once the commit is decided. Transactions are committed in order."""
    first = states.get(due[0])
    if first is None:
        raise StoreUnavailable(f"the transactions of {plan.target} were not observed")
    committed = []
    for number in due:
        if states.get(number) is not TransactionState.COMMITTED:
            break
        committed.append(number)
    if committed:
        return Note(tuple(committed))
    if first is TransactionState.UNKNOWN:
        raise OutcomeUnknown(
            f"{plan.target} may have been appended to: the store does not know any more what "
            "became of the transaction"
        )
    if first in _GONE:
        return Restart(keep=False)
    return Commit(tuple(due))


def _fill(plan: StreamPlan, seen: Observed, roll: Roll, due: Sequence[int]) -> Step:
    """The next step until the commit is decided."""
    target = seen.target
    assert target is not None  # noqa: S101 - the caller looked
    if seen.roll.misplaced:
        return Restart(keep=True)
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
        return _open(plan, roll, target, missing[0])
    if todo:
        return Join(tuple(i for i, _, _ in todo))
    return Decide()


def _open(plan: StreamPlan, roll: Roll, target: SeenTarget, generation: int) -> Step:
    """The next step on the way to a transaction that has a generation's key ranges."""
    if roll.layout is None:
        return Remember()
    wanted = layout_of(plan, generation)
    if has_layout(target.tail, wanted):
        return Open(generation)
    if len(wanted) < target.least:
        return Loosen()
    return Reshape(generation, target.segments)
