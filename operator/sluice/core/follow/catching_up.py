"""Decide about catch-ups: bytes that are staged, verified and merged, as the target is far behind.

A driver that follows appends what comes, in one process. From far behind it is faster to stage as
for any large copy: by many tasks, which Spark runs. The staged bytes of a segment begin at its
position, and are merged on the condition that it still is that. So a catch-up is exact whatever
else happens: any append, loss or end moves the position, and then these bytes are given up.

    BeginCatchUp -> Stage -> Transfer -> Stitch -> Verify -> Publish -> EndCatchUp

A catch-up is in the copy's journal, so each driver knows which one there is. It has a journal of
its own for its digests, and all its names follow from an identity of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.copy.follow_progress import RecordedCatchUp
from sluice.core.copy.next_staging_step import stage
from sluice.core.copy.planner import PART_BYTES, cuts, part_size
from sluice.core.copy.steps import BeginCatchUp, EndCatchUp, Publish
from sluice.core.events.chain import linked
from sluice.core.events.digest import chunk_end, chunk_of, chunk_start
from sluice.core.values import identity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.observed import Observed
    from sluice.core.copy.plan import SegmentPlan, StreamPlan
    from sluice.core.copy.steps import Step
    from sluice.core.events.chain import Link
    from sluice.core.follow.observed import SeenRow

FAR: Final = 1 << 30
"""Bytes that a target may be behind before they are staged."""


MOST: Final = 4 << 40
"""Bytes that are staged at once, at most: the digests of more fill a journal."""


class Staging(NamedTuple):
    """How a driver catches up.

    Attributes:
        far: bytes behind from which on it stages.
        tasks: how many tasks will run at once, about.
        part_bytes: most bytes of a part; see `planner.part_size`.
    """

    far: int = FAR
    tasks: int = 1
    part_bytes: int = PART_BYTES


def begin(rows: Iterable[SeenRow]) -> BeginCatchUp:
    """Return the step that begins a catch-up of all that the source has now.

    A segment of the source always ends between two events.

    Args:
        rows: the segments that are followed, with what was seen of each.
    """
    return BeginCatchUp(
        tuple(
            (row.row.index, row.position.offset, row.source.info.length)
            for row in rows
            if row.position is not None
            and row.source is not None
            and row.position.offset < row.source.info.length
        )
    )


def planned(
    journal: Journal, ranges: Sequence[tuple[int, int, int]], staging: Staging
) -> RecordedCatchUp:
    """Plan the next catch-up.

    Args:
        journal: the copy's journal.
        ranges: index of the segment, first and last source offset, each.
        staging: how it is staged.
    """
    total = sum(end - start for _, start, end in ranges)
    most = part_size(total, staging.tasks, staging.part_bytes)
    current, last = journal.current.segments, journal.trail.catch_up
    return RecordedCatchUp(
        number=0 if last is None else last.number + 1,
        rows=tuple(index for index, _, _ in ranges),
        segments=tuple(
            current[index].model_copy(
                update={
                    "generation": 0,
                    "range": None,
                    "start": start,
                    "end": end,
                    # A number that is known keeps plain bytes from being refused.
                    "events": 0,
                    "cuts": cuts(start, end, most),
                    "lost": 0,
                    "attempt": 0,
                    "edition": 0,
                }
            )
            for index, start, end in ranges
        ),
    )


def plan_of(plan: StreamPlan, catch_up: RecordedCatchUp) -> StreamPlan:
    """Return a catch-up as the plan of a copy: its segments are staged and verified like those.

    Args:
        plan: the plan of the copy.
        catch_up: the catch-up.
    """
    changes = {
        "copy_id": identity.catch_up_id(plan.copy_id, catch_up.number),
        "verify": True,
        "follow": False,
        "make_scope": False,
        "seal": False,
    }
    return plan.of(catch_up.segments).model_copy(update=changes)


def next_step(
    plan: StreamPlan, seen: Observed, moved: Collection[int], *, stages: bool
) -> Step | None:
    """Decide the next step of a catch-up.

    Args:
        plan: the catch-up's plan.
        seen: what the stores hold of it; `published` tells what it has merged itself.
        moved: the segments whose position is another one than they begin at.
        stages: whether this driver stages; else it only tidies up.

    Returns:
        None if there is nothing to do for now, since bytes that were given up, or are not staged by
        this driver, are still to be followed.

    Raises:
        SourceNotFound, SourceReplaced, SourceTruncated: the source changed under the copy.
        StoreUnavailable: the observation lacks the source.
    """
    open_ones = [
        (index, segment, state)
        for index, (segment, state) in enumerate(zip(plan.segments, seen.segments, strict=False))
        if index not in moved and state.published is None
    ]
    going = [one for one in open_ones if stages and one[2].verified != identity.ABORTED]
    unverified = [one for one in going if one[2].verified != one[1].length]
    if unverified:
        return stage(plan, seen, unverified)
    if going:
        return Publish(tuple(index for index, _, _ in going))
    left = set(range(len(plan.segments))) - set(moved) - published(seen)
    return None if left else EndCatchUp()


def published(seen: Observed) -> set[int]:
    """Return the segments that a catch-up has merged itself."""
    return {index for index, one in enumerate(seen.segments) if one.published is not None}


def border(segment: SegmentPlan) -> int:
    """Return up to where a merged segment is compared by reading it back.

    There its first whole chunk begins: of the chunk before, the catch-up has only a part.
    """
    first = chunk_of(segment.start)
    is_whole = chunk_start(first, 0) == segment.start
    return segment.start if is_whole else chunk_end(first, segment.end)


def extended(link: Link, end: int, known: Mapping[int, bytes]) -> Link | None:
    """Return the link behind chunks that a catch-up has compared.

    Args:
        link: up to where all is compared; a chunk ends there.
        end: the offset behind the last byte.
        known: SHA-256 of the chunks.

    Returns:
        None if the digest of a chunk is missing, or more is compared, or no chunk ends there.
    """
    if link.held or link.offset > end:
        return None
    return linked(link.offset, end, known, link.chain)
