"""Delete what a catch-up has staged, once nothing of it can be merged any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.follow.catching_up import plan_of
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.staging.clearing import clear_names
from sluice.engine.staging.large_events import clear_events
from sluice.engine.staging.observe import part_names

if TYPE_CHECKING:
    from sluice.core.copy.journal import Journal
    from sluice.stores.base import Store


def clear_catch_up(journal: Journal, store: Store) -> None:
    """Delete staging and journal of the last catch-up, if there was one.

    The positions of its segments must be other numbers, for good, than those at which it begins.
    So a deletion meets no merge. What was staged of an event that begins there is deleted as well.

    Args:
        journal: the journal of the copy.
        store: the target store.
    """
    catch_up, bound = journal.trail.catch_up, journal.target
    if catch_up is None or bound is None:
        return
    plan = plan_of(journal.plan, catch_up)
    targets = [bound[row] for row in catch_up.rows]
    clear_names(plan.copy_id, part_names(store, plan, targets), store)
    places = zip(targets, (segment.start for segment in plan.segments), strict=True)
    clear_events(journal.plan.copy_id, plan.target, places, store)
    CopyJournal(store, plan.copy_id, plan.target, plan).discard()
