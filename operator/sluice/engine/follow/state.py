"""The stores' answer about a copy that follows its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.workloads.answers import Following, Planned
from sluice.engine.follow.lag import is_live
from sluice.engine.journal.copy_journal import CopyJournal

if TYPE_CHECKING:
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.workloads.answers import Answer
    from sluice.stores.base import Store


def followed(request: CopyRequest, answer: Answer, target: Store) -> Answer:
    """Add to the answer about a copy what it says of following its source.

    A plan that is recorded may be carried out up to where following begins; then it is `Following`.

    Args:
        request: the copy.
        answer: the answer about its plan.
        target: the target store.
    """
    if not (isinstance(answer, Planned) and answer.recorded):
        return answer
    journal = CopyJournal(target, request.copy_id, request.target, request).load()
    if journal is None or not is_live(journal, target):
        return answer
    return Following(plan=answer.plan, recorded=True, stopped=journal.trail.stopped)
