"""Resume a copy: check its state in the target store before a driver goes on with its plan.

Every driver comes through this door: the plan that it was given may be old.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.engine.append import receipts
from sluice.engine.copy.abort import abort, finish_abort, is_aborted, sweep
from sluice.engine.copy.planning import check_append, check_target

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Store


class Resumed(NamedTuple):
    """The state in which a driver found a copy.

    Attributes:
        digest: the digest under which the copy is complete, None if it is not.
        settled: whether nothing is left to do. Then leftovers of late drivers were deleted.
        targetless: whether the target does not exist.
    """

    digest: str | None
    settled: bool = False
    targetless: bool = False


def resume(plan: StreamPlan, copy_journal: CopyJournal, target: Store) -> Resumed:
    """Resume a copy. Finish an interrupted abort, then check whether the target is complete.

    Args:
        plan: the plan that the driver was given.
        copy_journal: the copy's journal, which is loaded here.
        target: the target store.

    Raises:
        SluiceError: as `finish_abort`, `check_target`, `check_append` and `sweep` do.
    """
    journal = copy_journal.load()
    appends = journal is not None and journal.plan.append
    if journal is not None and journal.roll.aborted:
        finish_abort(plan.copy_id, plan.target, target)
        copy_journal.load()
    receipt = receipts.find(plan.copy_id, plan.target, target) if plan.append else None
    if receipt is not None:
        return _complete(plan, receipt.digest, copy_journal, target)
    stream = target.describe(plan.target)
    if not appends and is_aborted(plan.copy_id, plan.target, stream, target):
        abort(plan.copy_id, plan.target, target)
        copy_journal.load()
        stream = target.describe(plan.target)
    if plan.append:
        check_append(plan, copy_journal, stream)
        return Resumed(None, targetless=stream is None)
    digest = check_target(plan.copy_id, plan.target, stream, target, make_scope=plan.make_scope)
    if digest is not None:
        return _complete(plan, digest, copy_journal, target)
    return Resumed(None, targetless=stream is None)


def _complete(plan: StreamPlan, digest: str, copy_journal: CopyJournal, target: Store) -> Resumed:
    """Return whether a copy whose target is complete is settled. Then delete leftovers."""
    # Read the journal after the target. As long as there is one, steps are left to do after the
    # mark. Another driver may have begun it, and set the mark, since the check.
    journal = copy_journal.load()
    if journal is not None and journal.target is not None:
        return Resumed(digest)
    sweep(plan.copy_id, plan.target, target)
    return Resumed(digest, settled=True)
