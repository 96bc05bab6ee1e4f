"""Taking bounds: from a request to a plan, by looking at the stores."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from sluice.core import identity
from sluice.core.planner import SeenSegment, plan_stream
from sluice.engine.ledger import Ledger
from sluice.errors import (
    SourceNotFound,
    SourceReplaced,
    StreamNotFound,
    TargetExists,
    TargetScopeNotFound,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.model import SegmentInfo, StreamName
    from sluice.core.plan import StreamPlan
    from sluice.core.planner import CopyRequest
    from sluice.stores.base import Store

HEAD_TRIES = 5
"""How often the bounds are taken anew because the source was truncated meanwhile."""

COUNT_TRIES = 20
"""How often a bound and the event count are asked for together before events are counted."""


class Resolved(NamedTuple):
    """A request, held against the stores.

    Attributes:
        plan: what is to be copied; None when the copy is complete and nothing is left to tidy.
        recorded: whether a driver has begun to carry out the plan.
        digest: the digest under which the copy is complete.
    """

    plan: StreamPlan | None
    recorded: bool = False
    digest: str | None = None


def resolve(request: CopyRequest, source: Store, target: Store) -> Resolved:
    """The plan of a copy: the recorded one if it was begun, or a new one. Nothing is changed.

    Raises:
        TargetExists, TargetScopeNotFound, SourceNotFound, SourceUnsupported, SourceReplaced: as
            `check_target` and `make_plan` do.
    """
    # The journal before the target: a copy says that it is whole before it deletes its journal.
    journal = Ledger(target, request.copy_id, request.target).load()
    digest = check_target(request.copy_id, request.target, target)
    unfinished = journal is not None and journal.target is not None
    if digest is not None and not unfinished:
        return Resolved(None, digest=digest)
    if journal is not None:
        return Resolved(journal.plan, recorded=True)
    return Resolved(make_plan(request, source))


def check_target(copy_id: str, name: StreamName, target: Store) -> str | None:
    """Whether the target may be made: None if so, or the digest under which it is finished.

    Raises:
        TargetExists: the stream is there and this copy did not make it.
        TargetScopeNotFound: its scope is not there.
    """
    there = target.describe(name)
    if there is None:
        if not target.scope_exists(name.scope):
            raise TargetScopeNotFound(
                f"scope {name.scope!r} does not exist in the target store",
                field="spec.target.scope",
            )
        return None
    if not identity.is_ours(there.config.tags, copy_id):
        raise TargetExists(
            f"{name} exists and this copy did not make it", field="spec.target.stream"
        )
    return identity.completed(there.config.tags, copy_id)


def make_plan(request: CopyRequest, source: Store) -> StreamPlan:
    """The plan for what the source holds now. Nothing is changed.

    Raises:
        SourceNotFound: there is no such stream.
        SourceUnsupported: it was scaled in a way that no stream can be.
        SourceReplaced: it was deleted, or truncated again and again, while its bounds were taken.
    """
    stream = source.describe(request.source)
    if stream is None:
        raise SourceNotFound(
            f"stream {request.source} does not exist in the source store",
            field="spec.source.stream",
        )
    for attempt in itertools.count(1):
        try:
            seen = _look(request.source, source)
        except SourceReplaced:
            # It may only have been truncated past a segment, as its retention does.
            if attempt == HEAD_TRIES or source.describe(request.source) is None:
                raise
        else:
            break
    return plan_stream(request, config=stream.config, seen=seen)


def _look(name: StreamName, store: Store) -> list[SeenSegment]:
    """The segments from head to tail with their bounds, and the exact number of events in them.

    The store cannot always tell how many events there are. A count belongs to a bound only if the
    segment has the same length before and after it is asked for, so segments that moved meanwhile
    are asked for again. One that is written without a pause may never hold still; it is then
    counted later. A truncated segment's count includes what is gone, so it is counted too.

    What is written after a scale event that comes meanwhile is behind the bounds.
    """
    try:
        generations = store.generations(name)
    except StreamNotFound:
        raise SourceReplaced(f"{name} was deleted while its bounds were taken") from None
    segments = [segment for made in generations for segment in made]
    numbers = [number for number, made in enumerate(generations) for _ in made]
    names = [store.segment_name(name, segment.id) for segment in segments]
    infos = _infos(name, names, store)
    events: dict[int, int | None] = {}
    for _ in range(COUNT_TRIES):
        moving = [i for i in range(len(names)) if i not in events]
        if not moving:
            break
        counts = store.attributes([(names[i], store.event_count) for i in moving])
        after = _infos(name, [names[i] for i in moving], store)
        for i, count, info in zip(moving, counts, after, strict=True):
            if info.length == infos[i].length:
                events[i] = None if info.start > 0 else count
            infos[i] = info
    created = store.attributes([(segment, store.creation_time) for segment in names])
    return [
        SeenSegment(
            id=segment.id,
            keys=segment.keys,
            generation=number,
            start=info.start,
            end=info.length,
            created=when or 0,
            events=0 if info.start == info.length else events.get(i),
        )
        for i, (segment, number, info, when) in enumerate(
            zip(segments, numbers, infos, created, strict=True)
        )
    ]


def _infos(name: StreamName, segments: Sequence[str], store: Store) -> list[SegmentInfo]:
    """The segments as they are now; SourceReplaced if one is gone."""
    found = [info for info in store.infos(segments) if info is not None]
    if len(found) < len(segments):
        raise SourceReplaced(f"{name} was deleted while its bounds were taken")
    return found
