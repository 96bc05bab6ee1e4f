"""Coming to a copy: whether its plan may be begun, and what others have left of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.engine.copy.abort import finish_abort, sweep
from sluice.engine.copy.planning import check_plan
from sluice.engine.journal.ledger import Ledger

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan
    from sluice.stores.base import Store


class Arrival(NamedTuple):
    """What a driver found that came to a copy, perhaps late.

    Attributes:
        aborted: whether it finished an abort that was cut off, so that the copy begins anew.
        digest: the digest under which the copy is complete, None if it is not.
        settled: whether nothing is left to do; then late drivers' leftovers were deleted.
        swept: how many of them there were.
    """

    aborted: bool
    digest: str | None = None
    settled: bool = False
    swept: int = 0


def arrive(plan: StreamPlan, target: Store) -> Arrival:
    """Come to a copy whose plan may be old: finish its abort, see whether it is complete.

    Raises:
        SluiceError: as `finish_abort`, `check_plan` and `sweep` do.
    """
    aborted = finish_abort(plan.copy_id, plan.target, target)
    digest = check_plan(plan, target)
    # The journal after the target: what follows on the mark is done only when there is none any
    # more, and another driver may have begun one, and set the mark, since anybody looked before.
    journal = Ledger(target, plan.copy_id, plan.target).load()
    if digest is None or (journal is not None and journal.target is not None):
        return Arrival(aborted, digest)
    swept = sweep(plan.copy_id, plan.target, target)
    return Arrival(aborted, digest, settled=True, swept=swept)
