"""Abort a copy before it is published, and delete all that it has made.

Publishing and aborting race on one compare-and-set per target segment. Both begin with the plan's
first segment, so the process that sets its publish attribute has won the whole target. An abort
deletes a target only after it has shut the target to publishing. So a driver that wakes up late
cannot lose published bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.copy.planner import MAX_PARTS
from sluice.core.values import identity
from sluice.engine.append import appends, transactions
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.staging.clearing import clear_names
from sluice.engine.staging.observe import staging_names
from sluice.errors import (
    AbortRefused,
    NoSuchSegment,
    SegmentSealed,
    StoreBusy,
    StreamNotFound,
    StreamNotSealed,
)
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Segments, Source, Store
    from sluice.stores.reading import Stream, Topology
    from sluice.stores.writing import SegmentSink

_TRIES: Final = 16
"""Times that an abort begins again, as a driver has gone on meanwhile."""


def abort(copy_id: str, target: StreamName, store: Store) -> bool:
    """Delete staging, the unpublished target if this copy made it, and the journal.

    This is safe to repeat, at any time and beside running drivers. Those end with CopyAborted.

    Args:
        copy_id: the copy.
        target: its target stream.
        store: the target store.

    Returns:
        Whether there was anything to delete. False for a target that is complete.

    Raises:
        AbortRefused: publishing has begun.
        StoreBusy: drivers go on making what is deleted.
    """
    copy_journal = CopyJournal(store, copy_id, target)
    something = False
    for _ in range(_TRIES):
        journal = copy_journal.load()
        if journal is not None and journal.plan.append:
            return appends.abort(journal.plan, copy_journal, store)
        stream = store.describe(target)
        ours = stream is not None and identity.is_ours(stream.config.tags, copy_id)
        segments = () if stream is None else _first(stream)
        if stream is not None and identity.completed(stream.config.tags, copy_id) is not None:
            return False
        if stream is not None and identity.is_live(stream.config.tags, copy_id):
            raise AbortRefused(
                f"{target} follows its source: nothing of it is dropped",
                remedy="End the copy by its stopWhen or cutover, or with `sluice abort`, which "
                "leaves the target as far as it has come.",
            )
        bound = journal.target if journal is not None else None
        if ours:
            _shut(store, copy_id, target, segments)
            bound = bound or segments  # without a journal, the later segments are unknown
        if bound is not None:
            clear(copy_id, target, bound, store, attempts_of(journal))
        if ours:
            _delete_target(store, copy_id, target, segments)
        tightened = not ours and transactions.tighten(copy_id, target, store)
        something = something or ours or tightened or journal is not None
        if _end(copy_journal, journal, store) and (
            stream is not None or not _is_there(copy_id, target, store)
        ):
            return something
    raise StoreBusy(
        f"drivers go on with the aborted copy to {target}",
        remedy="Stop the copy's drivers, and abort it again.",
    )


def abort_unread(copy_id: str, target: StreamName, store: Store) -> bool:
    """Abort a copy whose journal cannot be read: another client may have put it there.

    The copy does not append, and none of its drivers runs meanwhile. This is safe to repeat. The
    journal is deleted last, and not believed. What was staged for an earlier target of this name is
    not found without it.

    Returns:
        Whether the copy was aborted. False if the target is complete and stays; then only the
        journal and what late drivers have made are deleted.

    Raises:
        AbortRefused: publishing has begun. The journal stays.
    """
    copy_journal = CopyJournal(store, copy_id, target)
    stream = store.describe(target)
    ours = stream is not None and identity.is_ours(stream.config.tags, copy_id)
    whole = stream is not None and identity.completed(stream.config.tags, copy_id) is not None
    if stream is not None and ours:
        segments = [segment.id for made in store.generations(target) for segment in made]
        if not whole:
            _shut(store, copy_id, target, segments)
        clear(copy_id, target, segments, store)
        if not whole:
            _delete_target(store, copy_id, target, _first(stream))
    copy_journal.discard()
    return not whole


def _end(copy_journal: CopyJournal, journal: Journal | None, store: Segments) -> bool:
    """Delete the journal of an aborted run, unless drivers have written to it meanwhile.

    A driver that has not noticed the abort goes on until it misses the journal. It may have made
    the target, bound its segments and staged bytes since the journal was read. Then the abort has
    to begin again, since it may clear only the staging of a target that it has shut. What was
    staged for known segments is cleared once more when the journal is gone: from then on a driver
    makes no more than empty segments.

    Args:
        copy_journal: the journal.
        journal: its records as the abort has read them, by which all is cleared already.
        store: the target store.

    Returns:
        Whether the abort is over: the journal is deleted, or another run has begun a new one.
    """
    name = copy_journal.name
    now = copy_journal.load()
    if journal is None:
        if now is None:
            copy_journal.delete()  # it may exist, and be empty
        return now is None
    if now is None or copy_journal.name != name or now.plan != journal.plan:
        return True
    if (now.target, attempts_of(now)) != (journal.target, attempts_of(journal)):
        return False
    if not copy_journal.delete():
        return False
    if now.target is not None:
        plan = now.plan
        clear(plan.copy_id, plan.target, now.target, store, attempts_of(now))
    return True


def _is_there(copy_id: str, target: StreamName, store: Topology) -> bool:
    """Tell whether a driver has made the target since the abort has looked."""
    stream = store.describe(target)
    return (
        stream is not None
        and identity.is_ours(stream.config.tags, copy_id)
        and identity.completed(stream.config.tags, copy_id) is None
    )


def finish_abort(copy_id: str, target: StreamName, store: Store) -> bool:
    """Finish an interrupted abort, so that the copy can start again.

    Returns:
        Whether there was such an abort.
    """
    copy_journal = CopyJournal(store, copy_id, target)
    journal = copy_journal.load()
    if journal is not None and journal.plan.append:
        return journal.roll.aborted and appends.abort(journal.plan, copy_journal, store)
    stream = store.describe(target)
    return is_aborted(copy_id, target, stream, store) and abort(copy_id, target, store)


def is_aborted(copy_id: str, target: StreamName, stream: Stream | None, store: Source) -> bool:
    """Tell whether an abort of this copy was interrupted.

    Args:
        copy_id: the copy.
        target: its target stream.
        stream: the target as it was described just now.
        store: the target store.
    """
    if stream is None or not identity.is_ours(stream.config.tags, copy_id):
        return False
    attribute = identity.publish_attribute(copy_id)
    first = store.segment_name(target, _first(stream)[0])
    return store.attributes([(first, attribute)]) == [identity.ABORTED]


def sweep(copy_id: str, target: StreamName, store: Store) -> int:
    """Delete the segments that late drivers made after the target was complete.

    If a late driver has changed the scaling policy of a stream that was appended to, restore it.

    Returns:
        How many segments were deleted, the journal included. 1 if a policy was restored.
    """
    stream = store.describe(target)
    if stream is None:
        return 0
    if not identity.is_ours(stream.config.tags, copy_id):
        return int(transactions.tighten(copy_id, target, store))
    left = clear_marked(copy_id, target, store)
    copy_journal = CopyJournal(store, copy_id, target)
    journal = copy_journal.load()
    if journal is not None and journal.target is not None:
        return left  # a driver is still finishing this target, and needs its journal
    return left + copy_journal.delete()


def clear_marked(copy_id: str, target: StreamName, store: Store) -> int:
    """Delete all that is staged for a target whose segments say how often they were restarted.

    Returns:
        How many staging segments were deleted.
    """
    try:
        segments = [segment.id for made in store.generations(target) for segment in made]
    except StreamNotFound:
        return 0
    _, attempt = identity.gap_attributes(copy_id)
    found = store.attributes([(store.segment_name(target, one), attempt) for one in segments])
    return clear(copy_id, target, segments, store, [number or 0 for number in found])


def _first(stream: Stream) -> tuple[int, ...]:
    """Return the ids of the oldest segments: while a copy runs, these are published first."""
    return tuple(segment.id for segment in stream.head)


def clear(
    copy_id: str,
    target: StreamName,
    segments: Sequence[int],
    store: Segments,
    attempts: Sequence[int] = (),
) -> int:
    """Delete all that is staged for these target segments, under any plan.

    The target segments must be shut to publishing. Merges of parts are fenced off here, since a
    deletion must never meet a merge of the same segment.

    Args:
        copy_id: the copy.
        target: its target stream.
        segments: ids of the target's segments.
        store: the target store.
        attempts: how often each segment was restarted, where that is known. Later attempts are
            found by the mark that each attempt before them carries.

    Returns:
        How many staging segments were deleted.
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
    # The latest attempt first: the marks of the earlier ones lead to it if this is cut off.
    for attempt in range(max(latest.values(), default=0), -1, -1):
        names = [
            _staging_of(copy_id, target, segment, i, store, attempt=attempt)
            for i, segment in enumerate(segments)
            if latest.get(i, 0) >= attempt
        ]
        count += clear_names(copy_id, names, store)
    return count


def clear_attempts(plan: StreamPlan, bound: Sequence[int], store: Segments) -> int:
    """Delete the staging of earlier attempts at segments that were restarted.

    Args:
        plan: the plan, as its journal has it.
        bound: ids of the target's segments, in the plan's order.
        store: the target store.

    Returns:
        How many staging segments were deleted.
    """
    names = [
        _staging_of(plan.copy_id, plan.target, bound[i], i, store, attempt=attempt)
        for i, segment in enumerate(plan.segments)
        for attempt in range(segment.attempt)
    ]
    return clear_names(plan.copy_id, names, store) if names else 0


def attempts_of(journal: Journal | None) -> list[int]:
    """Return how often each segment was restarted, according to the journal."""
    return [] if journal is None else [one.attempt for one in journal.current.segments]


def has_staging(copy_id: str, target: StreamName, segments: Sequence[int], store: Segments) -> bool:
    """Tell whether anything is staged for these target segments, under any plan."""
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
    store: SegmentSink,
    *,
    attempt: int,
    parts: int = MAX_PARTS,
) -> list[str]:
    """Return the names of all parts that a segment can have under any plan of this copy."""
    return staging_names(
        store, copy_id, target, segment=segment, index=index, parts=parts, attempt=attempt
    )


def _shut(store: Store, copy_id: str, target: StreamName, segments: Sequence[int]) -> None:
    """Shut the target to publishing, in the order in which segments are published."""
    attribute = identity.publish_attribute(copy_id)
    for segment in segments:
        name = store.segment_name(target, segment)
        try:
            store.set_attribute(name, CompareAndSet(attribute, None, identity.ABORTED))
        except NoSuchSegment:
            return  # another abort deletes it; the target is checked again before its deletion
        except SegmentSealed:
            pass  # it takes no more bytes, but ours may be in it already
        if store.attributes([(name, attribute)]) not in ([identity.ABORTED], [None]):
            raise AbortRefused(f"{target} is being published, so the copy can't be aborted")


def _delete_target(store: Store, copy_id: str, target: StreamName, segments: Sequence[int]) -> None:
    """Delete the target, if it is still the stream that was shut.

    A store deletes streams by name only. After another abort, another run may have made a new
    target of this name. So the segments of the shut target are checked directly before the
    deletion: a store never uses their names again. A segment without the mark must be sealed.
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
