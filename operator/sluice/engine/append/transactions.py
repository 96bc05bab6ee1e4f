"""Scale a stream that is appended to, and open, commit and abort the transactions that do it.

The stream belongs to other users and is in use. So it is scaled only for as long as it takes to
open a transaction for each generation of the source. Its policy is changed only where it would
forbid that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.copy import append_progress
from sluice.core.copy.append_progress import Opened
from sluice.core.copy.next_append_step import has_layout, layout_of
from sluice.core.values import identity, marks
from sluice.core.values.model import ScaleType
from sluice.errors import (
    NoSuchSegment,
    SegmentSealed,
    StoreRejected,
    StreamNotFound,
    TargetSealed,
)
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from sluice.core.copy.append_progress import Roll
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.values.model import KeyRange, StreamName
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Store
    from sluice.stores.reading import Stream, Topology
    from sluice.stores.transactions import Transactions
    from sluice.stores.writing import SegmentSink

LEASE: Final = 300.0
"""Seconds for which a transaction stays open after an observation. Stores allow 600."""


def transaction_segment(plan: StreamPlan, roll: Roll, index: int) -> tuple[int, str] | None:
    """Return the transaction's segment into which a segment of the plan is merged.

    Returns:
        The id of the target's segment beside which it lies, and its key. None while no transaction
        is recorded for the segment's generation.
    """
    generation = plan.segments[index].generation
    opened = roll.transactions.get(generation)
    if opened is None:
        return None
    return opened.segments[plan.active[generation].index(index)], opened.key


def target_of(plan: StreamPlan, store: Topology) -> Stream:
    """Return the target as it is now. StreamNotFound if it is gone, TargetSealed if sealed."""
    stream = store.describe(plan.target)
    if stream is None:
        raise StreamNotFound(f"there is no stream {plan.target}")
    if stream.sealed:
        raise TargetSealed(f"{plan.target} is sealed", field="spec.target.stream")
    return stream


def roll_of(copy_journal: CopyJournal) -> Roll:
    """Return the append's progress in the journal as last loaded. NoSuchSegment if that is gone."""
    loaded = copy_journal.loaded
    if loaded is None:
        raise NoSuchSegment("the copy's journal is gone", segment=copy_journal.name)
    return loaded.roll


def loosen(plan: StreamPlan, copy_journal: CopyJournal, store: Store) -> None:
    """Give the target a policy that allows a single segment, and note its own policy in a tag.

    A fixed number of segments is noted as the number that the target had, since a store would scale
    to the policy's number.
    """
    config, layout = target_of(plan, store).config, roll_of(copy_journal).layout
    mine = f"{identity.TAG_APPENDING}{plan.copy_id}/"
    if config.scaling == marks.LOOSE and any(tag.startswith(mine) for tag in config.tags):
        return
    own = marks.own_policy(config)
    if own.type is ScaleType.FIXED:
        own = own.model_copy(update={"min_segments": len(layout or ())})
    # It is this copy's turn, so other copies' notes are leftovers, or came with copied tags.
    kept = [tag for tag in config.tags if not tag.startswith(identity.TAG_APPENDING)]
    tags = (*kept, marks.policy_note(plan.copy_id, own))
    changed = {"scaling": marks.LOOSE, "tags": tags}
    store.update_stream(plan.target, config.model_copy(update=changed))


def tighten(copy_id: str, name: StreamName, store: Store, *, settled: bool = False) -> bool:
    """Restore the policy that this copy has noted on a stream.

    Args:
        copy_id: the copy.
        name: the stream.
        store: its store.
        settled: whether the stream has its own key ranges again. Then a fixed number of segments is
            set to the number that it has.

    Returns:
        Whether a policy was restored. False if none is noted, or the stream is sealed or gone.
    """
    stream = store.describe(name)
    if stream is None or stream.sealed:
        return False
    prefix = f"{identity.TAG_APPENDING}{copy_id}/"
    noted = next((tag for tag in stream.config.tags if tag.startswith(prefix)), None)
    if noted is None:
        return False
    scaling = marks.noted_policy(noted) or stream.config.scaling
    if settled and scaling.type is ScaleType.FIXED:
        scaling = scaling.model_copy(update={"min_segments": len(stream.tail)})
    tags = tuple(tag for tag in stream.config.tags if tag != noted)
    store.update_stream(name, stream.config.model_copy(update={"scaling": scaling, "tags": tags}))
    return True


def reshape(
    plan: StreamPlan,
    copy_journal: CopyJournal,
    store: Store,
    generation: int,
    segments: Sequence[int],
) -> None:
    """Scale the target to a generation's key ranges, and back if the copy was aborted meanwhile."""
    roll = roll_of(copy_journal)
    if not _scaled(plan, store, segments, layout_of(plan, generation)):
        return
    now = copy_journal.load()
    if now is None or now.roll.aborted:
        stream = store.describe(plan.target)
        if stream is not None and has_layout(stream.tail, layout_of(plan, generation)):
            _scaled(plan, store, [one.id for one in stream.tail], roll.layout or ())


def give_back(
    plan: StreamPlan, copy_journal: CopyJournal, store: Store, segments: Sequence[int]
) -> None:
    """Scale the target back to the key ranges that it had before the append."""
    _scaled(plan, store, segments, roll_of(copy_journal).layout or ())


def _scaled(
    plan: StreamPlan, store: Store, segments: Sequence[int], ranges: Sequence[KeyRange]
) -> bool:
    """Scale the target, unless another client has. Return whether this call did it.

    Raises:
        StoreRejected: the store refused, though the segments to seal are still there.
    """
    try:
        store.scale(plan.target, segments, ranges)
    except StoreRejected:
        stream = store.describe(plan.target)
        if stream is not None and {one.id for one in stream.tail} >= set(segments):
            raise
        return False
    return True


def open_(
    plan: StreamPlan, copy_journal: CopyJournal, store: Transactions, generation: int
) -> None:
    """Open a generation's transaction, and record it, unless another driver has.

    A transaction that is not recorded is not used. It is aborted here, or by the store after its
    lease if this driver dies.
    """
    roll = roll_of(copy_journal)
    opened = store.open_transaction(plan.target, lease=LEASE)
    mine = Opened(opened.key, tuple(segment.id for segment in opened.segments))
    if has_layout(opened.segments, layout_of(plan, generation)):
        try:
            copy_journal.write([append_progress.transaction_record(roll.attempt, generation, mine)])
        finally:
            loaded = copy_journal.loaded
            used = None if loaded is None else loaded.roll.transactions.get(generation)
            if used is not None and used != mine:
                store.abort_transaction(plan.target, opened.key)
    else:
        store.abort_transaction(plan.target, opened.key)


def commit(
    plan: StreamPlan, copy_journal: CopyJournal, store: Transactions, generations: Sequence[int]
) -> None:
    """Commit transactions in order, stop at the first that cannot be, and wait for the others."""
    roll = roll_of(copy_journal)
    keys = [roll.transactions[number].key for number in generations]
    decided = []
    for key in keys:
        if not store.commit_transaction(plan.target, key):
            break
        decided.append(key)
    for key in decided:
        store.settled(plan.target, key)


def drop(plan: StreamPlan, roll: Roll, store: Store) -> None:
    """Shut uncommitted transactions to merges, and abort them."""
    attribute = identity.publish_attribute(plan.copy_id)
    for number, opened in roll.transactions.items():
        if number in roll.committed:
            continue
        names = [store.staging_name(plan.target, one, opened.key) for one in opened.segments]
        there = [name for name, info in zip(names, store.infos(names), strict=True) if info]
        for name in there:
            _shut(store, name, attribute)
        try:
            store.abort_transaction(plan.target, opened.key)
            store.settled(plan.target, opened.key)
        except StreamNotFound:
            return


def _shut(store: SegmentSink, name: str, attribute: UUID) -> None:
    try:
        store.set_attribute(name, CompareAndSet(attribute, None, identity.ABORTED))
    except (NoSuchSegment, SegmentSealed):
        return  # it takes no more bytes
