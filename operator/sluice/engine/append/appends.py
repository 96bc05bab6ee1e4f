"""Append to an existing stream: observe the append, and carry out its steps.

Bytes become readable by transactions of the store. These have a lease, which each observation
renews while they are open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from sluice.core.copy import append_progress
from sluice.core.copy.next_append_step import is_reshaped
from sluice.core.copy.next_step import staged
from sluice.core.copy.observed import Observed, SeenRoll, SeenStaging, SeenTarget
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
from sluice.engine.append.placement import (
    clear,
    foresee,
    foreseen,
    is_misplaced,
    stage,
    staging_name,
    staging_names,
)
from sluice.engine.append.receipts import Receipt
from sluice.engine.append.transactions import (
    LEASE,
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
from sluice.engine.staging.observe import missing_sources, observe_sources, observe_staged
from sluice.errors import AbortRefused, StoreUnavailable, StreamNotFound
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sluice.core.copy.append_progress import Roll
    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.steps import Step
    from sluice.engine.journal.ledger import Ledger
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import Stream

TRIES: Final = 10
"""How often an append is observed again because another driver has gone on meanwhile."""

_DECIDED: Final = frozenset({TransactionState.COMMITTING, TransactionState.COMMITTED})


def observe(
    plan: StreamPlan, ledger: Ledger, stores: Sequence[Source], target: Store, *, tries: int = TRIES
) -> Observed:
    """Observe an append once.

    Args:
        plan: the plan.
        ledger: its journal.
        stores: the stores of the sources.
        target: the target store.
        tries: how often to look again because another driver has gone on meanwhile.
    """
    # The order matters. The journal before the receipt: a copy leaves its receipt before it deletes
    # its journal. Staging before the states of transactions: if a transaction is open afterwards,
    # nothing of it was committed or dropped when staging was read.
    loaded = ledger.load()
    receipt = receipts.find(plan.copy_id, plan.target, target)
    described = target.describe(plan.target)
    seen_target = None if described is None else _described(described)
    digest = None if receipt is None else receipt.digest
    if loaded is None or loaded.target is None or receipt is not None or described is None:
        turn = scaling_lock.holder(plan.target, target)
        return Observed(journal=loaded, target=seen_target, roll=SeenRoll(digest=digest, turn=turn))
    roll = loaded.roll
    segments = _segments(plan, ledger, loaded, target)
    states = {} if roll.aborted else _states(plan, roll, target)
    if tries and not roll.decided and any(state in _DECIDED for state in states.values()):
        # Another driver has decided since the journal was read.
        return observe(plan, ledger, stores, target, tries=tries - 1)
    sources = None
    if any(
        state.published is None and state.verified is None and segment.length
        for state, segment in zip(segments, plan.segments, strict=True)
    ):
        sources = observe_sources(plan, stores)
    renewed, outrun = missing_sources(plan, sources, stores)
    return Observed(
        journal=loaded,
        target=seen_target,
        segments=segments,
        sources=sources,
        renewed=renewed,
        outrun=outrun,
        roll=SeenRoll(
            digest=digest,
            turn=scaling_lock.holder(plan.target, target),
            states=states,
            misplaced=is_misplaced(plan, loaded, target),
        ),
    )


def _can_go_on(plan: StreamPlan, roll: Roll, states: Mapping[int, TransactionState]) -> bool:
    """Tell whether all is committed, or the next due transaction is or can be."""
    due = [number for number in plan.filled if number not in roll.committed]
    return not due or (roll.decided and states.get(due[0]) in {TransactionState.OPEN, *_DECIDED})


def _described(stream: Stream) -> SeenTarget:
    return SeenTarget(
        tags=stream.config.tags,
        segments=tuple(segment.id for segment in stream.tail),
        head=stream.head,
        tail=stream.tail,
        least=stream.config.scaling.min_segments,
        sealed=stream.sealed,
    )


def _states(plan: StreamPlan, roll: Roll, store: Store) -> dict[int, TransactionState]:
    """Return the states of transactions not recorded as committed. Renew the leases of open ones.

    Returns:
        The states by generation; empty if the target is gone.
    """
    states = {}
    try:
        for number, opened in sorted(roll.transactions.items()):
            if number in roll.committed:
                continue
            if store.keep_transaction(plan.target, opened.key, lease=LEASE):
                states[number] = TransactionState.OPEN
            else:
                states[number] = store.transaction(plan.target, opened.key)
    except StreamNotFound:
        return {}
    return states


def _segments(
    plan: StreamPlan, ledger: Ledger, loaded: Journal, store: Store
) -> tuple[SeenStaging, ...]:
    """Return the staging of each segment, and what was merged into its transaction."""
    bound, roll = loaded.target or (), loaded.roll
    into = [store.segment_name(plan.target, segment) for segment in bound]
    for index in range(len(plan.segments)):
        found = transaction_segment(plan, roll, index)
        if found is not None:
            into[index] = store.staging_name(plan.target, *found)
    names = staging_names(plan, ledger, store, roll.attempt, bound)
    seen = observe_staged(plan, names, into, store)
    return tuple(
        SeenStaging(
            parts=(None,) * len(segment.parts),
            stitched=None,
            verified=None,
            published=segment.length,
            target=None,
        )
        if segment.generation in roll.committed
        else state
        for segment, state in zip(plan.segments, seen, strict=True)
    )


def progress(plan: StreamPlan, ledger: Ledger, store: Store) -> tuple[int, bool]:
    """Return the bytes in the target store, and whether all are appended.

    Args:
        plan: what is appended.
        ledger: its journal. It is used as it was loaded last.
        store: the target store.
    """
    loaded = ledger.loaded
    if loaded is None:
        done = receipts.find(plan.copy_id, plan.target, store) is not None
        return (plan.bytes if done else 0), done
    if loaded.target is None:
        return 0, False
    seen = _segments(plan, ledger, loaded, store)
    if loaded.roll.decided:
        return plan.bytes, loaded.roll.committed >= set(plan.filled)
    return sum(staged(*pair) for pair in zip(plan.segments, seen, strict=True)), False


def perform(  # noqa: C901, PLR0912 - one case for each step
    plan: StreamPlan,
    ledger: Ledger,
    store: Store,
    step: Step,
    *,
    digest: str,
    events: Callable[[int], int],
) -> None:
    """Carry out a step of an append that moves no bytes.

    Args:
        plan: what is appended.
        ledger: its journal.
        store: the target store.
        step: the step.
        digest: the copy's digest, for the receipt.
        events: returns the number of events of a segment of the plan.
    """
    if not isinstance(step, AppendStep):
        raise TypeError(f"{step} is no step of an append")
    match step:
        case PlanPlacement():
            foresee(plan, ledger, store)
        case Stage(parts):
            stage(plan, ledger, store, parts)
        case AcquireScaling():
            scaling_lock.take(plan.copy_id, plan.target, store)
        case ReleaseScaling():
            scaling_lock.give(plan.copy_id, plan.target, store)
        case RecordLayout():
            remember(plan, ledger, store)
        case RelaxPolicy():
            loosen(plan, ledger, store)
        case Reshape(generation, segments):
            reshape(plan, ledger, store, generation, segments)
        case Open(generation):
            open_(plan, ledger, store, generation)
        case RestoreLayout(segments):
            give_back(plan, ledger, store, segments)
        case RestorePolicy():
            tighten(plan.copy_id, plan.target, store, settled=True)
        case Restart(keep):
            restart(plan, ledger, store, keep=keep)
        case MergeIntoTransaction(segments):
            for index in segments:
                join(plan, ledger, store, index, events(index))
        case RecordDecision():
            decide(ledger)
        case Commit(generations):
            commit(plan, ledger, store, generations)
        case RecordCommitted(generations):
            note(ledger, generations)
        case Seal():
            store.seal_stream(plan.target)
        case WriteReceipt():
            total = sum(events(index) for index, one in enumerate(plan.segments) if one.length)
            certify(plan, store, digest=digest, events=total)
        case DeleteJournal():
            forget(plan, ledger, store)
        case _:
            assert_never(step)


def remember(plan: StreamPlan, ledger: Ledger, store: Store) -> None:
    """Record the target's key ranges, to restore them later."""
    stream, roll = target_of(plan, store), roll_of(ledger)
    ledger.write([append_progress.layout_record(roll.attempt, (one.keys for one in stream.tail))])


def restart(plan: StreamPlan, ledger: Ledger, store: Store, *, keep: bool) -> None:
    """Begin another attempt: record where it stages, and delete what earlier attempts have staged.

    Args:
        plan: what is appended.
        ledger: its journal.
        store: the target store.
        keep: whether to keep the transactions, and stage beside their segments. Otherwise they are
            aborted.

    Raises:
        StoreUnavailable: the journal is gone.
    """
    loaded = ledger.loaded
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
    ledger.write([append_progress.attempt_record(roll.attempt + 1, bound, keep=keep)])
    clear(plan, ledger, store, former=True)


def join(plan: StreamPlan, ledger: Ledger, store: Store, index: int, events: int) -> None:
    """Merge a staged segment into its transaction's segment, unless that is done."""
    found = transaction_segment(plan, roll_of(ledger), index)
    if found is None:
        raise StoreUnavailable(f"segment {index} has no transaction yet")
    segment = plan.segments[index]
    condition = CompareAndSet(identity.publish_attribute(plan.copy_id), None, segment.length)
    name = staging_name(plan, ledger, store, index=index, part=0)
    store.seal(name)
    store.merge(store.staging_name(plan.target, *found), name, condition, events=events)


def decide(ledger: Ledger) -> None:
    """Record the decision to commit the transactions."""
    ledger.write([append_progress.decision_record(roll_of(ledger).attempt)])


def note(ledger: Ledger, generations: Sequence[int]) -> None:
    """Record that generations are committed."""
    ledger.write([append_progress.committed_record(generations)])


def certify(plan: StreamPlan, store: Store, *, digest: str, events: int) -> None:
    """Write the receipt, which says that all is appended."""
    stream = target_of(plan, store)
    names = [store.segment_name(plan.target, segment.id) for segment in stream.tail]
    created = store.attributes([(name, store.creation_time) for name in names])
    at = max((value for value in created if value is not None), default=0)
    latest = max(segment.id for segment in stream.tail)
    receipt = Receipt(digest, plan.bytes, events, at, latest)
    receipts.leave(plan.copy_id, plan.target, store, receipt)


def forget(plan: StreamPlan, ledger: Ledger, store: Store) -> None:
    """Delete leftover staging and the journal, unless another run has begun meanwhile."""
    if not ledger.is_same():
        return
    if ledger.loaded is not None:
        drop(plan, ledger.loaded.roll, store)
        clear(plan, ledger, store)
    ledger.delete()


def abort(plan: StreamPlan, ledger: Ledger, store: Store) -> bool:
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
        forget(plan, ledger, store)
        return False
    ledger.write([append_progress.aborted_record()])
    roll = roll_of(ledger)
    begun = bool(roll.committed) and stream is not None and not stream.sealed
    if begun:
        raise AbortRefused(
            f"a beginning is appended to {plan.target}, so the copy can't be aborted",
            remedy="Run the copy again: the rest is copied, and nothing twice.",
        )
    if not roll.aborted and _can_go_on(plan, roll, _states(plan, roll, store)):
        raise AbortRefused(f"{plan.target} is being appended to, so the copy can't be aborted")
    let_go(plan, ledger, store)
    scaling_lock.give(plan.copy_id, plan.target, store)
    forget(plan, ledger, store)
    return True


def leave_beginning(plan: StreamPlan, ledger: Ledger, store: Store) -> bool:
    """End an append of which a beginning is committed and the rest would have to be staged again.

    The journal stays, so that a later run of the copy appends the rest and nothing else. If the
    target is gone or sealed, no rest can follow, and the journal is deleted too. No driver must run
    meanwhile. This is safe to repeat.

    Returns:
        Whether the append was ended so. False if the rest can still be committed, or nothing is.
    """
    states = _states(plan, roll_of(ledger), store)
    if done := [number for number, one in states.items() if one is TransactionState.COMMITTED]:
        note(ledger, done)
    roll = roll_of(ledger)
    if not roll.committed or _can_go_on(plan, roll, states):
        return False
    let_go(plan, ledger, store)
    scaling_lock.give(plan.copy_id, plan.target, store)
    stream = store.describe(plan.target)
    if stream is None or stream.sealed:
        forget(plan, ledger, store)
    else:
        restart(plan, ledger, store, keep=False)
    return True


def let_go(plan: StreamPlan, ledger: Ledger, store: Store) -> None:
    """Restore the target's key ranges and policy. A driver that goes on may change them again.

    The turn to scale is kept: a late driver of this copy may still scale the target.
    """
    roll = roll_of(ledger)
    stream = store.describe(plan.target)
    if stream is None or stream.sealed:
        return
    if is_reshaped(plan, roll, _described(stream)):
        if len(roll.layout or ()) < stream.config.scaling.min_segments:
            loosen(plan, ledger, store)
        give_back(plan, ledger, store, [segment.id for segment in stream.tail])
    tighten(plan.copy_id, plan.target, store, settled=roll.layout is not None)
