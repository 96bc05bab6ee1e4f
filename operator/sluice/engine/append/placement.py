"""What is staged for an append: where, under which names, and how it is deleted.

It has to lie beside the segments of the transactions that it is merged into, and these are there
only when all is staged. The store numbers the segments that scale events make one after the other,
so where they come to lie is foreseen; where it was not, an attempt more stages all of it again.
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
    from sluice.engine.journal.ledger import Ledger
    from sluice.stores.base import Store
    from sluice.stores.reading import Stream


def salt(plan: StreamPlan, ledger: Ledger, attempt: int | None = None) -> str:
    """What tells an attempt's staging from that of every other one, of other plans too.

    Nothing else does: the target and so its segments' ids are the same after an abort. The name of
    the journal is never used twice while the store still keeps the names of what was deleted.
    """
    number = roll_of(ledger).attempt if attempt is None else attempt
    return f"{number} {ledger.name} {plan.hash}"


def staging_name(plan: StreamPlan, ledger: Ledger, store: Store, *, index: int, part: int) -> str:
    """The name of a part's staging segment in the present attempt."""
    loaded = ledger.loaded
    if loaded is None or loaded.target is None:
        raise StoreUnavailable(f"it is not foreseen yet where {plan.target} is appended to")
    key = identity.staging_key(plan.copy_id, index, part, salt(plan, ledger))
    return store.staging_name(plan.target, loaded.target[index], key)


def staging_names(
    plan: StreamPlan, ledger: Ledger, store: Store, attempt: int, bound: Sequence[int]
) -> list[list[str]]:
    """The names of all staging segments of an attempt: one list a segment of the plan."""
    with_salt = salt(plan, ledger, attempt)
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


def foresee(plan: StreamPlan, ledger: Ledger, store: Store) -> None:
    """Write down beside which segments is staged, as the store is going to number them."""
    stream = target_of(plan, store)
    ledger.write([journal.target_record(foreseen(plan, stream, store))])


def foreseen(plan: StreamPlan, stream: Stream, store: Store) -> tuple[int, ...]:
    """For each segment of the plan one of the target that is there, or will be."""
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


def is_misplaced(plan: StreamPlan, loaded: Journal, store: Store) -> bool:
    """Whether a transaction that is open came to lie elsewhere than was foreseen."""
    bound = loaded.target or ()
    for index, segment in enumerate(plan.segments):
        if not segment.length or segment.generation in loaded.roll.committed:
            continue
        found = transaction_segment(plan, loaded.roll, index)
        if found is not None and not store.is_beside(bound[index], found[0]):
            return True
    return False


def stage(
    plan: StreamPlan, ledger: Ledger, store: Store, parts: Sequence[tuple[int, Part]]
) -> None:
    """Make staging segments, and delete them if their attempt is over by then."""
    attempt = roll_of(ledger).attempt
    names = [
        staging_name(plan, ledger, store, index=index, part=part.number) for index, part in parts
    ]
    made = [name for name in names if store.create(name)]
    loaded = ledger.load()
    if loaded is None or loaded.roll.attempt != attempt or loaded.roll.aborted:
        for name in made:
            store.delete(name)


def clear(plan: StreamPlan, ledger: Ledger, store: Store, *, former: bool = False) -> int:
    """Delete what is staged, by former attempts only or by all; says how much there was."""
    loaded = ledger.loaded
    if loaded is None or loaded.target is None:
        return 0
    bounds = [*enumerate(loaded.roll.former)]
    if not former:
        bounds.append((loaded.roll.attempt, loaded.target))
    return sum(
        clear_names(plan.copy_id, staging_names(plan, ledger, store, attempt, bound), store)
        for attempt, bound in bounds
    )
