"""Move a stream: seal its source late, copy it to its end, and delete it when all is done.

A store seals and deletes streams by name. So directly before, the source is compared with the plan
by the ids and creation times of its segments.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from sluice.core.copy import journal
from sluice.core.copy.plan import SegmentPlan
from sluice.core.values import identity
from sluice.core.values.model import break_in
from sluice.errors import (
    SourceKept,
    SourceNotFound,
    SourceReplaced,
    SourceUnsupported,
    StreamNotFound,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.observed import SeenTarget
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.values.model import KeyRange, SegmentInfo
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Source, Store
    from sluice.stores.writing import Admin


def drain(
    plan: StreamPlan, bound: Sequence[int], copy_journal: CopyJournal, source: Store, target: Admin
) -> None:
    """Seal the source and record where it ends. Safe to repeat: the first record counts.

    Args:
        plan: the plan.
        bound: ids of the target's segments, in the plan's order.
        copy_journal: the copy's journal.
        source: the store of its only source.
        target: the target store.

    Raises:
        SourceNotFound: the source is gone. Nothing was sealed.
        SourceReplaced: another stream has its name, and was not sealed. Or the source was deleted
            or truncated after it was sealed.
        SourceUnsupported: its generations since the plan cannot be made by scale events.
    """
    name = plan.sources[0].stream
    if source.describe(name) is None:
        raise SourceNotFound(
            f"{name} is gone: it was deleted before it was moved",
            field="spec.source.stream",
            remedy="Abort the copy, or restore the source first.",
        )
    if not is_planned(plan, source):
        raise SourceReplaced(f"{name} was deleted and made again, and is left as it is")
    source.seal_stream(name)
    try:
        generations = source.generations(name)
    except StreamNotFound:
        raise SourceReplaced(f"{name} was deleted while it was moved") from None
    ends = [
        (segment.end if info is None else info.length, count)
        for segment, info, count in zip(
            plan.segments, _infos(plan, source), _counts(plan, source), strict=True
        )
    ]
    planned = {segment.id for segment in plan.segments}
    since = [[one for one in segments if one.id not in planned] for segments in generations]
    last = plan.segments[-1].generation
    later = [
        _later(plan, segment.id, segment.keys, last + number, source)
        for number, segments in enumerate(filter(None, since), start=1)
        for segment in segments
    ]
    drained = plan.of([*plan.segments, *later])
    for active in drained.active:
        if break_in(drained.segments[i].keys for i in active) is not None:
            raise SourceUnsupported(
                f"{name} was scaled while it was moved, and truncated, in a way that no stream "
                "can be scaled",
                field="spec.source.stream",
                remedy="The source is sealed and kept. Copy it, with sourceOnComplete: Retain.",
            )
    first = bound[: len(plan.generations[0])]
    ranges = [[drained.segments[i].keys for i in made] for made in drained.generations[1:]]
    ids = [*first, *itertools.chain(*target.following(first, ranges))]
    copy_journal.write([journal.drain_record(ends, later, ids[len(plan.segments) :])])


def leave(plan: StreamPlan, bound: Sequence[int], source: Store, target: Source) -> None:
    """Delete the source of a move, if the target holds all of it.

    Only what the stores hold decides, never what a driver remembers.

    Args:
        plan: the plan, up to where the source ends.
        bound: ids of the target's segments, in the plan's order.
        source: the store of its only source.
        target: the target store.

    Raises:
        SourceKept: the target lacks bytes, or the source has more. The source is not deleted.
        SourceReplaced: another stream has the source's name.
    """
    name = plan.sources[0].stream
    there = target.describe(plan.target)
    if there is None or identity.completed(there.config.tags, plan.copy_id) is None:
        raise _kept(plan, f"{plan.target} is not whole any more")
    publish = identity.publish_attribute(plan.copy_id)
    names = [target.segment_name(plan.target, segment) for segment in bound]
    values = target.attributes([(one, publish) for one in names])
    for segment, segment_info, value in zip(
        plan.segments, target.infos(names), values, strict=True
    ):
        # A target segment that was truncated away since (None) was complete before: the mark was
        # set after all segments were published.
        if segment_info is not None and value != segment.length:
            raise _kept(
                plan, f"of segment {segment.id}, {value} bytes of {segment.length} are published"
            )
    described = source.describe(name)
    if described is None:
        return
    planned = {segment.id for segment in plan.segments}
    if not is_planned(plan, source):
        raise SourceReplaced(f"{name} was deleted and made again, and is left as it is")
    found = [one.id for segments in source.generations(name) for one in segments]
    if not described.sealed or not planned >= set(found):
        raise _kept(plan, "it was written to after it was sealed")
    for segment, info in zip(plan.segments, _infos(plan, source), strict=True):
        if info is not None and not (info.sealed and info.length == segment.end):
            raise _kept(plan, f"segment {segment.id} ends at {info.length}, not at {segment.end}")
    source.delete_stream(name)


def is_left(plan: StreamPlan, target: SeenTarget | None, source: Source) -> bool:
    """Tell whether the target is complete and the planned source still exists."""
    if target is None or identity.completed(target.tags, plan.copy_id) is None:
        return False
    return source.describe(plan.sources[0].stream) is not None and is_planned(plan, source)


def is_planned(plan: StreamPlan, source: Source) -> bool:
    """Tell whether the stream of the source's name is the planned one.

    Segments that still exist must have the planned creation times. If none exists, the stream must
    have had the plan's first segment earlier.
    """
    name = plan.sources[0].stream
    names = [source.segment_name(name, segment.id) for segment in plan.segments]
    made = source.attributes([(one, source.creation_time) for one in names])
    there = [
        when == segment.created
        for segment, when in zip(plan.segments, made, strict=True)
        if when is not None
    ]
    return all(there) if there else source.had(name, plan.segments[0].id)


def _kept(plan: StreamPlan, why: str) -> SourceKept:
    return SourceKept(
        f"{plan.sources[0].stream} was copied and is not deleted: {why}",
        remedy="Compare source and target with `sluice verify`, then delete the source yourself.",
    )


def _infos(plan: StreamPlan, source: Source) -> list[SegmentInfo | None]:
    name = plan.sources[0].stream
    return source.infos([source.segment_name(name, segment.id) for segment in plan.segments])


def _counts(plan: StreamPlan, source: Source) -> list[int | None]:
    """Return the store's event count of each planned segment that is copied from offset 0."""
    name = plan.sources[0].stream
    asked = [
        (source.segment_name(name, segment.id), source.event_count) for segment in plan.segments
    ]
    return [
        count if segment.start == 0 else None
        for segment, count in zip(plan.segments, source.attributes(asked), strict=True)
    ]


def _later(
    plan: StreamPlan, segment: int, keys: KeyRange, generation: int, source: Source
) -> SegmentPlan:
    """Return the plan of a segment that was made after the plan was recorded."""
    name = source.segment_name(plan.sources[0].stream, segment)
    (info,) = source.infos([name])
    created, count = source.attributes([(name, source.creation_time), (name, source.event_count)])
    if info is None:
        raise SourceReplaced(f"{plan.sources[0].stream} was truncated while it was moved")
    events = 0 if info.start == info.length else count if info.start == 0 else None
    return SegmentPlan(
        id=segment,
        keys=keys,
        generation=generation,
        start=info.start,
        end=info.length,
        created=created or 0,
        events=events,
    )
