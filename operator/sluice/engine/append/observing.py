"""Observe a target that a copy appends to, and what of the copy is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.copy.next_staging_step import staged
from sluice.core.copy.observed import Observed, SeenRoll, SeenStaging, SeenTarget
from sluice.core.values.model import TransactionState
from sluice.engine.append import receipts, scaling_lock
from sluice.engine.append.placement import (
    is_misplaced,
    staging_names,
)
from sluice.engine.append.transactions import (
    LEASE,
    transaction_segment,
)
from sluice.engine.staging.observe import (
    is_scopeless,
    missing_sources,
    observe_sources,
    observe_staged,
)
from sluice.errors import StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.copy.append_progress import Roll
    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import Stream
    from sluice.stores.transactions import Transactions

TRIES: Final = 10
"""How often an append is observed again because another driver has gone on meanwhile."""

_DECIDED: Final = frozenset({TransactionState.COMMITTING, TransactionState.COMMITTED})


def observe(
    plan: StreamPlan,
    copy_journal: CopyJournal,
    stores: Sequence[Source],
    target: Store,
    *,
    tries: int = TRIES,
) -> Observed:
    """Observe an append once.

    Args:
        plan: the plan.
        copy_journal: its journal.
        stores: the stores of the sources.
        target: the target store.
        tries: how often to look again because another driver has gone on meanwhile.
    """
    # The order matters. The journal before the receipt: a copy leaves its receipt before it deletes
    # its journal. Staging before the states of transactions: if a transaction is open afterwards,
    # nothing of it was committed or dropped when staging was read.
    loaded = copy_journal.load()
    receipt = receipts.find(plan.copy_id, plan.target, target)
    described = target.describe(plan.target)
    seen_target = None if described is None else as_seen(described)
    digest = None if receipt is None else receipt.digest
    if loaded is None or loaded.target is None or receipt is not None or described is None:
        turn = scaling_lock.holder(plan.target, target)
        return Observed(
            journal=loaded,
            target=seen_target,
            roll=SeenRoll(digest=digest, turn=turn),
            scopeless=is_scopeless(loaded, described, plan, target),
        )
    roll = loaded.roll
    segments = _segments(plan, copy_journal, loaded, target)
    states = {} if roll.aborted else states_of(plan, roll, target)
    if tries and not roll.decided and any(state in _DECIDED for state in states.values()):
        # Another driver has decided since the journal was read.
        return observe(plan, copy_journal, stores, target, tries=tries - 1)
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


def can_go_on(plan: StreamPlan, roll: Roll, states: Mapping[int, TransactionState]) -> bool:
    """Tell whether all is committed, or the next due transaction is or can be."""
    due = [number for number in plan.filled if number not in roll.committed]
    return not due or (roll.decided and states.get(due[0]) in {TransactionState.OPEN, *_DECIDED})


def as_seen(stream: Stream) -> SeenTarget:
    """Return the target as the decisions see it."""
    return SeenTarget(
        tags=stream.config.tags,
        segments=tuple(segment.id for segment in stream.tail),
        head=stream.head,
        tail=stream.tail,
        least=stream.config.scaling.min_segments,
        sealed=stream.sealed,
    )


def states_of(plan: StreamPlan, roll: Roll, store: Transactions) -> dict[int, TransactionState]:
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
    plan: StreamPlan, copy_journal: CopyJournal, loaded: Journal, store: Store
) -> tuple[SeenStaging, ...]:
    """Return the staging of each segment, and the bytes merged into its transaction."""
    bound, roll = loaded.target or (), loaded.roll
    into = [store.segment_name(plan.target, segment) for segment in bound]
    for index in range(len(plan.segments)):
        found = transaction_segment(plan, roll, index)
        if found is not None:
            into[index] = store.staging_name(plan.target, *found)
    names = staging_names(plan, copy_journal, store, roll.attempt, bound)
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


def progress(plan: StreamPlan, copy_journal: CopyJournal, store: Store) -> tuple[int, bool]:
    """Return the bytes in the target store, and whether all are appended.

    Args:
        plan: the plan of the append.
        copy_journal: its journal. It is used as it was loaded last.
        store: the target store.
    """
    loaded = copy_journal.loaded
    if loaded is None:
        done = receipts.find(plan.copy_id, plan.target, store) is not None
        return (plan.bytes if done else 0), done
    if loaded.target is None:
        return 0, False
    seen = _segments(plan, copy_journal, loaded, store)
    if loaded.roll.decided:
        return plan.bytes, loaded.roll.committed >= set(plan.filled)
    return sum(staged(*pair) for pair in zip(plan.segments, seen, strict=True)), False
