"""Record which segments a copy's target has, before anything is staged for them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from sluice.core.copy import journal
from sluice.engine.copy.abort import abort, has_staging
from sluice.errors import CopyAborted

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Store


def bind(
    plan: StreamPlan, first: tuple[int, ...], copy_journal: CopyJournal, store: Store, *, made: bool
) -> bool:
    """Record which segments the target has and will have, if nothing is staged for them.

    Bytes may be staged already for two reasons. Another driver has bound the target meanwhile: then
    there is nothing to do. Or they come from a copy whose journal is lost. Its plan is unknown, and
    its drivers may still live, so only an abort can clear them away. A target that was just made
    has segments whose ids were never used: then the search is left out, and the journal is used as
    it was loaded before the target was described.

    Args:
        plan: the copy.
        first: ids of the target's segments.
        copy_journal: the copy's journal.
        store: the target store.
        made: whether the target was just made.

    Returns:
        Whether the target's segments are recorded, and nothing else: no other driver was faster.

    Raises:
        CopyAborted: staged bytes of a lost journal were found, and deleted with the target.
    """
    later = [[plan.segments[i].keys for i in later_ones] for later_ones in plan.generations[1:]]
    segments = (*first, *itertools.chain(*store.following(first, later)))
    remains = not made and has_staging(plan.copy_id, plan.target, segments, store)
    loaded = copy_journal.loaded if made else copy_journal.load()
    if loaded is None or loaded.target is not None:
        return False
    if remains:
        abort(plan.copy_id, plan.target, store)
        raise CopyAborted(
            f"{plan.target} was begun by a copy whose journal is lost; it was deleted"
        )
    copy_journal.write([journal.target_record(segments)])
    return copy_journal.loaded == journal.Journal(loaded.plan, segments)
