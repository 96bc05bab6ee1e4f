"""End the runs of a scope that is archived again and again: record them, and delete their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.engine.access.source_runs import root
from sluice.engine.scope.object_log import log_of, scope_ids_in
from sluice.engine.scope.query import abandon_scope
from sluice.engine.scope.recorded_runs import records_of
from sluice.errors import JournalDamaged

if TYPE_CHECKING:
    from sluice.core.archive.retention import Retention
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.workloads.answers import ScopeEnded
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place


def record_scope_run(
    request: ScopeRequest, ended: ScopeEnded, target: Place, retention: Retention
) -> int:
    """Record the run of a request. See `RunRecords.record`."""
    return records_of(request, target).record(request, ended, retention)


def abandon_runs(
    request: ScopeRequest, *, source: Place | None, target: Place, known: Plan | None
) -> str:
    """Abandon the run of a request, and each earlier run that has left a log; see `abandon_scope`.

    An earlier run has left one if the resource lost its status, and with it the key of that run.
    """
    said = abandon_scope(request, source=source, target=target, known=known)
    if request.series is None:
        return said
    for scope_id in scope_ids_in(root(target), request.target):
        if _series_of(request, scope_id, target) == request.series:
            earlier = request.model_copy(update={"scope_id": scope_id})
            abandon_scope(earlier, source=source, target=target, known=None)
    return said


def _series_of(request: ScopeRequest, scope_id: str, target: Place) -> str | None:
    """Return the series of the copy that a log is of; None if it is of none, or is unreadable."""
    try:
        state = log_of(target, scope_id, request).load()
    except JournalDamaged:
        return None
    return None if state is None else state.plan.scope.series
