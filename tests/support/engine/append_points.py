"""Points of an append, recognised by the calls that its driver makes to the target's store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cut:
    """A point of the protocol: right before a call to the target's store.

    Attributes:
        name: the point's name, for readers of the results.
        call: the call, as `stores.base` names it.
        number: the call's number among such calls of a driver, counted from 1.
        decided: whether the copy must be finished from here on, and cannot be aborted.
    """

    name: str
    call: str
    number: int = 1
    decided: bool = False


APPENDING = [
    Cut("before the plan is recorded", "append_at", 1),
    Cut("before it is written down where to stage", "append_at", 2),
    Cut("before the first staging segment", "create", 2),
    Cut("before the first bytes", "appender", 1),
    Cut("before the first mark", "set_attribute", 1),
    Cut("before the turn is taken", "append_at", 4),
    Cut("before the layout is written down", "append_at", 5),
    Cut("before the policy is loosened", "update_stream", 1),
    Cut("before the target is scaled", "scale", 1),
    Cut("before the first transaction", "open_transaction", 1),
    Cut("before the first transaction is written down", "append_at", 6),
    Cut("before the target is scaled again", "scale", 2),
    Cut("before the last transaction is written down", "append_at", 8),
    Cut("before the target is scaled back", "scale", 4),
    Cut("before the policy is given back", "update_stream", 2),
    Cut("before the turn is given back", "append_at", 9),
    Cut("before the first merge", "merge", 1),
    Cut("between two merges", "merge", 3),
    Cut("before the decision", "append_at", 10),
    Cut("before the first commit", "commit_transaction", 1, decided=True),
    Cut("between two commits", "commit_transaction", 2, decided=True),
    Cut("before the commits are noted", "append_at", 11, decided=True),
    Cut("before the receipt", "append_at", 12, decided=True),
    Cut("before the journal is deleted", "delete", 1, decided=True),
]
"""Points of an append of three generations. The target's policy asks for more segments than they
have. The numbers count the calls of an undisturbed driver.
"""
