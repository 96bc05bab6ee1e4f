"""Delete what a catch-up has staged, once nothing of it can be merged any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.planner import MAX_PARTS
from sluice.core.follow.catching_up import plan_of
from sluice.core.follow.position import Position
from sluice.core.values import identity
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.staging.clearing import clear_names
from sluice.engine.staging.large_events import clear_events
from sluice.engine.staging.observe import part_names, staging_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Store


def clear_catch_up(journal: Journal, store: Store) -> None:
    """Delete staging and journal of the last catch-up, if there was one.

    What is staged of a segment whose position is still where it begins stays: it might be merged at
    this moment, and a deletion must not meet a merge. Any other position never comes back to that.
    What was staged of an event that begins there is deleted as well.

    Args:
        journal: the journal of the copy.
        store: the target store.
    """
    catch_up, bound = journal.trail.catch_up, journal.target
    if catch_up is None or bound is None:
        return
    copy, plan = journal.plan, plan_of(journal.plan, catch_up)
    targets = [bound[row] for row in catch_up.rows]
    asked = [
        (
            store.segment_name(plan.target, target),
            identity.position_attribute(copy.copy_id, segment.id),
        )
        for target, segment in zip(targets, plan.segments, strict=True)
    ]
    starts = [segment.start for segment in plan.segments]
    moved = [
        value != Position(start).value
        for value, start in zip(store.attributes(asked), starts, strict=True)
    ]
    names = part_names(store, plan, targets)
    gone = [parts for parts, done in zip(names, moved, strict=True) if done]
    clear_names(plan.copy_id, gone, store)
    places = zip(targets, starts, moved, strict=True)
    over = [(target, start) for target, start, done in places if done]
    clear_events(copy.copy_id, plan.target, over, store)
    if all(moved):
        CopyJournal(store, plan.copy_id, plan.target, plan).discard()


def clear_noted(copy_id: str, target: StreamName, segments: Sequence[int], store: Store) -> None:
    """Delete what catch-ups have staged that notes at the target's segments tell of.

    Args:
        copy_id: the copy, whose journal cannot be read.
        target: its target stream.
        segments: ids of the target's segments. None of them takes a merge any more.
        store: the target store.
    """
    attribute = identity.catch_up_attribute(copy_id)
    places = store.attributes([(store.segment_name(target, one), attribute) for one in segments])
    for segment, place in zip(segments, places, strict=True):
        if place is None:
            continue
        number, index = identity.catch_up_of(place)
        one = identity.catch_up_id(copy_id, number)
        parts = staging_names(store, one, target, segment=segment, index=index, parts=MAX_PARTS)
        clear_names(one, [parts], store)
        CopyJournal(store, one, target).discard()
