"""Decide the next step of segments whose bytes are not staged and verified yet.

Copies to a new target and appends stage in the same way, so both decide by this.

    Stage -> Transfer (-> Amend -> Stage) -> Stitch -> Verify
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from sluice.core.copy.steps import Amend, Stage, Stitch, Transfer, Verify
from sluice.core.events.digest import chunk_end, chunk_start, chunks
from sluice.core.values import identity
from sluice.errors import SourceNotFound, SourceReplaced, SourceTruncated, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from sluice.core.copy.observed import Observed, SeenSource, SeenStaging
    from sluice.core.copy.plan import Part, SegmentPlan, StreamPlan
    from sluice.core.copy.steps import Step


def seams(segment: SegmentPlan) -> tuple[int, ...]:
    """Return the length of a segment's first staging segment after each part was merged into it."""
    return tuple(accumulate(part.length for part in segment.parts))


def staged(segment: SegmentPlan, seen: SeenStaging) -> int:
    """Return how many bytes of the segment are in the target store, published or not."""
    if seen.published is not None and seen.published >= 0:
        return segment.length
    total = 0
    for part, info in zip(segment.parts, seen.parts, strict=True):
        if merged(segment, seen, part):
            total += part.length
        elif info is not None:
            total += min(info.length, part.length)
    return total


def merged(segment: SegmentPlan, seen: SeenStaging, part: Part) -> bool:
    """Tell whether a part was merged into the segment's first part."""
    return (
        part.number > 0
        and seen.stitched is not None
        and seen.stitched >= seams(segment)[part.number]
    )


def stage(
    plan: StreamPlan, seen: Observed, todo: list[tuple[int, SegmentPlan, SeenStaging]]
) -> Step:
    """Return the next step for segments whose staged bytes are not verified yet.

    Args:
        plan: the plan.
        seen: what the stores hold.
        todo: the segments: index in the plan, plan, staging.
    """
    open_parts = [
        (i, part, info)
        for i, segment, state in todo
        for part, info in zip(segment.parts, state.parts, strict=True)
        if not merged(segment, state, part)
    ]
    starts = _lost(plan, seen, todo)
    if starts:
        return Amend(starts)
    missing = [(i, part) for i, part, info in open_parts if info is None]
    if missing:
        return Stage(tuple(missing))
    unfinished = [
        (i, part, part.start + info.length)
        for i, part, info in open_parts
        if info is not None and info.length < part.length
    ]
    if unfinished:
        return Transfer(tuple(unfinished))
    _check_identity(plan, seen, todo)
    apart = [(i, part) for i, part, _ in open_parts if part.number > 0]
    if apart:
        return Stitch(tuple(apart))
    return Verify(tuple(i for i, _, _ in todo))


def first_needed(
    segment: SegmentPlan, state: SeenStaging, known: Container[int], *, verify: bool
) -> int | None:
    """Return the first source offset that still has to be read; None if all bytes were read.

    A chunk is needed until all its bytes are staged and, where the copy is verified, until its
    digest is known.
    """
    for part, info in zip(segment.parts, state.parts, strict=True):
        there = part.length if merged(segment, state, part) else info.length if info else 0
        for chunk in chunks(part.start, part.end):
            whole = chunk_end(chunk, part.end) - part.start <= there
            if not whole or (verify and chunk not in known):
                return chunk_start(chunk, part.start)
    return None


def _lost(
    plan: StreamPlan, seen: Observed, todo: list[tuple[int, SegmentPlan, SeenStaging]]
) -> tuple[tuple[int, int], ...]:
    """Return the segments whose source has lost bytes that are needed, and where each begins now.

    Raises:
        SourceNotFound, SourceReplaced: the planned source is gone.
        SourceTruncated: such bytes are lost, and the copy must not continue without them.
        StoreUnavailable: the source was not observed.
    """
    found = []
    for i, segment, state in todo:
        known = seen.journal.known(i) if seen.journal else {}
        needed = first_needed(segment, state, known, verify=plan.verify)
        if state.verified == identity.ABORTED:
            needed = segment.start  # a driver gave the staging up, and died before it recorded that
        if needed is None:
            continue
        begins = _begins(plan, seen, i)
        if begins <= needed:
            continue
        to = min(begins, segment.end)
        if plan.on_truncation == "Fail":
            raise SourceTruncated(
                f"{plan.source_of(segment).stream} was truncated: offsets {needed} to {to} of "
                f"segment {segment.id} are gone, {to - needed} bytes, and the copy needs it from "
                f"{needed} on"
            )
        found.append((i, to))
    return tuple(found)


def _begins(plan: StreamPlan, seen: Observed, place: int) -> int:
    """Return where a source's segment begins now: at its planned end if it is gone.

    Raises:
        SourceNotFound, SourceReplaced: the planned source is gone.
        StoreUnavailable: the source was not observed.
    """
    segment = plan.segments[place]
    name = plan.source_of(segment).stream
    if seen.sources is None:
        raise StoreUnavailable(f"{name} was not observed")
    known = [
        source
        for source, other in zip(seen.sources, plan.segments, strict=True)
        if other.source == segment.source and source is not None
    ]
    if not known and segment.source not in seen.renewed | seen.outrun:
        raise SourceNotFound(
            f"{name} is gone: it was deleted before its copy was staged",
            field="spec.source.stream",
            remedy="Abort the copy, or restore the source first.",
        )
    source = seen.sources[place]
    if source is None and (
        segment.source in seen.outrun or _is_the_same(plan, seen.sources, segment.source)
    ):
        return segment.end
    if source is None or source.created != segment.created:
        raise _replaced(plan, segment)
    return source.info.start


def _check_identity(
    plan: StreamPlan, seen: Observed, todo: list[tuple[int, SegmentPlan, SeenStaging]]
) -> None:
    """Check that all staged bytes were read from the planned segments.

    Since the last look another client may have made a source anew, with the same segment ids, and
    tasks may have read from it. A segment that is gone is no such segment.

    Raises:
        SourceReplaced: a source's segment is another one now.
    """
    for place, segment, _ in todo:
        source = seen.sources[place] if seen.sources is not None else None
        if source is not None and source.created != segment.created:
            raise _replaced(plan, segment)


def _replaced(plan: StreamPlan, segment: SegmentPlan) -> SourceReplaced:
    return SourceReplaced(
        f"{plan.source_of(segment).stream} was deleted and made again: segment {segment.id} is "
        "not the one whose bounds were taken"
    )


def _is_the_same(plan: StreamPlan, sources: Sequence[SeenSource | None], number: int) -> bool:
    """Tell whether a source is the planned stream, which any of its planned segments proves."""
    return any(
        source is not None and source.created == segment.created
        for source, segment in zip(sources, plan.segments, strict=True)
        if segment.source == number
    )
