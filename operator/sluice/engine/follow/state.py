"""The stores' answer about a copy that follows its source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.core.follow.position import position_of
from sluice.core.values import identity
from sluice.core.workloads.answers import Complete, Following, Planned
from sluice.engine.follow.lag import is_live
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.errors import StreamNotFound

if TYPE_CHECKING:
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.workloads.answers import Answer
    from sluice.stores.base import Store


def followed(request: CopyRequest, answer: Answer, target: Store) -> Answer:
    """Add to the answer about a copy what it says of following its source.

    A plan that is recorded may be carried out up to where following begins; then it is `Following`.
    A whole target has more than was planned.

    Args:
        request: the copy.
        answer: the answer about its plan.
        target: the target store.
    """
    if isinstance(answer, Complete):
        return _whole(request, answer, target)
    if not (isinstance(answer, Planned) and answer.recorded):
        return answer
    journal = CopyJournal(target, request.copy_id, request.target, request).load()
    if journal is None or not is_live(journal, target):
        return answer
    return Following(plan=answer.plan, recorded=True, stopped=journal.trail.stopped)


def _whole(request: CopyRequest, complete: Complete, target: Store) -> Complete:
    """Return what a whole target has of its source, as the attributes of its segments say.

    Segments that the target's retention has removed since are left out.
    """
    try:
        made = target.generations(request.target)
    except StreamNotFound:  # deleted since it was found complete
        return complete
    names = [target.segment_name(request.target, one.id) for some in made for one in some]
    _, origin, start = identity.origin_attributes(request.copy_id)
    asked = [(name, which) for name in names for which in (origin, start, target.event_count)]
    told = iter(target.attributes(asked))
    found = [(name, next(told), next(told), next(told)) for name in names]
    own = [
        (name, source, begin, events)
        for name, source, begin, events in found
        if source is not None and begin is not None
    ]
    ends = target.attributes(
        [(name, identity.position_attribute(request.copy_id, source)) for name, source, *_ in own]
    )
    sizes = [
        0 if (place := position_of(end)) is None else place.offset - begin
        for (_, _, begin, _), end in zip(own, ends, strict=True)
    ]
    counts = [events for *_, events in own]
    known = [count for count in counts if count is not None]
    return replace(
        complete,
        bytes=sum(sizes),
        events=sum(known) if len(known) == len(counts) else None,
        segments=len(own),
    )
