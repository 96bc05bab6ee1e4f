"""Find the runs of archives that the records of a scope's runs name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.engine.access.source_runs import root
from sluice.engine.scope.run_records import RunRecords

if TYPE_CHECKING:
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.scope.scope import ScopePlan
    from sluice.engine.access.source_runs import Place

_TARGET_FIELD: Final = "spec.target.archive.path"


def needed_runs(scope: ScopePlan, target: Place) -> frozenset[str]:
    """Return the runs of archives that a restore of the scope's last complete run needs.

    Args:
        scope: the plan of a scope that is archived.
        target: the place of the archives.

    Returns:
        The SHA-256 of each run's manifest. Nothing if the scope is not archived repeatedly.

    Raises:
        StoreBusy: see `RunRecords.last_complete`.
    """
    if scope.series is None:
        return frozenset()
    records = RunRecords(root(target), scope.target, field=_TARGET_FIELD)
    run = records.last_complete(scope.series)
    return frozenset() if run is None else frozenset(one.sha256 for one in run.streams)


def restored_runs(
    request: ScopeRequest, source: Place, pinned: int | None = None
) -> dict[str, str]:
    """Return the runs that a run of the scope has chosen for a restore.

    Args:
        request: the restore.
        source: the place of the archives.
        pinned: the number of the scope's run that the plan has chosen; None to choose one.

    Returns:
        The SHA-256 of each run's manifest by the name of its stream. Nothing if the request
        restores no run of a scope.
    """
    if request.restore is None:
        return {}
    records = RunRecords(root(source), request.source, field="spec.source.archive.path")
    run = records.chosen(request.restore, pinned=pinned)
    return {} if run is None else {one.stream: one.sha256 for one in run.streams}


def records_of(request: ScopeRequest, target: Place) -> RunRecords:
    """Return the records of the scope's runs in the folder that a request archives to."""
    return RunRecords(root(target), request.target, field=_TARGET_FIELD)
