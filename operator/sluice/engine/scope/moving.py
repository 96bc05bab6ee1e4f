"""Delete the source's scope after a move, if all its streams were moved and it is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.scope.scope import StreamState
from sluice.engine.access.source_runs import live
from sluice.engine.claims import scope_lifecycle
from sluice.errors import ScopeNotEmpty, ScopeNotFound

if TYPE_CHECKING:
    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.engine.access.source_runs import Place

_FEW: Final = 5
"""How many names a sentence lists."""

_EMPTY: Final = "nothing was left to move out of it; it is empty, so delete it if it is not needed"


def delete_source_scope(plan: ScopeCopyPlan, source: Place) -> str | None:
    """Delete the source's scope after a move if it is empty. Safe to repeat.

    Args:
        plan: the plan of the last run, all streams of which are moved.
        source: the store of the source.

    Returns:
        Why the scope still exists; None if it is gone, or if the copy is no move.
    """
    if not plan.scope.move:
        return None
    scope, store = plan.scope.source, live(source)
    with scope_lifecycle.unused(scope, store):
        kept = why_kept(plan, store)
        if kept is None:
            try:
                store.delete_scope(scope)
            except ScopeNotEmpty as error:
                return error.message
    return kept


def why_kept(plan: ScopeCopyPlan, source: Place, *, coming: bool = True) -> str | None:
    """Tell why the source's scope is kept after a move; None if it is not, or is no move's.

    Args:
        plan: the plan of the last run.
        source: the store of the source.
        coming: whether a driver deletes the scope if it is empty. If not, an empty scope is kept
            as well.
    """
    if not plan.scope.move:
        return None
    scope, store = plan.scope.source, live(source)
    if any(one.state is not StreamState.COPIED for one in plan.scope.settled):
        return "not all of its streams were moved"
    try:
        streams = store.list_streams(scope, internal=True)
        tables = store.list_key_value_tables(scope)
    except ScopeNotFound:
        return None
    left = [
        _named(names, what)
        for names, what in ((streams, "stream"), (tables, "key-value table"))
        if names
    ]
    if left:
        return f"it has {' and '.join(left)}"
    return None if coming else _EMPTY


def _named(names: list[str], what: str) -> str:
    """Return the number of things, and the names of the first of them."""
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return f"{len(names)} {what}{'s' * (len(names) > 1)} ({', '.join(names[:_FEW])}{more})"
