"""Resume a copy: check its state in the target store before a driver goes on with its plan.

Every driver comes through this door: the plan that it was given may be old.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.engine.copy.abort import finish_abort, sweep
from sluice.engine.copy.planning import check_plan
from sluice.engine.journal.copy_journal import CopyJournal

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan
    from sluice.stores.base import Store


class Resumed(NamedTuple):
    """The state in which a driver found a copy.

    Attributes:
        digest: the digest under which the copy is complete, None if it is not.
        settled: whether nothing is left to do. Then leftovers of late drivers were deleted.
    """

    digest: str | None
    settled: bool = False


def resume(plan: StreamPlan, target: Store) -> Resumed:
    """Resume a copy. Finish an interrupted abort, then check whether the target is complete.

    Raises:
        SluiceError: as `finish_abort`, `check_plan` and `sweep` do.
    """
    finish_abort(plan.copy_id, plan.target, target)
    digest = check_plan(plan, target)
    # Read the journal after the target. As long as there is one, steps are left to do after the
    # mark. Another driver may have begun it, and set the mark, since the check.
    journal = CopyJournal(target, plan.copy_id, plan.target).load()
    if digest is None or (journal is not None and journal.target is not None):
        return Resumed(digest)
    sweep(plan.copy_id, plan.target, target)
    return Resumed(digest, settled=True)
