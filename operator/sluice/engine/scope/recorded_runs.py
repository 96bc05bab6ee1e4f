"""Find the runs of archives that the records of a scope's runs name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.values.archive_layout import stream_at
from sluice.engine.access import parallel
from sluice.engine.access.source_runs import root
from sluice.engine.scope.run_records import RunRecords
from sluice.errors import ArchiveDamaged, InvalidSpec

if TYPE_CHECKING:
    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.scope.scope import ScopePlan
    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.engine.access.source_runs import Place

_TARGET_FIELD: Final = "spec.target.archive.path"

MOST_RECORDS: Final = 10_000
"""Records that are read for an archive whose resource is not known: an hourly run's of a year."""


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


def named_runs(place: ArchiveRoot, folder: str, stream: str, *, field: str) -> frozenset[str]:
    """Return the runs of an archive that restores of scopes need, whichever resources made them.

    These are the runs that the last complete record of each resource names. All records are read:
    those of a resource that runs seldom may lie behind many of another one. Objects that are no
    records name nothing.

    Args:
        place: the place of the folder.
        folder: the folder that the archive lies in.
        stream: the stream whose archive it is.
        field: the name of the archive's place, for errors.

    Returns:
        The SHA-256 of each run's manifest.

    Raises:
        InvalidSpec: there are too many records.
        ArchiveUnsupported: a later version wrote a record.
    """
    records = RunRecords(place, folder, field=field)
    numbers = records.numbers()
    if len(numbers) > MOST_RECORDS:
        raise InvalidSpec(
            f"the folder {folder!r} has {len(numbers):,} records of runs of a scope, and "
            f"{MOST_RECORDS:,} are read at most",
            field=field,
            remedy="Give the ScopeCopy a retention: its next run deletes old records.",
        )

    def look(number: int) -> tuple[str | None, str | None] | None:
        """Return a complete run's resource, and the archive's run; None for any other record."""
        try:
            run = records.read(number)
        except ArchiveDamaged:
            return None
        named = (one.sha256 for one in run.streams if one.stream == stream)
        return (run.series, next(named, None)) if run.is_complete else None

    last: dict[str | None, str | None] = {}
    for batch in parallel.batches(numbers[::-1], parallel.AT_ONCE):
        for series, sha256 in filter(None, parallel.each(look, batch)):
            last.setdefault(series, sha256)
    return frozenset(one for one in last.values() if one is not None)


def restored_runs(request: ScopeRequest, source: Place, plan: ScopeCopyPlan) -> dict[str, str]:
    """Return the runs of archives that the plan of a restore has chosen.

    Records that were made after the plan change nothing.

    Args:
        request: the restore.
        source: the place of the archives.
        plan: the plan.

    Returns:
        The SHA-256 of each run's manifest by the name of its stream. Nothing if the request
        restores no archives. Of streams that an earlier plan has restored, they are known only if
        the plan has chosen a run of the scope.
    """
    if request.restore is None:
        return {}
    archives = (source.archive for stream in plan.streams for source in stream.sources)
    planned = {stream_at(one.path): one.sha256 for one in archives if one is not None}
    if plan.scope.restored is None:
        return planned
    records = RunRecords(root(source), request.source, field="spec.source.archive.path")
    run = records.chosen(request.restore, pinned=plan.scope.restored)
    recorded = () if run is None else run.streams
    return planned | {one.stream: one.sha256 for one in recorded}


def records_of(request: ScopeRequest, target: Place) -> RunRecords:
    """Return the records of the scope's runs in the folder that a request archives to."""
    return RunRecords(root(target), request.target, field=_TARGET_FIELD)
