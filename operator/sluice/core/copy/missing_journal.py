"""Tell what it means that the journal of a copy is gone, though the copy is not complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.errors import CopyAborted, TargetLost

if TYPE_CHECKING:
    from sluice.core.copy.observed import Observed
    from sluice.core.copy.plan import StreamPlan
    from sluice.errors import SluiceError

REMEDY: Final = (
    "Run it again if you still need it: it starts anew. If no user has aborted it, find out first "
    "why the store lost its data."
)


def without_journal(plan: StreamPlan, seen: Observed) -> SluiceError:
    """Return the failure of a copy whose journal is gone.

    An abort deletes the journal, and so does a store that loses all data, or another store that
    answers in its place. No abort deletes a scope, or the target of an append. But a scope that the
    copy itself makes may not exist yet.
    """
    if seen.scopeless and not plan.make_scope:
        return TargetLost(
            f"the store has neither the scope {plan.target.scope} nor the journal of the copy to "
            f"{plan.target}, which were there before"
        )
    if plan.append and seen.target is None:
        return TargetLost(
            f"the store has neither {plan.target} nor the journal of the copy that was to be "
            "appended to it, which were there before"
        )
    return CopyAborted(
        f"the journal of the copy of {plan.origin} to {plan.target} is gone: the copy was aborted "
        "while it ran, or the store has lost its data",
        remedy=REMEDY,
    )
