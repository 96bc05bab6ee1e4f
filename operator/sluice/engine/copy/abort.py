"""Ending a copy before it is published: nothing of it stays.

Publishing and aborting race on one compare-and-set per target segment: both begin with the first
segment of the plan, so whoever sets its publish attribute has won the whole target. Only a target
that is shut to publishing is deleted, so a driver that wakes up late cannot lose published bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.planner import MAX_PARTS
from sluice.core.values import identity
from sluice.engine.append import appends, transactions
from sluice.engine.journal.ledger import Ledger
from sluice.engine.staging.clearing import clear_names
from sluice.engine.staging.observe import staging_names
from sluice.errors import (
    AbortRefused,
    NoSuchSegment,
    SegmentSealed,
    StreamNotFound,
    StreamNotSealed,
)
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Store
    from sluice.stores.reading import Stream


def abort(copy_id: str, target: StreamName, store: Store) -> bool:
    """Delete staging, the unpublished target if this copy made it, and the journal.

    Safe to repeat, at any time and beside running drivers, which end with CopyAborted.

    Args:
        copy_id: the copy.
        target: its target stream.
        store: the target store.

    Returns:
        Whether there was anything to delete.

    Raises:
        AbortRefused: publishing has begun.
    """
    ledger = Ledger(store, copy_id, target)
    journal = ledger.load()
    if journal is not None and journal.plan.append:
        return appends.abort(journal.plan, ledger, store)
    stream = store.describe(target)
    ours = stream is not None and identity.is_ours(stream.config.tags, copy_id)
    segments = () if stream is None else _first(stream)
    if stream is not None and identity.completed(stream.config.tags, copy_id) is not None:
        return False
    bound = journal.target if journal is not None else None
    if ours:
        _shut(store, copy_id, target, segments)
        bound = bound or segments  # without a journal nobody knows what was to be made later
    if bound is not None:
        clear(copy_id, target, bound, store, _attempts(journal))
    if ours:
        _delete_target(store, copy_id, target, segments)
    tightened = not ours and transactions.tighten(copy_id, target, store)
    if ledger.is_same():  # else another run has begun meanwhile
        ledger.delete()
    return ours or tightened or journal is not None


def finish_abort(copy_id: str, target: StreamName, store: Store) -> bool:
    """Go on with an abort that was cut off, so that the copy can begin anew.

    Returns:
        Whether there was one.
    """
    ledger = Ledger(store, copy_id, target)
    journal = ledger.load()
    if journal is not None and journal.plan.append:
        return journal.roll.aborted and appends.abort(journal.plan, ledger, store)
    stream = store.describe(target)
    if stream is None or not identity.is_ours(stream.config.tags, copy_id):
        return False
    attribute = identity.publish_attribute(copy_id)
    first = store.segment_name(target, _first(stream)[0])
    return store.attributes([(first, attribute)]) == [identity.ABORTED] and abort(
        copy_id, target, store
    )


def sweep(copy_id: str, target: StreamName, store: Store) -> int:
    """Delete segments that late drivers made for a target that was whole by then.

    A stream that was appended to is given its policy back, should a late driver have taken it.

    Returns:
        How many there were.
    """
    stream = store.describe(target)
    if stream is None:
        return 0
    if not identity.is_ours(stream.config.tags, copy_id):
        return int(transactions.tighten(copy_id, target, store))
    segments = [segment.id for made in store.generations(target) for segment in made]
    _, attempt = identity.gap_attributes(copy_id)
    found = store.attributes([(store.segment_name(target, one), attempt) for one in segments])
    left = clear(copy_id, target, segments, store, [number or 0 for number in found])
    ledger = Ledger(store, copy_id, target)
    journal = ledger.load()
    if journal is not None and journal.target is not None:
        return left  # somebody is at what follows on the mark, or will be
    return left + ledger.delete()


def _first(stream: Stream) -> tuple[int, ...]:
    """The segments that are published first: the oldest, as long as a copy works on its target."""
    return tuple(segment.id for segment in stream.head)


def clear(
    copy_id: str,
    target: StreamName,
    segments: Sequence[int],
    store: Store,
    attempts: Sequence[int] = (),
) -> int:
    """Delete whatever is staged for these target segments, under any plan.

    They must be shut to publishing. Merging parts is fenced off here, since a deletion must never
    meet a merge of the same segment.

    Args:
        copy_id: the copy.
        target: its target stream.
        segments: ids of the target's segments.
        store: the target store.
        attempts: how often each segment was begun anew, where that is known. Further attempts are
            found by the mark of the one before, so the latest is deleted first.

    Returns:
        How many segments there were.
    """
    latest = dict(enumerate(attempts))
    asked = list(range(len(segments)))
    mark = identity.verified_attribute(copy_id)
    while asked:
        heads = [
            _staging_of(copy_id, target, segments[i], i, store, attempt=latest.get(i, 0), parts=1)[
                0
            ]
            for i in asked
        ]
        values = store.attributes([(name, mark) for name in heads])
        asked = [i for i, value in zip(asked, values, strict=True) if value == identity.ABORTED]
        latest |= {i: latest.get(i, 0) + 1 for i in asked}
    count = 0
    for attempt in range(max(latest.values(), default=0), -1, -1):
        names = [
            _staging_of(copy_id, target, segment, i, store, attempt=attempt)
            for i, segment in enumerate(segments)
            if latest.get(i, 0) >= attempt
        ]
        count += clear_names(copy_id, names, store)
    return count


def clear_attempts(plan: StreamPlan, bound: Sequence[int], store: Store) -> int:
    """Delete what was staged of segments before they were begun anew.

    Args:
        plan: the plan, as its journal has it.
        bound: ids of the target's segments, in the plan's order.
        store: the target store.

    Returns:
        How many staging segments there were.
    """
    names = [
        _staging_of(plan.copy_id, plan.target, bound[i], i, store, attempt=attempt)
        for i, segment in enumerate(plan.segments)
        for attempt in range(segment.attempt)
    ]
    return clear_names(plan.copy_id, names, store) if names else 0


def _attempts(journal: Journal | None) -> list[int]:
    """How often each segment was begun anew, as the journal says."""
    return [] if journal is None else [one.attempt for one in journal.current.segments]


def has_staging(copy_id: str, target: StreamName, segments: Sequence[int], store: Store) -> bool:
    """Whether anything is staged for these target segments, under any plan."""
    names = [
        _staging_of(copy_id, target, segment, index, store, attempt=0)
        for index, segment in enumerate(segments)
    ]
    return any(store.infos([name for parts in names for name in parts]))


def _staging_of(
    copy_id: str,
    target: StreamName,
    segment: int,
    index: int,
    store: Store,
    *,
    attempt: int,
    parts: int = MAX_PARTS,
) -> list[str]:
    """The names of all parts of a segment that any plan of this copy can have."""
    return staging_names(
        store, copy_id, target, segment=segment, index=index, parts=parts, attempt=attempt
    )


def _shut(store: Store, copy_id: str, target: StreamName, segments: Sequence[int]) -> None:
    """Shut the target to publishing, in the order in which publishing goes."""
    attribute = identity.publish_attribute(copy_id)
    for segment in segments:
        name = store.segment_name(target, segment)
        try:
            store.set_attribute(name, CompareAndSet(attribute, None, identity.ABORTED))
        except NoSuchSegment:
            return  # another abort is at it; the target is looked at again before it is deleted
        except SegmentSealed:
            pass  # it takes no bytes, ours included, but it may have taken them
        if store.attributes([(name, attribute)]) not in ([identity.ABORTED], [None]):
            raise AbortRefused(f"{target} is being published, so the copy can't be aborted")


def _delete_target(store: Store, copy_id: str, target: StreamName, segments: Sequence[int]) -> None:
    """Delete the target, if it is still the one that was shut.

    A store deletes streams by name only. Another abort, and another run after it, may have put a
    new target in the place of the one that was shut, so its segments are looked at directly before:
    their names are never used again. A sealed stream of that name is the shut one as well.
    """
    attribute = identity.publish_attribute(copy_id)
    names = [store.segment_name(target, segment) for segment in segments]
    infos = store.infos(names)
    values = store.attributes([(name, attribute) for name in names])
    if not all(
        info is not None and (value == identity.ABORTED or (value is None and info.sealed))
        for info, value in zip(infos, values, strict=True)
    ):
        return
    try:
        store.seal_stream(target)
        store.delete_stream(target)
    except (StreamNotFound, StreamNotSealed):
        return
