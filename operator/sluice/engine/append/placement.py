"""Place the staging of an append: where it lies, under which names, and how it is deleted.

Staging has to lie beside the segments of the transactions that it is merged into. These are opened
only after all is staged. But a store numbers the segments of scale events consecutively, so their
ids can be predicted. If a prediction was wrong, another attempt stages everything again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy import journal
from sluice.core.copy.next_append_step import has_ranges, layout_of
from sluice.core.values import identity
from sluice.engine.append.transactions import roll_of, target_of, transaction_segment
from sluice.engine.staging.clearing import clear_names
from sluice.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import Part, StreamPlan
    from sluice.core.values.model import KeyRange
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Segments, Store
    from sluice.stores.reading import Stream
    from sluice.stores.writing import Admin, SegmentSink


def salt(plan: StreamPlan, copy_journal: CopyJournal, attempt: int | None = None) -> str:
    """Return the salt that makes an attempt's staging names differ from those of all others.

    Nothing else in the names does: after an abort, the target and its segments' ids are the same.
    The salt contains the journal's name, which is not used again as long as the store keeps the
    names of deleted segments.

    Args:
        plan: the plan.
        copy_journal: its journal.
        attempt: number of the attempt; None for the present one.
    """
    number = roll_of(copy_journal).attempt if attempt is None else attempt
    return f"{number} {copy_journal.name} {plan.hash}"


def staging_name(
    plan: StreamPlan, copy_journal: CopyJournal, store: SegmentSink, *, index: int, part: int
) -> str:
    """Return the name of a part's staging segment in the present attempt.

    Raises:
        StoreUnavailable: no placement is recorded yet.
    """
    loaded = copy_journal.loaded
    if loaded is None or loaded.target is None:
        raise StoreUnavailable(f"it is not foreseen yet where {plan.target} is appended to")
    key = identity.staging_key(plan.copy_id, index, part, salt(plan, copy_journal))
    return store.staging_name(plan.target, loaded.target[index], key)


def staging_names(
    plan: StreamPlan,
    copy_journal: CopyJournal,
    store: SegmentSink,
    attempt: int,
    bound: Sequence[int],
) -> list[list[str]]:
    """Return the names of an attempt's staging segments: one list for each segment of the plan."""
    with_salt = salt(plan, copy_journal, attempt)
    return [
        [
            store.staging_name(
                plan.target,
                target,
                identity.staging_key(plan.copy_id, index, part.number, with_salt),
            )
            for part in segment.parts
        ]
        for index, (segment, target) in enumerate(zip(plan.segments, bound, strict=True))
    ]


def foresee(plan: StreamPlan, copy_journal: CopyJournal, store: Store) -> None:
    """Record beside which segments to stage, as the store is going to number them."""
    stream = target_of(plan, store)
    copy_journal.write([journal.target_record(foreseen(plan, stream, store))])


def foreseen(plan: StreamPlan, stream: Stream, store: Admin) -> tuple[int, ...]:
    """Predict, for each segment of the plan, the id of the target's segment that takes its keys.

    A generation with the key ranges that the target has by then needs no scale event, so its ids
    are known. For the others, the store predicts the ids. Segments of generations without bytes get
    the target's first segment.
    """
    now = [segment.id for segment in stream.tail]
    shape = tuple(segment.keys for segment in stream.tail)
    found: dict[int, int] = {}
    scaled: list[tuple[KeyRange, ...]] = []
    for number in plan.filled:
        wanted = layout_of(plan, number)
        if not has_ranges(shape, wanted):
            scaled.append(wanted)
            now = list(store.following([segment.id for segment in stream.tail], scaled)[-1])
            shape = wanted
        places = plan.active[number]
        found.update({i: now[places.index(i)] for i in plan.generations[number]})
    return tuple(found.get(i, stream.tail[0].id) for i in range(len(plan.segments)))


def is_misplaced(plan: StreamPlan, loaded: Journal, store: SegmentSink) -> bool:
    """Tell whether a segment of a recorded transaction is not beside its staging."""
    bound = loaded.target or ()
    for index, segment in enumerate(plan.segments):
        if not segment.length or segment.generation in loaded.roll.committed:
            continue
        found = transaction_segment(plan, loaded.roll, index)
        if found is not None and not store.is_beside(bound[index], found[0]):
            return True
    return False


def stage(
    plan: StreamPlan,
    copy_journal: CopyJournal,
    store: SegmentSink,
    parts: Sequence[tuple[int, Part]],
) -> bool:
    """Make staging segments, and delete them again if their attempt has ended meanwhile.

    Returns:
        Whether this call made all of them, and they stay.
    """
    attempt = roll_of(copy_journal).attempt
    names = [
        staging_name(plan, copy_journal, store, index=index, part=part.number)
        for index, part in parts
    ]
    made = [name for name in names if store.create(name)]
    loaded = copy_journal.load()
    if loaded is None or loaded.roll.attempt != attempt or loaded.roll.aborted:
        for name in made:
            store.delete(name)
        return False
    return made == names


def clear(
    plan: StreamPlan, copy_journal: CopyJournal, store: Segments, *, former: bool = False
) -> int:
    """Delete the staging of all attempts, or of former ones only.

    Returns:
        How many staging segments were deleted.
    """
    loaded = copy_journal.loaded
    if loaded is None or loaded.target is None:
        return 0
    bounds = [*enumerate(loaded.roll.former)]
    if not former:
        bounds.append((loaded.roll.attempt, loaded.target))
    return sum(
        clear_names(plan.copy_id, staging_names(plan, copy_journal, store, attempt, bound), store)
        for attempt, bound in bounds
    )
