"""Decide whether a copy that follows its source is to end, by its wish and by what was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.copy.steps import SealSource, Stop
from sluice.core.follow.rows import proved, row_of
from sluice.core.values.wish import is_consent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sluice.core.copy.follow_progress import Consent
    from sluice.core.copy.journal import Journal
    from sluice.core.copy.steps import Step
    from sluice.core.follow.observed import SeenStream
    from sluice.core.values.wish import Wish

SEALED: Final = "SourceSealed"
"""The reason of an end without a wish: the source takes no more events."""

CUT_OVER: Final = "CutOver"
DRAINED: Final = "Drained"
IDLE: Final = "Idle"
BYTES: Final = "Bytes"
TIME: Final = "Time"

QUIET_SECONDS: Final = 5.0
"""Seconds without bytes after which a drain is at its end."""

NEAR: Final = 16 << 20
"""Bytes before a source's end from which on it is sealed: its writers wait while these follow."""


def next_end(journal: Journal, seen: SeenStream, lag: int) -> Step | None:
    """Return the step by which the copy ends as wished; None while it is to go on.

    A decision to seal the source is never taken back, and nothing else ends the copy from then on:
    otherwise a source would be sealed whose last bytes the target lacks.

    Args:
        journal: the journal.
        seen: what the stores hold.
        lag: the bytes of the source that are not followed yet.
    """
    wish = journal.trail.wish
    if is_sealing(journal, seen.key):
        return None if seen.sealed else SealSource()
    if may_seal(journal, seen.key):
        return SealSource() if seen.settled and lag <= NEAR else None
    if lag == 0 and seen.settled and (why := quiet_end(wish, seen.quiet)) is not None:
        return Stop(why)
    if (left := room(journal, seen)) is not None and left <= 0:
        return Stop(BYTES)
    return Stop(TIME) if is_time(wish, seen.now) else None


def comes_first(journal: Journal, seen: SeenStream) -> Step | None:
    """Return the end that does not wait for bytes that are on their way; None if there is none."""
    return next_end(journal, seen, NEAR + 1)


def room(journal: Journal, seen: SeenStream) -> int | None:
    """Return how many bytes may be appended before the copy ends; None for any number."""
    most = journal.trail.wish.bytes
    if most is None or may_seal(journal, seen.key) or is_sealing(journal, seen.key):
        return None
    return most - copied(journal, _positions(seen))


def quiet_end(wish: Wish, quiet: float) -> str | None:
    """Return why a copy ends that has come to its source's end, after `quiet` seconds there."""
    if wish.cutover == "Drain" and quiet >= QUIET_SECONDS:
        return DRAINED
    return IDLE if wish.idle_seconds is not None and quiet >= wish.idle_seconds else None


def is_time(wish: Wish, now: datetime) -> bool:
    """Tell whether the moment has come at which a copy ends.

    A clock that is set back before that makes it end later. Its end, once recorded, stays.
    """
    return wish.time is not None and now >= wish.time


def may_seal(journal: Journal, key: str) -> bool:
    """Tell whether the present wish is to seal the source, and is its owner's."""
    return _is_owners(journal, journal.trail.consent, key)


def is_sealing(journal: Journal, key: str) -> bool:
    """Tell whether it is decided that the source is sealed, by a wish of the copy's owner."""
    return any(_is_owners(journal, one, key) for one in journal.trail.sealing)


def copied(journal: Journal, positions: Mapping[int, int]) -> int:
    """Return how many bytes of the source the target has.

    Args:
        journal: the journal.
        positions: source offsets by the index of the segment, of those that may still be appended
            to.
    """
    count = 0
    for index in range(len(journal.current.segments)):
        at = positions.get(index)
        at = proved(journal, index).offset if at is None else at
        count += at + row_of(journal, index).shift(at)
    return count


def _positions(seen: SeenStream) -> dict[int, int]:
    return {row.row.index: row.position.offset for row in seen.rows if row.position is not None}


def _is_owners(journal: Journal, claimed: Consent | None, key: str) -> bool:
    return claimed is not None and is_consent(
        claimed.proof, key, journal.plan.copy_id, claimed.number
    )
