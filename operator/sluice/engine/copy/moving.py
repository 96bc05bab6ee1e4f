"""Moving a stream: its source is sealed late, copied to its end, and deleted when all is done.

A store seals and deletes streams by name, so a source is looked at directly before: it has to be
the one that was planned, by the ids of its segments and when they were made.
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
    from sluice.engine.journal.ledger import Ledger
    from sluice.stores.base import Source, Store


def drain(
    plan: StreamPlan, bound: Sequence[int], ledger: Ledger, source: Store, target: Store
) -> None:
    """Seal the source and write down where it ends. Safe to repeat: the first record counts.

    Args:
        plan: the plan.
        bound: ids of the target's segments, in the plan's order.
        ledger: the copy's journal.
        source: the store of its only source.
        target: the target store.

    Raises:
        SourceNotFound, SourceReplaced: it is not there, or another one. It was not sealed then.
        SourceUnsupported: no stream could be scaled as it was since the plan was made.
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
    ledger.write([journal.drain_record(ends, later, ids[len(plan.segments) :])])


def leave(plan: StreamPlan, bound: Sequence[int], source: Store, target: Store) -> None:
    """Delete the source. What the stores hold decides, and nothing that a driver remembers.

    Args:
        plan: the plan, up to where the source ends.
        bound: ids of the target's segments, in the plan's order.
        source: the store of its only source.
        target: the target store.

    Raises:
        SourceKept: the target lacks something, or the source has more; it is not deleted.
        SourceReplaced: it is another one by now.
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
        # A segment of the target that its readers have truncated away told of it before that.
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
    """Whether the target is whole, and the source is there still and to be deleted."""
    if target is None or identity.completed(target.tags, plan.copy_id) is None:
        return False
    return source.describe(plan.sources[0].stream) is not None and is_planned(plan, source)


def is_planned(plan: StreamPlan, source: Source) -> bool:
    """Whether the stream that is there is the one that was planned."""
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
    """The events of each planned segment that is copied from its very beginning."""
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
    """A segment that came after the plan was made."""
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
