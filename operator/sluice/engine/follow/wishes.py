"""Write down how a copy that follows its source is to end, where its follower sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.copy.follow_progress import wish_record
from sluice.core.follow.ending import may_seal
from sluice.core.values.wish import consent
from sluice.errors import StoreBusy

if TYPE_CHECKING:
    from sluice.core.copy.journal import Journal
    from sluice.core.values.wish import Wish
    from sluice.engine.journal.copy_journal import CopyJournal

_TRIES: Final = 10
"""Tries to write a wish beside other clients that write theirs."""


def write(wish: Wish, journal: CopyJournal, *, key: str = "") -> bool:
    """Write a wish, unless it is the present one. It may be called again at any time.

    Args:
        wish: how the copy is to end.
        journal: the copy's journal.
        key: the key by which this copy's followers know that its owner wishes the source to be
            sealed; see `core.values.wish.consent`. Without a key, no follower seals the source.

    Returns:
        Whether the copy goes by this wish now. It does not while there is no journal, or no target
        is recorded in it, and not once the end is recorded. Nor does a copy that does not follow.

    Raises:
        StoreBusy: other clients write other wishes, again and again.
        NoSuchSegment, CopyAborted: the journal was deleted meanwhile.
        JournalDamaged: the journal is another copy's.
    """
    known = journal.load()
    for _ in range(_TRIES):
        # Before a second record, a journal may have to give way to another one.
        if known is None or known.target is None or not known.plan.follow:
            return False
        trail = known.trail
        if trail.stopped is not None or trail.left:
            return False
        if _holds(wish, known, key):
            return True
        proof = consent(key, known.plan.copy_id, trail.wishes) if _seals(wish) else ""
        journal.write([wish_record(trail.wishes, wish, proof)])
        known = journal.loaded
    raise StoreBusy(f"other clients write other wishes into {journal.name}")


def _holds(wish: Wish, journal: Journal, key: str) -> bool:
    if journal.trail.wish != wish:
        return False
    return not (_seals(wish) and key) or may_seal(journal, key)


def _seals(wish: Wish) -> bool:
    return wish.cutover == "SealAndDrain"
