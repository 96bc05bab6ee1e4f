"""The stores' answer about a copy that follows its source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.core.workloads.answers import MOST_CUT, Complete, EndCut, Following, Planned
from sluice.engine.follow.lag import is_live
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.positions.position_map import position_map
from sluice.errors import InvalidSpec, StreamNotFound

if TYPE_CHECKING:
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.workloads.answers import Answer
    from sluice.stores.base import Store


def followed(request: CopyRequest, answer: Answer, target: Store) -> Answer:
    """Add to the answer about a copy what it says of following its source.

    A plan that is recorded may be carried out up to where following begins; then it is `Following`.
    A complete target says where the copy has ended.

    Args:
        request: the copy.
        answer: the answer about its plan.
        target: the target store.
    """
    if isinstance(answer, Complete):
        return replace(answer, cut=cut_of(request, target))
    if not (isinstance(answer, Planned) and answer.recorded):
        return answer
    journal = CopyJournal(target, request.copy_id, request.target, request).load()
    if journal is None or not is_live(journal, target):
        return answer
    trail = journal.trail
    return Following(
        plan=answer.plan, recorded=True, stopped=trail.stopped, catches_up=trail.catches_up
    )


def cut_of(request: CopyRequest, target: Store) -> EndCut | None:
    """Return where a copy has ended; None if its target was scaled or deleted since.

    A text that no status takes is left out: half of it would be no cut.

    Args:
        request: the copy, which is complete.
        target: the target store.
    """
    stream = target.describe(request.target)
    try:
        mapped = position_map(request.copy_id, request.target, target, follow=True)
    except (StreamNotFound, InvalidSpec):
        return None
    last = {one.target: one for one in mapped}  # the last piece of each segment
    if stream is None or not {segment.id for segment in stream.tail} <= set(last):
        return None
    ends = [last[segment.id] for segment in stream.tail]
    (origin,) = request.sources
    source = target.write_cut(origin.stream, {one.source: one.end for one in ends})
    goal = target.write_cut(request.target, {one.target: one.end + one.shift for one in ends})
    return EndCut(*(text if len(text) <= MOST_CUT else None for text in (source, goal)))
