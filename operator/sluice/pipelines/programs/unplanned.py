"""What a driver does for the operator, which cannot look into volumes: plan, and tell of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.copy.plan import pinned
from sluice.core.workloads.plan import Plan, refusal
from sluice.engine.archive.planning import begun, resolve_archive
from sluice.engine.archive.query import told_of
from sluice.engine.copy.planning import resolve
from sluice.engine.scope.query import plan_run
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.recorded import Recorded
    from sluice.core.archive.request import ArchiveRequest
    from sluice.core.workloads.unplanned import Unplanned
    from sluice.pipelines.programs.program import Stores

_MOST_GAPS: Final = 10
"""That a termination message has room for."""


def planned(wanted: Unplanned, stores: Stores) -> Plan | None:
    """The plan of what is wanted; None where nothing is left to do.

    Args:
        wanted: what the operator has written down in place of a plan.
        stores: the stores.

    Raises:
        SluiceError: as `resolve`, `resolve_archive` and `plan_run` do.
        PlanTooLarge: it is longer than what the operator can write down.
    """
    if wanted.scoping is not None:
        (source,) = wanted.sources
        plan = plan_run(
            wanted.scoping,
            wanted.run,
            source=(source, stores.place(source)),
            target=(wanted.target, stores.place(wanted.target)),
        )
        too_large = refusal(plan)
        if too_large is not None:
            raise too_large
        return plan
    if wanted.archiving is not None:
        (source,) = wanted.sources
        archive = _archive(wanted, wanted.archiving, stores)
        run = resolve_archive(wanted.archiving, stores[source], archive).plan
        if run is None:
            return None
        return Plan(sources=wanted.sources, target=wanted.target, streams=(), archive=run)
    if wanted.copying is None:
        raise InvalidSpec("nothing is wanted", remedy="Delete the plan; it is made anew.")
    places = [stores.place(address) for address in wanted.sources]
    stream = resolve(wanted.copying, places, stores[wanted.target]).plan
    if stream is None:
        return None
    sources = pinned(stream, wanted.sources)
    return Plan(sources=sources, target=wanted.target, streams=(stream,))


def recorded(wanted: Unplanned, stores: Stores) -> Recorded | None:
    """What there is to say of the archive after its run; None where none was wanted."""
    if wanted.archiving is None:
        return None
    archive = _archive(wanted, wanted.archiving, stores)
    entry = begun(wanted.archiving, archive).entry
    return None if entry is None else told_of(archive, entry, most_gaps=_MOST_GAPS)


def _archive(wanted: Unplanned, request: ArchiveRequest, stores: Stores) -> Archive:
    return stores.shelf(wanted.target).archive(request.path, field="spec.destination.path")
