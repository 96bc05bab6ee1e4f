"""Decide the next step of a copy that follows its source, from what the stores hold.

All planned bytes are readable in the target by then (`core.copy.next_step` has come to Live).

    Live -> Follow -> (Skip -> Follow) -> (Live -> Follow) for each change of retention or tags
      -> (Prove -> Grow -> Scale -> FixSegmentCount -> Publish -> Follow)
      for each scale event of the source (-> SealSource -> Follow)
      -> (BeginCatchUp -> CatchUp -> Follow) from far behind: `core.follow.catching_up`
      -> Stop -> Halt -> Prove -> ConfigureTarget

Between Grow and Publish, `core.copy.next_step` decides: Grow extends the plan by segments without
planned bytes, and publishing these sets their positions. As there, each step is safe to repeat and
safe to carry out late, and drivers remember nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.steps import (
    CatchUp,
    ConfigureTarget,
    Follow,
    Grow,
    Halt,
    Live,
    Prove,
    Skip,
    Stop,
)
from sluice.core.follow import catching_up
from sluice.core.follow.ending import CUT_OVER, SEALED, comes_first, is_sealing, next_end, room
from sluice.core.follow.rows import proved
from sluice.core.values import marks
from sluice.errors import (
    SourceNotFound,
    SourceReplaced,
    SourceTruncated,
    StoreUnavailable,
    TargetReplaced,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.observed import SeenSource
    from sluice.core.copy.steps import Step
    from sluice.core.follow.observed import SeenRow, SeenStream
    from sluice.core.follow.position import Position
    from sluice.core.values.model import SegmentInfo


def next_step(journal: Journal, seen: SeenStream) -> Step:
    """Decide the next step of a copy that has come to Live.

    Args:
        journal: the journal, as it was read after the positions and before the source.
        seen: what the stores hold.

    Raises:
        SourceNotFound, SourceReplaced, SourceTruncated: the source changed under the copy.
        StoreUnavailable: the look does not tell.
        TargetReplaced: another client has written to the target.
    """
    _check_target(journal, seen)
    if (first := _begun(journal, seen)) is not None:
        return first
    sources = {row.row.index: _source(journal, seen, row) for row in seen.rows}
    losses = tuple(
        (row.row.index, at.offset, sources[row.row.index].info.start)
        for row in seen.rows
        if (at := _position(row)).offset < sources[row.row.index].info.start
    )
    if losses:
        if journal.plan.on_truncation == "Fail":
            raise _truncated(journal, losses)
        return Skip(losses)
    if any(_position(row).halted for row in seen.rows):
        # Halted for a loss that the source does not show, or for an end that was just recorded.
        raise StoreUnavailable(f"{journal.plan.target} was halted during the look")
    lag = sum(sources[row.row.index].info.length - _position(row).offset for row in seen.rows)
    if (first := _before_following(journal, seen, lag)) is not None:
        return first
    ended = {
        row.row.index
        for row in seen.rows
        if is_ended(_position(row).offset, sources[row.row.index].info)
    }
    passing = [
        row
        for row in seen.rows
        if any(row.row.segment.keys.overlaps(made.keys) for made in seen.made)
    ]
    if passing and all(row.row.index in ended for row in passing):
        return _unproved(journal, passing) or Grow(seen.made)
    if len(ended) == len(seen.rows) and seen.sealed and not seen.made:
        return Stop(CUT_OVER if is_sealing(journal, seen.key) else SEALED)
    going = [row for row in seen.rows if row.row.index not in ended]
    unlisted = bool(ended) and not seen.made and not seen.sealed
    return Follow(_positions(going), waits=unlisted)


def _begun(journal: Journal, seen: SeenStream) -> Step | None:
    """Return the next step of what was begun and is not over: the end, or else a catch-up."""
    if journal.trail.stopped is not None:
        return _end(journal, seen.rows, apart=seen.apart)
    if not (seen.apart and journal.trail.catches_up) or is_sealing(journal, seen.key):
        return None
    # Losses come later: what is staged is not lost.
    return comes_first(journal, seen) or CatchUp()


def _before_following(journal: Journal, seen: SeenStream, lag: int) -> Step | None:
    """Return the step that comes before all others, while nothing is lost and nothing ended.

    A source that is sealed for a cutover is followed first of all: its writers wait.
    """
    end = next_end(journal, seen, lag)
    wanted, there = seen.config, seen.configured
    if end is not None or is_sealing(journal, seen.key):
        return end
    if wanted is not None and there is not None:
        mirrored = marks.followed(wanted, journal.plan.copy_id, len(seen.rows))
        if not marks.is_like(there, mirrored):
            return Live(wanted)
    if not _is_far(journal, seen, lag):
        return None
    # What is staged then goes on from what is compared, without the source.
    return _unproved(journal, seen.rows) or catching_up.begin(seen.rows)


def _is_far(journal: Journal, seen: SeenStream, lag: int) -> bool:
    """Tell whether what is missing is to be staged, and the copy does not end before."""
    if seen.far is None or not seen.far < lag <= catching_up.MOST or journal.trail.catches_up:
        return False
    left = room(journal, seen)
    return left is None or left >= lag


def _check_target(journal: Journal, seen: SeenStream) -> None:
    """Raise TargetReplaced if another client has written to the target, or sealed it."""
    for row in (*seen.closed, *seen.rows):
        if row.foreign:
            raise _foreign(journal, row, row.foreign)
    if seen.shut and not all(_position(row).halted for row in seen.rows):
        raise TargetReplaced(
            f"another client sealed {journal.plan.target} while the copy followed its source",
            remedy="Delete this copy, and make another one to a new name.",
        )


def is_ended(position: int, info: SegmentInfo) -> bool:
    """Tell whether a source's segment takes no more bytes and is followed to its end."""
    return info.sealed and position == info.length


def _end(journal: Journal, rows: Sequence[SeenRow], *, apart: bool) -> Step:
    """Return the next step once the end is recorded."""
    running = [row for row in rows if not _position(row).halted]
    if running:
        return Halt(_positions(running))
    if journal.trail.catches_up and apart:
        return CatchUp()  # what it has compared need not be read again
    if any(row.foreign is None for row in rows):
        # They were appended to before they were halted: compare their lengths once more.
        raise StoreUnavailable(f"{journal.plan.target} was appended to during the look")
    return _unproved(journal, rows) or ConfigureTarget()


def _unproved(journal: Journal, rows: Iterable[SeenRow]) -> Prove | None:
    """Return the comparison of those bytes of segments that were not compared yet, if any."""
    ends = tuple(
        (row.row.index, at.offset)
        for row in rows
        if proved(journal, row.row.index).offset < (at := _position(row)).offset
    )
    return Prove(ends) if ends else None


def _positions(rows: Iterable[SeenRow]) -> tuple[tuple[int, int], ...]:
    return tuple((row.row.index, _position(row).offset) for row in rows)


def _position(row: SeenRow) -> Position:
    if row.position is None:
        raise StoreUnavailable(f"segment {row.row.target} of the target has no position")
    return row.position


def _source(journal: Journal, seen: SeenStream, row: SeenRow) -> SeenSource:
    """Return the source's segment of a row.

    Raises:
        SourceNotFound, SourceReplaced, SourceTruncated: it is gone, or another one.
        StoreUnavailable: the source is being deleted.
    """
    name, segment = journal.plan.sources[0].stream, row.row.segment
    if row.source is not None and row.source.created == segment.created:
        return row.source
    if not seen.there:
        raise SourceNotFound(
            f"{name} is gone: it was deleted while it was followed",
            field="spec.source.stream",
            remedy="Nothing is lost of what was followed. Restore the source, or delete the copy.",
        )
    if row.source is None and seen.sealed and not seen.made:
        # No truncation takes the last segments of a stream: a store deletes them before the stream.
        raise StoreUnavailable(f"{name} is being deleted: its segment {segment.id} is gone")
    if row.source is None and segment.id in seen.had:
        raise SourceTruncated(
            f"{name} was truncated past segment {segment.id}, which was followed up to offset "
            f"{_position(row).offset}: bytes behind it, if there were any, are gone"
        )
    raise SourceReplaced(
        f"{name} was deleted and made again: segment {segment.id} is not the one that was followed"
    )


def _truncated(journal: Journal, losses: Sequence[tuple[int, int, int]]) -> SourceTruncated:
    index, start, end = losses[0]
    segment = journal.current.segments[index].id
    return SourceTruncated(
        f"{journal.plan.sources[0].stream} was truncated: offsets {start} to {end} of segment "
        f"{segment} are gone, {end - start} bytes, before they were followed"
    )


def _foreign(journal: Journal, row: SeenRow, count: int) -> TargetReplaced:
    at = _position(row).offset
    begin = at + row.row.shift(at)
    return foreign_writes(journal, row.row.target, begin, begin + count, count)


def foreign_writes(
    journal: Journal, segment: int, start: int, end: int, count: int
) -> TargetReplaced:
    """Return the error that another client has written to the target.

    Args:
        journal: the copy's journal.
        segment: the id of the target's segment.
        start: the offset in it from which on other bytes may lie.
        end: the offset up to which they may lie.
        count: how many they are; below 0 if bytes are missing.
    """
    if count < 0:
        return TargetReplaced(
            f"segment {segment} of {journal.plan.target} lacks {-count} bytes before offset {end}"
        )
    return TargetReplaced(
        f"another client wrote {count} bytes into segment {segment} of {journal.plan.target} "
        f"while the copy followed its source; they lie between offsets {start} and {end}",
        remedy="Stop the other client. Delete this copy, and make another one to a new name.",
    )
