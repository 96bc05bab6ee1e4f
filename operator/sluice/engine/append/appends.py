"""Append to an existing stream: observe the append, and carry out its steps.

Bytes become readable by transactions of the store. These have a lease, which each observation
renews while they are open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from sluice.core.copy import append_progress
from sluice.core.copy.next_append_step import is_reshaped
from sluice.core.copy.steps import (
    AcquireScaling,
    AppendStep,
    Commit,
    DeleteJournal,
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
    Stage,
    WriteReceipt,
)
from sluice.core.values import identity
from sluice.core.values.model import TransactionState
from sluice.engine.append import receipts, scaling_lock
from sluice.engine.append.observing import as_seen, can_go_on, states_of
from sluice.engine.append.placement import (
    clear,
    foresee,
    foreseen,
    stage,
    staging_name,
)
from sluice.engine.append.receipts import Receipt
from sluice.engine.append.transactions import (
    commit,
    drop,
    give_back,
    loosen,
    open_,
    reshape,
    roll_of,
    target_of,
    tighten,
    transaction_segment,
)
from sluice.errors import AbortRefused, StoreUnavailable
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.steps import Step
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Store
    from sluice.stores.reading import Topology
    from sluice.stores.writing import SegmentSink

TRIES: Final = 10
"""How often an append is observed again because another driver has gone on meanwhile."""

_DECIDED: Final = frozenset({TransactionState.COMMITTING, TransactionState.COMMITTED})


def perform(  # noqa: C901, PLR0912 - one case for each step
    plan: StreamPlan,
    copy_journal: CopyJournal,
    store: Store,
    step: Step,
    *,
    digest: str,
    events: Callable[[int], int],
) -> bool:
    """Carry out a step of an append that moves no bytes.

    Args:
        plan: the plan of the append.
        copy_journal: its journal.
        store: the target store.
        step: the step.
        digest: the copy's digest, for the receipt.
        events: returns the number of events of a segment of the plan.

    Returns:
        Whether the effect is known; see `staging.ending.Ending.perform`.
    """
    if not isinstance(step, AppendStep):
        raise TypeError(f"{step} is no step of an append")
    match step:
        case PlanPlacement():
            foresee(plan, copy_journal, store)
            return True
        case Stage(parts):
            return stage(plan, copy_journal, store, parts)
        case AcquireScaling():
            scaling_lock.take(plan.copy_id, plan.target, store)
        case ReleaseScaling():
            scaling_lock.give(plan.copy_id, plan.target, store)
        case RecordLayout():
            remember(plan, copy_journal, store)
        case RelaxPolicy():
            loosen(plan, copy_journal, store)
        case Reshape(generation, segments):
            reshape(plan, copy_journal, store, generation, segments)
        case Open(generation):
            open_(plan, copy_journal, store, generation)
        case RestoreLayout(segments):
            give_back(plan, copy_journal, store, segments)
        case RestorePolicy():
            tighten(plan.copy_id, plan.target, store, settled=True)
        case Restart(keep):
            restart(plan, copy_journal, store, keep=keep)
        case MergeIntoTransaction(segments):
            for index in segments:
                join(plan, copy_journal, store, index, events(index))
        case RecordDecision():
            decide(copy_journal)
        case Commit(generations):
            commit(plan, copy_journal, store, generations)
        case RecordCommitted(generations):
            note(copy_journal, generations)
        case Seal():
            store.seal_stream(plan.target)
        case WriteReceipt():
            total = sum(events(index) for index, one in enumerate(plan.segments) if one.length)
            return certify(plan, store, digest=digest, events=total)
        case DeleteJournal():
            delete_journal(plan, copy_journal, store)
            return True
        case _:
            assert_never(step)
    return False


def remember(plan: StreamPlan, copy_journal: CopyJournal, store: Topology) -> None:
    """Record the target's key ranges, to restore them later."""
    stream, roll = target_of(plan, store), roll_of(copy_journal)
    copy_journal.write(
        [append_progress.layout_record(roll.attempt, (one.keys for one in stream.tail))]
    )


def restart(plan: StreamPlan, copy_journal: CopyJournal, store: Store, *, keep: bool) -> None:
    """Begin another attempt: record where it stages, and delete what earlier attempts have staged.

    Args:
        plan: the plan of the append.
        copy_journal: its journal.
        store: the target store.
        keep: whether to keep the transactions, and stage beside their segments. Otherwise they are
            aborted.

    Raises:
        StoreUnavailable: the journal is gone.
    """
    loaded = copy_journal.loaded
    if loaded is None or loaded.target is None:
        raise StoreUnavailable(f"the journal of the copy to {plan.target} is gone")
    roll, bound = loaded.roll, list(loaded.target)
    if keep:
        for index in range(len(plan.segments)):
            found = transaction_segment(plan, roll, index)
            bound[index] = bound[index] if found is None else found[0]
    else:
        drop(plan, roll, store)
        bound = list(foreseen(plan, target_of(plan, store), store))
    copy_journal.write([append_progress.attempt_record(roll.attempt + 1, bound, keep=keep)])
    clear(plan, copy_journal, store, former=True)


def join(
    plan: StreamPlan, copy_journal: CopyJournal, store: SegmentSink, index: int, events: int
) -> None:
    """Merge a staged segment into its transaction's segment, unless that is done."""
    found = transaction_segment(plan, roll_of(copy_journal), index)
    if found is None:
        raise StoreUnavailable(f"segment {index} has no transaction yet")
    segment = plan.segments[index]
    condition = CompareAndSet(identity.publish_attribute(plan.copy_id), None, segment.length)
    name = staging_name(plan, copy_journal, store, index=index, part=0)
    store.seal(name)
    store.merge(store.staging_name(plan.target, *found), name, condition, events=events)


def decide(copy_journal: CopyJournal) -> None:
    """Record the decision to commit the transactions."""
    copy_journal.write([append_progress.decision_record(roll_of(copy_journal).attempt)])


def note(copy_journal: CopyJournal, generations: Sequence[int]) -> None:
    """Record that generations are committed."""
    copy_journal.write([append_progress.committed_record(generations)])


def certify(plan: StreamPlan, store: Store, *, digest: str, events: int) -> bool:
    """Write the receipt, which says that all is appended. Return whether this one counts."""
    stream = target_of(plan, store)
    names = [store.segment_name(plan.target, segment.id) for segment in stream.tail]
    created = store.attributes([(name, store.creation_time) for name in names])
    at = max((value for value in created if value is not None), default=0)
    latest = max(segment.id for segment in stream.tail)
    receipt = Receipt(digest, plan.bytes, events, at, latest)
    return receipts.leave(plan.copy_id, plan.target, store, receipt) == receipt


def delete_journal(plan: StreamPlan, copy_journal: CopyJournal, store: Store) -> None:
    """Delete leftover staging and the journal, unless another run has begun meanwhile."""
    if not copy_journal.is_same():
        return
    if copy_journal.loaded is not None:
        drop(plan, copy_journal.loaded.roll, store)
        clear(plan, copy_journal, store)
    copy_journal.delete()


def abort(plan: StreamPlan, copy_journal: CopyJournal, store: Store) -> bool:
    """Abort an append, and delete all that it has made.

    The abort is recorded first. From then on no driver opens transactions, merges into them or
    decides to commit, and each driver that looks restores the target's key ranges and policy. An
    append that is decided is aborted too, if its transactions cannot be committed any more. It is
    not if a beginning is committed: the next run would append that once more. See
    `leave_beginning`.

    Returns:
        Whether the append was aborted. False if all was appended; then only leftovers are deleted.

    Raises:
        AbortRefused: the commit is decided, a beginning is appended, or all is appended and the
            target is still to be sealed.
    """
    stream = store.describe(plan.target)
    if receipts.find(plan.copy_id, plan.target, store) is not None:
        if plan.seal and stream is not None and not stream.sealed:
            raise AbortRefused(f"{plan.target} is appended to and is still to be sealed")
        tighten(plan.copy_id, plan.target, store)
        scaling_lock.give(plan.copy_id, plan.target, store)
        delete_journal(plan, copy_journal, store)
        return False
    copy_journal.write([append_progress.aborted_record()])
    roll = roll_of(copy_journal)
    begun = bool(roll.committed) and stream is not None and not stream.sealed
    if begun:
        raise AbortRefused(
            f"a beginning is appended to {plan.target}, so the copy can't be aborted",
            remedy="Run the copy again: the rest is copied, and nothing twice.",
        )
    if not roll.aborted and can_go_on(plan, roll, states_of(plan, roll, store)):
        raise AbortRefused(f"{plan.target} is being appended to, so the copy can't be aborted")
    let_go(plan, copy_journal, store)
    scaling_lock.give(plan.copy_id, plan.target, store)
    delete_journal(plan, copy_journal, store)
    return True


def leave_beginning(plan: StreamPlan, copy_journal: CopyJournal, store: Store) -> bool:
    """End an append of which a beginning is committed and the rest would have to be staged again.

    The journal stays, so that a later run of the copy appends the rest and nothing else. If the
    target is gone or sealed, no rest can follow, and the journal is deleted too. No driver must run
    meanwhile. This is safe to repeat.

    Returns:
        Whether the append was ended so. False if the rest can still be committed, or nothing is.
    """
    states = states_of(plan, roll_of(copy_journal), store)
    if done := [number for number, one in states.items() if one is TransactionState.COMMITTED]:
        note(copy_journal, done)
    roll = roll_of(copy_journal)
    if not roll.committed or can_go_on(plan, roll, states):
        return False
    let_go(plan, copy_journal, store)
    scaling_lock.give(plan.copy_id, plan.target, store)
    stream = store.describe(plan.target)
    if stream is None or stream.sealed:
        delete_journal(plan, copy_journal, store)
    else:
        restart(plan, copy_journal, store, keep=False)
    return True


def let_go(plan: StreamPlan, copy_journal: CopyJournal, store: Store) -> None:
    """Restore the target's key ranges and policy. A driver that goes on may change them again.

    The turn to scale is kept: a late driver of this copy may still scale the target.
    """
    roll = roll_of(copy_journal)
    stream = store.describe(plan.target)
    if stream is None or stream.sealed:
        return
    if is_reshaped(plan, roll, as_seen(stream)):
        if len(roll.layout or ()) < stream.config.scaling.min_segments:
            loosen(plan, copy_journal, store)
        give_back(plan, copy_journal, store, [segment.id for segment in stream.tail])
    tighten(plan.copy_id, plan.target, store, settled=roll.layout is not None)
